"""Runs that ended between a call and its output, behind a link: the next run is refused."""

from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from agents import Agent, MaxTurnsExceeded, ModelBehaviorError, RunConfig, UserError, function_tool
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import Hooks, NormalizingModelProvider
from openai import BadRequestError
from play import (
    LINKS,
    SDK,
    Site,
    add,
    config,
    run,
    run_diagnostic,
    site,
    told_of_a_missing_tool,
)

from convnorm.testing import Failure, Reply, call

pytestmark = pytest.mark.anyio

TWO_CALLS = Reply(
    call("add", a=1, b=2, call_id="call_SUM"),
    call("nothing_of_the_kind", call_id="call_NONE"),
)


@function_tool(failure_error_function=None)  # type: ignore[untyped-decorator]  # no types where mypy runs
def broken() -> str:
    """Fails, and ends the run."""
    raise RuntimeError("out of order")


ENDS: dict[str, tuple[Any, Any, int]] = {
    # name: the model's calls, the error, and the turns that are allowed
    "tool fails": (Reply(call("broken", call_id="call_BROKEN")), (RuntimeError, UserError), 10),
    "too many turns": (Reply(call("add", a=1, b=2, call_id="call_SUM")), MaxTurnsExceeded, 1),
    "no such tool": (TWO_CALLS, ModelBehaviorError, 10),
}


async def ended(here: Site, name: str, link: str, *, safe: bool, stream: bool) -> None:
    """A run that ends in an error, and the next one."""
    _, error, turns = ENDS[name]
    agent = Agent[Any](name="adder", tools=[add, broken])
    provider = (
        NormalizingModelProvider(inner=here.bare(), on_error="raise") if safe else here.bare()
    )
    options: dict[str, Any] = {"stream": stream, "run_config": config(provider)}
    if safe:
        options["hooks"] = Hooks(provider)
    first = await run(agent, "Hello", **options)
    more = await here.link(link, first)
    with pytest.raises(error):
        await run(agent, "Go", max_turns=turns, **options, **more)
    if link == "previous_response_id":
        more = {link: here.server.requests[-1].answer}
    await run(agent, "And now?", **options, **more)


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("link", ["previous_response_id", "conversation_id"])
async def test_the_sdk_alone(name: str, link: str) -> None:
    """The server waits for an output that nobody sends."""
    async with site("Hello.", ENDS[name][0], "Fine.") as here:
        with suppress(BadRequestError):
            await ended(here, name, link, safe=False, stream=False)

    assert here.rules == [None, None, "resp-call-output-missing"]


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("link", ["previous_response_id", "conversation_id"])
@pytest.mark.parametrize("stream", [False, True])
async def test_with_convnorm(name: str, link: str, stream: bool) -> None:
    """What a tool returned is sent; a call that has no output is closed with a marked text."""
    async with site("Hello.", ENDS[name][0], "Fine.") as here:
        await ended(here, name, link, safe=True, stream=stream)

    assert here.rules == [None] * 3
    outputs = {item["call_id"]: item["output"] for item in here.inputs[-1] if "call_id" in item}
    assert outputs.keys() == {part.id for part in ENDS[name][0].parts}
    if name == "too many turns":
        assert outputs == {"call_SUM": "3"}
    else:
        assert all("No result was recorded" in output for output in outputs.values())


def without_outputs(data: CallModelData[Any]) -> ModelInputData:
    """A filter that loses one of two outputs, as the SDK did in several releases."""
    kept = [item for item in data.model_data.input if item.get("call_id") != "call_DIAG"]
    return ModelInputData(kept, data.model_data.instructions)


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id"])
@pytest.mark.parametrize("safe", [False, True])
async def test_an_output_that_is_lost_on_the_way(link: str, safe: bool) -> None:
    """Whatever loses an output before the provider, the ledger has it."""
    calls = Reply(
        call("run_diagnostic", check_name="disk", call_id="call_DIAG"),
        call("add", a=1, b=2, call_id="call_SUM"),
    )
    agent = Agent[Any](name="a", tools=[add, run_diagnostic])
    async with site(calls, "Fine.") as here:
        provider: Any = here.bare()
        options: dict[str, Any] = {}
        if safe:
            provider = NormalizingModelProvider(inner=provider, on_error="raise")
            options["hooks"] = Hooks(provider)
        runs = config(provider, call_model_input_filter=without_outputs)
        with suppress(BadRequestError):
            await run(agent, "Go", run_config=runs, **options, **await here.link(link, None))

    assert here.rules == [None, None if safe else "resp-call-output-missing"]
    sent = [item["output"] for item in here.inputs[1]]
    assert sent == (["disk is well", "3"] if safe else ["3"])


