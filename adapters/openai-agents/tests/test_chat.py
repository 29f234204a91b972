"""Models over Chat Completions, whose history is always sent whole."""

from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, SQLiteSession
from convnorm_openai_agents import (
    Hooks,
    NormalizingModelProvider,
    NormalizingSession,
    normalize_model,
)
from convnorm_openai_agents.chat import for_apart, for_chat, is_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import BadRequestError
from play import SDK, THREE_CALLS, add, approve, config, operator, run, site

from convnorm import Policy, normalize_request
from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio

USER = {"role": "user", "content": "q1"}
NEW = {"role": "user", "content": "q2"}


FIRST, SECOND = "call_Zk3vQ9pLw2", "call_8fHq1xTbR4"


def called(own: str, a: int = 1) -> dict[str, Any]:
    arguments = f'{{"a":{a},"b":2}}'
    return {"type": "function_call", "call_id": own, "name": "add", "arguments": arguments}


def returned(own: str, output: str = "3") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": own, "output": output}


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": "__fake_id__",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


HISTORIES = {
    "orphan call": ([USER, called(FIRST), NEW], ["user", "assistant", "tool", "user"]),
    "orphan output": ([USER, returned(FIRST), NEW], ["user", "user", "user"]),
    "output first": (
        [USER, returned(FIRST), called(FIRST), NEW],
        ["user", "assistant", "tool", "user"],
    ),
    "late output": (
        [USER, called(FIRST), NEW, returned(FIRST), NEW],
        ["user", "assistant", "tool", "user", "user"],
    ),
    "late outputs": (
        [
            USER,
            called(FIRST),
            called(SECOND),
            returned(SECOND),
            said("Hm."),
            NEW,
            returned(FIRST),
            NEW,
        ],
        ["user", "assistant", "tool", "tool", "assistant", "user", "user"],
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
async def test_the_sdk_alone(name: str) -> None:
    """The SDK turns items into messages as they stand, and the API refuses them."""
    async with site("Fine.") as here:
        runs = config(here.bare(chat=True))
        with pytest.raises(BadRequestError):
            await run(Agent[Any](name="a"), HISTORIES[name][0], run_config=runs)

    (rule,) = here.rules
    assert rule in {"chat-tool-calls-unanswered", "chat-tool-message-orphan"}


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_with_convnorm(name: str, stream: bool) -> None:
    """The same items become messages that are accepted."""
    given, roles = HISTORIES[name]
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(chat=True), on_error="raise")
        await run(Agent[Any](name="a"), given, stream=stream, run_config=config(provider))

    assert here.rules == [None]
    assert [message["role"] for message in here.bodies[0]["messages"]] == roles


async def test_a_model_instance() -> None:
    """A wrapped instance repairs as the provider does."""
    async with site("Fine.") as here:
        model = normalize_model(
            OpenAIChatCompletionsModel("gpt-4.1", here.client), on_error="raise"
        )
        runs = config(here.bare(), model=None)
        await run(Agent[Any](name="a", model=model), HISTORIES["orphan call"][0], run_config=runs)

    assert here.rules == [None]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", ["approve", "reject", "mixed"])
async def test_same_requests(stream: bool, decision: str) -> None:
    """Approvals and a session over Chat Completions: not a byte differs."""
    agent, adder = operator(), Agent[Any](name="adder", tools=[add])
    bodies = []
    for safe in (False, True):
        store: Any = SQLiteSession("one")
        script = (THREE_CALLS, "Done.", Reply(call("add", a=1, b=2)), "Three.", "OK.", "OK.")
        async with site(*script) as here:
            bare = here.bare(chat=True)
            provider = NormalizingModelProvider(inner=bare, on_error="raise") if safe else bare
            options: dict[str, Any] = {"stream": stream, "run_config": config(provider)}
            if safe:
                options["hooks"] = Hooks(provider)
            waiting = await run(agent, "Clean up", **options)
            state = await approve(waiting.to_state(), agent, decision, serialise=True)
            await run(agent, state, **options)
            session = NormalizingSession(store, on_error="raise") if safe else store
            for text in ("1 + 2?", "Sure?", "Sure?"):  # three times, and none is taken for a copy
                await run(adder, text, session=session, **options)
        store.close()
        assert set(here.rules) == {None}
        bodies.append(here.bodies)

    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_link_means_nothing_to_a_chat(stream: bool) -> None:
    """The SDK passes it on, the model ignores it, and what stands beside it is repaired."""
    given, roles = HISTORIES["orphan output"]
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(chat=True), on_error="raise")
        options = {"stream": stream, "run_config": config(provider)}
        await run(Agent[Any](name="a"), given, previous_response_id="resp_0", **options)

    assert here.rules == [None]
    assert [message["role"] for message in here.bodies[0]["messages"]] == roles


@pytest.mark.parametrize("safe", [False, True])
async def test_from_chat_to_responses(safe: bool) -> None:
    """A Responses model takes what was said over Chat Completions, under placeholder ids."""
    given = [USER, said("Hello."), USER, said("Hello."), NEW]
    async with site("Fine.") as here:
        bare = here.bare()
        provider = NormalizingModelProvider(inner=bare, on_error="raise") if safe else bare
        with suppress(BadRequestError):
            await run(Agent[Any](name="a"), given, run_config=config(provider))

    assert str(here.inputs[0]).count("Hello.") == 2
    refused = not safe and SDK < (0, 20)
    assert here.rules == ["resp-id-prefix" if refused else None]


ITEMS = st.lists(
    st.sampled_from(
        [called(FIRST), called(SECOND), returned(FIRST), returned(SECOND), said("Hm."), NEW]
    ),
    max_size=9,
)
CHAT = for_chat(Policy.for_target("openai.responses", unrepairable="send"))


@given(ITEMS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_where_nothing_is_apart_nothing_is_moved(items: list[Any]) -> None:
    """The pass that most histories go without would do nothing to them, nor to their repairs."""
    body = {"model": "gpt-4.1", "input": items}

    assert is_apart(items) or normalize_request(body, CHAT) == normalize_request(
        body, for_apart(CHAT)
    )
