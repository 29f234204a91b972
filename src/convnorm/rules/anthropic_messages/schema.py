"""The schema of content blocks as tables, from the types of the SDK anthropic 2.10.0 (with betas).

The definitions of tools are not looked into: they say what a model may do, not what was said.
"""

from collections.abc import Mapping
from typing import Any, Final

from convnorm.targets.schema import (
    ANY,
    BOOLEAN,
    FILE,
    INTEGER,
    OBJECT,
    OWN,
    STRING,
    Either,
    ListOf,
    Nullable,
    OneOf,
    Shape,
    Wanted,
    words,
)
from convnorm.wire import fields

OR_NULL: Final = Nullable(STRING)
COUNT: Final = Nullable(INTEGER)
Keys = Mapping[str, Wanted]

LIFETIMES: Final = frozenset({"5m", "1h"})
CACHE: Final[Keys] = {
    "cache_control": Nullable(Shape({"type": frozenset({"ephemeral"})}, {"ttl": LIFETIMES}))
}
CITE: Final = Shape({}, {"enabled": BOOLEAN})
CALLER: Final[Keys] = {
    "caller": OneOf(
        {
            "direct": Shape(),
            "code_execution_20250825": Shape({"tool_id": STRING}),
            "code_execution_20260120": Shape({"tool_id": STRING}),
        }
    )
}

# ---------------------------------------------------------------- what people put in

_CITED: Final[Keys] = {
    "cited_text": STRING,
    "document_index": INTEGER,
    "document_title": OR_NULL,
}
CITATION: Final = OneOf(
    {
        "char_location": Shape({**_CITED, "end_char_index": INTEGER, "start_char_index": INTEGER}),
        "page_location": Shape(
            {**_CITED, "end_page_number": INTEGER, "start_page_number": INTEGER}
        ),
        "content_block_location": Shape(
            {**_CITED, "end_block_index": INTEGER, "start_block_index": INTEGER}
        ),
        "web_search_result_location": Shape(
            {"cited_text": STRING, "encrypted_index": STRING, "title": OR_NULL, "url": STRING}
        ),
        "search_result_location": Shape(
            {
                "cited_text": STRING,
                "end_block_index": INTEGER,
                "search_result_index": INTEGER,
                "source": STRING,
                "start_block_index": INTEGER,
                "title": OR_NULL,
            }
        ),
    }
)
TEXT: Final = Shape({"text": STRING}, {**CACHE, "citations": Nullable(ListOf(CITATION))})
ONLY_TEXTS: Final = ListOf(OneOf({"text": TEXT}))

IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
IMAGE: Final = Shape(
    {
        "source": OneOf(
            {
                "base64": Shape({"data": FILE, "media_type": IMAGE_TYPES}),
                "url": Shape({"url": STRING}),
                "file": Shape({"file_id": STRING}),
            }
        )
    },
    {
        **CACHE,
        "transformations": Nullable(Shape({}, {"oversized_image": words("downsize", "error")})),
    },
)
DOCUMENT: Final = Shape(
    {
        "source": OneOf(
            {
                "base64": Shape({"data": FILE, "media_type": frozenset({"application/pdf"})}),
                "text": Shape({"data": STRING, "media_type": frozenset({"text/plain"})}),
                "content": Shape(
                    {"content": Either((STRING, ListOf(OneOf({"text": TEXT, "image": IMAGE}))))}
                ),
                "url": Shape({"url": STRING}),
                "file": Shape({"file_id": STRING}),
            }
        )
    },
    {**CACHE, "citations": Nullable(CITE), "context": OR_NULL, "title": OR_NULL},
)

SHARED: Final[Mapping[str, Shape]] = {
    "text": TEXT,
    "image": IMAGE,
    "document": DOCUMENT,
    "search_result": Shape(
        {"content": ONLY_TEXTS, "source": STRING, "title": STRING}, {**CACHE, "citations": CITE}
    ),
}
"""Blocks that messages and tool results may hold."""

# ---------------------------------------------------------------- what tools say

TOOL_REFERENCE: Final = Shape({"tool_name": STRING}, CACHE)
_DOWNLOAD: Final[Keys] = {"download_id": STRING, "url": STRING}

