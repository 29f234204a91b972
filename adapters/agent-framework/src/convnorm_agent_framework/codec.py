"""Framework messages as wire elements, and back; what is not touched stays the same object.

The elements are not what the framework's client will write, which differs from release to release.
They say the same, in the shape of the API, one element per call, result, thought or text.
"""

import copy
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_framework import Content, Message

from convnorm.errors import DialectError

CALL_IDS = ("fc_id", "openai")
"""Where a call keeps the id of its item; the second is a mapping of newer releases."""
GROUP = "_group"
"""The compaction's note of what belongs together: no longer true of a rebuilt message."""


@dataclass(slots=True)
class Unit:
    """One wire element, and the part of a message it stands for."""

    message: int
    contents: tuple[Any, ...]
    element: dict[str, Any]
    parts: dict[int, Any] = field(default_factory=dict)
    """By the identity of a part of the element: the content it stands for."""


class Codec:
    """The messages of one call, and the wire elements that stand for them."""

    def __init__(self, messages: Sequence[Any], target: str) -> None:
        self.messages = [_sendable(message) for message in messages]
        write = _responses if target == "openai.responses" else _chat
        self.units = [
            unit for at, message in enumerate(self.messages) for unit in write(at, message)
        ]
        self._of_message: dict[int, list[Unit]] = {}
        for unit in self.units:
            self._of_message.setdefault(unit.message, []).append(unit)
        self._by_element = {id(unit.element): unit for unit in self.units}

    @property
    def elements(self) -> list[dict[str, Any]]:
        """The wire elements, in order."""
        return [unit.element for unit in self.units]

    def are_own(self, elements: Sequence[Any]) -> bool:
        """Whether these are all elements of this codec, in their places."""
        return len(elements) == len(self.units) and all(
            element is unit.element for element, unit in zip(elements, self.units, strict=True)
        )

    def messages_of(self, elements: Sequence[Any]) -> list[Any]:
        """The messages behind the elements that convnorm left, moved, changed or made."""
        if self.are_own(elements):
            return list(self.messages)
        found = list(self._found(elements))
        built: list[Any] = []
        silent = iter(at for at in range(len(self.messages)) if at not in self._of_message)
        next_silent = next(silent, None)
        for group in _groups(found):
            unit = group[0][0]
            while unit is not None and next_silent is not None and next_silent < unit.message:
                built.append(self.messages[next_silent])
                next_silent = next(silent, None)
            built.extend(_fresh(group) if unit is None else [self._message(unit.message, group)])
        built.extend(self.messages[at] for at in (next_silent, *silent) if at is not None)
        return built

    def _found(self, elements: Iterable[Any]) -> Iterator[tuple[Unit | None, Any]]:
        """Each element with the unit it is, or was before it was changed."""
        elements = list(elements)
        kept = {id(element) for element in elements}
        gone: dict[object, list[Unit]] = {}
        for one in self.units:
            if id(one.element) not in kept:
                gone.setdefault(_clue(one.element), []).append(one)
        for element in elements:
            if (own := self._by_element.get(id(element))) is not None:
                yield own, element
                continue
            left = gone.get(_clue(element), [])
            # What was sent before comes again in equal elements.
            equal = next((one for one in left if one.element == element), None)
            unit = equal or next((one for one in left if _is_changed(one, element)), None)
            if unit is not None:
                left.remove(unit)
            yield unit, element if equal is None else equal.element

    def _message(self, at: int, group: list[tuple[Unit | None, Any]]) -> Any:
        original = self.messages[at]
        units = self._of_message[at]
        whole = [unit for unit, _ in group] == units
        if whole and all(unit is not None and element is unit.element for unit, element in group):
            return original
        written: dict[int, list[Any]] = {}
        for unit, element in group:
            assert unit is not None
            new = unit.contents if element is unit.element else tuple(_changed(unit, element))
            written[id(unit.contents[0])] = list(new)
        covered = {id(content) for unit in units for content in unit.contents}
        contents: list[Any] = []
        for content in original.contents:
            if id(content) in written:
                contents.extend(written.pop(id(content)))
            elif id(content) not in covered and whole:
                contents.append(content)
        if (
            whole
            and len(contents) == len(original.contents)
            and all(new is old for new, old in zip(contents, original.contents, strict=True))
        ):
            return original
        return _copy(original, contents)


