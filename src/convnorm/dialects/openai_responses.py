"""OpenAI Responses: `input`.

Every input item is a turn: a message with its content parts, a call, an output, a reasoning item,
or something the server made, which passes whole. `ITEMS` is the whole knowledge of item types; a
type that is not in it is opaque.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
from convnorm.dialects.openai_responses_fields import (
    Around,
    around,
    field_flaws,
    is_plain,
    neighbour_flaws,
)
from convnorm.dialects.openai_responses_parts import (
    as_output,
    message_content,
    part_flaws,
    survey_parts,
)
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
    same_item,
)
from convnorm.targets import Fault
from convnorm.wire import LIST, fields

KEY = "input"

ROLES = ("user", "assistant", "system", "developer")
PART_TEXT = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
PART_MEDIA = {"input_image": "image", "input_audio": "audio", "input_file": "file"}


@dataclass(frozen=True, slots=True)
class Spec:
    """What one item type is."""

    what: Literal["message", "reasoning", "call", "result", "other"]
    kind: str = ""
    """The kind of tool, the same word for a call and for what answers it."""
    paired: bool = False
    """The API wants a call for the output and an output for the call."""
    needs_id: bool = True
    """The item is refused without its id: the server looks it up, or the type says so."""
    prefix: str = ""
    """How ids of this type begin, where the API was seen to insist."""
    name: str = "name"
    arguments: str = "arguments"
    output: str = "output"


ITEMS = {
    "message": Spec("message", needs_id=False, prefix="msg"),
    "reasoning": Spec("reasoning", needs_id=False, prefix="rs"),
    "function_call": Spec("call", "function", paired=True, needs_id=False, prefix="fc"),
    "function_call_output": Spec("result", "function", paired=True, needs_id=False),
    "custom_tool_call": Spec("call", "custom", paired=True, needs_id=False, arguments="input"),
    "custom_tool_call_output": Spec("result", "custom", paired=True, needs_id=False),
    "shell_call": Spec("call", "shell", paired=True, needs_id=False, arguments="action"),
    "shell_call_output": Spec("result", "shell", paired=True, needs_id=False),
    "apply_patch_call": Spec(
        "call", "apply_patch", paired=True, needs_id=False, arguments="operation"
    ),
    "apply_patch_call_output": Spec("result", "apply_patch", paired=True, needs_id=False),
    "computer_call": Spec("call", "computer", paired=True, arguments="action"),
    "computer_call_output": Spec("result", "computer", paired=True, needs_id=False),
    "local_shell_call": Spec("call", "local_shell", paired=True, arguments="action"),
    "local_shell_call_output": Spec("result", "local_shell", paired=True),
    "tool_search_call": Spec("call", "tool_search"),
    "tool_search_output": Spec("result", "tool_search", output="tools"),
    "program": Spec("call", "program", arguments="code"),
    "program_output": Spec("result", "program", output="result"),
    "mcp_approval_request": Spec("call", "mcp_approval"),
    "mcp_approval_response": Spec("result", "mcp_approval", output="approve"),
    "mcp_call": Spec("call", "mcp"),
    "mcp_list_tools": Spec("call", "mcp_list_tools"),
    "web_search_call": Spec("call", "web_search", arguments="action"),
    "file_search_call": Spec("call", "file_search", arguments="queries"),
    "code_interpreter_call": Spec("call", "code_interpreter", arguments="code"),
    "image_generation_call": Spec("call", "image_generation", arguments="revised_prompt"),
    "compaction": Spec("other"),
    "compaction_trigger": Spec("other"),
    "additional_tools": Spec("other"),
    "configuration_update": Spec("other"),
    "item_reference": Spec("other"),
}
MESSAGE = ITEMS["message"]
TRIGGER = ITEMS["compaction_trigger"]
UNKNOWN = Spec("other", needs_id=False)

JUDGED = frozenset({"computer", "mcp_approval"})
"""Kinds with acknowledgements and approvals, which nothing may repair silently."""

TEXTUAL = ("function", "custom")
"""Kinds whose arguments are a text."""
HOSTED = frozenset(
    {
        "mcp",
        "mcp_list_tools",
        "web_search",
        "file_search",
        "code_interpreter",
        "image_generation",
    }
)
"""Kinds that the server runs by itself and finds again by their id."""
LETTERS = re.compile(r"[a-zA-Z0-9_-]+").fullmatch

ANSWERED_BY = {"local_shell": ("function", "local_shell")}
"""Kinds of call that an output of another kind answers too."""

KNOWN = frozenset({"type", "role", "content", "id", "status", "phase", "call_id", "output"})
CONTENT, OUTPUT = frozenset({"content"}), frozenset({"output"})
OUTPUT_TYPE = {spec.kind: name for name, spec in ITEMS.items() if spec.what == "result"}


def _spec(item: Mapping[str, Any]) -> Spec:
    kind = item.get("type")
    if kind is None and "role" not in item and "id" in item:
        return ITEMS["item_reference"]
    if kind is None:
        return MESSAGE
    return ITEMS.get(kind, UNKNOWN) if isinstance(kind, str) else UNKNOWN


def detect(element: Mapping[str, Any]) -> bool:
    """Typed items and `input_*` / `output_text` parts are found nowhere else."""
    if isinstance(kind := element.get("type"), str) and kind in ITEMS:
        return True
    content = element.get("content")
    for part in content if isinstance(content, LIST) else ():
        kind = (fields(part) or {}).get("type")
        if isinstance(kind, str) and (kind == "output_text" or kind.startswith("input_")):
            return kind != "input_audio"  # chat has a part of that name too
    return False


def survey(elements: Sequence[object], call: Call) -> set[Fact]:
    """One scan over the input items; see `Fact` for what it looks for."""
    context = call.context
    facts: set[Fact] = set()
    limits, longest = CallLimits(call.target.profile), call.target.responses.item_id_length
    ids: set[str] = set()
    call_ids: set[str] = set()
    waiting: dict[str, str] = {}
    thought = False  # whether the item before is reasoning
    thoughts = False  # whether any item is
    for at, element in enumerate(elements):
        item = element if type(element) is dict else read(element, KEY, at)
        if item.get("role") == "tool":
            item = as_output(item)
            facts |= {Fact.SHAPE, Fact.ROLES}
        spec = _spec(item)
        item_id = _item_id(item, spec)
        if item_id is not None:
            if item_id in ids:
                facts.add(Fact.REPEATED_ID)
            ids.add(item_id)
            if context.store is not True and not spec.needs_id and spec is not UNKNOWN:
                facts.add(Fact.STORE_UNKNOWN if context.store is None else Fact.UNSTORED)
        if _id_flaw(item, spec, longest):
            facts.add(Fact.IDS)
        if spec.kind in JUDGED:
            facts.add(Fact.SHAPE)
        if not is_plain(item):
            if item.get("caller") is not None or any(field_flaws(item, call)):
                facts.add(Fact.FIELDS)
        elif spec is TRIGGER:
            facts.add(Fact.FIELDS)
        said = item.get("content") or item.get("output")
        if said is not None and holds_halves(said):
            facts.add(Fact.FIELDS)
        if thought and (spec.paired if spec.what == "result" else _speaks(item, spec)):
            facts.add(Fact.REASONING)
        thought = spec.what == "reasoning"
        thoughts = thoughts or thought
        if thought and _odd_thought(item, spec, call):
            facts.add(Fact.REASONING)
        if spec.what == "message":
            if item.get("role") not in ROLES:
                facts |= {Fact.SHAPE, Fact.ROLES}
            if item.get("content") is None:
                facts.add(Fact.EMPTY)
            elif type(item["content"]) is not str:
                survey_parts(item, facts)
        elif spec.paired:
            call_id = _call_id(item, spec)
            if type(item.get("call_id")) is not str and _number_flaw(item, spec):
                facts.add(Fact.IDS)
            if spec.what == "result":
                if spec.output == "output" and item.get("output") is None:
                    facts.add(Fact.EMPTY)
                if call_id is None and _stands_alone(item):
                    continue
                kind = waiting.pop(call_id or "", None)
                if kind is None:
                    if not (context.linked and call_id) or call_id in call_ids:
                        facts.add(Fact.PAIRING)
                elif spec.kind not in ANSWERED_BY.get(kind, (kind,)):
                    facts.add(Fact.PAIRING)
            elif not call_id:
                facts.add(Fact.PAIRING)
            else:
                if len(call_id) > limits.id_length:
                    facts.add(Fact.IDS)
                if spec.kind in TEXTUAL:
                    limits.survey(item.get("name"), item.get(spec.arguments), facts)
                if call_id in call_ids:
                    facts |= {Fact.REPEATED_CALL, Fact.PAIRING}
                call_ids.add(call_id)
                waiting[call_id] = spec.kind
    if waiting:
        facts.add(Fact.PAIRING)
    if not elements:
        facts.add(Fact.SHAPE)
    if thought or ((ids or thoughts) and (context.ledger or context.provenance.models)):
        facts.add(Fact.REASONING)
    return facts


def _speaks(item: Mapping[str, Any], spec: Spec) -> bool:
    """Whether somebody else than the model says something."""
    return spec.what == "message" and item.get("role") != "assistant"


def _id_flaw(item: Mapping[str, Any], spec: Spec, longest: int | None) -> Flaw | None:
    """An id that no server made, or that a hosted item lacks."""
    own = item.get("id")
    if own is None:
        if spec.kind not in HOSTED:
            return None
        return Flaw(Fault.HOSTED_ID_MISSING, "id", GONE, f"a {item.get('type')} has no id")
    if longest is None or spec is UNKNOWN or spec.kind in JUDGED or _item_id_is_call_id(item, spec):
        return None
    if not isinstance(own, str) or not LETTERS(own[:longest]):
        fault, why = Fault.ITEM_ID_LETTERS, f"the id is {str(own)[:64]!r}"
    elif len(own) > longest:
        fault, why = Fault.ITEM_ID_LONG, f"the id has {len(own)} characters"
    elif not own.startswith(spec.prefix):
        fault, why = Fault.ITEM_ID_PREFIX, f"the id {own!r} does not begin with {spec.prefix!r}"
    else:
        return None
    return Flaw(fault, "id", GONE, why)


def _number_flaw(item: Mapping[str, Any], spec: Spec) -> Flaw | None:
    """The id of a call that is sent as a number."""
    key = "id" if _item_id_is_call_id(item, spec) else "call_id"
    text = text_call_id(item.get(key)) if spec.paired else None
    if text is None or isinstance(item.get(key), str):
        return None
    fault = Fault.CALL_ID_MISSING if spec.what == "call" else Fault.RESULT_ID_MISSING
    return Flaw(fault, key, text, f"the id {text} of a call is a number")


def _thought_flaws(item: Mapping[str, Any], spec: Spec, call: Call) -> Iterator[Flaw]:
    """What reasoning lacks, and what it says that this server does not take."""
    if spec.what != "reasoning":
        return
    if not isinstance(item.get("summary"), LIST):
        yield Flaw(Fault.SUMMARY_MISSING, "summary", [], "reasoning has no summary")
    if call.target.responses.reasoning_content == "refused" and item.get("content"):
        why = "this server takes no reasoning in plain text"
        yield Flaw(Fault.REASONING_TEXT, "content", GONE, why)


def _odd_thought(item: Mapping[str, Any], spec: Spec, call: Call) -> bool:
    """Whether a reasoning item gives cause to look at it, by itself."""
    profile, sealed = call.target.responses, item.get("encrypted_content")
    return (
        profile.no_reasoning
        or profile.one_sealed_response
        or (item.get("id") is None and (profile.reasoning_id or not sealed))
        or (isinstance(sealed, str) and " " in sealed)
        or any(_thought_flaws(item, spec, call))
    )


def _call_id(item: Mapping[str, Any], spec: Spec) -> str | None:
    """The id that joins a call and its output; a local shell output has it as its own id."""
    call_id = item.get("call_id")
    if call_id is None and spec.kind == "local_shell" and spec.what == "result":
        call_id = item.get("id")
    return text_call_id(call_id)


def _item_id(item: Mapping[str, Any], spec: Spec) -> str | None:
    """The id of the item itself, which is not the id of the call it answers."""
    if _item_id_is_call_id(item, spec):
        return None
    return text_id(item.get("id"))


def _item_id_is_call_id(item: Mapping[str, Any], spec: Spec) -> bool:
    return spec.kind == "local_shell" and spec.what == "result" and item.get("call_id") is None


def _stands_alone(item: Mapping[str, Any]) -> bool:
    """A function output may name its tool instead of a call (openai 3.x)."""
    return isinstance(item.get("name"), str) and item.get("type") == "function_call_output"


def decode(elements: Sequence[object], request: Mapping[str, Any], call: Call) -> History:
    """The history behind `input`."""
    items = [read(element, KEY, at) for at, element in enumerate(elements)]
    near = around(items, call)
    turns = [_turn(element, items[at], at, call, near) for at, element in enumerate(elements)]
    return decoded(turns, request, call.context)


def _turn(raw: object, item: Mapping[str, Any], at: int, call: Call, near: Around) -> Turn:
    given, item = item, as_output(item)
    spec = _spec(item)
    ids = (
        _id_flaw(item, spec, call.target.responses.item_id_length),
        _number_flaw(item, spec),
    )
    return Turn(
        _role(item, spec),
        _items(raw, item, spec),
        raw,
        at,
        _item_id(item, spec),
        spec.needs_id,
        _empties(item, spec),
        has_more=any(item[key] for key in item.keys() - KNOWN),
        flaws=(
            *_thought_flaws(item, spec, call),
            *(flaw for flaw in ids if flaw),
            *(
                (*neighbour_flaws(item, at, near), *field_flaws(item, call))
                if spec is TRIGGER or not is_plain(item)
                else ()
            ),
            *(part_flaws(item, call.target.responses) if spec.what == "message" else ()),
            *(() if item is given else (TOOL_ROLE,)),
        ),
    )


TOOL_ROLE = Flaw(Fault.FOREIGN_ROLE, "role", GONE, "a message of a tool is an output here")


def _role(item: Mapping[str, Any], spec: Spec) -> str:
    if spec.what == "message":
        return text_id(item.get("role")) or ""
    return {"call": "assistant", "reasoning": "assistant", "result": "tool"}.get(spec.what, "")


def _items(raw: object, item: Mapping[str, Any], spec: Spec) -> tuple[Item, ...]:
    match spec.what:
        case "message":
            return decode_content(message_content(item), PART_TEXT, PART_MEDIA)
        case "reasoning":
            parts = (
                part
                for key in ("summary", "content")
                for part in decode_content(item.get(key), PART_TEXT, PART_MEDIA)
            )
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            proof = text_id(item.get("encrypted_content")) or None
            return (Reasoning(text, proof, leads=True, raw=raw),)
        case "call":
            call_id, name = _call_id(item, spec), text_id(item.get(spec.name))
            return (
                ToolCall(
                    call_id,
                    name,
                    item.get(spec.arguments),
                    kind=spec.kind,
                    answered_by=ANSWERED_BY.get(spec.kind, (spec.kind,)) if spec.paired else (),
                    closable=spec.kind != "computer",  # its result is a screenshot
                    raw=raw,
                ),
            )
        case "result":
            call_id, output = _call_id(item, spec), item.get(spec.output)
            return (
                ToolResult(
                    call_id,
                    output,
                    kind=spec.kind,
                    paired=spec.paired and not (call_id is None and _stands_alone(item)),
                    answers=spec.paired,
                    synthetic=is_close(_said(output), call_id),
                    raw=raw,
                ),
            )
    return (Opaque(raw, refers=spec is ITEMS["item_reference"]),)


def _said(output: object) -> object:
    """The text of an output; of a shell output, what its only chunk wrote to stderr."""
    if isinstance(output, LIST) and len(output) == 1:
        return (fields(output[0]) or {}).get("stderr")
    return output


def _empties(item: Mapping[str, Any], spec: Spec) -> frozenset[str]:
    if spec.what == "message":
        return CONTENT if item.get("content") is None else NOTHING
    # Of the other kinds, a patch may be answered by its status alone.
    if spec.what == "result" and spec.kind in ("function", "custom"):
        return OUTPUT if item.get("output") is None else NOTHING
    return NOTHING


def encode(history: History, original: History) -> list[Any]:
    """The input items of `history`; those of untouched turns are the caller's own."""
    as_they_came = set(map(id, original.turns))
    return [turn.raw if id(turn) in as_they_came else _element(turn) for turn in history.turns]