INSIDE: Final[Mapping[str, Shape]] = {
    **SHARED,
    "tool_reference": TOOL_REFERENCE,
    "browser_state": Shape(
        {
            "tabs": ListOf(
                Shape({"tab_id": STRING, "title": STRING, "url": STRING}, {"active": BOOLEAN})
            )
        },
        {
            **CACHE,
            "state_changes": Nullable(
                ListOf(
                    OneOf(
                        {
                            "tab_opened": Shape({"tab_id": STRING}),
                            "download_started": Shape(_DOWNLOAD),
                            "download_completed": Shape(
                                _DOWNLOAD, {"path": OR_NULL, "size_bytes": COUNT}
                            ),
                            "download_failed": Shape(_DOWNLOAD, {"error": OR_NULL}),
                        }
                    )
                )
            ),
        },
    ),
}
"""By type: the blocks that a tool result may hold."""

LIMITED: Final = ("invalid_tool_input", "unavailable", "too_many_requests")
"""Why a tool of the server can fail, whatever it does."""


def _answer(content: Wanted, **more: Wanted) -> Shape:
    """What a tool of the server answered."""
    return Shape({"content": content, "tool_use_id": STRING}, {**CACHE, **more})


def _failed(*codes: str) -> Shape:
    """Why such a tool did not answer."""
    return Shape({"error_code": words(*codes)})


def _ran(output: str, said: str = "stdout") -> Shape:
    """What a run of some code left: its texts and its files."""
    files = ListOf(OneOf({output: Shape({"file_id": STRING})}))
    return Shape({"content": files, "return_code": INTEGER, "stderr": STRING, said: STRING})


TOO_SLOW: Final = (*LIMITED, "execution_time_exceeded")
EXPLAINED: Final[Keys] = {"error_message": OR_NULL}
REFERRED: Final[Mapping[str, Shape]] = {
    "tool_reference": Shape({"name": STRING}),
    "mcp_tool_reference": Shape({"name": STRING, "server_name": STRING}),
    "mcp_toolset_reference": Shape({"server_name": STRING}),
}
CHANGES: Final[Mapping[str, Shape]] = {
    "tool_addition": Shape(
        {"tool": OneOf({**REFERRED, "tool_definition": Shape({"definition": OBJECT})})}, CACHE
    ),
    "tool_removal": Shape({"tool": OneOf(REFERRED)}, CACHE),
}

