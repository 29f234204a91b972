"""Chat Completions: a reply as a completion, and as chunks."""

from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.testing.strict_server.answers import event
from convnorm.testing.strict_server.pieces import slices, tokens, words
from convnorm.testing.strict_server.script import Call, Delay, Reasoning, Reply, Text
from convnorm.testing.strict_server.state import State

DONE = b"data: [DONE]\n\n"
HIDING = frozenset({"openai", "azure", "azure-foundry"})
"""Providers whose Chat Completions show no reasoning; all others send `reasoning_content`."""
CALL_IDS = {"mistral": "call{:05}"}
"""By provider: how a call id is written, where `call_1` is none (nine letters and digits)."""


def completion(
    reply: Reply, body: Mapping[str, Any], provider: str, state: State
) -> dict[str, Any]:
    """The whole answer."""
    said = [part.text for part in reply.parts if isinstance(part, Text)]
    thought = [part.summary for part in reply.parts if isinstance(part, Reasoning)]
    calls = [part for part in reply.parts if isinstance(part, Call)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(said) if said else None,
        "refusal": None,
        "annotations": [],
    }
    if thought and provider not in HIDING:
        message["reasoning_content"] = "\n".join(thought)
    if calls:
        style = CALL_IDS.get(provider, "call_{}")
        message["tool_calls"] = [
            {
                "id": call.id or style.format(state.next("call")),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    asked, made = tokens(body.get("messages")), tokens(message)
    return {
        "id": f"chatcmpl-{state.next('chatcmpl')}",
        "object": "chat.completion",
        "created": state.now(),
        "model": body.get("model") or "strict-server",
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if calls else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": made,
            "total_tokens": asked + made,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": None,
    }


def chunks(whole: Mapping[str, Any], reply: Reply, body: Mapping[str, Any]) -> list[bytes | float]:
    """The same answer as a stream."""
    options = body.get("stream_options")
    with_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    head = {key: whole[key] for key in ("id", "created", "model", "service_tier")}
    head |= {"object": "chat.completion.chunk", "system_fingerprint": None}
    if with_usage:
        head["usage"] = None
    choice = whole["choices"][0]

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        one = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**head, "choices": [one]})

    first = {"role": "assistant", "content": None if "tool_calls" in choice["message"] else ""}
    sent: list[bytes | float] = [chunk({**first, "refusal": None})]
    deltas = _deltas(choice["message"], reply)
    sent += [delta if isinstance(delta, float) else chunk(delta) for delta in deltas]
    sent.append(chunk({}, choice["finish_reason"]))
    if with_usage:
        sent.append(event({**head, "choices": [], "usage": whole["usage"]}))
    return [*sent, DONE]


def _deltas(message: Mapping[str, Any], reply: Reply) -> Iterator[Mapping[str, Any] | float]:
    called, between = 0, ""
    for part in reply.parts:
        if isinstance(part, Delay):
            yield float(part.seconds)
        elif isinstance(part, Text):
            yield from ({"content": piece} for piece in words(part.text))
        elif isinstance(part, Reasoning):
            if "reasoning_content" in message:
                thought = words(between + part.summary)
                yield from ({"reasoning_content": piece} for piece in thought)
                between = "\n"
        else:
            whole = message["tool_calls"][called]
            opening = whole | {"function": whole["function"] | {"arguments": ""}}
            yield {"tool_calls": [{"index": called, **opening}]}
            for piece in slices(part.arguments):
                yield {"tool_calls": [{"index": called, "function": {"arguments": piece}}]}
            called += 1
