"""What input items say that the target refuses: keys, values, parts; and what it takes instead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convnorm.dialects.dialect import Call
from convnorm.dialects.fitting import fitted, fitted_part, is_nothing
from convnorm.ir import GONE, Flaw
from convnorm.targets import Fault
from convnorm.targets.responses_items import DISPUTED_KEYS, ITEMS, OUTPUT_PARTS, PARTS, PHASES
from convnorm.targets.responses_values import FUNCTION_PART_SHAPES, PART_SHAPES, VALUES
from convnorm.targets.schema import (
    GIVEN,
    INTEGER,
    OWN,
    STRING,
    Growing,
    Nullable,
    OneOf,
    Shape,
    Wanted,
)
from convnorm.wire import LIST, fields, json_text

JUDGED = frozenset(
    {
        "computer_call",
        "computer_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "compaction",
    }
)
"""Acknowledgements, approvals and memory: nobody puts right what they say."""
MENDED = frozenset({"function_call", "custom_tool_call"})
"""Calls whose name and arguments other passes look after."""
FILLERS: Mapping[tuple[str, str], object] = {
    ("shell_call_output", "output"): [],
    ("local_shell_call_output", "output"): "",
    ("tool_search_output", "tools"): [],
    ("additional_tools", "role"): "developer",
    ("additional_tools", "tools"): [],
}
"""What an item must have and lacks, where it can say that there is nothing."""
CALLING = ("tool_calls", "function_call")
"""Keys under which a message of Chat Completions makes its calls."""
TEXT_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
NO_KEYS: frozenset[str] = frozenset()
NOTHING: Mapping[str, Wanted] = {}


def _takes_any_text(wanted: Wanted) -> bool:
    if isinstance(wanted, Nullable):
        return _takes_any_text(wanted.of)
    return wanted in (STRING, GIVEN, OWN) or isinstance(wanted, Growing)


def _texts(name: str) -> frozenset[str]:
    """The keys of an item that are right whatever text they hold."""
    values, judged = VALUES.get(name, {}), {"phase", *DISPUTED_KEYS.get(name, ())}
    return frozenset(
        key for key in ITEMS[name].keys - judged if _takes_any_text(values.get(key, OWN))
    )


TEXTS = {name: _texts(name) for name in ITEMS}
NEEDS = {
    name: frozenset(spec.needs) for name, spec in ITEMS.items() if spec.needs and name not in MENDED
}


@dataclass(frozen=True, slots=True)
class Around:
    """What an item's flaws depend on beside the item."""

    programs: frozenset[str]
    """The programs in sight."""
    beyond: int
    """From where on a program may be one that only the server has."""
    trigger: int
    """Where the last compaction trigger stands."""
    end: int
    """Where the last item stands."""


def around(items: Sequence[Mapping[str, Any]], call: Call) -> Around:
    """What the items of a history are to each other."""
    programs: set[str] = set()
    trigger, beyond = -1, 0 if call.context.linked else len(items)
    for at, item in enumerate(items):
        match type_of(item):
            case "program":
                programs.add(str(item.get("call_id")))
            case "compaction_trigger":
                trigger = at
            case "item_reference":
                beyond = min(beyond, at)
    return Around(frozenset(programs), beyond, trigger, len(items) - 1)


