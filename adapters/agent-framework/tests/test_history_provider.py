"""What sessions and checkpoints hold, and what the next turn knows of a turn that was left."""

import json
from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import (
    LedgerProvider,
    NoHistoryProvider,
    NormalizingHistoryProvider,
    normalize_client,
)
from framework import CLIENTS, RELEASED, agent, said, seen_texts
from service import Desk, desk, turn
from talk import Adder, add, answer, cancelled, cancelled_in_tool, remembers, slow

from convnorm.testing import Reply, StrictServer, call, delay, reasoning

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
KINDS = pytest.mark.parametrize("kind, store", [("chat", None), ("responses", False)])


def provider() -> Any:
    return NormalizingHistoryProvider(af.InMemoryHistoryProvider("mine"))


def remembering(client: Any, store: bool | None, **options: Any) -> Any:
    """An agent whose history is kept by our provider."""
    defaults = {} if store is None else {"store": store}
    return agent(client, "a", default_options=defaults, context_providers=[provider()], **options)


def elsewhere(session: Any) -> Any:
    """The session as another process gets it."""
    return af.AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


async def stored(session: Any) -> list[str]:
    """The texts that a session keeps; older releases keep them in another place."""
    inner = af.InMemoryHistoryProvider("mine")
    for state in (session.state["mine"], session.state):
        if found := await inner.get_messages(None, state=state):
            return [one.text for one in found]
    return []


