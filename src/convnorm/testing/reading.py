"""What a history says, read from the wire without convnorm's own dialects and passes.

The laws compare this before and after, so it must not share their mistakes.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convnorm.envelope import is_close, is_media_note
from convnorm.wire import fields

CALLS = {
    "function_call": ("name", "arguments"),
    "custom_tool_call": ("name", "input"),
    "shell_call": ("type", "action"),
    "apply_patch_call": ("type", "operation"),
    "local_shell_call": ("type", "action"),
    "computer_call": ("type", "action"),
}
"""Responses: the calls that the client answers, and where their name and arguments stand."""
OUTPUTS = {f"{kind}_output" for kind in CALLS}
SPEAKERS = ("system", "developer", "user", "assistant")
FOREIGN = {
    "human": "user",
    **dict.fromkeys(("ai", "model", "bot", "chatbot", "gpt"), "assistant"),
    **{role: role for role in SPEAKERS},
}
"""Who speaks, by whatever name."""


@dataclass(frozen=True, slots=True)
class Said:
    """Something somebody said: a text, a medium, or a whole item that nobody may change."""

    at: int
    role: str
    text: str
    id: str | None = None
    name: str | None = None
    """Who speaks, where the message says it beside the text."""

    @property
    def what(self) -> tuple[str, str]:
        """What makes it equal to another: for an item, what its vendor added does not count."""
        if self.role != "item":
            return self.role, self.text
        keys = json.loads(self.text)
        return self.role, dump({key: keys[key] for key in keys if not key.startswith("x_")})


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that the client answers."""

    at: int
    id: Any
    name: str
    arguments: str

    @property
    def what(self) -> tuple[str, str]:
        """Which tool does what."""
        return self.name, self.arguments


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool's result, and the call it answers as far as order and ids tell."""

    at: int
    id: Any
    output: str
    texts: tuple[str, ...]
    """The words in it."""
    call: Called | None
    invented: bool
    could: frozenset[tuple[str, str]]
    """What it may be the answer to: where ids are reused, one of several calls."""
    null: bool = False
    """It is there, and holds not even an empty text."""


@dataclass(slots=True)
class Reading:
    """A history as the laws see it."""

    said: list[Said] = field(default_factory=list)
    media: list[Said] = field(default_factory=list)
    """Images, sounds and files, by their address or their data, wherever they stand."""
    calls: list[Called] = field(default_factory=list)
    results: list[Returned] = field(default_factory=list)

    @property
    def unanswered(self) -> list[Called]:
        """The calls that no result answers."""
        answered = {id(result.call) for result in self.results}
        return [call for call in self.calls if id(call) not in answered]


def wire(element: object) -> Any:
    """An element as plain JSON data."""
    keys = fields(element)
    return element if keys is None else json.loads(dump(dict(keys)))


def dump(value: object) -> str:
    """The bytes that would be sent."""
    return json.dumps(value, default=lambda other: dict(fields(other) or {}))


def history_key(request: Mapping[str, Any]) -> str:
    """The key that holds the history."""
    return "messages" if "messages" in request else "input"


def read(request: Mapping[str, Any]) -> Reading:
    """Everything that must not be lost."""
    key = history_key(request)
    elements = [_in_whole_characters(wire(element)) for element in request[key]]
    said: list[Said] = []
    media: list[Said] = []
    calls: list[Called] = []
    batches: list[int] = []
    answers: list[tuple[int, Any, Any]] = []
    for at, element in enumerate(elements):
        batch = at
        media += _media(at, element)
        if key == "messages":
            calls += _chat_calls(at, element)
            if element.get("role") == "tool":
                answers.append((at, _id(element.get("tool_call_id")), element.get("content")))
            else:
                if element.get("reasoning_content"):
                    said.append(Said(at, "reasoning", element["reasoning_content"]))
                said += _spoken(at, element)
        elif element.get("role") == "tool" and "tool_call_id" in element:
            answers.append((at, _id(element["tool_call_id"]), element.get("content")))
        elif (kind := element.get("type")) in CALLS:
            name, arguments = (element.get(place) for place in CALLS[kind])
            calls.append(Called(at, _id(element.get("call_id")), _named(name), _asked(arguments)))
            if at and elements[at - 1].get("type") in CALLS:
                batch = batches[-1]
        elif kind in OUTPUTS:
            joined = element.get("call_id")
            if joined is None and kind == "local_shell_call_output":
                joined = element.get("id")
            answers.append((at, _id(joined), element.get("output")))
        else:
            said += _spoken(at, element)
        batches += [batch] * (len(calls) - len(batches))
    return Reading(said, media, calls, list(_results(calls, batches, answers)))


