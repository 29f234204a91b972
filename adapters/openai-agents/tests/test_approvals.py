from contextlib import suppress

import pytest
from convnorm_openai_agents import Hooks, NormalizingModelProvider, ledger_from_state
from openai import BadRequestError
from play import DECISIONS, LINKS, SDK, THREE_CALLS, Site, approve, config, operator, run, site

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_sdk_alone(link: str, stream: bool) -> None:
    """Until 0.14.5 the SDK drops the output of a call beside those that wait for approval."""
    agent = operator()
    async with site("Hello.", THREE_CALLS, "All done.") as here:
        runs = config(here.bare())
        first = await run(agent, "Hello", run_config=runs)
        more = await here.link(link, first)
        waiting = await run(agent, "Clean up", stream=stream, run_config=runs, **more)
        state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
        with suppress(BadRequestError):
            await run(agent, state, stream=stream, run_config=runs, **more)

    broken = SDK < (0, 14, 5) and link != "local"
    assert here.rules == [None, None, "resp-call-output-missing" if broken else None]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("serialise", [False, True])
async def test_one_process(link: str, stream: bool, decision: str, serialise: bool) -> None:
    """With the provider and its hooks, every output arrives, in the order of the calls."""
    agent = operator()
    async with site("Hello.", THREE_CALLS, "All done.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options = {"stream": stream, "run_config": config(provider), "hooks": Hooks(provider)}
        first = await run(agent, "Hello", **options)
        more = await here.link(link, first)
        waiting = await run(agent, "Clean up", **options, **more)
        state = await approve(waiting.to_state(), agent, decision, serialise=serialise)
        done = await run(agent, state, **options, **more)

    assert done.final_output == "All done."
    assert here.rules == [None] * 3
    _all_answered(here)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", DECISIONS)
async def test_another_process(link: str, stream: bool, decision: str) -> None:
    """A new provider that is told what the serialised state knows needs no hooks."""
    agent = operator()
    async with site("Hello.", THREE_CALLS, "All done.") as here:
        runs = config(here.bare())
        first = await run(agent, "Hello", run_config=runs)
        more = await here.link(link, first)
        waiting = await run(agent, "Clean up", stream=stream, run_config=runs, **more)
        state = await approve(waiting.to_state(), agent, decision, serialise=True)
        ledger = ledger_from_state(
            state,
            previous_response_id=more.get("previous_response_id"),
            conversation=more.get("conversation_id"),
        )
        provider = NormalizingModelProvider(inner=here.bare(), ledger=ledger, on_error="raise")
        done = await run(agent, state, stream=stream, run_config=config(provider), **more)

    assert done.final_output == "All done."
    assert here.rules == [None] * 3
    _all_answered(here)


def _all_answered(here: Site) -> None:
    seen = here.server.requests[-1].seen
    outputs = [item for item in seen if item.get("type") == "function_call_output"]
    assert sorted(item["call_id"] for item in outputs) == [
        "call_CLEANUP1",
        "call_CLEANUP2",
        "call_DIAG",
    ]
    diagnosis = next(item for item in outputs if item["call_id"] == "call_DIAG")
    assert diagnosis["output"] == "disk is well"
