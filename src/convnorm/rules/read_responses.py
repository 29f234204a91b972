"""The walk over `input`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convnorm.context import Context
from convnorm.rules.responses_server import Server
from convnorm.rules.scan import Call, Pairs, Scan
from convnorm.rules.schema import flaws, left_out_or
from convnorm.targets import Target
from convnorm.targets.responses_items import (
    DATA_LENGTH,
    DISPUTED_KEYS,
    HOSTED,
    ID,
    ITEMS,
    OUTPUT_PARTS,
    PARTS,
    PHASES,
    TEXT_LENGTH,
)
from convnorm.targets.responses_values import FUNCTION_PART_SHAPES, PART_SHAPES, VALUES
from convnorm.targets.schema import Shape
from convnorm.wire import LIST, fields

CALLS = {
    "function_call": "function",
    "custom_tool_call": "custom",
    "computer_call": "computer",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "local_shell_call": "local_shell",
}
"""Calls that the client answers, and their kind."""
OUTPUTS = {
    "function_call_output": ("function", "local_shell"),
    "custom_tool_call_output": ("custom",),
    "computer_call_output": ("computer",),
    "shell_call_output": ("shell",),
    "apply_patch_call_output": ("apply_patch",),
    "local_shell_call_output": ("local_shell",),
}
"""Their outputs, and the kinds of call each can answer."""
TEXT_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Outputs that say something, if only an empty text."""
NO_KEYS: frozenset[str] = frozenset()
NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True, eq=False)
class ResponsesScan(Scan):
    """What the walk over `input` found; the lists hold positions, and paths behind them."""

    server: Server | None = None
    """What the server holds; None when nothing is known of it."""
    settled: list[Call] = field(default_factory=list)
    """Calls that the server puts before the input and that were answered there."""
    odd_types: list[int] = field(default_factory=list)
    odd_keys: list[int] = field(default_factory=list)
    """Items with a key that their type does not have, or about which sources disagree."""
    odd_ids: list[int] = field(default_factory=list)
    """Items whose id does not have the shape of their type's."""
    lacking: list[tuple[int, str]] = field(default_factory=list)
    """Items that lack what they must have."""
    asked: list[tuple[int, str]] = field(default_factory=list)
    """Items that lack what only the SDK's types ask for."""
    hosted: list[int] = field(default_factory=list)
    references: list[int] = field(default_factory=list)
    thoughts: list[int] = field(default_factory=list)
    """References to reasoning that the server holds."""
    resolved: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """References to what the server holds, and what that is."""
    triggers: list[int] = field(default_factory=list)
    approvals: list[int] = field(default_factory=list)
    """Answers to the requests of MCP servers."""
    programs: list[int] = field(default_factory=list)
    program_outputs: list[int] = field(default_factory=list)
    callers: list[int] = field(default_factory=list)
    """Items that say who called."""
    compactions: list[int] = field(default_factory=list)
    odd_contents: list[int] = field(default_factory=list)
    """Messages whose content is neither a text nor a list of parts."""
    odd_phases: list[int] = field(default_factory=list)
    odd_content_parts: list[tuple[int, int, Mapping[str, Any] | None]] = field(default_factory=list)
    """Parts that do not belong into a message of this role: item, index and keys."""
    odd_part_keys: list[tuple[int, str, Mapping[str, Any]]] = field(default_factory=list)
    """Parts with a key that they do not have: item, path and keys."""
    spoken: list[int] = field(default_factory=list)
    """Assistant messages that are made of parts."""
    odd_outputs: list[tuple[int, str, object]] = field(default_factory=list)
    """Outputs, or parts of them, that are of the wrong kind: item, path and value."""
    long_texts: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Texts over the limit: item, path, length and limit."""


def read_responses(
    elements: Sequence[object], target: Target, context: Context, other: Mapping[str, Any]
) -> ResponsesScan:
    """Scan a list of input items; an output answers a call anywhere before it."""
    scan = ResponsesScan("input", target, context, other)
    if context.ledger is not None:
        scan.server = Server(context.ledger, context)
        _read_chain(scan, scan.server)
    pairs = scan.pairs
    in_batch = False
    for at, element in enumerate(elements):
        item = element if type(element) is dict else fields(element)
        scan.views.append(item)
        if item is None:
            scan.no_objects.append(at)
            in_batch = False
            continue
        kind = item_type(item)
        _read_keys(scan, at, kind, item)
        if kind in CALLS:
            if not in_batch:
                pairs.new_batch()
            in_batch = True
            pairs.add_call(at, -1, item.get("call_id"), CALLS[kind], item)
            continue
        if kind == "reasoning":  # it may stand between calls that were made together
            scan.reasoning.append(at)
            continue
        in_batch = False
        if kind == "message":
            _read_message(scan, at, item)
        elif kind in OUTPUTS:
            if not stands_alone(item):
                pairs.add_result(at, answered_id(item), OUTPUTS[kind], item)
            _read_output(scan, at, kind, item)
        elif kind == "item_reference":
            scan.references.append(at)
            _read_reference(scan, at, item)
        elif (places := _places(scan, kind)) is not None:
            places.append(at)
    pairs.adopt()
    if scan.references:
        # One that names an item of the input itself refers to nothing on the server.
        inline = [
            view.get("id") for view in scan.views if view and item_type(view) != "item_reference"
        ]
        known = {one for one in inline if isinstance(one, str)}
        named = ((at, (scan.views[at] or {}).get("id")) for at in scan.references)
        outside = (at for at, one in named if not isinstance(one, str) or one not in known)
        scan.refers_at = next(outside, None)
    return scan


def _places(scan: ResponsesScan, kind: str) -> list[int] | None:
    """The list for items of a rare type."""
    match kind:
        case "compaction":
            return scan.compactions
        case "compaction_trigger":
            return scan.triggers
        case "mcp_approval_response":
            return scan.approvals
        case "program":
            return scan.programs
        case "program_output":
            return scan.program_outputs
    return None


def _read_chain(scan: ResponsesScan, server: Server) -> None:
    """Pair what the server puts before the input; what still waits there is answered here."""
    before = Pairs()
    before.new_batch()
    for item in server.chain:
        kind = item_type(item)
        if kind in CALLS:
            before.add_call(-1, -1, item.get("call_id"), CALLS[kind], item)
        elif kind in OUTPUTS and not stands_alone(item):
            before.add_result(-1, answered_id(item), OUTPUTS[kind], item)
    scan.settled = [call for call in before.calls if call.answered]
    scan.pairs.hold([call for call in before.calls if not call.answered])


def _read_reference(scan: ResponsesScan, at: int, item: Mapping[str, Any]) -> None:
    """A reference to what the server holds counts as that; one to the chain is a second copy."""
    own, server = item.get("id"), scan.server
    if server is None or not isinstance(own, str) or own in server.chain_ids:
        return
    held = server.stored.get(own)
    if held is None:
        return
    scan.resolved[at] = held
    kind = item_type(held)
    if kind in CALLS:
        scan.pairs.new_batch()
        scan.pairs.add_call(at, -1, held.get("call_id"), CALLS[kind], held)
    elif kind == "reasoning":
        scan.thoughts.append(at)
    elif kind in OUTPUTS and not stands_alone(held):
        scan.pairs.add_result(at, answered_id(held), OUTPUTS[kind], held)


def _read_keys(scan: ResponsesScan, at: int, kind: str, item: Mapping[str, Any]) -> None:
    """Note keys, ids and lengths that the item's type does not have."""
    spec = ITEMS.get(kind)
    if spec is None:
        scan.odd_types.append(at)
        return
    if not spec.keys.issuperset(item) or not DISPUTED_KEYS.get(kind, NO_KEYS).isdisjoint(item):
        scan.odd_keys.append(at)
    scan.lacking += [(at, key) for key in spec.needs if item.get(key) is None]
    scan.asked += [(at, key) for key in spec.asked if item.get(key) is None]
    scan.asked += [(at, key) for key in spec.shown if key not in item]
    for key, wanted in VALUES.get(kind, NOTHING).items():
        value = item.get(key)
        if value is not None or (key in item and key not in spec.needs and key not in spec.asked):
            scan.note(at, left_out_or(wanted, value, f".{key}"))
    own = item.get("id")
    if own is not None and spec.named and not _fits(own, spec.prefix):
        scan.odd_ids.append(at)
    if kind in HOSTED:
        scan.hosted.append(at)
    if item.get("caller") is not None:
        scan.callers.append(at)
    for key, limit in LIMITS:
        text = item.get(key)
        if isinstance(text, str) and len(text) > limit:
            scan.long_texts.append((at, f".{key}", len(text), limit))


