"""The schema of content blocks as tables, from the types of the SDK anthropic 2.10.0 (with betas).

A value is described by the name of its type. `OWN` is a key that a rule of its own judges.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from convnorm.wire import LIST, fields

OWN: Final = "judged elsewhere"
ANY: Final = "value"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
OBJECT: Final = "object"
ARRAY: Final = "list"
TEXTS: Final = "string or list"
OUTCOME: Final = "object or list"

CHECKS: Final[Mapping[str, Callable[[object], bool]]] = {
    OWN: lambda _: True,
    ANY: lambda value: value is not None,
    STRING: lambda value: isinstance(value, str),
    BOOLEAN: lambda value: isinstance(value, bool),
    OBJECT: lambda value: fields(value) is not None,
    ARRAY: lambda value: isinstance(value, LIST),
    TEXTS: lambda value: isinstance(value, str | list | tuple),
    OUTCOME: lambda value: isinstance(value, LIST) or fields(value) is not None,
}
"""By type name: whether a value is of it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one type of block holds."""

    required: Mapping[str, str]
    """The keys it must have, with the type of each value."""
    optional: Mapping[str, str] = field(default_factory=dict)
    """The keys it may have; null counts as left out."""
    keys: frozenset[str] = field(init=False)
    """All keys it can have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", frozenset({"type", *self.required, *self.optional}))


CACHE: Final = {"cache_control": OBJECT}
CALLER: Final = {"caller": OBJECT}
ANSWER: Final = {"content": OUTCOME, "tool_use_id": STRING}

SHARED: Final = {
    "text": Shape({"text": STRING}, CACHE | {"citations": ARRAY}),
    "image": Shape({"source": OBJECT}, CACHE | {"transformations": OBJECT}),
    "document": Shape(
        {"source": OBJECT}, CACHE | {"citations": OBJECT, "context": STRING, "title": STRING}
    ),
    "search_result": Shape(
        {"content": ARRAY, "source": STRING, "title": STRING}, CACHE | {"citations": OBJECT}
    ),
}
"""Blocks that messages and tool results may hold."""

INSIDE: Final[Mapping[str, Shape]] = SHARED | {
    "tool_reference": Shape({"tool_name": STRING}, CACHE),
    "browser_state": Shape({"tabs": ARRAY}, CACHE | {"state_changes": ARRAY}),
}
"""By type: the blocks that a tool result may hold."""

BLOCKS: Final[Mapping[str, Shape]] = SHARED | {
    "thinking": Shape({"thinking": STRING, "signature": OWN}),
    "redacted_thinking": Shape({"data": OWN}),
    "tool_use": Shape(
        {"id": STRING, "input": OWN, "name": OWN}, CACHE | CALLER | {"toolset_name": STRING}
    ),
    "tool_result": Shape(
        {"tool_use_id": STRING},
        CACHE | {"content": TEXTS, "is_error": BOOLEAN, "toolset_name": STRING},
    ),
    "server_tool_use": Shape({"id": STRING, "input": OBJECT, "name": STRING}, CACHE | CALLER),
    "web_search_tool_result": Shape(ANSWER, CACHE | CALLER),
    "web_fetch_tool_result": Shape(ANSWER, CACHE | CALLER),
    "advisor_tool_result": Shape(ANSWER, CACHE),
    "code_execution_tool_result": Shape(ANSWER, CACHE),
    "bash_code_execution_tool_result": Shape(ANSWER, CACHE),
    "text_editor_code_execution_tool_result": Shape(ANSWER, CACHE),
    "tool_search_tool_result": Shape(ANSWER, CACHE),
    "mcp_tool_use": Shape(
        {"id": STRING, "input": OBJECT, "name": STRING, "server_name": STRING}, CACHE
    ),
    "mcp_tool_result": Shape(
        {"tool_use_id": STRING}, CACHE | {"content": TEXTS, "is_error": BOOLEAN}
    ),
    "mcp_tool_listing": Shape({"mcp_server_name": STRING, "tools": ARRAY}),
    "container_upload": Shape({"file_id": STRING}, CACHE),
    "compaction": Shape(
        {},
        CACHE
        | {
            "content": STRING,
            "encrypted_content": STRING,
            "signature": STRING,
            "tool_changes": ARRAY,
        },
    ),
    "tool_addition": Shape({"tool": OBJECT}, CACHE),
    "tool_removal": Shape({"tool": OBJECT}, CACHE),
    "fallback": Shape({"from": OBJECT, "to": OBJECT}, {"trigger": ANY}),
}
"""By type: the blocks that a message may hold."""

FOREIGN: Final = frozenset(
    {
        *("input_text", "output_text", "refusal", "reasoning", "reasoning_content"),
        *("image_url", "input_image", "input_audio", "input_file", "file"),
        *("tool_call", "tool-call", "tool-result", "toolUse", "toolResult"),
        *("function", "function_call", "function_call_output"),
    }
)
"""Types of other APIs. They are refused for certain; a type nobody knows may be a new one."""

MESSAGE_KEYS: Final = frozenset({"role", "content"})
SYSTEM_KEYS: Final = MESSAGE_KEYS | {"clear_at", "output_config"}

IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
SOURCES: Final[Mapping[str, Mapping[str, Mapping[str, str | frozenset[str]]]]] = {
    "image": {
        "base64": {"data": ANY, "media_type": IMAGE_TYPES},
        "url": {"url": STRING},
        "file": {"file_id": STRING},
    },
    "document": {
        "base64": {"data": ANY, "media_type": frozenset({"application/pdf"})},
        "text": {"data": STRING, "media_type": frozenset({"text/plain"})},
        "content": {"content": TEXTS},
        "url": {"url": STRING},
        "file": {"file_id": STRING},
    },
}
"""By block type and type of source: the keys of the source. `data` may be a path or an open file:
the SDK reads those."""

THINKING_TYPES: Final = frozenset({"enabled", "disabled", "adaptive", "between_tools"})
LIFETIMES: Final = frozenset({"5m", "1h"})


def plain_fields(value: Any) -> Mapping[str, Any]:
    """The keys of an object; none for anything else."""
    return fields(value) or {}