def _groups(
    found: Iterable[tuple[Unit | None, Any]],
) -> Iterator[list[tuple[Unit | None, Any]]]:
    """Neighbours that belong to one message: of one original, or all of them new."""
    group: list[tuple[Unit | None, Any]] = []
    for unit, element in found:
        if group and _speaker(group[-1]) != _speaker((unit, element)):
            yield group
            group = []
        group.append((unit, element))
    if group:
        yield group


def _speaker(found: tuple[Unit | None, Any]) -> object:
    unit, element = found
    return unit.message if unit is not None else _role(element)


def _role(element: Mapping[str, Any]) -> str:
    if element.get("type") == "function_call_output":
        return "tool"
    return str(element.get("role") or "assistant")


def _sendable(message: Any) -> Any:
    """The message, with results as text where older clients would send an object as it is."""
    if not any(_is_object(content) for content in message.contents):
        return message
    return _copy(
        message,
        [
            _answering(content, output_of(content)) if _is_object(content) else content
            for content in message.contents
        ],
    )


def _is_object(content: Any) -> bool:
    return content.type == "function_result" and isinstance(content.result, Mapping | int | float)


def _copy(message: Any, contents: list[Any]) -> Any:
    new = copy.copy(message)
    new.contents = contents
    new.additional_properties = {
        key: value for key, value in message.additional_properties.items() if key != GROUP
    }
    return new


# ---------------------------------------------------------------- writing


def _responses(at: int, message: Any) -> Iterator[Unit]:
    """A message as items of the Responses API; texts in a row are one item."""
    spoken: list[tuple[Any, dict[str, Any]]] = []

    def said() -> Iterator[Unit]:
        if spoken:
            parts = {id(part): content for content, part in spoken}
            element = {
                "type": "message",
                "role": message.role,
                "content": [part for _, part in spoken],
            }
            yield Unit(at, tuple(content for content, _ in spoken), element, parts)
            spoken.clear()

    thought: list[Any] = []

    def reasoned() -> Iterator[Unit]:
        if thought:
            yield Unit(at, tuple(thought), _reasoning(thought))
            thought.clear()

    for content in message.contents:
        if content.type == "text_reasoning":
            yield from said()
            if thought and _id(content) != _id(thought[0]):
                yield from reasoned()
            thought.append(content)
            continue
        yield from reasoned()
        part = _part(content, message.role)
        if part is not None:
            spoken.append((content, part))
            continue
        item = _call_item(content)
        if item is not None:
            yield from said()
            yield Unit(at, (content,), item)
    yield from reasoned()
    yield from said()


def _part(content: Any, role: str) -> dict[str, Any] | None:
    """What is said or shown, as a part of a message."""
    match content.type:
        case "text":
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": kind, "text": content.text or ""}
        case "data" | "uri" if (content.media_type or "").startswith("image"):
            return {"type": "input_image", "image_url": content.uri}
        case "data" | "uri":
            return {"type": "input_file", "file_data": content.uri}
        case "hosted_file":
            return {"type": "input_file", "file_id": content.file_id}
    return None


def _call_item(content: Any) -> dict[str, Any] | None:
    match content.type:
        case "function_call" if content.call_id:
            item = {
                "type": "function_call",
                "call_id": content.call_id,
                "name": content.name,
                "arguments": _arguments(content.arguments),
            }
            own = _item_id(content)
            return item if own is None else {**item, "id": own}
        case "function_result" if content.call_id:
            return {
                "type": "function_call_output",
                "call_id": content.call_id,
                "output": output_of(content),
            }
    return None


def _reasoning(thought: Sequence[Any]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": one.text} for one in thought if one.text],
    }
    own, sealed = _id(thought[0]), next(filter(None, map(sealed_of, thought)), None)
    return item | ({"id": own} if own else {}) | ({"encrypted_content": sealed} if sealed else {})


def _id(content: Any) -> str | None:
    """The id of a thought; releases before 1.0.0 knew none."""
    found = getattr(content, "id", None)
    return found if isinstance(found, str) else None


