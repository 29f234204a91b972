"""Situations in which one release or another fails: many calls in one reply, agents in a row."""

from typing import Any

import agent_framework as af
import pytest
from agent_framework.orchestrations import HandoffBuilder, SequentialBuilder
from convnorm_agent_framework import NormalizingHistoryProvider, normalize_client
from framework import CLIENTS, RELEASED, agent, said, seen_texts
from handoffs import HANDOFFS_NEED
from talk import Adder, add, answer, talker

from convnorm.testing import Reply, StrictServer, call, reasoning

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
STORES = pytest.mark.parametrize(
    "kind, store", [("chat", None), ("responses", None), ("responses", False)]
)


@af.tool(approval_mode="always_require")  # type: ignore[untyped-decorator]  # typed where the framework is
def danger(a: int) -> str:
    """Something that needs an approval."""
    return f"danger {a}"


def refused(server: StrictServer) -> list[str | None]:
    return [request.rule for request in server.requests if request.status != 200]


def in_order(server: StrictServer, *texts: str) -> bool:
    """The model saw each text in the last request, once and in this order."""
    return [text for text in seen_texts(server.requests[-1]) if text in texts] == list(texts)


async def run(workflow: Any, text: str, *, stream: bool) -> None:
    if stream:
        async for _ in workflow.run(said(text), stream=True):
            pass
    else:
        await workflow.run(said(text))


@STORES
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
async def test_three_calls_of_which_two_wait(
    strict_server: StrictServer, kind: str, store: bool | None, approved: bool, stream: bool
) -> None:
    """One reply with calls that wait for approval around one that does not, and another turn."""
    asked = Reply(call("danger", a=1), call("add", a=2, b=2), call("danger", a=3))
    strict_server.play(asked, "A1", "A2")
    async with CLIENTS[kind](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = talker(client, store=store, tools=[danger, add])
        session = one.create_session()
        first = await answer(one, "U1", stream=stream, session=session)
        words = [
            request.to_function_approval_response(approved=approved)
            for request in first.user_input_requests
        ]
        await answer(one, af.Message("user", words), stream=stream, session=session)
        await answer(one, "U2", stream=stream, session=session)

    assert refused(strict_server) == []
    assert in_order(strict_server, "U1", "A1", "U2")


@STORES
async def test_a_call_beside_a_handoff(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """One reply calls a tool and hands off; the specialist answers and hands back."""
    strict_server.play(Desk())
    async with CLIENTS[kind](strict_server) as client:
        workflow = pair(normalize_client(client, on_error="raise"), store)
        await run(workflow, "TASK", stream=stream)

    assert refused(strict_server) == []
    assert seen_texts(strict_server.requests[-1]).count("TASK") == 1
    assert seen_texts(strict_server.requests[-1]).count("DONE BY B") == 1


class Desk:
    """The scripted model of two agents."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Any) -> Reply:
        """What whoever asks says next."""
        if request.body["user"] == "b":
            return Reply("DONE BY B", call("handoff_to_a"))
        self.asked += 1
        if self.asked == 1:
            return Reply(call("add", a=1, b=2), call("handoff_to_b"))
        return Reply("FINAL")


def pair(client: Any, store: bool | None) -> Any:
    """Two agents that hand off to each other."""
    options: dict[str, Any] = {"default_options": {} if store is None else {"store": store}}
    if store is False and not RELEASED:  # there executors pass on only what is new
        mine = NormalizingHistoryProvider(af.InMemoryHistoryProvider("mine"))
        options["context_providers"] = [mine]
    if HANDOFFS_NEED:
        options["require_per_service_call_history_persistence"] = True
    first = agent(client, "a", tools=[add], **options)
    second = agent(client, "b", **options)
    made = HandoffBuilder(
        name="pair",
        participants=[first, second],
        termination_condition=lambda messages: any("FINAL" in one.text for one in messages),
    )
    made = made.with_start_agent(first).add_handoff(first, [second]).add_handoff(second, [first])
    return made.with_autonomous_mode(turn_limits={"a": 3, "b": 3}).build()


@pytest.mark.parametrize("summary", ["hm", ""])
@pytest.mark.parametrize(
    "kind, store, sealed",
    [
        ("chat", None, None),
        ("responses", None, None),
        ("responses", False, "gAAAA"),
        ("responses", False, ""),
    ],
    ids=["chat", "stored", "sealed", "lost"],
)
async def test_agents_in_a_row(
    strict_server: StrictServer,
    *,
    kind: str,
    store: bool | None,
    sealed: str | None,
    summary: str,
    stream: bool,
) -> None:
    """The second agent goes on from what the first one thought, called and said."""
    thought = [] if kind == "chat" else [reasoning(summary, encrypted=sealed)]
    strict_server.play(Adder(*thought))
    async with CLIENTS[kind](strict_server) as client:
        normalize_client(client, on_error="raise")
        options = {} if store is None else {"store": store}
        row = [agent(client, name, tools=[add], default_options=options) for name in ("a", "b")]
        await run(SequentialBuilder(participants=row).build(), "U1", stream=stream)

    assert refused(strict_server) == []
    seen = [one for one in strict_server.requests if one.body["user"] == "b"]
    assert all({"U1", "A1"} <= set(seen_texts(request)) for request in seen)
    assert seen
