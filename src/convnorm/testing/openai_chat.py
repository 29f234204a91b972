"""Valid Chat Completions histories, scene by scene."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convnorm.testing.draft import ARGUMENTS, SYSTEM, TOOLS, Draft, Element, Pen

KEY = "messages"

SDK_NULLS: Element = {"refusal": None, "function_call": None, "audio": None, "annotations": []}
"""What an SDK's dump of an assistant message carries along."""
MEDIA = (
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "file", "file": {"file_id": "file-1"}},
)


def taken(pen: Pen, turn: Element) -> Element:
    """The message as this server takes it: without keys, parts and nulls that it refuses."""
    profile = pen.target.chat
    known, content = profile.message_keys, turn.get("content")
    if known is not None:
        turn = {key: value for key, value in turn.items() if key in known}
    if turn["role"] in profile.text_only and isinstance(content, list):
        turn["content"] = "".join(part["text"] for part in content)
    nulls = known is None and profile.null_content == "accepted" and not profile.content_required
    if content is None and not nulls:
        turn["content"] = ""
    return turn


def message(pen: Pen, role: str, text: str) -> Element:
    """A message that says `text`, as a string or as a part."""
    said = [{"type": "text", "text": text}] if pen.chance(4) else text
    return taken(pen, {"role": role, "content": said})


def opening(pen: Pen) -> list[Element]:
    """Instructions, or none."""
    role = pen.pick((None, *instructing(pen)))
    return [message(pen, role, pen.pick(SYSTEM))] if role else []


def instructing(pen: Pen) -> list[str]:
    """The roles of instructions that this server takes without doubt."""
    chat = pen.target.chat
    verdicts = {"system": chat.system_role, "developer": chat.developer_role}
    return [role for role, verdict in verdicts.items() if verdict == "accepted"]


def question(pen: Pen) -> list[Element]:
    """A user turn: text, sometimes with media, a name or a vendor's key."""
    turn = message(pen, "user", pen.user())
    match pen.below(6):
        case 3:
            turn["name"] = "ann"
        case 4:
            turn["x_trace"] = {"span": pen.number()}
        case 5:
            turn["content"] = [{"type": "text", "text": pen.user()}, pen.pick(MEDIA)]
    return [taken(pen, turn)]


def answer(pen: Pen) -> list[Element]:
    """An assistant turn without calls."""
    turn = message(pen, "assistant", pen.says())
    match pen.below(7):
        case 2:
            turn |= {"reasoning_content": f"thought {pen.number()}"}
        case 3:
            turn |= {"content": None, "refusal": f"I cannot {pen.number()}"}
        case 4:
            turn |= {"content": None, "audio": {"id": pen.id("audio")}}
        case 5:
            turn |= {"name": "bot", "x_trace": pen.number(), **SDK_NULLS}
        case 6:
            turn["content"] = ""
    return [taken(pen, turn)]


def repeats(pen: Pen) -> list[Element]:
    """The same short turns twice, which are no copies of each other."""
    said, heard = pen.user(), pen.pick(("ok", "Done."))
    return [
        {"role": role, "content": text}
        for _ in range(2)
        for role, text in (("user", said), ("assistant", heard))
    ]


def call(pen: Pen, call_id: str) -> Element:
    """One tool call."""
    if pen.chance(6):
        body = {"name": "write", "input": f"line {pen.number()}"}
        return {"id": call_id, "type": "custom", "custom": body}
    body = {"name": pen.pick(TOOLS), "arguments": pen.pick(ARGUMENTS)}
    return {"id": call_id, "type": "function", "function": body}


def result(pen: Pen, call_id: str) -> Element:
    """One tool message."""
    turn = message(pen, "tool", pen.output())
    return {**turn, "tool_call_id": call_id}


def details(pen: Pen) -> list[Element]:
    """What a model thought, as a gateway hands it on, with its signature."""
    return [{"type": "reasoning.encrypted", "id": pen.id("rs"), "data": f"sealed-{pen.number()}"}]


def thoughtful(pen: Pen, turn: Element) -> Element:
    """The reply with its reasoning, where the server wants it back."""
    profile = pen.target.chat
    if turn["role"] != "assistant":
        return turn
    if profile.thinks and profile.reasoning_returned and not turn.get("reasoning_content"):
        turn = {**turn, "reasoning_content": f"thought {pen.number()}"}
    if profile.signed_calls and turn.get("tool_calls"):
        turn = {**turn, "reasoning_details": details(pen)}
    return turn