BLOCKS: Final[Mapping[str, Shape]] = {
    **SHARED,
    "thinking": Shape({"thinking": STRING, "signature": OWN}),
    "redacted_thinking": Shape({"data": OWN}),
    "tool_use": Shape(
        {"id": STRING, "input": OWN, "name": OWN}, {**CACHE, **CALLER, "toolset_name": OR_NULL}
    ),
    "tool_result": Shape(
        {"tool_use_id": STRING},
        {
            **CACHE,
            "content": Either((STRING, ListOf(OWN))),  # its blocks are read one by one
            "is_error": BOOLEAN,
            "toolset_name": OR_NULL,
        },
    ),
    "server_tool_use": Shape(
        {
            "id": STRING,
            "input": OBJECT,
            "name": words(
                *("advisor", "web_search", "web_fetch", "code_execution"),
                *("bash_code_execution", "text_editor_code_execution"),
                *("tool_search_tool_regex", "tool_search_tool_bm25"),
            ),
        },
        {**CACHE, **CALLER},
    ),
    "web_search_tool_result": _answer(
        Either(
            (
                ListOf(
                    OneOf(
                        {
                            "web_search_result": Shape(
                                {"encrypted_content": STRING, "title": STRING, "url": STRING},
                                {"page_age": OR_NULL},
                            )
                        }
                    )
                ),
                OneOf(
                    {
                        "web_search_tool_result_error": _failed(
                            *LIMITED, "max_uses_exceeded", "query_too_long", "request_too_large"
                        )
                    }
                ),
            )
        ),
        **CALLER,
    ),
    "web_fetch_tool_result": _answer(
        OneOf(
            {
                "web_fetch_result": Shape(
                    {"content": OneOf({"document": DOCUMENT}), "url": STRING},
                    {"retrieved_at": OR_NULL},
                ),
                "web_fetch_tool_result_error": _failed(
                    *(*LIMITED, "max_uses_exceeded", "url_too_long", "url_not_allowed"),
                    *("url_not_in_prior_context", "url_not_accessible"),
                    *("unsupported_content_type", "content_too_large"),
                ),
            }
        ),
        **CALLER,
    ),
    "advisor_tool_result": _answer(
        OneOf(
            {
                "advisor_result": Shape({"text": STRING}, {"stop_reason": OR_NULL}),
                "advisor_redacted_result": Shape(
                    {"encrypted_content": STRING}, {"stop_reason": OR_NULL}
                ),
                "advisor_tool_result_error": _failed(
                    *("max_uses_exceeded", "prompt_too_long", "too_many_requests", "overloaded"),
                    *("unavailable", "execution_time_exceeded", "model_not_found"),
                ),
            }
        )
    ),
    "code_execution_tool_result": _answer(
        OneOf(
            {
                "code_execution_result": _ran("code_execution_output"),
                "encrypted_code_execution_result": _ran(
                    "code_execution_output", "encrypted_stdout"
                ),
                "code_execution_tool_result_error": _failed(*TOO_SLOW),
            }
        )
    ),
    "bash_code_execution_tool_result": _answer(
        OneOf(
            {
                "bash_code_execution_result": _ran("bash_code_execution_output"),
                "bash_code_execution_tool_result_error": _failed(
                    *TOO_SLOW, "output_file_too_large"
                ),
            }
        )
    ),
    "text_editor_code_execution_tool_result": _answer(
        OneOf(
            {
                "text_editor_code_execution_view_result": Shape(
                    {"content": STRING, "file_type": words("text", "image", "pdf")},
                    {"num_lines": COUNT, "start_line": COUNT, "total_lines": COUNT},
                ),
                "text_editor_code_execution_create_result": Shape({"is_file_update": BOOLEAN}),
                "text_editor_code_execution_str_replace_result": Shape(
                    {},
                    {
                        "lines": Nullable(ListOf(STRING)),
                        **dict.fromkeys(
                            ("new_lines", "new_start", "old_lines", "old_start"), COUNT
                        ),
                    },
                ),
                "text_editor_code_execution_tool_result_error": Shape(
                    _failed(*TOO_SLOW, "file_not_found").required, EXPLAINED
                ),
            }
        )
    ),
    "tool_search_tool_result": _answer(
        OneOf(
            {
                "tool_search_tool_search_result": Shape(
                    {"tool_references": ListOf(OneOf({"tool_reference": TOOL_REFERENCE}))}
                ),
                "tool_search_tool_result_error": Shape(_failed(*TOO_SLOW).required, EXPLAINED),
            }
        )
    ),
    "mcp_tool_use": Shape(
        {"id": STRING, "input": OBJECT, "name": STRING, "server_name": STRING}, CACHE
    ),
    "mcp_tool_result": Shape(
        {"tool_use_id": STRING},
        {**CACHE, "content": Either((STRING, ONLY_TEXTS)), "is_error": BOOLEAN},
    ),
    "mcp_tool_listing": Shape(
        {
            "mcp_server_name": STRING,
            "tools": ListOf(
                Shape({"input_schema": OBJECT, "name": STRING}, {"description": OR_NULL})
            ),
        }
    ),
    "container_upload": Shape({"file_id": STRING}, CACHE),
    "compaction": Shape(
        {},
        {
            **CACHE,
            "content": OR_NULL,
            "encrypted_content": OR_NULL,
            "signature": OR_NULL,
            "tool_changes": Nullable(ListOf(OneOf(CHANGES))),
        },
    ),
    **CHANGES,
    "fallback": Shape(
        {"from": Shape({"model": STRING}), "to": Shape({"model": STRING})},
        {"trigger": Nullable(ANY)},
    ),
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
SYSTEM_VALUES: Final[Keys] = {
    "clear_at": Nullable(words("next_user_message", "never")),
    "output_config": Nullable(
        Shape({}, {"effort": Nullable(words("low", "medium", "high", "xhigh", "max"))})
    ),
}
"""What a system message may have beside its content."""
SYSTEM_KEYS: Final = MESSAGE_KEYS | SYSTEM_VALUES.keys()

THINKING_TYPES: Final = frozenset({"enabled", "disabled", "adaptive", "between_tools"})


def plain_fields(value: Any) -> Mapping[str, Any]:
    """The keys of an object; none for anything else."""
    return fields(value) or {}
