"""The strict server and the real openai client: whole conversations, and every refusal."""

import re
from collections.abc import Iterator
from typing import Any

import anyio
import openai
import pytest

from convnorm.testing import Failure, Reply, StrictServer, call, reasoning

MODEL = "gpt-5.1"
TOOL = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
SCRIPT = (
    Reply(reasoning("Both cities."), call("weather", city="Oslo"), call("weather", city="Bergen")),
    Reply(reasoning("One more."), call("weather", city="Rome")),
    "It rains, except in Rome.",
)


@pytest.fixture
def client(strict_server: StrictServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=strict_server.base_url, api_key="sk-none", max_retries=0, timeout=20
    ) as made:
        yield made


def statuses(server: StrictServer) -> list[int | None]:
    return [request.status for request in server.requests]


# ---------------------------------------------------------------- chat


def chat(client: openai.OpenAI, messages: list[Any], *, stream: bool) -> Any:
    """The assistant's message of one call, as people append it."""
    tools: Any = [{"type": "function", "function": TOOL}]
    if not stream:
        done = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        return done.choices[0].message
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as events:
        return events.get_final_completion().choices[0].message


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_with_tools(
    client: openai.OpenAI, strict_server: StrictServer, stream: bool
) -> None:
    """Three turns with parallel calls, and the client's own objects are sent back."""
    strict_server.play(*SCRIPT)
    messages: list[Any] = [{"role": "user", "content": "weather?"}]

    said = chat(client, messages, stream=stream)
    while said.tool_calls:
        messages.append(said.model_dump(exclude_none=True) if stream else said)
        messages += [
            {"role": "tool", "tool_call_id": one.id, "content": "rain"} for one in said.tool_calls
        ]
        said = chat(client, messages, stream=stream)

    assert "It rains, except in Rome." == said.content
    assert [200, 200, 200] == statuses(strict_server)
    seen = strict_server.requests[-1].seen
    assert ["call_1", "call_2", "call_3"] == [
        one["tool_call_id"] for one in seen if one["role"] == "tool"
    ]


def test_chat_usage_at_the_end_of_a_stream(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """Whoever asks for usage gets it in a chunk of its own."""
    strict_server.play("yes")
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    assert [None, True] == [chunks[-2].usage, bool(chunks[-1].usage)]
    assert "yes" == "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


CALLING: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    ],
}


