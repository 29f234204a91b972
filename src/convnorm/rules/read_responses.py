"""The walk over `input`."""

from collections.abc import Mapping, Sequence
from typing import Any

from convnorm.context import Context
from convnorm.rules.scan import Scan
from convnorm.targets import Target
from convnorm.wire import fields

ROLES = frozenset({"assistant", "system", "developer", "user"})
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


def read_responses(
    elements: Sequence[object], target: Target, context: Context, other: Mapping[str, Any]
) -> Scan:
    """Scan a list of input items; an output answers a call anywhere before it."""
    scan = Scan("input", target, context, other)
    pairs = scan.pairs
    in_batch = False
    references: list[int] = []
    for at, element in enumerate(elements):
        item = element if type(element) is dict else fields(element)
        scan.views.append(item)
        if item is None:
            scan.no_objects.append(at)
            in_batch = False
            continue
        kind = item_type(item)
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
            role = item.get("role")
            if not isinstance(role, str) or role not in ROLES:
                scan.odd_roles.append(at)
            if item.get("content") is None:
                scan.no_text.append(at)
        elif kind in OUTPUTS:
            if not stands_alone(item):
                pairs.add_result(at, answered_id(item), OUTPUTS[kind], item)
            if kind in TEXT_OUTPUTS and item.get("output") is None:
                scan.no_output.append(at)
        elif kind == "item_reference":
            references.append(at)
    pairs.adopt()
    if references:
        # One that names an item of the input itself refers to nothing on the server.
        inline = [
            view.get("id") for view in scan.views if view and item_type(view) != "item_reference"
        ]
        known = {one for one in inline if isinstance(one, str)}
        named = ((at, (scan.views[at] or {}).get("id")) for at in references)
        outside = (at for at, one in named if not isinstance(one, str) or one not in known)
        scan.refers_at = next(outside, None)
    return scan


def item_type(item: Mapping[str, Any]) -> str:
    """The item's type; without one it is a message, or a reference when it has only an id."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "role" not in item and "id" in item else "message"
    return kind if isinstance(kind, str) else ""


def answered_id(output: Mapping[str, Any]) -> object:
    """The id of the call an output answers; a local shell output has it as its own id."""
    call_id = output.get("call_id")
    if call_id is None and output.get("type") == "local_shell_call_output":
        return output.get("id")
    return call_id


def stands_alone(output: Mapping[str, Any]) -> bool:
    """A function output may name its tool instead of a call (openai 3.x)."""
    return (
        output.get("call_id") is None
        and isinstance(output.get("name"), str)
        and output.get("type") == "function_call_output"
    )
