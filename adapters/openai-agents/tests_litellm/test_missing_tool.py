"""What the SDK broke between the floor and the newest release: here it is one in between."""

from contextlib import suppress

import pytest
from openai import BadRequestError
from play import DECISIONS, LINKS, SDK, site, told_of_a_missing_tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The SDK runs on asyncio alone."""
    return "asyncio"


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_sdk_alone(link: str, stream: bool) -> None:
    """Until 0.22.3 the SDK loses its own answer for a missing tool, once a run has waited."""
    async with site() as here:
        with suppress(BadRequestError):
            await told_of_a_missing_tool(here, link, "mixed", stream=stream, safe=None)

    assert SDK < (0, 22, 3)
    assert here.rules == [None, None, None if link == "local" else "resp-call-output-missing"]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("safe", ["hooks", "state"])
async def test_with_convnorm(link: str, stream: bool, decision: str, safe: str) -> None:
    """The call is answered: by the state with the SDK's words, which no hook ever hears of."""
    async with site() as here:
        await told_of_a_missing_tool(here, link, decision, stream=stream, safe=safe)

    assert here.rules == [None] * 3
    seen = here.server.requests[-1].seen
    outputs = {item["call_id"]: item["output"] for item in seen if "output" in item}
    assert outputs.keys() == {"call_CLEANUP1", "call_NONE", "call_CLEANUP2"}
    heard = safe == "state" or link == "local"
    assert ("not found" if heard else "No result was recorded") in outputs["call_NONE"]
