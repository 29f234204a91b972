"""What the tools of one agent returned, told to the next one, though the handoff strips it."""

import json
from typing import Any

import agent_framework as af
import pytest
from agent_framework.orchestrations import HandoffBuilder
from convnorm_agent_framework import (
    Handoffs,
    LedgerProvider,
    NormalizingHistoryProvider,
    normalize_client,
)
from framework import CLIENTS, agent, said, seen_texts
from handoffs import HANDOFFS_NEED

from convnorm.testing import Reply, StrictServer, call

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
STORES = pytest.mark.parametrize(
    "kind, store", [("chat", None), ("responses", None), ("responses", False)]
)
FOUND = "account 1: 10 EUR"


@af.tool  # type: ignore[untyped-decorator]  # typed where the framework is
def look_up(account: str) -> str:
    """The balance of an account."""
    return f"{account}: 10 EUR"


class Bank:
    """The scripted model: the clerk looks something up and hands over, the writer writes twice."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Any) -> Reply:
        """What whoever asks says next."""
        if request.body["user"] == "clerk":
            self.asked += 1
            asked = call("look_up", account="account 1")
            return Reply(asked if self.asked == 1 else call("handoff_to_writer"))
        words = [text for text in seen_texts(request) if text.startswith("LETTER")]
        return Reply(f"LETTER-{len(words) + 1}")


def bank(client: Any, store: bool | None) -> Any:
    """The workflow: the writer goes on by itself until it has written two letters."""
    options: dict[str, Any] = {}
    if HANDOFFS_NEED:
        options["require_per_service_call_history_persistence"] = True
    clerk, writer = (
        agent(
            client,
            name,
            tools=tools,
            default_options={} if store is None else {"store": store},
            context_providers=[
                NormalizingHistoryProvider(af.InMemoryHistoryProvider("mine")),
                LedgerProvider(),
            ],
            **options,
        )
        for name, tools in (("clerk", [look_up]), ("writer", []))
    )
    made = HandoffBuilder(
        name="bank",
        participants=[clerk, writer],
        termination_condition=lambda messages: any("LETTER-2" in one.text for one in messages),
    )
    made = made.with_start_agent(clerk).add_handoff(clerk, [writer])
    return made.with_autonomous_mode(turn_limits={"clerk": 3, "writer": 3}).build()


async def work(workflow: Any, *, stream: bool) -> None:
    if stream:
        async for _ in workflow.run(said("TASK"), stream=True):
            pass
    else:
        await workflow.run(said("TASK"))


def letters(server: StrictServer) -> list[list[str]]:
    """What the writer saw, request by request."""
    return [seen_texts(one) for one in server.requests if one.body["user"] == "writer"]


@STORES
async def test_a_handoff_strips_what_tools_returned(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """Alone, and outside of the block, the next agent knows nothing of it."""
    strict_server.play(Bank())
    async with CLIENTS[kind](strict_server) as client:
        await work(bank(normalize_client(client, on_error="raise"), store), stream=stream)

    assert letters(strict_server)
    assert FOUND not in str(letters(strict_server))


@STORES
async def test_it_is_told_as_quoted_text(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """Once, in the words of the user but as data of a tool, and where it stood it stays."""
    strict_server.play(Bank())
    async with CLIENTS[kind](strict_server) as client:
        workflow = bank(normalize_client(client, on_error="raise"), store)
        with Handoffs():
            await work(workflow, stream=stream)

    assert {request.status for request in strict_server.requests} == {200}
    first, second = letters(strict_server)
    for seen in (first, second):
        (told,) = (text for text in seen if FOUND in text)
        assert told.startswith('<tool-call agent="clerk" tool="look_up" call_id="call_1">')
        assert "handoff" not in told
    assert second[: len(first)] == first


async def test_conversations_do_not_mix(strict_server: StrictServer, stream: bool) -> None:
    """Another conversation of the same agents is told nothing of this one."""
    async with CLIENTS["chat"](strict_server) as client:
        normalize_client(client, on_error="raise")
        for _ in range(2):
            strict_server.play(Bank())
            with Handoffs():
                await work(bank(client, None), stream=stream)

    assert [sum(FOUND in text for text in seen) for seen in letters(strict_server)] == [1] * 4


async def test_it_goes_to_another_process(strict_server: StrictServer, stream: bool) -> None:
    """What was done and told is plain data: nothing is told twice, and nothing is forgotten."""
    strict_server.play(look)
    talk = Handoffs()
    sessions = {name: af.AgentSession(session_id=name) for name in ("clerk", "writer")}
    for name, text in (("clerk", "U1"), ("writer", "U2"), ("writer", "U3"), ("clerk", "U4")):
        talk = Handoffs.from_json(json.dumps(json.loads(talk.to_json())))
        async with CLIENTS["chat"](strict_server) as client:
            normalize_client(client, on_error="raise")
            one = agent(client, name, tools=[look_up], context_providers=[LedgerProvider()])
            with talk:
                running = one.run(said(text), stream=stream, session=sessions[name])
                if stream:
                    async for _ in running:
                        pass
                else:
                    await running

    told = [sum("<tool-call" in text for text in seen_texts(one)) for one in strict_server.requests]
    assert told == [0, 0, 1, 1, 0]


def look(request: Any) -> Reply:
    """The clerk looks something up once; everybody else talks."""
    if seen_texts(request)[-1] == "U1":
        return Reply(call("look_up", account="account 1"))
    return Reply("ok")