@KINDS
async def test_a_transcript_is_stored_once(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """The caller sends the whole transcript each time; the session grows by what was said."""
    strict_server.play("A1", "A2", "A3")
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(normalize_client(client, on_error="raise"), store)
        session = one.create_session()
        transcript: list[Any] = []
        for number in range(1, 4):
            transcript.append(said(f"U{number}"))
            response = await answer(one, list(transcript), stream=stream, session=session)
            transcript.extend(response.messages)

    assert await stored(session) == ["U1", "A1", "U2", "A2", "U3", "A3"]


@KINDS
async def test_equal_turns_are_all_stored(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """A user who says the same four times is heard four times, also by releases that forget."""
    strict_server.play("ok", "ok", "ok", "ok")
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(normalize_client(client, on_error="raise"), store)
        session = one.create_session()
        for _ in range(4):
            await answer(one, "go on", stream=stream, session=session)
            session = elsewhere(session)

    heard = [seen_texts(request).count("go on") for request in strict_server.requests]
    assert heard == [1, 2, 3, 4]


@KINDS
async def test_a_turn_that_was_left(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """The next turn knows what the user said, and of the answer as much as came."""
    strict_server.play(Reply("A1, and", delay(1), " more"), "A2")
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(normalize_client(client, on_error="raise"), store)
        session = one.create_session()
        if stream:
            running = one.run(said("U1"), stream=True, session=session)
            async for update in running:
                if update.text:
                    break
        else:
            await cancelled(
                one, "U1", stream=False, session=session, once=lambda: strict_server.requests
            )
        session = elsewhere(session)
        await answer(one, "U2", stream=stream, session=session)

    texts = seen_texts(strict_server.requests[-1])
    assert [text for text in texts if text.startswith(("U", "A"))] == (
        ["U1", texts[1], "U2"] if stream else ["U1", "U2"]
    )
    if stream:
        assert texts[1]
        assert "A1, and more".startswith(texts[1])


@KINDS
async def test_a_turn_left_behind_its_calls(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """Calls that came whole are kept with what they returned, and one that nobody ran is closed."""
    first, second = call("add", {"a": 1, "b": 2}), call("slow", {"a": 7})
    strict_server.play(Reply(first), Reply("A1, and", second), "A2")
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(normalize_client(client, on_error="raise"), store, tools=[add, slow])
        session = one.create_session()
        await cancelled_in_tool(one, "U1", stream=stream, session=session)
        session = elsewhere(session)
        await answer(one, "U2", stream=stream, session=session)

    assert refused(strict_server) == []
    (*_, last) = strict_server.requests
    assert [text for text in seen_texts(last) if text in ("U1", "A1, and", "U2")] == (
        ["U1", "A1, and", "U2"]
    )
    assert [(name, output == "3") for name, output in exchanges(last)] == (
        [("add", True), ("slow", False)]
    )


@KINDS
async def test_half_a_call_is_not_kept(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """Whoever leaves a stream in the middle of a call leaves no call behind."""
    strict_server.play(Reply("A1", call("add", {"a": 1, "b": 2}), delay(1)), "A2")
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(normalize_client(client, on_error="raise"), store, tools=[add])
        session = one.create_session()
        running = one.run(said("U1"), stream=True, session=session)
        async for update in running:
            if any(content.type == "function_call" for content in update.contents):
                break
        await answer(one, "U2", stream=stream, session=elsewhere(session))

    assert refused(strict_server) == []
    assert exchanges(strict_server.requests[-1]) == []
    texts = [text for text in seen_texts(strict_server.requests[-1]) if text in ("U1", "A1", "U2")]
    assert texts == ["U1", "A1", "U2"]


def refused(server: StrictServer) -> list[str | None]:
    return [request.rule for request in server.requests if request.status != 200]


def exchanges(request: Any) -> list[tuple[str, str]]:
    """The calls that the model saw, with what answered them."""
    calls, found = {}, []
    for item in request.seen:
        for one in item.get("tool_calls", ()):
            calls[one["id"]] = one["function"]["name"]
        if item.get("type") == "function_call":
            calls[item["call_id"]] = item["name"]
        if "tool_call_id" in item:
            found.append((calls[item["tool_call_id"]], item["content"]))
        if item.get("type") == "function_call_output":
            found.append((calls[item["call_id"]], item["output"]))
    assert len(found) == len(calls)
    return found


@KINDS
async def test_what_is_loaded_is_sound(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """A client that nobody normalized is not refused behind a tool that was cancelled."""
    strict_server.play(Reply(call("slow", a=1)), "A2", "A3")
    persist = {"require_per_service_call_history_persistence": True} if RELEASED else {}
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(client, store, tools=[slow], **persist)
        normalize_client(client, on_error="raise")
        session = one.create_session()
        await cancelled_in_tool(one, "U1", stream=stream, session=session)
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(client, store, tools=[slow], **persist)
        session = elsewhere(session)
        for text in ("U2", "U3"):
            await answer(one, text, stream=stream, session=session)

    assert refused(strict_server) == []
    assert [name for name, _ in exchanges(strict_server.requests[-1])] == ["slow"]
    assert [text for text in seen_texts(strict_server.requests[-1]) if text[0] in "UA"] == (
        ["U1", "U2", "A2", "U3"]
    )


@KINDS
async def test_what_may_still_be_answered_stays_open(
    strict_server: StrictServer, kind: str, store: bool | None, stream: bool
) -> None:
    """An approval that comes with the next input is used: nothing was made up in between."""
    strict_server.play(Reply(call("add", a=1, b=2)), "A1")
    tool = af.tool(add.func, name="add", approval_mode="always_require")
    async with CLIENTS[kind](strict_server) as client:
        one = remembering(client, store, tools=[tool])
        session = one.create_session()
        (asked,) = (await answer(one, "U1", stream=stream, session=session)).user_input_requests
        yes = af.Message("user", [asked.to_function_approval_response(approved=True)])
        await answer(one, yes, stream=stream, session=session)

    assert refused(strict_server) == []
    assert exchanges(strict_server.requests[-1]) == [("add", "3")]


async def test_store_switched_off_and_on(strict_server: StrictServer, stream: bool) -> None:
    """A turn that the server did not store is told to it by the next one that it stores."""
    strict_server.play("A1", "A2", "A3")
    async with CLIENTS["responses"](strict_server) as client:
        one = remembering(normalize_client(client, on_error="raise"), None)
        session = one.create_session()
        await answer(one, "U1", stream=stream, session=session)
        await answer(one, "U2", stream=stream, session=session, options={"store": False})
        await answer(one, "U3", stream=stream, session=session)

    assert seen_texts(strict_server.requests[-1])[-5:] == ["U1", "A1", "U2", "A2", "U3"]
    assert {request.status for request in strict_server.requests} == {200}


async def test_no_history_provider(strict_server: StrictServer, stream: bool) -> None:
    """With a provider that keeps nothing the caller's transcript is told once, unrepaired."""
    strict_server.play("A1", "A2")
    async with CLIENTS["chat"](strict_server) as client:
        one = agent(client, "a", context_providers=[NoHistoryProvider()])
        session = one.create_session()
        first = await answer(one, "U1", stream=stream, session=session)
        transcript = [said("U1"), *first.messages, said("U2")]
        await answer(one, transcript, stream=stream, session=session)

    assert seen_texts(strict_server.requests[-1]) == ["U1", "A1", "U2"]


async def test_a_ledger_that_goes_with_the_session(
    strict_server: StrictServer, stream: bool
) -> None:
    """A session whose tool was cancelled goes on in another process, with another client."""
    strict_server.play(Reply(call("slow", a=1)), "A2", "A3")
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = agent(client, "a", tools=[slow], context_providers=[LedgerProvider()])
        session = one.create_session()
        await cancelled_in_tool(one, "U1", stream=stream, session=session)
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = agent(client, "a", tools=[slow], context_providers=[LedgerProvider()])
        session = elsewhere(session)
        await answer(one, "U2", stream=stream, session=session)

    assert {request.status for request in strict_server.requests} == {200}
    told = ["U1"] if remembers("responses", None, stream=stream) else []
    seen = seen_texts(strict_server.requests[-1])
    assert [text for text in seen if text.startswith("U")] == [*told, "U2"]


async def test_a_ledger_knows_the_end_of_a_tool_loop(
    strict_server: StrictServer, stream: bool
) -> None:
    """What the session keeps is the end of the chain, also where a turn took several requests."""
    strict_server.play(Adder(reasoning()))
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = agent(client, "a", tools=[add], context_providers=[LedgerProvider()])
        session = one.create_session()
        await answer(one, "U1", stream=stream, session=session)

    state = json.dumps(session.to_dict()["state"])
    assert f'"link": "{session.service_session_id}"' in state


async def test_checkpoints_grow_by_what_was_said(strict_server: StrictServer, stream: bool) -> None:
    """Whatever an executor passes on again is stored once, and so is in a checkpoint."""
    strict_server.play(Desk())
    storage = af.InMemoryCheckpointStorage()
    told = []
    async with CLIENTS["chat"](strict_server) as client:
        normalize_client(client, on_error="raise")
        workflow = desk(client, providers=lambda: [provider()], checkpoint_storage=storage)
        asked: list[Any] = []
        for number in range(1, 5):
            asked = await turn(workflow, asked, f"USER-{number} ...", stream=stream)
            newest = await storage.get_latest(workflow_name=workflow.name)
            told.append(repr(newest.state).count("USER-1 ..."))

    assert told[1:] == [told[1]] * 3
    seen = [len(one.seen) for one in strict_server.requests if one.body["user"] == "account"]
    assert seen[1::2] == [4, 8, 12, 16]
