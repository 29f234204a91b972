"""The strict server and the real anthropic client: a whole conversation, and every refusal."""

import re
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from convnorm.testing import Failure, Reply, StrictServer, call, reasoning

MODEL = "claude-opus-4-5"  # the SDK warns of older ones, and of newer ones with manual thinking
TOOLS: Any = [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]
SCRIPT = (
    Reply(
        reasoning("Both cities."),
        "Let me look.",
        call("weather", city="Oslo"),
        call("weather", city="Bergen"),
    ),
    Reply(reasoning("One more."), call("weather", city="Rome")),
    "It rains, except in Rome.",
)


@pytest.fixture
def client(strict_server: StrictServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=strict_server.url, api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


def ask(client: anthropic.Anthropic, messages: list[Any], *, stream: bool = False) -> Any:
    request: Any = {
        "model": MODEL,
        "max_tokens": 4096,
        "messages": messages,
        "tools": TOOLS,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    if not stream:
        return client.messages.create(**request)
    with client.messages.stream(**request) as events:
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_tools(
    client: anthropic.Anthropic, strict_server: StrictServer, stream: bool
) -> None:
    """Three turns with thinking and parallel calls; the client's own blocks are sent back."""
    strict_server.play(*SCRIPT)
    messages: list[Any] = [{"role": "user", "content": "weather?"}]

    said = ask(client, messages, stream=stream)
    while said.stop_reason == "tool_use":
        answers = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "rain"}
            for block in said.content
            if block.type == "tool_use"
        ]
        messages += [
            {"role": "assistant", "content": said.content},
            {"role": "user", "content": answers},
        ]
        said = ask(client, messages, stream=stream)

    assert ("end_turn", "It rains, except in Rome.") == (said.stop_reason, said.content[0].text)
    assert [200, 200, 200] == [request.status for request in strict_server.requests]
    thought, *_, last = strict_server.requests[-1].seen[1]["content"]
    assert ("Both cities.", "sig_1") == (thought["thinking"], thought["signature"])
    assert ("toolu_2", {"city": "Bergen"}) == (last["id"], last["input"])


def test_events_come_in_order(client: anthropic.Anthropic, strict_server: StrictServer) -> None:
    """The raw stream is what the API sends."""
    strict_server.play(Reply("It rains.", call("weather")))
    request: Any = {
        "model": MODEL,
        "max_tokens": 16,
        "messages": [{"role": "user", "content": "?"}],
    }
    events = [event.type for event in client.messages.create(**request, stream=True)]

    block = ["content_block_start", "content_block_delta", "content_block_delta"]
    assert events == [
        "message_start",
        *(*block, "content_block_stop"),
        *(*block, "content_block_stop"),
        *("message_delta", "message_stop"),
    ]


USING: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}],
}


def test_a_tool_use_without_its_result_is_refused(
    client: anthropic.Anthropic, strict_server: StrictServer
) -> None:
    """In the provider's words, with our rule beside it."""
    strict_server.play("never said")
    messages = [{"role": "user", "content": "?"}, USING, {"role": "user", "content": "and?"}]
    with pytest.raises(
        anthropic.BadRequestError, match="`tool_use` ids were found without `tool_result` blocks"
    ) as error:
        client.messages.create(model=MODEL, max_tokens=16, messages=messages)

    body: Any = error.value.body
    assert ("error", "invalid_request_error") == (body["type"], body["error"]["type"])
    assert strict_server.requests[0].rule == body["convnorm"]["rule"]
    assert error.value.request_id == body["request_id"] == "req_1"


def test_a_result_without_its_tool_use_is_refused(client: anthropic.Anthropic) -> None:
    """A result that answers nothing."""
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
    messages: Any = [{"role": "user", "content": [answer]}]
    with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`"):
        client.messages.create(model=MODEL, max_tokens=16, messages=messages)


USER = {"role": "user", "content": "weather?"}
RESULT: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
ANSWER = {"role": "user", "content": [RESULT]}
SECOND = {**USING["content"][0], "id": "toolu_2"}
UNSIGNED = {"type": "thinking", "thinking": "hm"}
WITHOUT = "`tool_use` ids were found without `tool_result` blocks"
SEEDS: dict[str, tuple[list[Any], str]] = {
    "a call that is still pending when the next agent speaks": ([USER, USING, USER], WITHOUT),
    "an output that was made and never sent": (
        [USER, {**USING, "content": [*USING["content"], SECOND]}, ANSWER],
        WITHOUT,
    ),
    "a result whose call stayed with another agent": (
        [USER, {"role": "assistant", "content": "yes"}, ANSWER],
        "unexpected `tool_use_id` found in `tool_result` blocks",
    ),
    "a history that is replayed twice": (
        [USER, USING, ANSWER, USING, ANSWER],
        "`tool_use` ids must be unique",
    ),
    "a call whose result is displaced by a replay": ([USER, USING, USER, ANSWER], WITHOUT),
    "a result that is replayed": (
        [USER, USING, {"role": "user", "content": [RESULT, RESULT]}],
        "each tool_use must have a single result",
    ),
    "reasoning that was never signed": (
        [USER, {"role": "assistant", "content": [UNSIGNED, {"type": "text", "text": "yes"}]}, USER],
        "signature: Field required",
    ),
    "a stream that was left before its call was answered": ([USER, USING], WITHOUT),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SEEDS)
def test_every_seed_fault_is_refused(
    client: anthropic.Anthropic, strict_server: StrictServer, name: str, stream: bool
) -> None:
    """The real client raises BadRequestError with the provider's words, streaming or not."""
    messages, words = SEEDS[name]
    request: Any = {"messages": messages, "model": MODEL, "max_tokens": 16, "stream": stream}
    with pytest.raises(anthropic.BadRequestError, match=re.escape(words)):
        client.messages.create(**request)
    assert [400] == [one.status for one in strict_server.requests]


def test_failures(client: anthropic.Anthropic, strict_server: StrictServer) -> None:
    """An error of the script's choice in this API's shape, a cut stream, and the script's end."""
    strict_server.play(Failure(529, "overloaded"), Reply("never finished", abort_after=4))
    request: Any = {
        "model": MODEL,
        "max_tokens": 16,
        "messages": [{"role": "user", "content": "?"}],
    }
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        client.messages.create(**request)
    with pytest.raises(Exception, match=r"(?i)incomplete|closed|connection"):
        list(client.messages.create(**request, stream=True))
    with pytest.raises(anthropic.InternalServerError, match=r"script .* is exhausted"):
        client.messages.create(**request)
