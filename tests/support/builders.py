"""Tiny builders, so that a test reads like the conversation it is about."""

from typing import Any

Message = dict[str, Any]


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def said(text: Any) -> Message:
    return {"role": "assistant", "content": text}


def calls(*ids: str | int | None, name: str = "look", arguments: str = "{}") -> Message:
    """A chat message that calls a tool once per id."""
    function = {"name": name, "arguments": arguments}
    made = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str | int, content: Any = "found") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def call(call_id: str | int | None, *, id: str | None = None, name: str = "look") -> Message:  # noqa: A002  # the wire's own name
    """A Responses function call."""
    item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
    return item if id is None else item | {"id": id}


def output(call_id: str | int | None, text: Any = "found") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def reasoning(id: str | None = None, proof: str | None = None) -> Message:  # noqa: A002  # the wire's own name
    item: Message = {"type": "reasoning", "summary": []}
    if id is not None:
        item["id"] = id
    return item if proof is None else item | {"encrypted_content": proof}


def message(id: str, text: str) -> Message:  # noqa: A002  # the wire's own name
    """A Responses output message."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