def calling(pen: Pen, calls: Sequence[Element]) -> Element:
    """The assistant message that makes `calls`."""
    turn: Element = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    match pen.below(6):
        case 1:
            turn["content"] = pen.says()
        case 2:
            turn |= SDK_NULLS
        case 3:
            del turn["content"]
        case 4:
            turn |= {"content": "", "reasoning_content": f"thought {pen.number()}"}
        case 5:
            turn |= {"content": [{"type": "text", "text": pen.says()}], "x_trace": pen.number()}
    return thoughtful(pen, taken(pen, turn))


def exchange(pen: Pen, *, counters: bool | None = None) -> list[Element]:
    """A batch of one to four calls, answered in some order.

    A client that counts starts at zero in every turn, which Chat allows.
    """
    counts = pen.counters if counters is None else counters
    size = 1 + pen.below(4) if pen.chance() else 1
    ids = [pen.count(n) if counts else pen.call_id() for n in range(size)]
    calls = [call(pen, call_id) for call_id in ids]
    if size > 1 and pen.chance(3):  # the same call twice, on purpose
        calls[1] = {**calls[0], "id": ids[1]}
    return [calling(pen, calls), *(result(pen, call_id) for call_id in pen.shuffled(ids))]


def legacy(pen: Pen) -> list[Element]:
    """A call and its answer as they were before tools."""
    name = pen.pick(TOOLS)
    asked = {"name": name, "arguments": pen.pick(ARGUMENTS)}
    return [
        taken(pen, {"role": "assistant", "content": None, "function_call": asked}),
        {"role": "function", "name": name, "content": pen.output()},
    ]


def reminder(pen: Pen) -> list[Element]:
    """Instructions in the middle of a history, or a question where none are taken."""
    if "system" not in instructing(pen):
        return question(pen)
    return [message(pen, "system", pen.pick(SYSTEM))]


SCENES: tuple[Callable[[Pen], list[Element]], ...] = (
    question,
    answer,
    exchange,
    repeats,
    exchange,
    legacy,
    reminder,
)


def worked(pen: Pen) -> list[Element]:
    """A reply after one or two exchanges with tools."""
    return [*exchange(pen), *(exchange(pen) if pen.chance(3) else ()), *answer(pen)]


REPLIES: tuple[Callable[[Pen], list[Element]], ...] = (answer, worked, legacy)
"""What can stand between two questions where the speakers take turns."""


def written(pen: Pen, *, linked: bool = False) -> Draft:
    """A valid history; Chat knows no links to what a server holds."""
    del linked
    draft = Draft(KEY, [*opening(pen), *question(pen)], {"model": pen.target.model or "gpt-5.1"})
    if in_turns(pen):
        for _ in range(pen.below(4)):
            draft.elements += [*pen.pick(REPLIES)(pen), *question(pen)]
        draft.elements += exchange(pen) if pen.chance(3) else ()
        return draft
    for _ in range(pen.below(5)):
        draft.elements += pen.pick(SCENES)(pen)
    draft.elements = [thoughtful(pen, turn) for turn in draft.elements]
    return draft


def in_turns(pen: Pen) -> bool:
    """Whether this server minds who speaks after whom."""
    return pen.target.chat.alternating or pen.target.chat.strict_order


def gaps(elements: Sequence[Mapping[str, Any]]) -> list[int]:
    """Where a turn can stand without coming between a call and its results."""
    inner = [
        at
        for at, element in enumerate(elements)
        if at and element.get("role") not in ("tool", "function")
    ]
    return [*inner, len(elements)]


def ends(elements: Sequence[Mapping[str, Any]]) -> range:
    """How much of a history there may have been before: anything."""
    return range(1, len(elements))


def exchanges(elements: Sequence[Mapping[str, Any]]) -> list[range]:
    """The exchanges that are whole: a calling message and its results directly behind it."""
    found = []
    for at, element in enumerate(elements):
        calls = element.get("tool_calls")
        made = calls if isinstance(calls, list) else []
        ids = [call.get("id") if isinstance(call, dict) else None for call in made]
        end = at + 1 + len(ids)
        behind = elements[at + 1 : end]
        answered = [turn.get("tool_call_id") for turn in behind if turn.get("role") == "tool"]
        closed = end >= len(elements) or elements[end].get("role") != "tool"
        if ids and all(ids) and len({*ids}) == len(ids) and closed and {*ids} == {*answered}:
            found.append(range(at, end))
    return found
