"""The Responses API: a reply as output items, as a response, and as events."""

from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.testing.strict_server.answers import event
from convnorm.testing.strict_server.pieces import listed, slices, tokens, words
from convnorm.testing.strict_server.script import Call, Delay, Reasoning, Reply, Text
from convnorm.testing.strict_server.state import State

Item = dict[str, Any]
SEALED = "reasoning.encrypted_content"

ECHOED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What a response repeats of its request, and what it says where the request says nothing."""


def output_items(reply: Reply, body: Mapping[str, Any], state: State) -> list[Item]:
    """The items of a reply; reasoning is sealed only for those who ask for it."""
    sealed = SEALED in listed(body.get("include"))
    made = (_item(part, state, sealed=sealed) for part in reply.parts)
    return [item for item in made if item is not None]


def _item(part: Text | Reasoning | Call | Delay, state: State, *, sealed: bool) -> Item | None:
    if isinstance(part, Delay):
        return None
    if isinstance(part, Text):
        content = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
        return {
            "id": state.id("msg"),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [content],
        }
    if isinstance(part, Call):
        return {
            "id": state.id("fc"),
            "type": "function_call",
            "status": "completed",
            "call_id": part.id or state.id("call"),
            "name": part.name,
            "arguments": part.arguments,
        }
    shown = [{"type": "summary_text", "text": part.summary}] if part.summary else []
    item: Item = {"id": state.id("rs"), "type": "reasoning", "summary": shown}
    if sealed:
        item["encrypted_content"] = part.encrypted or state.id("gAAAAA")
    return item


def usage(seen: Any, output: Any) -> dict[str, Any]:
    """Made-up counts, with every field that the clients ask for."""
    asked, made = tokens(seen), tokens(output)
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + made,
    }


def response(
    output: list[Item], body: Mapping[str, Any], seen: tuple[Any, ...], state: State
) -> dict[str, Any]:
    """The whole response."""
    said = {key: body[key] for key in ECHOED if body.get(key) is not None}
    conversation = body.get("conversation")
    if isinstance(conversation, str):
        conversation = {"id": conversation}
    return {
        "id": state.id("resp"),
        "object": "response",
        "created_at": state.now(),
        "completed_at": state.now(),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": body.get("model") or "strict-server",
        "output": output,
        "usage": usage(seen, output),
        "conversation": conversation,
        **ECHOED,
        **said,
    }


def events(whole: Mapping[str, Any], reply: Reply) -> list[bytes | float]:
    """The same response as a stream."""
    started = {**whole, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    sent: list[bytes | float] = []

    def send(kind: str, data: Mapping[str, Any]) -> None:
        number = sum(isinstance(one, bytes) for one in sent)
        sent.append(event({"type": kind, "sequence_number": number, **data}, name=kind))

    send("response.created", {"response": started})
    send("response.in_progress", {"response": started})
    at = 0
    for part in reply.parts:
        if isinstance(part, Delay):
            sent.append(float(part.seconds))
            continue
        item = whole["output"][at]
        empty = {key: [] if key in ("summary", "content") else item[key] for key in item}
        if "status" in item:
            empty["status"] = "in_progress"
        if "arguments" in item:
            empty["arguments"] = ""
        send("response.output_item.added", {"output_index": at, "item": empty})
        for kind, data in STREAMED[item["type"]](item):
            send(f"response.{kind}", {"item_id": item["id"], "output_index": at, **data})
        send("response.output_item.done", {"output_index": at, "item": item})
        at += 1
    send("response.completed", {"response": whole})
    return sent


Steps = Iterator[tuple[str, dict[str, Any]]]


def _message(item: Item) -> Steps:
    for at, part in enumerate(item["content"]):
        place = {"content_index": at}
        yield "content_part.added", {**place, "part": part | {"text": ""}}
        for piece in words(part["text"]):
            yield "output_text.delta", {**place, "delta": piece, "logprobs": []}
        yield "output_text.done", {**place, "text": part["text"], "logprobs": []}
        yield "content_part.done", {**place, "part": part}


def _function_call(item: Item) -> Steps:
    for piece in slices(item["arguments"]):
        yield "function_call_arguments.delta", {"delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield "function_call_arguments.done", done


def _reasoning(item: Item) -> Steps:
    for at, part in enumerate(item["summary"]):
        place = {"summary_index": at}
        yield "reasoning_summary_part.added", {**place, "part": part | {"text": ""}}
        for piece in words(part["text"]):
            yield "reasoning_summary_text.delta", {**place, "delta": piece}
        yield "reasoning_summary_text.done", {**place, "text": part["text"]}
        yield "reasoning_summary_part.done", {**place, "part": part}


STREAMED = {"message": _message, "function_call": _function_call, "reasoning": _reasoning}
"""By item type: the events between `added` and `done`."""


def compacted(body: Mapping[str, Any], seen: tuple[Any, ...], state: State) -> dict[str, Any]:
    """What `/responses/compact` gives: all that was seen, as one sealed item."""
    item = {
        "id": state.id("cmp"),
        "type": "compaction",
        "encrypted_content": state.id("gAAAAA"),
    }
    return {
        "id": state.id("resp"),
        "object": "response.compaction",
        "created_at": state.now(),
        "model": body.get("model") or "strict-server",
        "output": [item],
        "usage": usage(seen, [item]),
    }
