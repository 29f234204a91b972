"""Agents and workflows in convnorm's recorder: what is stored of a stream, however it ends."""

from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import (
    AgentUpdates,
    RecordedWorkflow,
    messages_from,
    normalize_client,
    streamed,
)
from framework import CLIENTS, agent, said, seen_texts
from resume import spoken
from service import Asked, desk, words
from talk import Adder, add

from convnorm import PolicyError
from convnorm.mergers import MERGERS
from convnorm.recorder import Recorder
from convnorm.stores import MemoryStore
from convnorm.testing import Reply, StrictServer, call, delay

pytestmark = pytest.mark.anyio
KINDS = pytest.mark.parametrize("kind", ["chat", "responses"])

QUESTION = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "U1"}]}


def said_by_model(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {"type": "message", "role": "assistant", "content": [part]}


def exchange(a: int) -> list[dict[str, Any]]:
    """A call of `add` and its output."""
    name = f"call_add_{a}"
    call = {"type": "function_call", "call_id": name, "name": "add"}
    output = {"type": "function_call_output", "call_id": name, "output": str(a)}
    return [{**call, "arguments": f'{{"a":{a},"b":0}}'}, output]


@KINDS
async def test_an_agent_leaves_the_same_history(strict_server: StrictServer, kind: str) -> None:
    """Streamed or not, what an agent did and said is stored in the same items."""
    stored = []
    for stream in (False, True):
        strict_server.play(Adder())
        store = MemoryStore()
        recorder = Recorder(store, mergers=(AgentUpdates, *MERGERS))
        async with CLIENTS[kind](strict_server) as client:
            one = agent(normalize_client(client, on_error="raise"), "a", tools=[add])
            source = streamed(one, said("U1")) if stream else one.run(said("U1"))
            snapshot = await store.load("s")
            async with recorder(source, snapshot, input=[QUESTION]) as updates:
                async for _ in updates:
                    pass
        stored.append((await store.load("s")).items)

    assert list(stored[0]) == [QUESTION, *exchange(1), said_by_model("A1")]
    assert stored[0] == stored[1]


async def test_an_agent_that_is_left_without(strict_server: StrictServer) -> None:
    """Alone, every release forgets the whole turn: the next one knows nothing of it."""
    strict_server.play(Reply("A1, and", delay(1), " more"), "A2")
    async with CLIENTS["chat"](strict_server) as client:
        one = agent(client, "a")
        session = one.create_session()
        running = one.run(said("U1"), stream=True, session=session)
        async for update in running:
            if update.text:
                break
        await one.run(said("U2"), session=session)

    assert seen_texts(strict_server.requests[-1]) == ["U2"]


@KINDS
async def test_an_agent_that_is_left(strict_server: StrictServer, kind: str) -> None:
    """What came is kept and marked, and the next turn is told of it."""
    asked = call("add", {"a": 1, "b": 0}, call_id="call_add_1")
    strict_server.play(Reply(asked), Reply("A1, and", delay(1), " more"), "A2")
    store = MemoryStore()
    recorder = Recorder(store, mergers=(AgentUpdates, *MERGERS))
    async with CLIENTS[kind](strict_server) as client:
        one = agent(normalize_client(client, on_error="raise"), "a", tools=[add])
        first = streamed(one, said("U1"))
        async with recorder(first, await store.load("s"), input=[QUESTION]) as updates:
            async for update in updates:
                if update.text:
                    break
        snapshot = await store.load("s")
        await one.run([*messages_from(snapshot.items), said("U2")])

    *before, last = snapshot.items
    text = last["content"][0]["text"]
    assert before == [QUESTION, *exchange(1)]
    assert "A1, and more".startswith(text)
    assert snapshot.incomplete == {3}
    assert [one for one in seen_texts(strict_server.requests[-1]) if one != "1"] == (
        ["U1", text, "U2"]
    )
    assert strict_server.requests[-1].status == 200


@KINDS
@pytest.mark.parametrize("approval", ["never_require", "always_require"])
async def test_a_workflow_that_is_left_goes_on(
    strict_server: StrictServer, kind: str, approval: str
) -> None:
    """Whichever turn is left, and where, each item is stored once, as if none was left."""
    stored = []
    for left, outputs in ((0, 0), (1, 1), (1, 4), (1, 10), (2, 1), (2, 4)):
        strict_server.play(Asked())
        async with CLIENTS[kind](strict_server) as client:
            talk = Talk(normalize_client(client, on_error="raise"), approval)
            asked = await talk.turn({"message": said("USER-1 ...")}, leave=outputs * (left == 1))
            await talk.turn(words(asked, "USER-2 ..."), leave=outputs * (left == 2))
        items = (await talk.store.load("s")).items
        stored.append([{**item, "call_id": None} for item in items])

    assert [text for text in texts(stored[0]) if "USER" in text] == ["USER-1 ...", "USER-2 ..."]
    assert stored == stored[:1] * 6
    # A request that is cut off while it is sent breaks no rule, and is none.
    assert {request.rule for request in strict_server.requests} == {None}


class Talk:
    """A help desk of which every run is a workflow of its own, from the newest checkpoint."""

    def __init__(self, client: Any, approval: str) -> None:
        self.client, self.approval = client, approval
        self.storage, self.store = af.InMemoryCheckpointStorage(), MemoryStore()

    @property
    def workflow(self) -> RecordedWorkflow:
        """One that knows nothing yet."""
        made = desk(self.client, approval=self.approval, checkpoint_storage=self.storage)
        return RecordedWorkflow(made, self.storage, self.store, "s")

    async def turn(self, given: dict[str, Any], *, leave: int = 0) -> list[Any]:
        """Say something, and approve of everything; what is asked in the end."""
        asked = await spoken(await self.workflow.run(**await self.here(given)), leave=leave)
        if leave:
            asked = await spoken(await self.workflow.go_on())
        while yes := approvals(asked):
            asked = await spoken(await self.workflow.run(**await self.here({"responses": yes})))
        return asked

    async def here(self, given: dict[str, Any]) -> dict[str, Any]:
        """Answers go to the newest checkpoint."""
        if "message" in given:
            return given
        newest = await self.storage.get_latest(workflow_name=self.workflow.workflow.name)
        return {**given, "checkpoint_id": newest.checkpoint_id}


def texts(items: Any) -> list[str]:
    return [part["text"] for item in items for part in item.get("content", ())]


def approvals(asked: list[Any]) -> dict[str, Any]:
    """Yes to everything that waits for an approval."""
    return {
        one.request_id: one.data.to_function_approval_response(approved=True)
        for one in asked
        if hasattr(one.data, "to_function_approval_response")
    }


async def test_a_turn_whose_process_died(strict_server: StrictServer) -> None:
    """What the user said is given to the workflow once, though nothing but that was stored."""
    strict_server.play(Asked())
    store, storage = MemoryStore(), af.InMemoryCheckpointStorage()
    async with CLIENTS["chat"](strict_server) as client:
        workflow = desk(normalize_client(client, on_error="raise"), checkpoint_storage=storage)
        recorded = RecordedWorkflow(workflow, storage, store, "s")
        dead = await recorded.run(said("USER-1 ..."))
        await dead.__aenter__()
        workflow = desk(client, checkpoint_storage=storage)
        await spoken(await RecordedWorkflow(workflow, storage, store, "s").go_on())

    items = (await store.load("s")).items
    assert texts(items) == ["USER-1 ...", "ANSWER-1"]
    assert seen_texts(strict_server.requests[-1]).count("USER-1 ...") == 1


async def test_what_cannot_be_kept(strict_server: StrictServer) -> None:
    """What another process could not be given is refused before the turn begins."""
    storage = af.InMemoryCheckpointStorage()
    async with CLIENTS["chat"](strict_server) as client:
        recorded = RecordedWorkflow(desk(client), storage, MemoryStore(), "s")
        with pytest.raises(PolicyError, match="object"):
            await recorded.run(responses={"r": object()})
        with pytest.raises(PolicyError, match="no turn"):
            await recorded.go_on()

    assert strict_server.requests == []