def test_an_unanswered_chat_call_is_refused(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """In the provider's words, with our rule beside it; the script is not used up."""
    strict_server.play("never said")
    messages: Any = [CALLING, {"role": "user", "content": "and?"}]
    with pytest.raises(openai.BadRequestError, match="must be followed by tool messages") as error:
        client.chat.completions.create(model=MODEL, messages=messages)

    assert "chat-tool-calls-unanswered" == error.value.response.headers["x-convnorm-rule"]
    assert "messages[0]" in str(error.value.response.json()["convnorm"]["path"])
    assert "chat-tool-calls-unanswered" == strict_server.requests[0].rule


def test_an_orphaned_tool_message_is_refused(client: openai.OpenAI) -> None:
    """A result without its call."""
    messages: Any = [
        {"role": "user", "content": "?"},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ]
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding message"):
        client.chat.completions.create(model=MODEL, messages=messages)


def test_azure_paths_are_served(strict_server: StrictServer) -> None:
    """The Azure client finds both APIs, and Azure's rules apply."""
    strict_server.play("chat", "responses")
    with openai.AzureOpenAI(
        azure_endpoint=strict_server.url, api_key="none", api_version="2025-03-01-preview"
    ) as client:
        done = client.chat.completions.create(
            model="my-deployment", messages=[{"role": "user", "content": "?"}]
        )
        assert "chat" == done.choices[0].message.content
        assert "responses" == client.responses.create(model=MODEL, input="?").output_text
    assert "/openai/deployments/my-deployment/chat/completions" in strict_server.requests[0].path


# ---------------------------------------------------------------- responses


def respond(client: openai.OpenAI, *, stream: bool, **request: Any) -> Any:
    tools: Any = [{"type": "function", **TOOL, "strict": False}]
    if not stream:
        return client.responses.create(model=MODEL, tools=tools, **request)
    with client.responses.stream(model=MODEL, tools=tools, **request) as events:
        return events.get_final_response()


def results(response: Any) -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": "rain"}
        for item in response.output
        if item.type == "function_call"
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_chain(client: openai.OpenAI, strict_server: StrictServer, stream: bool) -> None:
    """Three turns by previous_response_id: each sends what is new, the model sees all of it."""
    strict_server.play(*SCRIPT)

    response = respond(client, stream=stream, input="weather?")
    while new := results(response):
        response = respond(client, stream=stream, input=new, previous_response_id=response.id)

    assert ("It rains, except in Rome.", "resp_3") == (response.output_text, response.id)
    assert [200, 200, 200] == statuses(strict_server)
    kinds = [item.get("type", "message") for item in strict_server.requests[-1].seen]
    assert kinds == [
        *("message", "reasoning", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "reasoning", "function_call"),
        "function_call_output",
    ]
    assert ["resp_1", "resp_2", "resp_3"] == list(strict_server.ledger.responses)
    assert 0 == response.usage.input_tokens_details.cache_write_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_stored_and_reasoning_sealed(
    client: openai.OpenAI, strict_server: StrictServer, stream: bool
) -> None:
    """Three turns with store=false: everything is sent by value, reasoning in sealed form."""
    strict_server.play(*SCRIPT)
    asked: Any = {"store": False, "include": ["reasoning.encrypted_content"], "stream": stream}
    history: list[Any] = [{"role": "user", "content": "weather?"}]

    response = respond(client, input=history, **asked)
    while new := results(response):
        assert response.output[0].encrypted_content
        sent = [item.to_dict() if stream else item for item in response.output]
        for item in sent if stream else ():
            item.pop("parsed_arguments", None)  # what the client's stream helper adds
        history += [*sent, *new]
        response = respond(client, input=history, **asked)

    assert "It rains, except in Rome." == response.output_text
    assert [200, 200, 200] == statuses(strict_server)
    assert not any(held.stored for held in strict_server.ledger.responses.values())


def test_reasoning_is_sealed_only_when_asked(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """Without `include` there is no encrypted content."""
    strict_server.play(Reply(reasoning("hm"), "yes"))
    thought: Any = client.responses.create(model=MODEL, input="?").output[0]

    assert ("rs_1", "hm", None) == (thought.id, thought.summary[0].text, thought.encrypted_content)


CALL = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
USER = {"role": "user", "content": "and?"}


def test_an_unanswered_call_by_value_is_refused(client: openai.OpenAI) -> None:
    """A call in the input that has no output."""
    request: Any = [CALL, USER]
    with pytest.raises(openai.BadRequestError, match="No tool output found for function call"):
        client.responses.create(model=MODEL, input=request)


def test_an_unanswered_call_on_the_server_is_refused(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """A call in the stored response that the new input leaves pending."""
    strict_server.play(Reply(call("weather")))
    before = client.responses.create(model=MODEL, input="weather?")
    with pytest.raises(openai.BadRequestError, match="No tool output found for function call"):
        client.responses.create(model=MODEL, input="and?", previous_response_id=before.id)

    assert "resp-call-output-missing" == strict_server.requests[-1].rule
    assert 3 == len(strict_server.requests[-1].seen)


def test_bare_reasoning_that_is_not_stored_is_refused(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """With store=false a reasoning id names nothing."""
    strict_server.play(Reply(reasoning("hm"), "yes"))
    before = client.responses.create(model=MODEL, input="?", store=False)
    request: Any = [{"role": "user", "content": "?"}, *before.output, USER]
    with pytest.raises(openai.NotFoundError, match="Items are not persisted when `store`") as error:
        client.responses.create(model=MODEL, input=request, store=False)

    assert "resp-item-not-persisted" == error.value.response.headers["x-convnorm-rule"]


def test_an_unknown_previous_response_is_refused(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """One that never was, one that was not stored, and one that is deleted."""
    strict_server.play("one", "two")
    unstored = client.responses.create(model=MODEL, input="?", store=False).id
    deleted = client.responses.create(model=MODEL, input="?").id
    client.responses.delete(deleted)
    for name in ("resp_nobody", unstored, deleted):
        with pytest.raises(openai.BadRequestError, match="Previous response") as error:
            client.responses.create(model=MODEL, input="?", previous_response_id=name)
        assert "resp-previous-response-not-found" == error.value.response.headers["x-convnorm-rule"]


def test_stored_responses_are_found_again(
    client: openai.OpenAI, strict_server: StrictServer
) -> None:
    """By id, with the items of their input; after deletion they are gone."""
    strict_server.play("yes")
    made = client.responses.create(model=MODEL, input="?")

    assert made.output_text == client.responses.retrieve(made.id).output_text
    [item] = client.responses.input_items.list(made.id).data
    assert ("message", True) == (item.type, str(item.id).startswith("msg_"))
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError, match="not found"):
        client.responses.retrieve(made.id)


def test_conversations(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """Created, continued by a response, listed, added to, and deleted."""
    strict_server.play("yes", "again")
    name = client.conversations.create(items=[{"role": "user", "content": "hello"}]).id

    client.responses.create(model=MODEL, input="?", conversation=name)
    client.responses.create(model=MODEL, input="and?", conversation={"id": name})
    assert 5 == len(list(client.conversations.items.list(name)))
    assert 4 == len(strict_server.requests[-2].seen)
    added = client.conversations.items.create(name, items=[{"role": "user", "content": "more"}])
    client.conversations.items.delete(added.data[0].id or "", conversation_id=name)
    many: Any = [{"role": "user", "content": "x"}] * 21
    with pytest.raises(openai.BadRequestError, match="maximum length 20"):
        client.conversations.items.create(name, items=many)
    assert client.conversations.delete(name).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(name)


def test_a_history_can_be_compacted(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """The compaction item stands for what was before it."""
    strict_server.play("yes")
    made = client.responses.compact(model=MODEL, input=[{"role": "user", "content": "?"}])
    [item] = made.output

    assert ("response.compaction", "compaction") == (made.object, item.type)
    request: Any = [item, USER]
    assert "yes" == client.responses.create(model=MODEL, input=request).output_text


# ---------------------------------------------------------------- what convnorm was built for

PENDING = "No tool output found for function call"
THOUGHT = {"type": "reasoning", "id": "rs_9", "summary": []}
ISSUED = {**CALL, "id": "fc_9"}
SAID = {"type": "message", "role": "assistant", "id": "msg_9", "content": "yes"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
SEEDS: dict[str, tuple[dict[str, Any], str]] = {
    "a stale link to a response that waits for an output": (
        {"input": "and?", "previous_response_id": "resp_1"},
        PENDING,
    ),
    "an output that was made and never sent": (
        {"input": [USER], "previous_response_id": "resp_1"},
        PENDING,
    ),
    "ids that were never stored": (
        {"input": [THOUGHT, ISSUED, OUTPUT, USER], "store": False},
        "Items are not persisted when `store` is set to false",
    ),
    "a history that is replayed twice": (
        {"input": [USER, SAID, USER, USER, SAID, USER]},
        "Duplicate item found with id",
    ),
    "a call whose result is displaced by a replay": (
        {"input": [CALL, USER, USER]},
        PENDING,
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SEEDS)
def test_every_seed_fault_is_refused(strict_server: StrictServer, name: str, stream: bool) -> None:
    """The real client raises BadRequestError with the provider's words, streaming or not."""
    strict_server.play(Reply(call("weather")))
    body, words = SEEDS[name]
    with openai.AzureOpenAI(
        azure_endpoint=strict_server.url, api_key="none", api_version="2025-03-01-preview"
    ) as client:
        client.responses.create(model=MODEL, input="weather?")
        request: Any = {**body, "stream": stream}
        with pytest.raises(openai.BadRequestError, match=re.escape(words)):
            client.responses.create(model=MODEL, **request)


UNANSWERED = "must be followed by tool messages responding to each 'tool_call_id'"
SECOND = {**CALLING["tool_calls"][0], "id": "call_2"}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
CHAT_SEEDS: dict[str, tuple[list[Any], str]] = {
    "a call that is still pending when the next agent speaks": ([USER, CALLING, USER], UNANSWERED),
    "an output that was made and never sent": (
        [USER, {**CALLING, "tool_calls": [*CALLING["tool_calls"], SECOND]}, RESULT, USER],
        UNANSWERED,
    ),
    "a result whose call stayed with another agent": (
        [USER, RESULT, USER],
        "must be a response to a preceeding message with 'tool_calls'",
    ),
    "a call whose result is displaced by a replay": (
        [USER, CALLING, USER, CALLING, RESULT],
        UNANSWERED,
    ),
    "a result that is replayed": (
        [USER, CALLING, RESULT, RESULT, USER],
        "Duplicate value for 'tool_call_id' of 'call_",
    ),
    "a stream that was left before its call was answered": ([USER, CALLING], UNANSWERED),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", CHAT_SEEDS)
def test_every_seed_fault_is_refused_in_chat(
    client: openai.OpenAI, strict_server: StrictServer, name: str, stream: bool
) -> None:
    """The same faults, as far as Chat Completions can show them."""
    messages, words = CHAT_SEEDS[name]
    request: Any = {"messages": messages, "stream": stream}
    with pytest.raises(openai.BadRequestError, match=re.escape(words)):
        client.chat.completions.create(model=MODEL, **request)
    assert [400] == statuses(strict_server)


# ---------------------------------------------------------------- what goes wrong


def test_a_cut_stream(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """The connection ends after three events, and nothing is stored."""
    strict_server.play(Reply("never finished", abort_after=3))
    got = []
    with pytest.raises(Exception, match=r"(?i)incomplete|closed|connection"):  # noqa: PT012
        for event in client.responses.create(model=MODEL, input="?", stream=True):
            got.append(event.type)  # noqa: PERF401  # what came before the exception is kept

    assert ["response.created", "response.in_progress", "response.output_item.added"] == got
    assert not strict_server.ledger.responses["resp_1"].stored


def test_a_cut_answer(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """Without a stream the connection ends at once."""
    strict_server.play(Reply("never sent", abort_after=0))
    with pytest.raises(openai.APIConnectionError):
        client.responses.create(model=MODEL, input="?")


def test_failures(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """An error of the script's choice, and the end of the script."""
    strict_server.play(Failure(429, "slow down", code="rate_limit_exceeded"), Failure(500, "oh"))
    with pytest.raises(openai.RateLimitError, match="slow down") as error:
        client.responses.create(model=MODEL, input="?")
    assert "rate_limit_exceeded" == error.value.code
    with pytest.raises(openai.InternalServerError, match="oh"):
        client.responses.create(model=MODEL, input="?")
    with pytest.raises(openai.InternalServerError, match=r"script .* is exhausted"):
        client.responses.create(model=MODEL, input="?")


async def _ask(server: StrictServer) -> str:
    async with server, openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
        done = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "?"}]
        )
        return str(done.choices[0].message.content)


def test_the_async_client() -> None:
    """The server is an asynchronous context manager, too."""
    assert "yes" == anyio.run(_ask, StrictServer(["yes"]))