def _element(turn: Turn) -> Any:
    if turn.raw is None:
        return _new(turn)
    was = dict(as_output(fields(turn.raw) or {}))
    spec = _spec(was)
    item = mended(was, turn)
    match turn.items:
        case (ToolCall() as call,) if spec.paired:
            if call.call_id != _call_id(was, spec):
                item["call_id"] = call.call_id
            for key, value in ((spec.name, call.name), (spec.arguments, call.arguments)):
                if value is not None and value is not was.get(key):
                    item[key] = value
        case (ToolResult() as result,) if spec.paired:
            if result.kind != spec.kind:
                item |= {"type": OUTPUT_TYPE[result.kind], "call_id": result.call_id}
                if spec.kind == "local_shell":
                    item.pop("id", None)
            elif result.call_id != _call_id(was, spec):
                item["call_id" if "call_id" in was or spec.kind != "local_shell" else "id"] = (
                    result.call_id
                )
            if result.output is not was.get(spec.output):
                item[spec.output] = result.output
            if "output" in _gone(was, spec, turn):
                item["output"] = ""
        case items if spec.what == "message":
            if turn.role != _role(was, spec):
                item["role"] = turn.role
            before = _items(turn.raw, was, spec)
            if len(items) != len(before) or not all(map(same_item, items, before)):
                item["content"] = _content(items, turn.role)
            if "content" in _gone(was, spec, turn):
                item["content"] = ""
    if turn.id is None and _item_id(was, spec) is not None:
        item.pop("id", None)
    return item


