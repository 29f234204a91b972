from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, HandoffInputData, UserError, handoff
from agents.extensions.handoff_filters import remove_all_tools
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import NormalizingModelProvider, handoff_filter, input_filter
from openai import BadRequestError
from play import SDK, THREE_CALLS, add, approve, config, operator, run, site

from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio

HISTORY = [
    {"role": "user", "content": "1 + 2?"},
    {
        "type": "function_call",
        "call_id": "call_A",
        "name": "add",
        "arguments": '{"a":1,"b":2}',
    },
    {"type": "function_call_output", "call_id": "call_A", "output": "3"},
    {"role": "user", "content": "and?"},
]


def last_two(data: CallModelData[Any]) -> ModelInputData:
    """Cuts the call from its output."""
    return ModelInputData(data.model_data.input[-2:], data.model_data.instructions)


async def test_a_cutting_filter_alone() -> None:
    """A filter that truncates leaves an output without its call."""
    async with site("Fine.") as here:
        runs = config(here.bare(), call_model_input_filter=last_two)
        with pytest.raises(BadRequestError):
            await run(Agent[Any](name="a"), HISTORY, run_config=runs)

    assert here.rules == ["resp-output-without-call"]


@pytest.mark.parametrize("where", ["filter", "provider"])
async def test_a_cutting_filter_with_convnorm(where: str) -> None:
    """Behind it, the filter or the provider quotes the output as data."""
    async with site("Fine.") as here:
        if where == "filter":
            cut = input_filter(chain=last_two, whole=True, on_error="raise")
            runs = config(here.bare(), call_model_input_filter=cut)
        else:
            provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
            runs = config(provider, call_model_input_filter=last_two)
        await run(Agent[Any](name="a"), HISTORY, run_config=runs)

    assert here.rules == [None]
    quoted, question = here.inputs[0]
    assert (quoted["role"], question) == ("user", HISTORY[-1])
    assert "call_A" in str(quoted["content"])


async def test_an_output_may_belong_to_the_server() -> None:
    """Behind a link, the filter leaves outputs alone whose calls the server holds."""
    agent = Agent[Any](name="a", tools=[add])
    async with site(Reply(call("add", a=1, b=2)), "Three.") as here:
        runs = config(here.bare(), call_model_input_filter=input_filter(on_error="raise"))
        await run(agent, "1 + 2?", run_config=runs, auto_previous_response_id=True)

    assert here.rules == [None, None]
    assert [item["type"] for item in here.inputs[1]] == ["function_call_output"]


async def test_an_asynchronous_filter_is_chained() -> None:
    """A user's filter may be asynchronous, and may set the instructions."""

    async def shout(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData(data.model_data.input, "Shout.")

    async with site("Fine.") as here:
        runs = config(here.bare(), call_model_input_filter=input_filter(chain=shout))
        await run(Agent[Any](name="a"), "q", run_config=runs)

    assert here.bodies[0]["instructions"] == "Shout."


def without_calls(data: HandoffInputData) -> HandoffInputData:
    """Drops the calls from the history, and forgets their outputs."""
    kept = [item for item in data.input_history if item.get("type") != "function_call"]
    return data.clone(input_history=tuple(kept))


@pytest.mark.parametrize("safe", [False, True])
async def test_a_handoff(safe: bool) -> None:
    """What a handoff's own filter breaks is repaired behind it; without us it is refused."""
    chosen = handoff_filter(chain=without_calls, on_error="raise") if safe else without_calls
    writer = Agent[Any](name="writer")
    triage = Agent[Any](name="triage", handoffs=[handoff(writer, input_filter=chosen)])
    async with site(Reply(call("transfer_to_writer", {})), "Fine.") as here:
        try:
            done = await run(triage, HISTORY, run_config=config(here.bare()))
        except BadRequestError:
            assert not safe
        else:
            assert done.final_output == "Fine."
            assert len(done.new_items) == 3

    assert here.rules == [None, None if safe else "resp-output-without-call"]
    assert [item.get("call_id") for item in here.inputs[1]].count("call_A") == (not safe)


@pytest.mark.parametrize("stream", [False, True])
async def test_words_that_are_added_to_a_paused_run(stream: bool) -> None:
    """Where a paused run takes more input, the filter leaves it as it is: the SDK looks for it."""
    agent = operator()
    async with site(THREE_CALLS, "Done.") as here:
        runs = config(here.bare(), call_model_input_filter=input_filter(on_error="raise"))
        waiting = await run(agent, "Clean up", stream=stream, run_config=runs)
        state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
        adds = hasattr(state, "add_input")  # not yet in 0.13.3
        if adds:
            state.add_input("And tell me.")
        await run(agent, state, stream=stream, run_config=runs)

    assert here.rules == [None, None]
    assert ("And tell me." in str(here.inputs[1])) == adds


NESTED = {"nest_handoff_history": True}
FILTERED = {"handoff_input_filter": remove_all_tools}


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id"])
@pytest.mark.parametrize("how", [NESTED, FILTERED])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("safe", [False, True])
async def test_a_handoff_that_rewrites_what_the_server_holds(
    link: str, how: dict[str, Any], stream: bool, safe: bool
) -> None:
    """Until 0.14.1 the SDK then forgets to answer the call of the handoff (#2151)."""
    writer = Agent[Any](name="writer")
    triage = Agent[Any](name="triage", handoffs=[writer])
    async with site(Reply(call("transfer_to_writer", {}, call_id="call_MOVE")), "Fine.") as here:
        provider: Any = here.bare()
        if safe:
            provider = NormalizingModelProvider(inner=provider, on_error="raise")
        options = {"stream": stream, "run_config": config(provider, **how)}
        with suppress(BadRequestError, UserError):  # newer ones refuse such filters themselves
            await run(triage, HISTORY[:1], **options, **await here.link(link, None))

    lost = SDK < (0, 14, 1)
    refused = "resp-call-output-missing" if lost and not safe else None
    assert here.rules == ([None, refused] if lost or how is NESTED else [None])
    if safe and len(here.rules) > 1:
        assert "call_MOVE" in [item.get("call_id") for item in here.inputs[1]]
