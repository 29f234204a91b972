"""Real streams of the three wire formats, from the strict server's scripted replies."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from convnorm.delivery import Ledger
from convnorm.testing import Reply
from convnorm.testing.strict_server import chat, messages, responses
from convnorm.testing.strict_server.state import State

Whole = dict[str, Any]
Stream = tuple[Whole, list[Any]]
"""A response that is not streamed, and the events of the one that is."""


def _parsed(raw: Iterable[bytes | float]) -> list[Any]:
    texts = (one.decode().rpartition("data: ")[2] for one in raw if isinstance(one, bytes))
    return [json.loads(text) for text in texts if not text.startswith("[DONE]")]


def chat_stream(reply: Reply) -> Stream:
    """Chat Completions, of a server that shows its reasoning."""
    body = {"model": "m", "messages": [], "stream_options": {"include_usage": True}}
    whole = chat.completion(reply, body, "deepseek", State(Ledger()))
    return whole, _parsed(chat.chunks(whole, reply, body))


def responses_stream(reply: Reply) -> Stream:
    """Responses, with sealed reasoning."""
    state, body = State(Ledger()), {"model": "m", "include": [responses.SEALED]}
    output = responses.output_items(reply, body, state)
    whole = responses.response(output, body, (), state)
    return whole, _parsed(responses.events(whole, reply))


def messages_stream(reply: Reply) -> Stream:
    """Anthropic Messages, with signed thinking."""
    whole = messages.message(reply, {"model": "m"}, State(Ledger()))
    return whole, _parsed(messages.events(whole, reply))


STREAMS: dict[str, Callable[[Reply], Stream]] = {
    "openai.chat": chat_stream,
    "openai.responses": responses_stream,
    "anthropic.messages": messages_stream,
}
"""By target: how a reply is streamed."""
