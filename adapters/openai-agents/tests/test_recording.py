from typing import Any

import pytest
from agents import Agent
from convnorm_openai_agents import NormalizingModelProvider, RunEvents, streamed
from play import Site, add, config, run, site

from convnorm.mergers import MERGERS
from convnorm.recorder import Recorder
from convnorm.stores import MemoryStore
from convnorm.testing import Reply, call, delay

pytestmark = pytest.mark.anyio

QUESTION = {"role": "user", "content": "1 + 2?"}
AGENT = Agent[Any](name="adder", tools=[add])
CALLS = Reply(call("add", a=1, b=2, call_id="call_A"), call("add", a=3, b=4, call_id="call_B"))


def options(here: Site, *, chat: bool = False) -> dict[str, Any]:
    provider = NormalizingModelProvider(inner=here.bare(chat=chat), on_error="raise")
    return {"run_config": config(provider)}


@pytest.mark.parametrize("chat", [False, True])
async def test_a_whole_run(chat: bool) -> None:
    """A recorded run leaves what `to_input_list` gives: calls, outputs and the last words."""
    store = MemoryStore()
    recorder = Recorder(store, mergers=(RunEvents, *MERGERS))
    async with site(CALLS, "3, 7.", CALLS, "3, 7.") as here:
        given = [QUESTION]
        snapshot = await store.load("one")
        events = streamed(AGENT, given, **options(here, chat=chat))
        async with recorder(events, snapshot, input=given) as updates:
            async for _ in updates:
                pass
        alone = await run(AGENT, given, **options(here, chat=chat))

    snapshot = await store.load("one")
    assert updates.report is not None
    assert updates.report.ended == "complete"
    assert list(map(gist, snapshot.items)) == list(map(gist, alone.to_input_list()))
    assert not snapshot.incomplete


def gist(item: Any) -> tuple[Any, ...]:
    """An item without its id, and without what a client adds."""
    content = item.get("content")
    text = content[0]["text"] if isinstance(content, list) else content
    return (item.get("type"), item.get("role"), item.get("call_id"), item.get("output"), text)


@pytest.mark.parametrize("chat", [False, True])
async def test_a_run_that_is_left(chat: bool) -> None:
    """Who leaves after half a sentence has it in the history, and the run is cancelled."""
    store = MemoryStore()
    recorder = Recorder(store, mergers=(RunEvents, *MERGERS))
    async with site(CALLS, Reply("three and", delay(60), "seven"), "Again.") as here:
        snapshot = await store.load("one")
        events = streamed(AGENT, [QUESTION], **options(here, chat=chat))
        async with recorder(events, snapshot, input=[QUESTION]) as updates:
            async for event in updates:
                if getattr(getattr(event, "data", None), "delta", "").strip().endswith("and"):
                    break

        snapshot = await store.load("one")
        given = [*snapshot.items, {"role": "user", "content": "And?"}]
        again = await run(AGENT, given, **options(here, chat=chat))

    *before, half = snapshot.items
    assert updates.report is not None
    assert updates.report.ended == "left"
    assert [item.get("call_id") for item in before] == [None, *["call_A", "call_B"] * 2]
    assert half["content"][0]["text"].strip() == "three and"
    assert snapshot.incomplete == {5}
    assert again.final_output == "Again."
    assert {request.rule for request in here.server.requests} == {None}


async def test_a_run_that_is_left_at_its_calls() -> None:
    """Calls that were made and not run are closed by the next run's provider."""
    store = MemoryStore()
    recorder = Recorder(store, mergers=(RunEvents, *MERGERS))
    async with site(CALLS, "Again.") as here:
        snapshot = await store.load("one")
        events = streamed(AGENT, [QUESTION], **options(here))
        async with recorder(events, snapshot, input=[QUESTION]) as updates:
            async for event in updates:
                if getattr(getattr(event, "data", None), "type", "") == "response.completed":
                    break

        snapshot = await store.load("one")
        given = [*snapshot.items, {"role": "user", "content": "And?"}]
        await run(AGENT, given, **options(here))

    assert here.rules[-1] is None
    outputs = [item["output"] for item in here.inputs[-1] if "output" in item]
    assert len(outputs) == 2
