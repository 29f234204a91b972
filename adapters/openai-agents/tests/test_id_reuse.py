from contextlib import suppress
from typing import Any

import pytest
from agents import Agent
from convnorm_openai_agents import Hooks, NormalizingModelProvider
from openai import BadRequestError
from play import SDK, add, config, run, site

from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio

TURNS = 60
SCRIPT = (*(Reply(call("add", a=at, b=1)) for at in range(TURNS)), "Done.")
LINKED: dict[str, Any] = {
    "auto_previous_response_id": True,
    "stream": True,
    "max_turns": TURNS + 1,
}


def adder() -> Agent[Any]:
    return Agent(name="adder", tools=[add])


async def test_the_sdk_alone() -> None:
    """Until 0.17.7 the SDK takes a new output for one it has sent, when its address is the same."""
    broken = SDK < (0, 17, 7)
    for _ in range(100 if broken else 2):  # addresses are reused by chance: until it has happened
        async with site(*SCRIPT) as here:
            with suppress(BadRequestError):
                await run(adder(), "add", run_config=config(here.bare()), **LINKED)
        found = set(here.rules) - {None}
        if found:
            break

    assert found == ({"resp-call-output-missing"} if broken else set())


@pytest.mark.parametrize("stream", [False, True])
async def test_with_convnorm(stream: bool) -> None:
    """The ledger has the output that the SDK forgot: no run is refused."""
    async with site(*SCRIPT) as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        runs = config(provider)
        options = {**LINKED, "stream": stream, "hooks": Hooks(provider)}
        done = await run(adder(), "add", run_config=runs, **options)
    assert done.final_output == "Done."
    assert here.rules == [None] * (TURNS + 1)
    outputs = [item["output"] for request in here.inputs[1:] for item in request]
    assert outputs == [str(at + 1) for at in range(TURNS)]