def _gone(was: Mapping[str, Any], spec: Spec, turn: Turn) -> frozenset[str]:
    return _empties(was, spec) - turn.empties


def _content(items: Sequence[Item], role: str) -> object:
    parts: list[Any] = []
    for item in items:
        match item:
            case Text(raw=None):
                parts.append({"type": f"{_way(role)}_text", "text": item.text})
            case Text():
                part = dict(fields(item.raw) or {})
                parts.append(part | {PART_TEXT[str(part.get("type"))]: item.text})
            case Media() | Opaque():
                parts.append(item.raw)
    if len(parts) == 1 and isinstance(items[0], Text) and items[0].raw is None:
        return items[0].text
    return parts


def _way(role: str) -> str:
    return "output" if role == "assistant" else "input"


def _new(turn: Turn) -> dict[str, Any]:
    """A turn that convnorm made: a message, or a result that closes a call."""
    match turn.items:
        case (ToolResult() as result,):
            return _closing(result)
        case items:
            return {"type": "message", "role": turn.role, "content": _content(items, turn.role)}


def _closing(result: ToolResult) -> dict[str, Any]:
    """An invented output, in the shape its kind of call wants, with the text where it is read."""
    text = result.output
    shape: dict[str, Any] = {"type": OUTPUT_TYPE[result.kind], "call_id": result.call_id}
    match result.kind:
        case "shell":
            # Of the two outcomes the API knows, this is the one that claims no exit code.
            chunk = {"stdout": "", "stderr": text, "outcome": {"type": "timeout"}}
            shape["output"] = [chunk]
        case "apply_patch":
            shape |= {"status": "failed", "output": text}
        case _:
            shape["output"] = text
    caller = (fields(result.closes.raw) or {}).get("caller") if result.closes else None
    return shape if caller is None else shape | {"caller": caller}