def _fits(own: object, prefix: str) -> bool:
    """Whether an id has the shape of its type's."""
    return isinstance(own, str) and ID.fullmatch(own) is not None and own.startswith(prefix)


LIMITS = (
    ("content", TEXT_LENGTH),
    ("output", TEXT_LENGTH),
    ("arguments", TEXT_LENGTH),
    ("encrypted_content", DATA_LENGTH),
)
"""The texts of an item, and how long they may be."""
PART_LIMITS = (("text", TEXT_LENGTH), ("image_url", DATA_LENGTH))
"""The texts of a part."""


def _read_message(scan: ResponsesScan, at: int, item: Mapping[str, Any]) -> None:
    role, content, phase = item.get("role"), item.get("content"), item.get("phase")
    if phase is not None and not (isinstance(phase, str) and phase in PHASES):
        scan.odd_phases.append(at)
    parts = PARTS.get(role) if isinstance(role, str) else None
    if parts is None:
        scan.odd_roles.append(at)
    if isinstance(content, str):
        return
    if content is None:
        scan.no_text.append(at)
    elif not isinstance(content, LIST):
        scan.odd_contents.append(at)
    elif parts is not None:
        if role == "assistant":
            scan.spoken.append(at)
        for index, part in enumerate(content):
            keys = part if type(part) is dict else fields(part)
            kind = None if keys is None else keys.get("type")
            if keys is None or not isinstance(kind, str) or kind not in parts:
                scan.odd_content_parts.append((at, index, keys))
            else:
                _read_part(scan, at, f".content[{index}]", PART_SHAPES[kind], keys)


