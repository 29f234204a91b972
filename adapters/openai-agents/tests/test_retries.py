"""The SDK's own retries: the adapter sees each attempt, and changes none."""

import json
from typing import Any

import pytest
from agents import (
    Agent,
    ModelRetrySettings,
    ModelSettings,
    SQLiteSession,
    retry_policies,
)
from convnorm_openai_agents import Hooks, NormalizingModelProvider, NormalizingSession
from play import LINKS, Site, add, config, kinds, run, site

from convnorm.testing import Failure, Reply, call

pytestmark = pytest.mark.anyio

TWICE = ModelSettings(
    retry=ModelRetrySettings(
        max_retries=2,
        backoff={"initial_delay": 0.0, "jitter": False},
        policy=retry_policies.http_status([503]),
    )
)
AGENT = Agent[Any](name="adder", tools=[add], model_settings=TWICE)
DOWN = Failure(503, "try again")
SCRIPT = ("Hello.", DOWN, Reply(call("add", a=1, b=2)), DOWN, "Three.", "Bye.")
ORPHAN = {"type": "function_call_output", "call_id": "call_gone", "output": "4"}


async def retried(here: Site, link: str, *, stream: bool, safe: bool, given: Any = "1 + 2?") -> Any:
    """Three runs; in the second each request is answered the second time."""
    provider: Any = here.bare()
    options: dict[str, Any] = {"stream": stream}
    if safe:
        provider = normal = NormalizingModelProvider(inner=provider, on_error="raise")
        options["hooks"] = Hooks(normal)
    options["run_config"] = config(provider)
    store = SQLiteSession("one")
    if link == "local":
        options["session"] = NormalizingSession(store, on_error="raise") if safe else store
    more = await here.link(link, None) if link == "conversation_id" else {}
    done = await run(AGENT, "Hello", **options, **more)
    for text in (given, "Bye"):
        if link.endswith("response_id"):
            more = {"previous_response_id": done.last_response_id}
        done = await run(AGENT, text, **options, **more)
    held = await store.get_items()
    store.close()
    return held


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_requests(link: str, stream: bool) -> None:
    """Attempt by attempt not a byte differs, and a session holds the same."""
    found = []
    for safe in (False, True):
        async with site(*SCRIPT) as here:
            held = await retried(here, link, stream=stream, safe=safe)
        assert [request.status for request in here.server.requests if request.api] == [
            *(200, 503, 200, 503, 200, 200)
        ]
        found.append((json.dumps(here.bodies), held))

    assert found[0] == found[1]


@pytest.mark.parametrize("link", LINKS[:-1])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_repair_is_sent_again_as_it_was(link: str, stream: bool) -> None:
    """A request that is repaired and retried is the same request, and nothing comes twice."""
    async with site(*SCRIPT) as here:
        given = [ORPHAN, {"role": "user", "content": "1 + 2?"}]
        await retried(here, link, stream=stream, safe=True, given=given)

    assert here.rules == [None] * 6
    assert json.dumps(here.bodies[1]) == json.dumps(here.bodies[2])
    seen = [kinds([item])[0] for item in here.server.requests[-1].seen if not item.get("id")]
    assert seen == ["user", "user", "user", "call_1", "user"]