def type_of(item: Mapping[str, Any]) -> str:
    """The item's type; without one it is a message, or a reference when it has only an id."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "role" not in item and "id" in item else "message"
    return kind if isinstance(kind, str) else ""


def is_plain(item: Mapping[str, Any]) -> bool:
    """Whether an item has all it needs, and texts only, under keys of its type: no flaw at all."""
    name, keys = type_of(item), item.keys()
    for value in item.values():
        if type(value) is not str:
            return False
    return keys <= TEXTS.get(name, NO_KEYS) and (name not in NEEDS or keys >= NEEDS[name])


def neighbour_flaws(item: Mapping[str, Any], at: int, near: Around) -> Iterator[Flaw]:
    """What is wrong with an item because of what stands, or does not stand, beside it."""
    if type_of(item) == "compaction_trigger" and at != near.end:
        fault = Fault.TRIGGER_EARLY if at == near.trigger else Fault.TRIGGER_TWICE
        yield Flaw(fault, "type", GONE, "a compaction_trigger is the last item")
    caller = fields(item.get("caller")) or {}
    owner = caller.get("caller_id")
    if (
        at < near.beyond
        and caller.get("type") == "program"
        and isinstance(owner, str)
        and owner not in near.programs
    ):
        why = f"the program {owner} that made the call is not in sight"
        yield Flaw(Fault.CALLER_UNKNOWN, "caller", GONE, why)


def field_flaws(item: Mapping[str, Any], call: Call) -> Iterator[Flaw]:
    """What is wrong with an item by itself; each key is named once, and one that cannot be sent
    at all is named alone.
    """
    name, rules = type_of(item), call.target.rules
    spec = ITEMS.get(name)
    if spec is None:
        yield from _type_flaws(item, name, call)
        return
    found = [flaw for flaw in _flaws(item, name, call) if flaw.fault in rules]
    whole = [flaw for flaw in found if flaw.fault in UNSENDABLE]
    seen: set[str] = set()
    for flaw in whole[:1] or found:
        if flaw.key not in seen:
            yield flaw
        seen.add(flaw.key)


UNSENDABLE = (Fault.ITEM_LACKING, Fault.ITEM_MALFORMED, Fault.REFERENCE_EMPTY)


def _type_flaws(item: Mapping[str, Any], name: str, call: Call) -> Iterator[Flaw]:
    """An item of no type that the API has: a message under another name, or something else."""
    if name and call.target.responses.schema != "refused":
        return  # another server may have types of its own
    role, content = item.get("role"), item.get("content")
    said = f"there is no item type {name or item.get('type')!r}"
    if isinstance(role, str) and role in PARTS and isinstance(content, str | list | tuple):
        yield Flaw(Fault.ITEM_TYPE, "type", "message", said)
    elif all(is_nothing(item[key]) for key in item.keys() - {"type", "id"}):
        yield Flaw(Fault.ITEM_EMPTY, "type", GONE, said)
    else:
        yield Flaw(Fault.ITEM_UNKNOWN, "type", GONE, said)


def _flaws(item: Mapping[str, Any], name: str, call: Call) -> Iterator[Flaw]:
    spec, profile = ITEMS[name], call.target.responses
    if profile.strict:
        doubtful = DISPUTED_KEYS.get(name, NO_KEYS)
        for key, value in item.items():
            if key not in spec.keys or (value is None and key in doubtful):
                fault = Fault.KEY_CALLS if key in CALLING else Fault.KEY_UNKNOWN
                fault = Fault.KEY_EMPTY if is_nothing(value) else fault
                yield Flaw(fault, key, GONE, f"a {name} has no {key}")
    if name == "message":
        yield from _message_flaws(item, call)
    elif name in TEXT_OUTPUTS or name == "local_shell_call_output":
        yield from _output_flaws(item, name, call)
    elif name == "shell_call_output":
        yield from _shell_flaws(item)
    elif name == "apply_patch_call_output":
        output = item.get("output")
        if output is not None and not isinstance(output, str):
            yield Flaw(
                Fault.OUTPUT_TYPE, "output", json_text(output, "an output"), _odd_output(name)
            )
    if name in JUDGED:
        return
    if name not in MENDED:
        yield from _missing(item, name)
    if profile.typed:
        yield from _value_flaws(item, name)


def _missing(item: Mapping[str, Any], name: str) -> Iterator[Flaw]:
    for key in ITEMS[name].needs:
        if item.get(key) is not None:
            continue
        why = f"the {key} of a {name} is missing"
        if (name, key) in FILLERS:
            yield Flaw(Fault.FIELD_MISSING, key, FILLERS[name, key], why)
        elif name == "item_reference":
            yield Flaw(Fault.REFERENCE_EMPTY, key, GONE, why)
        else:
            yield Flaw(Fault.ITEM_LACKING, key, GONE, why)


def _value_flaws(item: Mapping[str, Any], name: str) -> Iterator[Flaw]:
    spec = ITEMS[name]
    for key, wanted in VALUES.get(name, NOTHING).items():
        if key not in item or (name, key) == ("function_call", "name"):
            continue
        value = item[key]
        if value is None and (key in spec.needs or key in spec.asked):
            continue  # it is missing, which is another matter
        lost: list[object] = []
        new = fitted(wanted, value, lost)
        if new is value:
            continue
        why = f"the {key} of a {name} has not its type"
        if key in spec.needs and (new is GONE or key == "name"):
            yield Flaw(Fault.ITEM_MALFORMED, key, GONE, why)
        else:
            yield _value_flaw(key, new, why, lost)


def _value_flaw(key: str, new: object, why: str, lost: list[object]) -> Flaw:
    return Flaw(Fault.VALUE_LOST if lost else Fault.VALUE_ODD, key, new, why)


# ---------------------------------------------------------------- messages


def _message_flaws(item: Mapping[str, Any], call: Call) -> Iterator[Flaw]:
    phase, role, content = item.get("phase"), item.get("role"), item.get("content")
    if phase is not None and not (isinstance(phase, str) and phase in PHASES):
        yield Flaw(Fault.PHASE_ODD, "phase", GONE, f"there is no phase {str(phase)[:64]!r}")
    if not isinstance(content, LIST) or not isinstance(role, str):
        return
    if call.target.responses.output_message and role == "assistant":
        yield from _half_message(item, content)
    allowed = PARTS.get(role, NO_KEYS)
    yield from _part_flaws("content", content, allowed, PART_SHAPES, call)


def _half_message(item: Mapping[str, Any], content: Sequence[object]) -> Iterator[Flaw]:
    """An assistant message made of parts that is no whole output message."""
    parts = [fields(part) or {} for part in content]
    why = "an assistant message made of parts is a whole output message, or a text"
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    said = [text for text in texts if isinstance(text, str)]
    cited = any(part.get("annotations") for part in parts)
    bare = item.get("id") is None or item.get("status") is None
    unmarked = any(
        part.get("type") == "output_text" and part.get("annotations") is None for part in parts
    )
    if bare and len(said) == len(parts) and parts and (unmarked or not cited):
        fault = Fault.MESSAGE_CITING if cited else Fault.MESSAGE_HALF
        yield Flaw(fault, "content", "\n".join(said), why)
        for key in ("id", "status"):
            if key in item:
                yield Flaw(Fault.MESSAGE_HALF, key, GONE, why)
    elif unmarked:
        whole = [
            {**part, "annotations": []}
            if part.get("type") == "output_text" and part.get("annotations") is None
            else given
            for part, given in zip(parts, content, strict=True)
        ]
        yield Flaw(Fault.MESSAGE_HALF, "content", whole, why)


def _part_flaws(
    key: str,
    parts: Sequence[object],
    allowed: frozenset[str],
    shapes: Mapping[str, Shape],
    call: Call,
) -> Iterator[Flaw]:
    """Parts of a right type that do not look like their type; others are other rules' business."""
    profile = call.target.responses
    for strict in (False, True):
        if not (profile.strict if strict else profile.typed):
            continue
        lost: list[object] = []
        new = [_fitted(part, allowed, shapes, lost, strict=strict) for part in parts]
        if all(now is was for now, was in zip(new, parts, strict=True)):
            continue
        left = [part for part in new if part is not GONE]
        if strict:
            fault, why = Fault.KEY_UNKNOWN if lost else Fault.KEY_EMPTY, "a part has odd keys"
            yield Flaw(fault, key, left, why)
        else:
            yield _value_flaw(key, left, f"a part of the {key} has not its type", lost)
        return


