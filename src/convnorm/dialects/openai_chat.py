"""OpenAI Chat Completions: `messages`.

A message is a turn. Its content parts, refusal, audio, reasoning and calls are the items; a
`tool` message is a turn with one result. Nothing is lost on the way in and back: what is not
known here is opaque, and a message is written by laying what changed over the caller's own keys.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convnorm.dialects.dialect import (
    NOTHING,
    Call,
    CallLimits,
    decode_content,
    decoded,
    holds_halves,
    mended,
    read,
    text_call_id,
    text_id,
)
from convnorm.dialects.openai_chat_calls import BODY, chat_calls
from convnorm.dialects.openai_chat_fields import (
    LOOKED_AT,
    field_flaws,
    is_odd_call,
    speakers,
    takes_null,
)
from convnorm.dialects.openai_chat_parts import (
    chat_content,
    chat_output,
    part_flaws,
    survey_parts,
)
from convnorm.dialects.openai_chat_reasoning import asks, reasoning_flaws
from convnorm.dialects.openai_chat_turns import TurnTaking
from convnorm.envelope import is_close
from convnorm.facts import Fact
from convnorm.ir import (
    GONE,
    Flaw,
    History,
    Item,
    Media,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    same,
    same_item,
)
from convnorm.targets import Fault
from convnorm.wire import LIST, fields

KEY = "messages"

ROLES = ("user", "assistant", "system", "developer", "tool", "function")
PART_TEXT = {"text": "text", "refusal": "refusal"}
PART_MEDIA = {"image_url": "image", "input_audio": "audio", "file": "file"}
KNOWN = frozenset(
    {"role", "content", "tool_calls", "function_call", "refusal", "audio", "name", "id"}
)
SPEAKING = ("function_call", "refusal", "audio")
"""With one of these, or with calls, an assistant message needs no content."""


def detect(element: Mapping[str, Any]) -> bool:
    """Tool messages, `tool_calls` and chat's own part types are found nowhere else."""
    if element.get("role") in ("tool", "function") or element.get("tool_calls"):
        return True
    if element.get("function_call") and element.get("type") is None:
        return True
    return any(part in PART_MEDIA or part == "text" for part in _part_types(element))


def _part_types(element: Mapping[str, Any]) -> Iterator[str]:
    content = element.get("content")
    for part in content if isinstance(content, LIST) else ():
        kind = (fields(part) or {}).get("type")
        if isinstance(kind, str):
            yield kind