def _in_whole_characters(element: Any) -> Any:
    """The element with a mark for each half of a character, which nobody can read."""
    text = json.dumps(element, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(text.decode("utf-16-le", "replace"))


def _chat_calls(at: int, message: Mapping[str, Any]) -> Iterator[Called]:
    calls = _said(message.get("tool_calls") or ())
    for call in filter(None, map(_said, [calls] if isinstance(calls, dict) else calls)):
        # Without a body of its own, a call is told as other libraries do.
        body = call.get("function") or call.get("custom") or call
        arguments = next((body[key] for key in ("arguments", "args", "input") if key in body), None)
        yield Called(at, _id(call.get("id")), _named(body.get("name")), _asked(arguments))


def _said(given: Any) -> Any:
    """What is written as JSON, read."""
    return json.loads(given) if isinstance(given, str) else given


def _id(given: Any) -> Any:
    """The id of a call; some frameworks count, and send the number."""
    return str(given) if isinstance(given, int) else given


def _named(name: Any) -> str:
    """The name of a tool, as far as every API can write it."""
    return re.sub("[^a-zA-Z0-9_-]", "_", (name or "").strip())[:48]


def _asked(arguments: Any) -> str:
    """What a call asks for, however it is written: as data, as its JSON, or wrapped."""
    if arguments is None or arguments == "":
        return "{}"
    if not isinstance(arguments, str):
        return dump(arguments)
    try:
        found = json.loads(arguments)
    except ValueError:
        return arguments
    wrapped = isinstance(found, dict) and found.keys() == {"unparsed_arguments"}
    return str(found["unparsed_arguments"]) if wrapped else dump(found)


def _spoken(at: int, element: Mapping[str, Any]) -> Iterator[Said]:
    role, kind = element.get("role"), element.get("type", "message")
    role = FOREIGN.get(role.casefold()) if isinstance(role, str) else None
    if kind == "reasoning":
        if element.get("encrypted_content"):
            yield Said(at, "reasoning", element["encrypted_content"])
        return
    if kind == "compaction_trigger":
        return  # it says nothing of the past: it asks for something
    # What has a role and a content is a message, whatever it calls itself.
    if role not in SPEAKERS or (kind != "message" and "content" not in element):
        yield Said(at, "item", dump(element), element.get("id"))
        return
    content, name = element.get("content"), element.get("name")
    texts: list[str] = []
    parts = content if isinstance(content, list) else [content]
    for part in parts if content is not None else ():
        text = _text(part)
        if text is not None:
            texts.append(text)
        elif part is not None and _medium(part) is None:
            texts.append(dump(part))
    texts.append(_text({"refusal": element.get("refusal")}) or "")
    if isinstance(audio := element.get("audio"), dict):
        texts.append(audio.get("transcript") or "")
    yield from _told(at, role, texts, name)
    if isinstance(element.get("function_call"), dict):  # else it is no call
        yield Said(at, role, dump(element["function_call"]))
    if element.get("audio"):
        yield Said(at, "audio", dump(element["audio"]))


def _text(part: Any) -> str | None:
    """The words of a part, in whatever form they came; None when it is no text at all."""
    if isinstance(part, str):
        return part
    for key in ("text", "refusal") if isinstance(part, dict) else ():
        if key in part:
            said = part[key]
            return said if isinstance(said, str) else "" if said is None else dump(said)
    return None


def _media(at: int, element: Mapping[str, Any]) -> Iterator[Said]:
    """The media in a message or in an output."""
    for key in ("content", "output"):
        parts = element.get(key)
        for part in parts if isinstance(parts, list) else ():
            if (medium := _medium(part)) is not None:
                yield Said(at, "medium", medium)


HOLDERS = ("image_url", "input_audio", "file", "source")
ADDRESSES = ("url", "image_url", "file_data", "file_url", "file_id", "data")


def _medium(part: Any) -> str | None:
    """What makes a medium the same, whichever API's part it is in; None if it is none."""
    if not isinstance(part, dict) or part.get("type") not in MEDIA:
        return None
    inner = next((part[key] for key in HOLDERS if isinstance(part.get(key), dict)), part)
    found = next((inner[key] for key in ADDRESSES if isinstance(inner.get(key), str)), None)
    form = inner.get("media_type")
    return f"data:{form};base64,{found}" if found and form else found


MEDIA = frozenset(
    {"image_url", "input_image", "image", "input_audio", "file", "input_file", "document"}
)


def _told(at: int, role: str, texts: Sequence[str], name: str | None) -> Iterator[Said]:
    """What a message says in one go: whether in one part or in several makes no difference."""
    said = "\n".join(text for text in texts if text)
    if said:
        yield Said(at, role, said, name=name)


def _results(
    calls: Sequence[Called], batches: Sequence[int], answers: Sequence[tuple[int, Any, Any]]
) -> Iterator[Returned]:
    """Each result with its call: the first results behind the newest batch with their id answer it.

    Whatever else has that id may answer any call that has it, or none.
    """
    answered: Counter[tuple[Any, int]] = Counter()
    for at, joined, output in answers:
        text = output or ""
        words = tuple(_words(text))
        mine = [n for n, call in enumerate(calls) if joined and call.id == joined and call.at < at]
        newest = [calls[n] for n in mine if batches[n] == batches[mine[-1]]]
        before = answered[joined, batches[mine[-1]]] if mine else 0
        if mine:
            answered[joined, batches[mine[-1]]] += 1
        sure = before < len(newest)
        loose = [call for call in calls if call.id == joined or not (joined and call.id)]
        yield Returned(
            at,
            joined,
            _output(text),
            words,
            newest[before] if sure else None,
            is_close((*words, "")[0], joined),
            frozenset(call.what for call in (newest if sure else loose)),
            output is None,
        )


def _output(output: Any) -> str:
    """An output, however it is wrapped: as words where it has some, else as JSON."""
    if isinstance(output, str):
        return "" if is_media_note(output) else output
    if isinstance(output, list):
        return "\n".join(_output(part) for part in output if _medium(part) is None)
    if isinstance(output, dict) and not {"text", "stdout", "stderr"}.isdisjoint(output):
        return "\n".join(_words([output]))
    return dump(output)


def _words(output: Any) -> Iterator[str]:
    if isinstance(output, str):
        yield _output(output)
    elif isinstance(output, list):
        for part in [part for part in output if isinstance(part, dict)]:
            for key in ("text", "stdout", "stderr"):
                if part.get(key):
                    yield part[key]


def words_in(said: Said) -> str:
    """The text of a turn with the escapes of a quotation undone."""
    plain = said.text.replace("&lt;", "<")
    return re.sub("&#([0-9]+);", lambda found: chr(int(found[1])), plain)
