"""Whose error it is: ours ends no run, and the provider's own is nobody's but the provider's."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from agents import Agent, OpenAIResponsesModel, SQLiteSession, UserError, handoff
from convnorm_openai_agents import (
    Hooks,
    NormalizingConversationsSession,
    NormalizingModelProvider,
    NormalizingSession,
    handoff_filter,
    input_filter,
    normalize_model,
)
from convnorm_openai_agents.ledger_keeper import LedgerKeeper
from convnorm_openai_agents.on_error import OnError
from play import Site, add, config, run, site

from convnorm import Policy
from convnorm.testing import Failure, Reply, call

pytestmark = pytest.mark.anyio

QUESTION = {"role": "user", "content": "q"}


class Broken:
    """A pass that fails, with an error of its own for each place."""

    name = "broken"

    def __init__(self, place: str) -> None:
        self.place = place

    def __call__(self, history: object, call: object) -> Any:
        raise RuntimeError(f"inside {self.place}")


def broken(place: str) -> Policy:
    return Policy(target="openai.responses", passes=[Broken(place)])


Play = Callable[[Site, OnError], Awaitable[Any]]


async def by_provider(here: Site, on_error: OnError) -> None:
    provider = NormalizingModelProvider(broken("provider"), inner=here.bare(), on_error=on_error)
    await run(Agent[Any](name="a"), "q", run_config=config(provider))


async def by_model(here: Site, on_error: OnError) -> None:
    bare = OpenAIResponsesModel("gpt-4.1", here.client)
    model = normalize_model(bare, broken("model"), on_error=on_error)
    await run(Agent[Any](name="a", model=model), "q", run_config=config(here.bare(), model=None))


async def by_filter(here: Site, on_error: OnError) -> None:
    ours = input_filter(broken("filter"), on_error=on_error)
    runs = config(here.bare(), call_model_input_filter=ours)
    await run(Agent[Any](name="a"), "q", run_config=runs)


async def by_handoff(here: Site, on_error: OnError) -> None:
    ours = handoff_filter(broken("handoff"), on_error=on_error)
    writer = Agent[Any](name="writer")
    triage = Agent[Any](name="triage", handoffs=[handoff(writer, input_filter=ours)])
    await run(triage, [QUESTION], run_config=config(here.bare()))


async def by_session(here: Site, on_error: OnError) -> None:
    store = SQLiteSession("one")
    await store.add_items([QUESTION])
    session = NormalizingSession(store, broken("session"), on_error=on_error)
    try:
        await run(Agent[Any](name="a"), "q", session=session, run_config=config(here.bare()))
    finally:
        store.close()


async def by_conversations(here: Site, on_error: OnError) -> None:
    session = NormalizingConversationsSession(
        broken("conversations"), on_error=on_error, openai_client=here.client
    )
    await session.add_items([QUESTION])
    await run(Agent[Any](name="a"), "q", session=session, run_config=config(here.bare()))


PLACES: dict[str, Play] = {
    "provider": by_provider,
    "model": by_model,
    "filter": by_filter,
    "handoff": by_handoff,
    "session": by_session,
    "conversations": by_conversations,
}


def script(place: str) -> list[Any]:
    return [*([Reply(call("transfer_to_writer", {}))] if place == "handoff" else []), "Fine."]


@pytest.mark.parametrize("place", PLACES)
async def test_an_error_of_ours_ends_no_run(place: str, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever it happens, the request is sent as it was, and the error is logged once."""
    with caplog.at_level(logging.WARNING, logger="convnorm"):
        for _ in range(2):
            async with site(*script(place)) as here:
                await PLACES[place](here, "send")
            assert here.rules == [None for _ in script(place)]

    said = [record.getMessage() for record in caplog.records if record.name == "convnorm"]
    assert len(said) == 1
    assert said[0].endswith(f"RuntimeError: inside {place}")


@pytest.mark.parametrize("place", PLACES)
async def test_an_error_of_ours_can_be_raised(place: str) -> None:
    """With `raise` it ends the run, before anything is sent that was to be repaired."""
    async with site(*script(place)) as here:
        with pytest.raises(RuntimeError, match=f"inside {place}"):
            await PLACES[place](here, "raise")

    assert here.rules == [None for _ in script(place)[:-1]]