def sealed_of(content: Any) -> str | None:
    """The sealed form of a thought."""
    found = content.protected_data or content.additional_properties.get("encrypted_content")
    return found if isinstance(found, str) else None


def _item_id(content: Any) -> str | None:
    """The id of a call's item; `Content.id` of a call is the framework's own count."""
    named = content.additional_properties.get("openai")
    newer = named.get("item_id") if isinstance(named, Mapping) else None
    found = newer or content.additional_properties.get("fc_id")
    return found if isinstance(found, str) else None


def _arguments(given: Any) -> Any:
    if given is None:
        return ""
    return given if isinstance(given, str) else json.dumps(given, default=str)


def output_of(content: Any) -> str:
    """What a tool returned, as text."""
    result = content.result
    if isinstance(result, str):
        return result
    return "" if result is None else json.dumps(result, default=str)


def _chat(at: int, message: Any) -> Iterator[Unit]:
    """A message as messages of Chat Completions: one per result, and one for all the rest."""
    own: list[Any] = []
    calls: list[dict[str, Any]] = []
    spoken: list[dict[str, Any]] = []
    parts: dict[int, Any] = {}
    for content in message.contents:
        if content.type == "function_result" and content.call_id:
            element = {
                "role": "tool",
                "tool_call_id": content.call_id,
                "content": output_of(content),
            }
            yield Unit(at, (content,), element)
            continue
        part = _chat_part(content)
        if content.type == "function_call" and content.call_id:
            function = {"name": content.name, "arguments": _arguments(content.arguments)}
            part = {"id": content.call_id, "type": "function", "function": function}
            calls.append(part)
        elif part is not None:
            spoken.append(part)
        if part is not None:
            own.append(content)
            parts[id(part)] = content
    if own:
        element = {"role": message.role, "content": spoken or None}
        yield Unit(at, tuple(own), element | ({"tool_calls": calls} if calls else {}), parts)


def _chat_part(content: Any) -> dict[str, Any] | None:
    match content.type:
        case "text":
            return {"type": "text", "text": content.text or ""}
        case "data" | "uri" if (content.media_type or "").startswith("image"):
            return {"type": "image_url", "image_url": {"url": content.uri}}
        case "data" | "uri":
            return {"type": "file", "file": {"file_data": content.uri}}
        case "hosted_file":
            return {"type": "file", "file": {"file_id": content.file_id}}
    return None


# ---------------------------------------------------------------- reading


