"""What the rules of Chat Completions share."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from convnorm.rules.scan import Call, Scan, shown
from convnorm.wire import fields

API: Final = "openai.chat"
TYPES = "openai 3.51.0 types"
SPECIFICATION = "openai/openai-openapi openapi.json @f85dbe2"
SPEAKING = ("tool_calls", "function_call", "refusal", "audio")
"""With one of these an assistant message needs no content."""


def describe(call: Call) -> str:
    """A call as a message names it."""
    body = fields(call.raw.get("function")) or fields(call.raw.get("custom")) or call.raw
    name = body.get("name")
    said = f"call {shown(call.id)}" if call.id else "a call without an id"
    return f"{said} ({name[:64]})" if isinstance(name, str) and name else said


def messages(scan: Scan, positions: list[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The messages at these positions, as keys."""
    for at in positions:
        message = scan.views[at]
        if message is not None:
            yield at, message


def all_messages(scan: Scan) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every message that is an object, as keys."""
    for at, message in enumerate(scan.views):
        if message is not None:
            yield at, message


def speaks_otherwise(message: Mapping[str, Any]) -> bool:
    """Whether a message may leave its content null."""
    role = message.get("role")
    return role == "function" or (role == "assistant" and any(map(message.get, SPEAKING)))


# Examples are made of these.


def user(text: str = "and?") -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": text}


def calling(*calls: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """An assistant message that makes `calls`, or one call without a fault."""
    return {"role": "assistant", "content": "", "tool_calls": list(calls or [call()]), **more}


def call(call_id: str = "call_1", **more: object) -> dict[str, Any]:
    """One tool call; `more` is said of its function."""
    body = {"name": "balance", "arguments": "{}", **more}
    return {"id": call_id, "type": "function", "function": body}


def result(call_id: str = "call_1", content: object = "10 EUR") -> dict[str, Any]:
    """The tool message that answers a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
