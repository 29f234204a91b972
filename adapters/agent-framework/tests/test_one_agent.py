"""One agent and its session: what goes wrong outside of handoffs, in today's release too."""

from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import normalize_client
from framework import CLIENTS, CORE, RELEASED, agent, said, seen_texts
from talk import Adder, add, answer, cancelled_in_tool, remembers, slow, talker

from convnorm.testing import Reply, StrictServer, call, reasoning

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
KINDS = pytest.mark.parametrize("kind", ["responses", "chat"])


def once(server: StrictServer, *texts: str) -> bool:
    """The model saw each of the texts in the last request, once and in this order."""
    seen = [text for text in seen_texts(server.requests[-1]) if text in texts]
    return seen == list(texts)


def refused(server: StrictServer) -> list[str | None]:
    return [request.rule for request in server.requests if request.status != 200]


@KINDS
@pytest.mark.parametrize("tools", [[], [add]], ids=["texts", "calls"])
async def test_a_history_provider_beside_what_the_server_holds(
    strict_server: StrictServer, kind: str, tools: list[Any], stream: bool
) -> None:
    """What a provider adds and the server holds, the model sees once."""
    strict_server.play(*([Adder(reasoning())] if tools else ["A1", "A2", "A3"]))
    async with CLIENTS[kind](strict_server) as client:
        provider = af.InMemoryHistoryProvider("mine")
        one = agent(
            normalize_client(client, on_error="raise"),
            "a",
            tools=tools,
            context_providers=[provider],
        )
        session = one.create_session()
        for number in range(1, 4):
            await answer(one, f"U{number}", stream=stream, session=session)

    assert once(strict_server, "U1", "A1", "U2", "A2", "U3")
    assert refused(strict_server) == []


@KINDS
async def test_the_caller_sends_the_whole_transcript(
    strict_server: StrictServer, kind: str, stream: bool
) -> None:
    """A session and a caller that both tell the history: the model sees it once."""
    strict_server.play("A1", "A2", "A3")
    async with CLIENTS[kind](strict_server) as client:
        one = agent(normalize_client(client, on_error="raise"), "a")
        session = one.create_session()
        transcript: list[Any] = []
        for number in range(1, 4):
            transcript.append(said(f"U{number}"))
            response = await answer(one, list(transcript), stream=stream, session=session)
            transcript.extend(response.messages)

    assert once(strict_server, "U1", "A1", "U2", "A2", "U3")
    assert refused(strict_server) == []


@pytest.mark.parametrize("kind, store", [("chat", None), ("responses", None), ("responses", False)])
async def test_repeated_turns_are_no_copies(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """Who says the same four times is heard four times, as far as the framework stores it."""
    strict_server.play("ok", "ok", "ok", "ok")
    async with CLIENTS[kind](strict_server) as client:
        one = talker(normalize_client(client, on_error="raise"), store=store)
        session = one.create_session()
        for _ in range(4):
            await answer(one, "go on", stream=stream, session=session)

    heard = [seen_texts(request).count("go on") for request in strict_server.requests]
    # Releases from 1.15 on store equal turns once, unless the server stores them or the answers
    # have ids of their own. What was never stored cannot be sent.
    stored = (
        CORE.minor < 15 or (kind == "responses" and store is None) or (kind == "chat" and stream)
    )
    assert heard == ([1, 2, 3, 4] if stored else [1, 2, 2, 2])


async def after_a_cancelled_tool(
    server: StrictServer, client: Any, store: bool | None, *, stream: bool
) -> None:
    """Three turns, of which the first is cancelled while its tool is at work."""
    server.play(Reply(call("slow", a=1)), "A2", "A3")
    persist = {"require_per_service_call_history_persistence": True} if RELEASED else {}
    one = talker(client, store=store, tools=[slow], **persist)
    session = one.create_session()
    await cancelled_in_tool(one, "U1", stream=stream, session=session)
    for text in ("U2", "U3"):
        await answer(one, text, stream=stream, session=session)


STORES = pytest.mark.parametrize(
    "kind, store", [("chat", None), ("responses", None), ("responses", False)]
)


@STORES
async def test_a_cancelled_tool_without(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """Alone, a session that remembers the call is refused from then on."""
    async with CLIENTS[kind](strict_server) as client:
        if remembers(kind, store, stream=stream):
            error = "must be followed by tool messages" if kind == "chat" else "No tool output"
            with pytest.raises(Exception, match=error):
                await after_a_cancelled_tool(strict_server, client, store, stream=stream)
        else:
            await after_a_cancelled_tool(strict_server, client, store, stream=stream)
            assert once(strict_server, "U2", "A2", "U3")


@STORES
async def test_a_cancelled_tool(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """The next turns of a session whose run was cancelled in a tool are answered."""
    async with CLIENTS[kind](strict_server) as client:
        normalize_client(client, on_error="raise")
        await after_a_cancelled_tool(strict_server, client, store, stream=stream)

    assert refused(strict_server) == []
    told = ["U1"] if remembers(kind, store, stream=stream) else []
    assert once(strict_server, *told, "U2", "A2", "U3")


@STORES
async def test_an_approval_that_is_ignored(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """The user writes on where an approval was asked: the call is closed."""
    strict_server.play(Reply(call("add", a=1, b=2)), "A2", "A3")
    async with CLIENTS[kind](strict_server) as client:
        tool = af.tool(add.func, name="add", approval_mode="always_require")
        one = talker(normalize_client(client, on_error="raise"), store=store, tools=[tool])
        session = one.create_session()
        await answer(one, "U1", stream=stream, session=session)
        await answer(one, "U2", stream=stream, session=session)
        await answer(one, "U3", stream=stream, session=session)

    assert refused(strict_server) == []
    assert once(strict_server, "U1", "U2", "A2", "U3")


@pytest.mark.parametrize("encrypted", ["gAAAA", ""], ids=["sealed", "lost"])
async def test_reasoning_under_store_false(
    strict_server: StrictServer, encrypted: str, stream: bool
) -> None:
    """Reasoning goes back where it can be read, and is left out where it cannot."""
    strict_server.play(Adder(reasoning("hm", encrypted=encrypted)))
    async with CLIENTS["responses"](strict_server) as client:
        one = talker(normalize_client(client, on_error="raise"), store=False, tools=[add])
        session = one.create_session()
        for number in range(1, 4):
            await answer(one, f"U{number}", stream=stream, session=session)

    assert refused(strict_server) == []
    assert once(strict_server, "U1", "A1", "U2", "A2", "U3")


async def test_a_stored_history_passed_on_by_value(
    strict_server: StrictServer, stream: bool
) -> None:
    """What was recorded with stored responses can be told to a run that stores nothing."""
    strict_server.play(Adder(reasoning("hm")))
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise")
        first = await answer(agent(client, "a", tools=[add]), "U1", stream=stream)
        told = [said("U1"), *first.messages, said("U2")]
        options = {"store": False}
        second = agent(client, "b", tools=[add], default_options=options)
        await answer(second, told, stream=stream)

    assert refused(strict_server) == []
    assert once(strict_server, "U1", "A1", "U2")
