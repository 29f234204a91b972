"""What the settings of a run break by themselves."""

from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, ModelSettings
from convnorm_openai_agents import Hooks, NormalizingModelProvider
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