def _clue(element: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """What an element keeps however it is changed."""
    ids = (element.get(key) for key in ("call_id", "tool_call_id", "encrypted_content"))
    return (_role(element), element.get("type"), next(filter(None, ids), None))


def _is_changed(unit: Unit, element: Mapping[str, Any]) -> bool:
    """Whether an element is what became of a unit."""
    was = unit.element
    if _clue(was)[2] is not None:
        return True
    if was.get("type") == "reasoning":
        return bool(was["summary"] == element.get("summary"))
    calls = {call.get("id") for call in was.get("tool_calls", ())}
    if calls:
        return any(call.get("id") in calls for call in element.get("tool_calls", ()))
    said = element.get("content")
    if isinstance(said, list) and any(id(part) in unit.parts for part in said):
        return True
    return bool(was.get("content") == said)


def _changed(unit: Unit, element: Mapping[str, Any]) -> Iterator[Any]:
    """The contents of a unit whose element was changed."""
    (first, *_) = unit.contents
    match element.get("type"):
        case "reasoning":
            # An id beside sealed content is legal, and newer clients send no thought without one.
            yield from unit.contents
        case "function_call":
            yield _call(first, element, element["arguments"], element.get("id"))
        case "function_call_output":
            yield _answering(first, element["output"])
        case "message":
            yield from _said(element, unit.parts)
        case _ if element["role"] == "tool":
            yield _answering(first, element["content"])
        case _:
            yield from _said(element, unit.parts)
            for call in element.get("tool_calls") or ():
                known = unit.parts.get(id(call)) or next(
                    (
                        content
                        for content in unit.contents
                        if content.type == "function_call" and content.call_id == call["id"]
                    ),
                    None,
                )
                function = call["function"]
                if known is None:
                    yield Content.from_function_call(
                        call["id"], function["name"], arguments=function["arguments"]
                    )
                elif _arguments(known.arguments) == function["arguments"]:
                    yield known
                else:
                    yield _with(known, arguments=function["arguments"], name=function["name"])


def _call(known: Any, element: Mapping[str, Any], arguments: Any, own: str | None) -> Any:
    values: dict[str, Any] = {"name": element["name"]}
    if _arguments(known.arguments) != arguments:
        values["arguments"] = arguments
    if own is None and _item_id(known) is not None:
        values["additional_properties"] = _without_id(known)
    return _with(known, **values)


def _without_id(call: Any) -> dict[str, Any]:
    """The properties of a call, without the id of its item."""
    named = call.additional_properties.get("openai")
    rest = {key: one for key, one in (named or {}).items() if key != "item_id"}
    kept = {k: one for k, one in call.additional_properties.items() if k not in CALL_IDS}
    return kept | ({"openai": rest} if rest else {})


def without_ids(messages: Sequence[Any], ids: Collection[str]) -> list[Any]:
    """The messages with calls that do not name these items."""
    return [
        _copy(
            message,
            [
                _with(one, additional_properties=_without_id(one)) if _item_id(one) in ids else one
                for one in message.contents
            ],
        )
        if any(_item_id(one) in ids for one in message.contents)
        else message
        for message in messages
    ]


def _with(content: Any, **values: Any) -> Any:
    new = copy.copy(content)
    for key, value in values.items():
        setattr(new, key, value)
    return new


def _answering(content: Any, output: str) -> Any:
    """A result with another text; newer releases hold it in items, beside what is no text."""
    new = _with(content, result=output)
    if held := getattr(content, "items", None):
        new.items = [Content.from_text(output), *(one for one in held if one.type != "text")]
    return new


def _said(element: Mapping[str, Any], known: Mapping[int, Any]) -> Iterator[Any]:
    said = element.get("content")
    for part in [{"text": said}] if isinstance(said, str) else said or ():
        if id(part) in known:
            yield known[id(part)]
        elif isinstance(part.get("text"), str):
            yield Content.from_text(part["text"])
        else:
            raise DialectError(f"a {part.get('type')} part cannot be put into a framework message")


def _fresh(group: list[tuple[Unit | None, Any]]) -> list[Any]:
    """Messages for elements that convnorm made, or took from what the server holds."""
    role = _role(group[0][1])
    elements = [element for _, element in group]
    if role not in ("assistant", "tool"):
        return [Message(role, list(_new_contents(element))) for element in elements]
    return [Message(role, [new for element in elements for new in _new_contents(element)])]


def messages_from(elements: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Messages for wire elements, each of one speaker."""
    return [
        message
        for group in _groups((None, element) for element in elements)
        for message in _fresh(group)
    ]


def _new_contents(element: Mapping[str, Any]) -> Iterator[Any]:
    match element:
        case {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}:
            own = element.get("id")
            extra = {"fc_id": own} if own else None
            yield Content.from_function_call(
                call_id, name, arguments=arguments, additional_properties=extra
            )
        case {"type": "function_call_output", "call_id": call_id, "output": output}:
            yield Content.from_function_result(call_id, result=output)
        case {"type": "reasoning"}:
            yield _thought(element)
        case {"role": "tool", "tool_call_id": call_id, "content": output}:
            yield Content.from_function_result(call_id, result=output)
        case {"role": _}:
            yield from _said(element, {})
            for call in element.get("tool_calls") or ():
                function = call["function"]
                yield Content.from_function_call(
                    call["id"], function["name"], arguments=function["arguments"]
                )
        case _:
            raise DialectError(
                f"an item of type {element.get('type')!r} cannot be put into a framework message"
            )


def _thought(element: Mapping[str, Any]) -> Any:
    sealed = element.get("encrypted_content")
    text = "".join(part.get("text", "") for part in element.get("summary") or ())
    new = Content.from_text_reasoning(
        text=text or None,
        protected_data=sealed,
        additional_properties={"encrypted_content": sealed} if sealed else None,
    )
    new.id = element.get("id")
    return new