def _fitted(
    part: object,
    allowed: frozenset[str],
    shapes: Mapping[str, Shape],
    lost: list[object],
    *,
    strict: bool,
) -> object:
    keys = part if type(part) is dict else fields(part)
    kind = None if keys is None else keys.get("type")
    if keys is None or not isinstance(kind, str) or kind not in allowed:
        return part
    new = fitted_part(shapes[kind], keys, lost, strict=strict)
    return part if new is keys else new


# ---------------------------------------------------------------- outputs


def _odd_output(name: str) -> str:
    return f"the output of a {name} is neither a text nor a list of parts"


def _output_flaws(item: Mapping[str, Any], name: str, call: Call) -> Iterator[Flaw]:
    output = item.get("output")
    if output is None or isinstance(output, str):
        return
    if name not in TEXT_OUTPUTS:
        yield Flaw(Fault.OUTPUT_TYPE, "output", json_text(output, "an output"), _odd_output(name))
        return
    if not isinstance(output, LIST):
        kind = (fields(output) or {}).get("type")
        whole = isinstance(kind, str) and (kind in OUTPUT_PARTS or kind in CHAT_PARTS)
        new: object = [_output_part(output)] if whole else json_text(output, "an output")
        yield Flaw(Fault.OUTPUT_TYPE, "output", new, _odd_output(name))
        return
    parts = [_output_part(part) for part in output]
    if any(now is not was for now, was in zip(parts, output, strict=True)):
        yield Flaw(Fault.OUTPUT_TYPE, "output", parts, _odd_output(name))
        return
    shapes = FUNCTION_PART_SHAPES if name == "function_call_output" else PART_SHAPES
    yield from _part_flaws("output", output, OUTPUT_PARTS, shapes, call)