def survey(elements: Sequence[object], call: Call) -> set[Fact]:
    """One scan over the messages; see `Fact` for what it looks for."""
    facts: set[Fact] = set()
    limits, profile, names = CallLimits(call.target.profile), call.target.chat, speakers()
    ids: set[str] = set()
    call_ids: set[str] = set()
    waiting: set[str] = set()
    taking = TurnTaking(call.target.chat)
    known, nulls = profile.message_keys, takes_null(profile)
    for at, element in enumerate(elements):
        message = element if type(element) is dict else read(element, KEY, at)
        role = message.get("role")
        content = message.get("content")
        if taking.asks:
            taking.see(message)
        if type(content) is not str:
            if content is None:
                if not _may_be_null(message):
                    facts.add(Fact.EMPTY)
            elif not isinstance(content, LIST) and not isinstance(content, str):
                facts |= {Fact.SHAPE, Fact.FIELDS}
            elif not content and isinstance(content, LIST):
                facts.add(Fact.EMPTY)
            elif isinstance(content, LIST):
                survey_parts(message, content, facts)
        if (
            (type(content) is not str and not (nulls and content is None))
            or (len(message) > 2 and role != "tool" and not LOOKED_AT.isdisjoint(message))
            or not (known is None or known.issuperset(message))
        ) and any(field_flaws(message, call, names)):
            facts.add(Fact.FIELDS)
        if holds_halves(content) or ("refusal" in message and holds_halves(message["refusal"])):
            facts.add(Fact.FIELDS)
        if "id" in message and isinstance(message_id := message["id"], str):
            if message_id in ids:
                facts.add(Fact.REPEATED_ID)
            ids.add(message_id)
        if role == "tool":
            call_id = message.get("tool_call_id")
            if isinstance(call_id, str) and call_id in waiting:
                waiting.remove(call_id)
            else:
                facts |= {Fact.PAIRING, Fact.IDS}  # it may be a number
        elif waiting:
            facts.add(Fact.PAIRING)
            waiting.clear()
        if "tool_calls" in message and (calls := message["tool_calls"]) is not None:
            if not isinstance(calls, LIST):
                facts |= {*Fact} - {Fact.LINK, Fact.SOURCES, Fact.STORE_UNKNOWN}
            elif role != "assistant":
                facts |= {Fact.SHAPE, Fact.ROLES}
            if not calls:
                facts.add(Fact.EMPTY)
            else:
                _survey_calls(calls, waiting, call_ids, facts, limits)
        elif role not in ROLES:
            facts |= {Fact.SHAPE, Fact.ROLES}
        elif role == "function" and not text_id(message.get("name")):
            facts |= {Fact.SHAPE, Fact.IDS}
        if "function_call" in message and (old := fields(message["function_call"])) is not None:
            limits.survey(old.get("name"), old.get("arguments"), facts)
    if waiting:
        facts.add(Fact.PAIRING)
    if not elements:
        facts.add(Fact.SHAPE)
    if taking.is_broken():
        facts.add(Fact.ROLES)
    if asks(call.target.chat):
        facts.add(Fact.REASONING)  # what the body says of thinking is not seen here
    return facts


def _may_be_null(message: Mapping[str, Any]) -> bool:
    """Null is how an assistant speaks that only calls tools, and what an old function returned."""
    match message.get("role"):
        case "assistant":
            return bool(message.get("tool_calls")) or any(map(message.get, SPEAKING))
        case role:
            return role == "function"


def _survey_calls(
    calls: object, waiting: set[str], call_ids: set[str], facts: set[Fact], limits: CallLimits
) -> None:
    for tool_call in calls if isinstance(calls, LIST) else ():
        keys = tool_call if type(tool_call) is dict else fields(tool_call)
        if keys is None:
            facts |= {*Fact} - {Fact.LINK, Fact.SOURCES, Fact.STORE_UNKNOWN}
            continue
        call_id = keys.get("id")
        body = keys.get("function")
        if type(body) is not dict or keys.get("type") != "function":
            if is_odd_call(keys):
                facts.add(Fact.FIELDS)
            kind = _kind(keys)
            body = fields(keys.get(kind)) or {}
            limits.survey(body.get("name"), body.get(BODY[kind][1]), facts)
        else:
            limits.survey(body.get("name"), body.get("arguments"), facts)
        if not isinstance(call_id, str) or not call_id:
            facts |= {Fact.PAIRING, Fact.IDS}
            continue
        if len(call_id) > limits.id_length:
            facts.add(Fact.IDS)
        if call_id in call_ids:
            facts.add(Fact.REPEATED_CALL)
            if call_id in waiting:
                facts.add(Fact.PAIRING)
        call_ids.add(call_id)
        waiting.add(call_id)


def decode(elements: Sequence[object], request: Mapping[str, Any], call: Call) -> History:
    """The history behind `messages`."""
    messages = [read(element, KEY, at) for at, element in enumerate(elements)]
    profile, names = call.target.chat, speakers()
    flaws = reasoning_flaws(messages, profile, request)
    turns = [
        _turn(
            element,
            messages[at],
            at,
            (
                *flaws.get(at, ()),
                *field_flaws(messages[at], call, names),
                *part_flaws(messages[at], profile),
                *_unnamed(messages, at),
            ),
        )
        for at, element in enumerate(elements)
    ]
    return decoded(turns, request, call.context)


