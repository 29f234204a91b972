"""The input items of the Responses API as data: what each type has, needs and is called by.

The facts are those of the openai SDK's types, 3.51.0 and 2.54.0 together, less what the API is
known to see differently: it takes messages, reasoning and local shell calls without an id, and it
refuses a status on reasoning.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convnorm.targets.responses_values import PART_SHAPES

TYPES: Final = "openai 3.51.0 types"
"""How rules name these types as their source."""


@dataclass(frozen=True, slots=True)
class ItemType:
    """One type of input item."""

    keys: frozenset[str]
    """Everything it may have."""
    needs: tuple[str, ...] = ()
    """What it must have, beside what other rules ask for: content, output, call_id, summary."""
    asked: tuple[str, ...] = ()
    """What only the types ask for: nobody saw the API refuse an item that lacks it."""
    shown: tuple[str, ...] = ()
    """The same for what may be null, and only has to be there."""
    prefix: str = ""
    """How its id begins; empty where that is not known."""
    named: bool = True
    """Its `id` is an item id; a local shell output has the id of its call there."""


def _item(
    may: str = "",
    *,
    needs: str = "",
    asked: str = "",
    shown: str = "",
    prefix: str = "",
    named: bool = True,
) -> ItemType:
    """A type from lists of words; every item may have a type and an id."""
    must, wanted, there = (tuple(words.split()) for words in (needs, asked, shown))
    keys = frozenset({"type", "id", *must, *wanted, *there, *may.split()})
    return ItemType(keys, must, wanted, there, prefix, named)


ITEMS: Mapping[str, ItemType] = {
    "message": _item("role content status phase", prefix="msg"),
    "reasoning": _item("summary content encrypted_content", prefix="rs"),
    "function_call": _item(
        "call_id async caller namespace status", needs="name arguments", prefix="fc"
    ),
    "function_call_output": _item("call_id output caller name namespace status", prefix="fco"),
    "custom_tool_call": _item(
        "call_id async caller namespace status", needs="name input", prefix="ctc"
    ),
    "custom_tool_call_output": _item("call_id output caller", prefix="ctco"),
    "shell_call": _item("call_id caller environment status", needs="action", prefix="sh"),
    "shell_call_output": _item(
        "call_id caller max_output_length status", needs="output", prefix="sho"
    ),
    "apply_patch_call": _item("call_id caller", needs="operation", asked="status", prefix="apc"),
    "apply_patch_call_output": _item("call_id caller output", asked="status", prefix="apco"),
    "local_shell_call": _item("call_id", needs="action", asked="id status", prefix="lsh"),
    # The types give the output its call's id as `id`; clients send it as `call_id`, too.
    "local_shell_call_output": _item("call_id status", needs="output", named=False),
    "computer_call": _item(
        "call_id action actions", asked="pending_safety_checks status", prefix="cu"
    ),
    "computer_call_output": _item(
        "call_id acknowledged_safety_checks status", needs="output", prefix="cuo"
    ),
    "web_search_call": _item(asked="action status", prefix="ws"),
    "file_search_call": _item("results", asked="queries status", prefix="fs"),
    "code_interpreter_call": _item(asked="container_id status", shown="code outputs", prefix="ci"),
    # It may be sent by its id alone: clients do, to have the image edited.
    "image_generation_call": _item(
        "result status action background error output_format quality revised_prompt size svg_usage",
        prefix="ig",
    ),
    "mcp_call": _item(
        "approval_request_id error output status",
        asked="arguments name server_label",
        prefix="mcp",
    ),
    "mcp_list_tools": _item("error", asked="server_label tools", prefix="mcpl"),
    "mcp_approval_request": _item(asked="arguments name server_label", prefix="mcpr"),
    "mcp_approval_response": _item("reason", needs="approval_request_id approve"),
    "tool_search_call": _item("call_id execution status", needs="arguments", prefix="tsc"),
    "tool_search_output": _item("call_id execution status", needs="tools", prefix="tso"),
    "additional_tools": _item(needs="role tools", prefix="at"),
    "configuration_update": _item("reasoning text"),
    "compaction": _item(needs="encrypted_content", prefix="cmp"),
    "compaction_trigger": _item(),
    "item_reference": _item(needs="id"),
    "program": _item(needs="call_id code fingerprint", asked="id"),
    "program_output": _item(needs="call_id result", asked="id status"),
}
"""Every type of the input."""

SURE_PREFIXES = frozenset({"message", "reasoning", "function_call"})
"""Types whose prefix an error named; the other prefixes were seen in ids only."""

DISPUTED_KEYS: Mapping[str, frozenset[str]] = {
    "function_call": frozenset({"namespace"}),
    "custom_tool_call": frozenset({"status"}),
    "image_generation_call": frozenset({"action"}),
}
"""Keys that the types have and that users saw refused; and one that only openai/codex sends."""

HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "computer_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
    }
)
"""What the server did or asked by itself: it wants the id back."""

BY_ID = frozenset({"type", "id", "status"})
"""A hosted item that has no more than this is looked up by its id."""

_INPUT = frozenset({"input_text", "input_image", "input_file"})
PARTS: Mapping[str, frozenset[str]] = {
    "assistant": frozenset({"output_text", "refusal"}),
    **dict.fromkeys(("user", "system", "developer"), _INPUT),
}
"""By role: the parts of a message."""
OUTPUT_PARTS = _INPUT
"""The parts of a function or custom output."""

PART_KEYS: Mapping[str, frozenset[str]] = {kind: shape.keys for kind, shape in PART_SHAPES.items()}
"""What each part may have."""

PHASES = frozenset({"commentary", "final_answer"})

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""An item id."""
ID_LENGTH = 64
"""The longest item id, and the longest call_id."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""The name of a function."""

TEXT_LENGTH = 10_485_760
"""The longest text, output or arguments."""
DATA_LENGTH = 20_971_520
"""The longest image_url or encrypted_content."""