CHAT_PARTS = frozenset({"text", "output_text", "image_url", "file"})
"""Parts of other shapes, whose meaning is known."""


def _output_part(part: object) -> object:
    """A part of an output as Responses writes it."""
    keys = fields(part) or {}
    match keys.get("type"):
        case str() as kind if kind in OUTPUT_PARTS:
            return part
        case "text" | "output_text" if isinstance(keys.get("text"), str):
            return {"type": "input_text", "text": keys["text"]}
        case "image_url" if isinstance(image := fields(keys.get("image_url")), Mapping):
            given = {"image_url": image.get("url"), "detail": image.get("detail")}
            known = {key: value for key, value in given.items() if isinstance(value, str)}
            return {"type": "input_image", **known}
        case "file" if isinstance(file := fields(keys.get("file")), Mapping):
            return {"type": "input_file", **file}
    return {
        "type": "input_text",
        "text": part if isinstance(part, str) else json_text(part, "an output"),
    }


def _shell_flaws(item: Mapping[str, Any]) -> Iterator[Flaw]:
    """A shell's output is a list of chunks; anything else is what one chunk says."""
    output = item.get("output")
    if output is None:
        return
    why = "the output of a shell_call_output is no list of chunks"
    lost: list[object] = []
    if not isinstance(output, LIST):
        yield Flaw(Fault.OUTPUT_TYPE, "output", [_chunk(output, lost)], why)
    elif fitted(VALUES["shell_call_output"]["output"], output, lost) is not output:
        lost.clear()
        yield _value_flaw("output", [_chunk(each, lost) for each in output], why, lost)


def _chunk(given: object, lost: list[object]) -> dict[str, Any]:
    """What a shell printed, as a chunk, with as much of it as is told."""
    keys = fields(given)
    if keys is None or {"stdout", "stderr"}.isdisjoint(keys):
        text = given if isinstance(given, str) else json_text(given, "an output")
        keys = {"stdout": text}
    outcome = fitted(OUTCOME, keys.get("outcome"), lost)
    return {
        **keys,
        "stdout": _printed(keys.get("stdout")),
        "stderr": _printed(keys.get("stderr")),
        # Of the two outcomes the API knows, this is the one that claims no exit code.
        "outcome": {"type": "timeout"} if outcome is GONE else outcome,
    }


OUTCOME = OneOf({"timeout": Shape(), "exit": Shape({"exit_code": INTEGER})})


def _printed(given: object) -> str:
    if given is None:
        return ""
    return given if isinstance(given, str) else json_text(given, "an output")
