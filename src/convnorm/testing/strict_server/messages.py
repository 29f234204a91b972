"""Anthropic Messages: a reply as a message, and as events."""

from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.testing.strict_server.answers import event
from convnorm.testing.strict_server.json_text import parsed
from convnorm.testing.strict_server.pieces import slices, tokens, words
from convnorm.testing.strict_server.script import Call, Delay, Reasoning, Reply, Text
from convnorm.testing.strict_server.state import State

Block = dict[str, Any]


def message(reply: Reply, body: Mapping[str, Any], state: State) -> dict[str, Any]:
    """The whole message."""
    content = [_block(part, state) for part in reply.parts if not isinstance(part, Delay)]
    called = any(block["type"] == "tool_use" for block in content)
    return {
        "id": state.id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model") or "strict-server",
        "content": content,
        "stop_reason": "tool_use" if called else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens(body.get("messages")),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens(content),
            "service_tier": "standard",
        },
    }


def _block(part: Text | Reasoning | Call, state: State) -> Block:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Reasoning):
        signature = part.encrypted or state.id("sig")
        return {"type": "thinking", "thinking": part.summary, "signature": signature}
    return {
        "type": "tool_use",
        "id": part.id or state.id("toolu"),
        "name": part.name,
        "input": _input(part.arguments),
    }


def _input(arguments: str) -> Any:
    """The arguments as an object; broken JSON cannot be shown here, so its text is named."""
    try:
        return parsed(arguments)
    except ValueError:
        return {"INVALID_JSON": arguments}


def events(whole: Mapping[str, Any], reply: Reply) -> list[bytes | float]:
    """The same message as a stream."""
    sent: list[bytes | float] = []

    def send(kind: str, **data: Any) -> None:
        sent.append(event({"type": kind, **data}, name=kind))

    started = {**whole, "content": [], "stop_reason": None}
    started["usage"] = {**whole["usage"], "output_tokens": 1}
    send("message_start", message=started)
    send("ping")
    at = 0
    for part in reply.parts:
        if isinstance(part, Delay):
            sent.append(float(part.seconds))
            continue
        block = whole["content"][at]
        send("content_block_start", index=at, content_block=block | EMPTY[block["type"]])
        for delta in _deltas(part, block):
            send("content_block_delta", index=at, delta=delta)
        send("content_block_stop", index=at)
        at += 1
    reason = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    send("message_delta", delta=reason, usage={"output_tokens": whole["usage"]["output_tokens"]})
    send("message_stop")
    return sent


EMPTY: Mapping[str, Block] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""By block type: what its first event leaves empty."""


def _deltas(part: Text | Reasoning | Call, block: Block) -> Iterator[Block]:
    if isinstance(part, Text):
        yield from ({"type": "text_delta", "text": piece} for piece in words(part.text))
    elif isinstance(part, Reasoning):
        for piece in words(part.summary):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in slices(part.arguments):
            yield {"type": "input_json_delta", "partial_json": piece}
