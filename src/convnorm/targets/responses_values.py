"""What the values in input items and their parts look like, from the types of openai 3.51.0.

A key that is not here is judged by a rule of its own, or may hold anything. The definitions of
tools are not looked into: they say what a model may do, not what was said.
"""

from collections.abc import Mapping
from typing import Final

from convnorm.targets.schema import (
    ANY,
    BOOLEAN,
    GIVEN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Either,
    Inside,
    ListOf,
    MapOf,
    Nullable,
    OneOf,
    Shape,
    Wanted,
    words,
)

OR_NULL: Final = Nullable(STRING)
TEXTS: Final = ListOf(STRING)
STATUS: Final = words("in_progress", "completed", "incomplete")
DETAIL: Final = words("low", "high", "auto", "original")
IMAGE_SIZES: Final = words("auto", "low", "medium", "high", "xhigh", "max")

# ---------------------------------------------------------------- parts

_BREAKPOINT = Shape({"mode": words("explicit")}, {"ttl": words("30m", "12h")})
_CACHED: Mapping[str, Wanted] = {"prompt_cache_breakpoint": _BREAKPOINT}

_ANNOTATION = OneOf(
    {
        "file_citation": Shape({"file_id": STRING, "filename": STRING, "index": INTEGER}),
        "url_citation": Shape(
            {"end_index": INTEGER, "start_index": INTEGER, "title": STRING, "url": STRING}
        ),
        "container_file_citation": Shape(
            {
                "container_id": STRING,
                "end_index": INTEGER,
                "file_id": STRING,
                "filename": STRING,
                "start_index": INTEGER,
            }
        ),
        "file_path": Shape({"file_id": STRING, "index": INTEGER}),
    }
)
_TOKEN: Mapping[str, Wanted] = {"token": STRING, "bytes": ListOf(INTEGER), "logprob": NUMBER}

PART_SHAPES: Mapping[str, Shape] = {
    "input_text": Shape({"text": STRING}, _CACHED),
    "input_image": Shape(
        {}, {"detail": DETAIL, "file_id": OR_NULL, "image_url": OR_NULL, **_CACHED}
    ),
    "input_file": Shape(
        {},
        {
            "detail": words("auto", "low", "high"),
            "file_data": STRING,
            "file_id": OR_NULL,
            "file_url": STRING,
            "filename": STRING,
            **_CACHED,
        },
    ),
    "output_text": Shape(
        {"text": STRING},
        {
            "annotations": ListOf(_ANNOTATION),
            "logprobs": ListOf(Shape({**_TOKEN, "top_logprobs": ListOf(Shape(_TOKEN))})),
        },
    ),
    "refusal": Shape({"refusal": STRING}),
}
"""By type: the parts of a message, and of the output of a custom tool."""

FUNCTION_PART_SHAPES: Mapping[str, Shape] = {
    kind: Shape(
        shape.required,
        {
            key: wanted if (kind, key) == ("input_file", "detail") else Nullable(wanted)
            for key, wanted in shape.optional.items()
        },
    )
    for kind, shape in PART_SHAPES.items()
}
"""The same in the output of a function, where null may stand for what is left out."""

# ---------------------------------------------------------------- items

_CALLER = Nullable(OneOf({"direct": Shape(), "program": Shape({"caller_id": STRING})}))
_CHECKS = ListOf(Shape({"id": STRING}, {"code": OR_NULL, "message": OR_NULL}))
_POINT: Mapping[str, Wanted] = {"x": INTEGER, "y": INTEGER}
_HELD: Mapping[str, Wanted] = {"keys": Nullable(TEXTS)}
_ACTION = OneOf(
    {
        "click": Shape(
            {"button": words("left", "right", "wheel", "back", "forward"), **_POINT}, _HELD
        ),
        "double_click": Shape({**_HELD, **_POINT}),
        "drag": Shape({"path": ListOf(Shape(_POINT))}, _HELD),
        "keypress": Shape({"keys": TEXTS}),
        "move": Shape(_POINT, _HELD),
        "screenshot": Shape(),
        "scroll": Shape({"scroll_x": INTEGER, "scroll_y": INTEGER, **_POINT}, _HELD),
        "type": Shape({"text": STRING}),
        "wait": Shape(),
    }
)
_FAILURE = Shape({"code": INTEGER, "message": STRING})
_SEARCH_STATUS = words("in_progress", "searching", "completed", "incomplete", "failed")