class Forgetful(LedgerKeeper):
    """A ledger that fails when it is told of an answer, or of an output."""

    def __init__(self, what: str, words: str) -> None:
        super().__init__()
        self.what, self.words = what, words

    def accepted(self, *given: Any) -> None:
        if self.what == "answer":
            raise RuntimeError(self.words)
        super().accepted(*given)

    def observed_output(self, *given: Any) -> None:
        if self.what == "output":
            raise RuntimeError(self.words)
        super().observed_output(*given)


def words(what: str, *, stream: bool) -> str:
    return f"inside {what}, {stream}"  # an error is logged once in a process


async def told(here: Site, what: str, on_error: OnError, *, stream: bool) -> Any:
    provider = NormalizingModelProvider(inner=here.bare(), on_error=on_error)
    provider.keeper = Forgetful(what, words(what, stream=stream))
    agent = Agent[Any](name="a", tools=[add])
    return await run(agent, "q", stream=stream, run_config=config(provider), hooks=Hooks(provider))


@pytest.mark.parametrize("what", ["answer", "output"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_ledger_that_fails(
    what: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer that the ledger cannot take in, or an output, reaches its reader all the same."""
    calls = Reply(call("add", a=1, b=2))
    async with site(calls, "Fine.", calls) as here:
        with caplog.at_level(logging.WARNING, logger="convnorm"):
            done = await told(here, what, "send", stream=stream)
        with pytest.raises((RuntimeError, UserError), match=f"inside {what}"):
            await told(here, what, "raise", stream=stream)

    assert done.final_output == "Fine."
    said = [record.getMessage() for record in caplog.records if record.name == "convnorm"]
    assert len(said) == 1
    assert said[0].endswith(f"RuntimeError: {words(what, stream=stream)}")


ORPHAN = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
FAILURES: dict[str, Any] = {
    "400": Failure(400, "not like this"),
    "429": Failure(429, "slow down"),
    "500": Failure(500, "oh"),
    "cut": Reply("Never to be read", abort_after=2),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("on_error", ["send", "raise"])
async def test_an_error_of_the_provider(name: str, stream: bool, on_error: OnError) -> None:
    """It comes out as it does without the adapter, also of a request that was repaired."""
    found = []
    for safe in (False, True):
        async with site(FAILURES[name]) as here:
            provider: Any = here.bare()
            if safe:
                provider = NormalizingModelProvider(inner=provider, on_error=on_error)
            given = [ORPHAN, QUESTION] if safe else [QUESTION]
            with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is compared below
                await run(Agent[Any](name="a"), given, stream=stream, run_config=config(provider))
        assert here.rules == [None]
        found.append((type(caught.value), str(caught.value), type(caught.value.__cause__)))

    assert found[0] == found[1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("on_error", ["send", "raise"])
async def test_an_error_inside_a_model(stream: bool, on_error: OnError) -> None:
    """What a model of your own raises is that very error, at the start or in its stream."""
    error = RuntimeError("of the model")

    class Own(OpenAIResponsesModel):  # type: ignore[misc]  # no types where mypy runs
        async def get_response(self, *given: Any, **more: Any) -> Any:
            raise error

        async def stream_response(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
            async for event in super().stream_response(*given, **more):
                yield event
                raise error

    async with site("Fine.") as here:
        model = normalize_model(Own("gpt-4.1", here.client), on_error=on_error)
        agent = Agent[Any](name="a", model=model)
        with pytest.raises(RuntimeError) as caught:
            await run(agent, "q", stream=stream, run_config=config(here.bare(), model=None))

    assert caught.value is error


async def test_a_model_that_nobody_has() -> None:
    """What the inner provider says to a name, it says through ours."""
    provider = NormalizingModelProvider()
    with pytest.raises(UserError, match="Unknown prefix: nobody"):
        await run(Agent[Any](name="a"), "q", run_config=config(provider, model="nobody/has"))
