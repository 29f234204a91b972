"""What the settings of a run break by themselves."""

import json
from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, ModelSettings, SQLiteSession
from convnorm_openai_agents import Hooks, NormalizingModelProvider, NormalizingSession
from openai import APIStatusError
from play import add, config, run, site

from convnorm.testing import Reply, call, reasoning

pytestmark = pytest.mark.anyio

SCRIPT = (Reply(reasoning("Add."), call("add", a=1, b=2)), "Three.")
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # name: the agent's settings, the run's, and what the SDK alone is refused with
    "store=False": ({"store": False}, {}, "resp-item-not-persisted"),
    "omit": ({}, {"reasoning_item_id_policy": "omit"}, "resp-item-without-reasoning"),
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_the_sdk_alone(name: str) -> None:
    """The second request of the run is refused."""
    settings, options, rule = SETTINGS[name]
    agent = Agent[Any](
        name="a", model="gpt-5.1", tools=[add], model_settings=ModelSettings(**settings)
    )
    async with site(*SCRIPT) as here:
        with suppress(APIStatusError):
            await run(agent, "1 + 2?", run_config=config(here.bare(), model=None, **options))

    assert here.rules == [None, rule]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("stream", [False, True])
async def test_with_convnorm(name: str, stream: bool) -> None:
    """Reasoning goes with the ids of what it led to: both, or neither; the call is answered."""
    settings, options, _ = SETTINGS[name]
    agent = Agent[Any](
        name="a", model="gpt-5.1", tools=[add], model_settings=ModelSettings(**settings)
    )
    async with site(*SCRIPT) as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        runs = config(provider, model=None, **options)
        done = await run(agent, "1 + 2?", stream=stream, run_config=runs, hooks=Hooks(provider))

    assert done.final_output == "Three."
    assert here.rules == [None, None]
    assert [item["output"] for item in here.inputs[1] if "output" in item] == ["3"]


LATER = (*SCRIPT[:1], Reply(reasoning("Hm."), "Three."), "Yes.", "Yes.")


@pytest.mark.parametrize("how", ["list", "session"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("safe", [False, True])
async def test_ids_that_were_omitted_in_another_process(how: str, stream: bool, safe: bool) -> None:
    """What is stored has lost the ids of its reasoning for good; a new provider sees that.

    It sends what the first one sent, byte for byte, and the rest behind it.
    """
    agent = Agent[Any](name="a", model="gpt-5.1", tools=[add])
    store = SQLiteSession("one")
    async with site(*LATER) as here:
        given: Any = "1 + 2?"
        options: dict[str, Any] = {"stream": stream}
        for process in (True, safe):
            provider = here.bare()
            if process:
                provider = normal = NormalizingModelProvider(inner=provider, on_error="raise")
                options["hooks"] = Hooks(normal)
            omit = config(provider, model=None, reasoning_item_id_policy="omit")
            options["run_config"] = omit
            if how == "session":
                options["session"] = (
                    NormalizingSession(store, on_error="raise") if process else store
                )
            with suppress(APIStatusError):
                done = await run(agent, given, **options)
            given = "Sure?"
            if how == "list":
                given = [*done.to_input_list(), {"role": "user", "content": given}]
    store.close()

    assert here.rules == [None, None, None if safe else "resp-item-without-reasoning"]
    _, second, third = here.inputs
    if safe:
        assert json.dumps(third[: len(second)]) == json.dumps(second)
        assert [item["type"] for item in third if item.get("id")] == []