def _read_part(
    scan: ResponsesScan, at: int, where: str, shape: Shape, part: Mapping[str, Any]
) -> None:
    if not shape.keys.issuperset(part):
        scan.odd_part_keys.append((at, where, part))
    scan.note(at, flaws(shape, part, where))
    for key, limit in PART_LIMITS:
        text = part.get(key)
        if isinstance(text, str) and len(text) > limit:
            scan.long_texts.append((at, f"{where}.{key}", len(text), limit))


def _read_output(scan: ResponsesScan, at: int, kind: str, item: Mapping[str, Any]) -> None:
    """Note an output that is not of its type's kind; without any it is missing, not odd."""
    output = item.get("output")
    if output is None:
        if kind in TEXT_OUTPUTS:
            scan.no_output.append(at)
        return
    if kind in TEXT_OUTPUTS and isinstance(output, LIST):
        shapes = FUNCTION_PART_SHAPES if kind == "function_call_output" else PART_SHAPES
        for index, part in enumerate(output):
            keys = part if type(part) is dict else fields(part)
            name = None if keys is None else keys.get("type")
            if keys is None or not isinstance(name, str) or name not in OUTPUT_PARTS:
                scan.odd_outputs.append((at, f".output[{index}]", part))
            else:
                _read_part(scan, at, f".output[{index}]", shapes[name], keys)
        return
    if kind == "computer_call_output":
        right = fields(output) is not None
    elif kind == "shell_call_output":
        right = isinstance(output, LIST)
    else:
        right = isinstance(output, str)
    if not right:
        scan.odd_outputs.append((at, ".output", output))


def item_type(item: Mapping[str, Any]) -> str:
    """The item's type; without one it is a message, or a reference when it has only an id."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "role" not in item and "id" in item else "message"
    return kind if isinstance(kind, str) else ""


def answered_id(output: Mapping[str, Any]) -> object:
    """The id of the call an output answers; a local shell output has it as its own id."""
    return output.get("id" if names_its_call(output) else "call_id")


def names_its_call(item: Mapping[str, Any]) -> bool:
    """Whether an item's id is that of the call it answers, as the older output type has it."""
    return item.get("type") == "local_shell_call_output" and item.get("call_id") is None


def stands_alone(output: Mapping[str, Any]) -> bool:
    """A function output may name its tool instead of a call (openai 3.x)."""
    return (
        output.get("call_id") is None
        and isinstance(output.get("name"), str)
        and output.get("type") == "function_call_output"
    )