def _turn(raw: object, message: Mapping[str, Any], at: int, flaws: tuple[Flaw, ...]) -> Turn:
    role = message.get("role")
    return Turn(
        role if isinstance(role, str) else "",
        _items(message),
        raw,
        at,
        text_id(message.get("id")),
        empties=_empties(message),
        has_more=any(message[key] for key in message.keys() - KNOWN),
        name=text_id(message.get("name")),
        goes_on=message.get("prefix") is True,
        agent=text_id(message.get("name")) if role == "assistant" else None,
        flaws=(*flaws, *_number_flaws(message)),
    )


def _unnamed(messages: Sequence[Mapping[str, Any]], at: int) -> Iterator[Flaw]:
    """A message of the old role function that does not say which function answers."""
    if messages[at].get("role") != "function" or text_id(messages[at].get("name")):
        return
    called = fields(messages[at - 1].get("function_call")) if at else None
    if called is not None and (name := text_id(called.get("name"))):
        why = "the call before it says which function answers"
        yield Flaw(Fault.FUNCTION_UNNAMED, "name", name, why)
    else:
        yield Flaw(Fault.FUNCTION_UNNAMED, "name", GONE, "nobody says which function answers")


def _number_flaws(message: Mapping[str, Any]) -> Iterator[Flaw]:
    """Ids of calls that are sent as numbers."""
    calls = message.get("tool_calls")
    if isinstance(calls, LIST) and any(map(_number_in, map(fields, calls))):
        texts = [
            call if (text := _number_in(keys)) is None or keys is None else {**keys, "id": text}
            for call, keys in ((call, fields(call)) for call in calls)
        ]
        yield Flaw(Fault.CALL_ID_MISSING, "tool_calls", texts, "the id of a call is a number")
    if message.get("role") == "tool" and (text := _number_in(message, "tool_call_id")):
        why = f"the id {text} of a call is a number"
        yield Flaw(Fault.RESULT_ID_MISSING, "tool_call_id", text, why)


def _number_in(keys: Mapping[str, Any] | None, key: str = "id") -> str | None:
    """The digits of an id that is a number."""
    given = None if keys is None else keys.get(key)
    return None if isinstance(given, str) else text_call_id(given)


def _items(message: Mapping[str, Any]) -> tuple[Item, ...]:
    content = chat_content(message)
    match message.get("role"):
        case "tool":
            call_id = text_call_id(message.get("tool_call_id"))
            return (ToolResult(call_id, content, synthetic=is_close(content, call_id)),)
        case "function":
            return (ToolResult(None, content, kind="legacy_function", paired=False),)
    items: list[Item] = []
    if isinstance(thought := message.get("reasoning_content"), str):
        items.append(Reasoning(thought, slot="reasoning_content"))
    items.extend(decode_content(content, PART_TEXT, PART_MEDIA))
    if isinstance(refusal := message.get("refusal"), str):
        items.append(Text(refusal, "refusal", slot="refusal"))
    if (audio := message.get("audio")) is not None:
        items.append(Media("audio", audio, slot="audio"))
    if (old := fields(message.get("function_call"))) is not None:
        items.append(
            ToolCall(
                None,
                text_id(old.get("name")),
                old.get("arguments"),
                kind="legacy_function",
                answered_by=(),
                slot="function_call",
                raw=old,
            )
        )
    calls = chat_calls(message)
    items.extend(_call(raw) for raw in (calls if isinstance(calls, LIST) else ()))
    return tuple(items)


def _kind(keys: Mapping[str, Any]) -> str:
    return "custom" if keys.get("type") == "custom" else "function"


def _call(raw: object) -> Item:
    keys = fields(raw)
    if keys is None:
        return Opaque(raw, slot="tool_calls")
    kind = _kind(keys)
    key, arguments = BODY[kind]
    body = fields(keys.get(key))
    if body is None:  # nobody knows what it says: it is kept whole, as data
        kind, arguments = "function", "arguments"
        body = {arguments: {key: keys[key] for key in keys if key not in ("id", "type")}}
    return ToolCall(
        text_call_id(keys.get("id")),
        text_id(body.get("name")),
        body.get(arguments),
        kind=kind,
        slot="tool_calls",
        raw=raw,
    )