@pytest.mark.parametrize("told", [False, True])
async def test_an_agent_that_is_a_tool(told: bool) -> None:
    """Its run has hooks of its own: without ours, an output that is lost there is closed."""
    calls = Reply(
        call("run_diagnostic", check_name="disk", call_id="call_DIAG"),
        call("add", a=1, b=2, call_id="call_SUM"),
    )
    async with site(Reply(call("ask", input="Go")), calls, "Inner.", "Outer.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        hooks = Hooks(provider)
        inner = Agent[Any](name="inner", model="gpt-4.1", tools=[add, run_diagnostic])
        held = await here.link("conversation_id", None)
        tool = inner.as_tool("ask", "Asks.", hooks=hooks if told else None, **held)
        runs = config(provider, call_model_input_filter=without_outputs)
        await run(Agent[Any](name="outer", tools=[tool]), "Go", run_config=runs, hooks=hooks)

    assert here.rules == [None] * 4
    outputs = {item["call_id"]: item["output"] for item in here.inputs[2]}
    assert outputs["call_SUM"] == "3"
    assert ("disk is well" if told else "No result was recorded") in outputs["call_DIAG"]


TELLS_THE_MODEL = "tool_not_found_behavior" in {field.name for field in fields(RunConfig)}


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id", "local"])
async def test_a_missing_tool_is_told_to_the_model(link: str) -> None:
    """Where the SDK answers for a tool that is not there, its answer arrives beside the other."""
    agent = Agent[Any](name="adder", tools=[add])
    wanted = {"tool_not_found_behavior": "return_error_to_model"} if TELLS_THE_MODEL else {}
    async with site(TWO_CALLS, "Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options: dict[str, Any] = {
            "run_config": config(provider, **wanted),
            "hooks": Hooks(provider),
            **await here.link(link, None),
        }
        if not TELLS_THE_MODEL:  # 0.13.3 ends the run
            with pytest.raises(ModelBehaviorError):
                await run(agent, "Go", **options)
            return
        await run(agent, "Go", **options)

    assert here.rules == [None, None]
    outputs = {item["call_id"] for item in here.inputs[1] if "output" in item}
    assert outputs == {"call_SUM", "call_NONE"}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("safe", [None, "hooks", "state"])
async def test_a_missing_tool_beside_approvals(link: str, stream: bool, safe: str | None) -> None:
    """The SDK loses its own answer for a missing tool, once a run has waited, until 0.22.3.

    The floor has no such answers, and the newest release loses none: the lane with litellm has an
    SDK in between.
    """
    async with site() as here:
        with suppress(TypeError, BadRequestError):
            await told_of_a_missing_tool(here, link, "mixed", stream=stream, safe=safe)

    broken = safe is None and link != "local" and SDK < (0, 22, 3)
    refused = [None, None, "resp-call-output-missing" if broken else None]
    assert here.rules == (refused if TELLS_THE_MODEL else [])


@pytest.mark.parametrize("link", ["conversation_id", "previous_response_id"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_without_an_answer(link: str, stream: bool) -> None:
    """After an error of the server nothing is said twice, and nothing lost of what was there."""
    agent = Agent[Any](name="adder", tools=[add])
    sums = [Reply(call("add", a=1, b=2)), Failure(500, "oh"), Reply(call("add", a=3, b=4))]
    async with site("Hello.", *sums, "Seven.", "Bye.") as here:
        more = await here.link(link, None) if link == "conversation_id" else {}
        first = await run(agent, "I am Bob", run_config=config(here.bare()), **more)
        more = more or await here.link(link, first)
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options: dict[str, Any] = {"stream": stream, "run_config": config(provider)}
        options["hooks"] = Hooks(provider)
        with pytest.raises(Exception, match="oh"):
            await run(agent, "1 + 2?", **options, **more)
        if link == "previous_response_id":
            more = {link: here.server.requests[-2].answer}
        done = await run(agent, "3 + 4?", **options, **more)
        more = more if link == "conversation_id" else await here.link(link, done)
        await run(agent, "Bye", **options, **more)

    assert here.rules == [None] * 6
    seen = here.server.requests[-1].seen
    said = [item.get("output") or item["content"] for item in seen if item.get("id") is None]
    assert said == ["I am Bob", "1 + 2?", "3", "3 + 4?", "7", "Bye"]