VALUES: Mapping[str, Mapping[str, Wanted]] = {
    "message": {"type": words("message"), "id": GIVEN, "status": STATUS},
    "reasoning": {
        "id": GIVEN,
        "summary": Inside(ListOf(OneOf({"summary_text": Shape({"text": STRING})}))),
        "content": ListOf(OneOf({"reasoning_text": Shape({"text": STRING})})),
        "encrypted_content": OR_NULL,
    },
    "function_call": {
        "id": GIVEN,
        "name": STRING,
        "async": BOOLEAN,
        "caller": _CALLER,
        "namespace": STRING,
        "status": STATUS,
    },
    "function_call_output": {
        "call_id": OR_NULL,
        "caller": _CALLER,
        "name": OR_NULL,
        "namespace": OR_NULL,
        "status": Nullable(STATUS),
    },
    "custom_tool_call": {
        "id": GIVEN,
        "name": STRING,
        "async": BOOLEAN,
        "caller": _CALLER,
        "namespace": STRING,
    },
    "custom_tool_call_output": {"id": GIVEN, "caller": _CALLER},
    "shell_call": {
        "action": Shape(
            {"commands": TEXTS},
            {"max_output_length": Nullable(INTEGER), "timeout_ms": Nullable(INTEGER)},
        ),
        "caller": _CALLER,
        "environment": Nullable(
            OneOf(
                {
                    "local": Shape(
                        {},
                        {
                            "skills": ListOf(
                                Shape({"description": STRING, "name": STRING, "path": STRING})
                            )
                        },
                    ),
                    "container_reference": Shape({"container_id": STRING}),
                }
            )
        ),
        "status": Nullable(STATUS),
    },
    "shell_call_output": {
        "output": Inside(
            ListOf(
                Shape(
                    {
                        "outcome": OneOf(
                            {"timeout": Shape(), "exit": Shape({"exit_code": INTEGER})}
                        ),
                        "stderr": STRING,
                        "stdout": STRING,
                    }
                )
            )
        ),
        "caller": _CALLER,
        "max_output_length": Nullable(INTEGER),
        "status": Nullable(STATUS),
    },
    "apply_patch_call": {
        "operation": OneOf(
            {
                "create_file": Shape({"diff": STRING, "path": STRING}),
                "delete_file": Shape({"path": STRING}),
                "update_file": Shape({"diff": STRING, "path": STRING}),
            }
        ),
        "caller": _CALLER,
        "status": words("in_progress", "completed"),
    },
    "apply_patch_call_output": {"caller": _CALLER, "status": words("completed", "failed")},
    "local_shell_call": {
        "action": OneOf(
            {
                "exec": Shape(
                    {"command": TEXTS},
                    {
                        "env": MapOf(STRING),  # codex sends null here
                        "timeout_ms": Nullable(INTEGER),
                        "user": OR_NULL,
                        "working_directory": OR_NULL,
                    },
                )
            }
        ),
        "status": STATUS,
    },
    "local_shell_call_output": {"status": Nullable(STATUS)},
    "computer_call": {
        "action": _ACTION,
        "actions": ListOf(_ACTION),
        "pending_safety_checks": _CHECKS,
        "status": STATUS,
    },
    "computer_call_output": {
        "output": Inside(
            OneOf({"computer_screenshot": Shape({}, {"file_id": STRING, "image_url": STRING})})
        ),
        "acknowledged_safety_checks": Nullable(_CHECKS),
        "status": Nullable(STATUS),
    },
    "web_search_call": {
        "action": OneOf(
            {
                "search": Shape(
                    {},
                    {
                        "queries": TEXTS,
                        "query": STRING,
                        "sources": ListOf(OneOf({"url": Shape({"url": STRING})})),
                    },
                ),
                "open_page": Shape({}, {"url": OR_NULL}),
                # The types require both, and codex may send neither.
                "find_in_page": Shape({}, {"pattern": STRING, "url": STRING}),
            }
        ),
        "status": _SEARCH_STATUS,
    },
    "file_search_call": {
        "queries": TEXTS,
        "results": Nullable(
            ListOf(
                Shape(
                    {},
                    {
                        "attributes": Nullable(MapOf(Either((STRING, NUMBER, BOOLEAN)))),
                        "file_id": STRING,
                        "filename": STRING,
                        "score": NUMBER,
                        "text": STRING,
                    },
                )
            )
        ),
        "status": _SEARCH_STATUS,
    },
    "code_interpreter_call": {
        "code": OR_NULL,
        "container_id": STRING,
        "outputs": Nullable(
            ListOf(OneOf({"logs": Shape({"logs": STRING}), "image": Shape({"url": STRING})}))
        ),
        "status": words("in_progress", "completed", "incomplete", "interpreting", "failed"),
    },
    "image_generation_call": {
        "result": OR_NULL,
        "status": words("in_progress", "completed", "generating", "failed"),
        "action": Nullable(words("generate", "edit", "auto")),
        "background": Nullable(words("transparent", "opaque", "auto")),
        "error": Shape(
            {"code": OR_NULL, "message": STRING, "param": OR_NULL, "type": STRING},
            {
                "moderation_details": Shape(
                    {"categories": TEXTS, "moderation_stage": words("input", "output", "unknown")}
                )
            },
        ),
        "output_format": Nullable(words("png", "webp", "jpeg", "gif", "svg")),
        "quality": Nullable(IMAGE_SIZES),
        "revised_prompt": OR_NULL,
        "size": OR_NULL,
        "svg_usage": Shape(
            {
                "input_tokens": INTEGER,
                "model": STRING,
                "output_tokens": INTEGER,
                "reasoning_tokens": INTEGER,
                "total_tokens": INTEGER,
            }
        ),
    },
    "mcp_call": {
        "name": STRING,
        "server_label": STRING,
        "approval_request_id": OR_NULL,
        "error": Nullable(
            Either(
                (
                    words(),  # openai 2.x has a text here
                    OneOf(
                        {
                            "mcp_protocol_error": _FAILURE,
                            "mcp_tool_execution_error": Shape({"content": Nullable(ANY)}),
                            "http_error": _FAILURE,
                        }
                    ),
                )
            )
        ),
        "output": OR_NULL,
        "status": words("in_progress", "completed", "incomplete", "calling", "failed"),
    },
    "mcp_list_tools": {
        "server_label": STRING,
        "tools": ListOf(
            Shape(
                {"input_schema": Nullable(ANY), "name": STRING},
                {"annotations": Nullable(ANY), "description": OR_NULL},
            )
        ),
        "error": OR_NULL,
    },
    "mcp_approval_request": {"name": STRING, "server_label": STRING},
    "mcp_approval_response": {
        "approval_request_id": STRING,
        "approve": BOOLEAN,
        "reason": OR_NULL,
    },
    "tool_search_call": {
        "call_id": OR_NULL,
        "execution": words("server", "client"),
        "status": Nullable(STATUS),
    },
    "tool_search_output": {
        "call_id": OR_NULL,
        "execution": words("server", "client"),
        "status": Nullable(STATUS),
        "tools": ListOf(OBJECT),
    },
    "additional_tools": {"role": words("developer"), "tools": ListOf(OBJECT)},
    "configuration_update": {
        "reasoning": Shape(
            {},
            {"effort": Nullable(words("none", "minimal", "low", "medium", "high", "xhigh", "max"))},
        ),
        "text": Shape(
            {
                "format": OneOf(
                    {
                        "text": Shape(),
                        "json_schema": Shape(
                            {"name": STRING, "schema": OBJECT},
                            {"description": STRING, "strict": Nullable(BOOLEAN)},
                        ),
                    }
                )
            }
        ),
    },
    "compaction": {"encrypted_content": STRING},
    "program": {"call_id": STRING, "code": STRING, "fingerprint": STRING},
    "program_output": {
        "call_id": STRING,
        "result": STRING,
        "status": words("completed", "incomplete"),
    },
}
"""By item type and key: what stands under the key."""