def _empties(message: Mapping[str, Any]) -> frozenset[str]:
    content, calls = message.get("content"), message.get("tool_calls")
    empties = []
    if content is None:
        if not _may_be_null(message):
            empties.append("content")
    elif isinstance(content, LIST) and not content:
        empties.append("content_list")
    if isinstance(calls, LIST) and not calls:
        empties.append("tool_calls")
    return frozenset(empties) if empties else NOTHING


def encode(history: History, original: History) -> list[Any]:
    """The messages of `history`; those of untouched turns are the caller's own."""
    as_they_came = set(map(id, original.turns))
    return [turn.raw if id(turn) in as_they_came else _message(turn) for turn in history.turns]


def _message(turn: Turn) -> Any:
    was = {} if turn.raw is None else dict(fields(turn.raw) or {})
    message = mended(was, turn) | {"role": turn.role}
    if turn.id is None:
        message.pop("id", None)
    if turn.name is None and isinstance(was.get("name"), str):
        message.pop("name")
    if len(turn.items) == 1 and isinstance(result := turn.items[0], ToolResult):
        if result.paired:
            message["tool_call_id"] = result.call_id
        if not was or not same(result.output, chat_content(was)):
            message["content"] = chat_output(result.output)
    else:
        _lay_items(turn.items, message, was)
    if message.get("content") is None and "tool_calls" in was and "tool_calls" not in message:
        message["content"] = ""  # null was legal only beside the calls
    gone = _empties(was) - turn.empties
    if "content" in gone or "content_list" in gone:
        message["content"] = message.get("content") or ""
    if "tool_calls" in gone:
        message.pop("tool_calls", None)
    return turn.raw if message == was and turn.raw is not None else message


def _lay_items(items: Sequence[Item], message: dict[str, Any], was: Mapping[str, Any]) -> None:
    """Write the fields whose items are no longer those that were read from them."""
    before = _by_slot(_items(was)) if was else {}
    now = _by_slot(items)
    for slot in before | now:
        old, new = before.get(slot, []), now.get(slot, [])
        if len(old) == len(new) and all(map(same_item, old, new)):
            continue
        written = [_written(item) for item in new]
        if slot in ("content", "tool_calls"):
            if not written:
                message.pop(slot, None)
                if slot == "content":
                    message["content"] = None
            elif slot == "content" and len(written) == 1 and isinstance(written[0], str):
                message[slot] = written[0]
            else:
                message[slot] = [_part(part) if slot == "content" else part for part in written]
        elif written:
            message[slot] = written[0]
        else:
            message.pop(slot, None)


def _by_slot(items: Sequence[Item]) -> dict[str, list[Item]]:
    slots: dict[str, list[Item]] = {}
    for item in items:
        slots.setdefault(item.slot, []).append(item)
    return slots


def _part(written: object) -> object:
    return {"type": "text", "text": written} if isinstance(written, str) else written


def _written(item: Item) -> Any:
    """One item as it stands in its slot; its own wire part, with what is known laid over it."""
    match item:
        case Text(raw=None) | Reasoning():
            return item.text
        case Text():
            part = dict(fields(item.raw) or {})
            return part | {PART_TEXT.get(str(part.get("type")), "text"): item.text}
        case ToolCall(kind="legacy_function"):
            old = dict(fields(item.raw) or {})
            return old | {"name": item.name, "arguments": item.arguments}
        case ToolCall():
            keys = dict(fields(item.raw) or {"type": item.kind})
            name, arguments = (
                ("custom", "input") if item.kind == "custom" else ("function", "arguments")
            )
            body = dict(fields(keys.get(name)) or {})
            body |= {"name": item.name, arguments: item.arguments}
            return keys | {"id": item.call_id, name: body}
        case ToolResult():
            return item.output
        case Media() | Opaque():
            return item.raw
