"""What was sent is sent again as it was, whatever comes late."""

import json
from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import LedgerProvider, NoHistoryProvider, normalize_client
from convnorm_agent_framework.turn import LAST
from framework import CLIENTS, agent, said, seen_texts
from talk import answer

from convnorm.testing import StrictServer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
KINDS = pytest.mark.parametrize("kind, key", [("chat", "messages"), ("responses", "input")])


def asked(call_id: str) -> Any:
    """The model's call."""
    return af.Message("assistant", [af.Content.from_function_call(call_id, "look", arguments="{}")])


def found(call_id: str, what: str) -> Any:
    """What its tool returned."""
    return af.Message("tool", [af.Content.from_function_result(call_id, result=what)])


def early(call_id: str) -> list[Any]:
    """A history whose call was never answered."""
    return [said("U1"), asked(call_id), said("U2")]


def late(call_id: str) -> list[Any]:
    """The same history later: the result has come, and the talk went on."""
    came = [said("U1"), asked(call_id), found(call_id, f"late {call_id}"), said("U2")]
    return [*came, said("A2", "assistant"), said("U3")]


def begins_with(first: Any, last: Any, key: str) -> bool:
    """Whether a request begins with an earlier one, byte for byte."""
    (was, now) = (json.dumps(request.body[key])[:-1] for request in (first, last))
    return now.startswith(was)


@KINDS
async def test_a_late_result_does_not_rewrite_what_was_sent(
    strict_server: StrictServer, kind: str, key: str, stream: bool
) -> None:
    """It is told behind the rest, as quoted text; the request begins with the one before."""
    strict_server.play("A2", "A3", "A4")
    async with CLIENTS[kind](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = agent(client, "a", default_options={"store": False} if kind == "responses" else {})
        history = late("call_Ab1")
        await answer(one, early("call_Ab1"), stream=stream)
        await answer(one, history, stream=stream)
        await answer(one, [*history, said("A3", "assistant"), said("U4")], stream=stream)

    first, second, last = strict_server.requests
    assert begins_with(first, second, key)
    assert begins_with(second, last, key)
    assert sum("late call_Ab1" in text for text in seen_texts(last)) == 1
    assert {request.status for request in strict_server.requests} == {200}


@KINDS
async def test_agents_of_one_client_each_have_their_own(
    strict_server: StrictServer, kind: str, key: str, stream: bool
) -> None:
    """Two agents take turns on one client, and neither disturbs what the other has sent."""
    strict_server.play(lambda _: "A")
    defaults: dict[str, Any] = {"store": False} if kind == "responses" else {}
    async with CLIENTS[kind](strict_server) as client:
        normalize_client(client, on_error="raise")
        team = [
            agent(client, name, instructions=f"I am {name}.", default_options=defaults)
            for name in ("a", "b")
        ]
        for history in (early, late):
            for number, one in enumerate(team):
                await answer(one, history(f"call_Ab{number}"), stream=stream)

    requests = strict_server.requests
    assert all(begins_with(requests[at], requests[at + 2], key) for at in (0, 1))


@KINDS
async def test_sessions_of_one_agent_each_have_their_own(
    strict_server: StrictServer, kind: str, key: str, stream: bool
) -> None:
    """Sessions that begin with the same words are told apart."""
    strict_server.play(lambda _: "A")
    defaults: dict[str, Any] = {"store": False} if kind == "responses" else {}
    async with CLIENTS[kind](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = agent(client, "a", default_options=defaults)
        for history in (early, late):
            for session_id in ("s1", "s2"):
                session = af.AgentSession(session_id=session_id)
                await answer(one, history(f"call_{session_id}"), stream=stream, session=session)

    requests = strict_server.requests
    assert all(begins_with(requests[at], requests[at + 2], key) for at in (0, 1))


@KINDS
@pytest.mark.parametrize("named", [False, True], ids=["nameless", "named"])
async def test_conversations_that_look_alike(
    strict_server: StrictServer, *, kind: str, key: str, named: bool, stream: bool
) -> None:
    """Where only calls and results differ, nothing of one conversation is told to the other."""
    strict_server.play(lambda _: "A")
    defaults: dict[str, Any] = {"store": False} if kind == "responses" else {}
    async with CLIENTS[kind](strict_server) as client:
        one = agent(normalize_client(client, on_error="raise"), "a", default_options=defaults)
        options = (
            [{"session": af.AgentSession(session_id="me")} for _ in "12"] if named else [{}] * 2
        )
        for history in (early, late):
            for call_id, option in zip(("call_s1", "call_s2"), options, strict=True):
                await answer(one, history(call_id), stream=stream, **option)

    for at, request in enumerate(strict_server.requests):
        here, there = ("call_s1", "call_s2") if at % 2 == 0 else ("call_s2", "call_s1")
        assert here in str(request.body[key])
        assert there not in str(request.body[key])


@KINDS
async def test_it_goes_with_the_session(
    strict_server: StrictServer, kind: str, key: str, stream: bool
) -> None:
    """With the ledger's provider the next process knows what was sent, too."""
    strict_server.play("A2", "A3")
    defaults: dict[str, Any] = {"store": False} if kind == "responses" else {}
    session = af.AgentSession(session_id="s1")
    for history in (early, late):
        async with CLIENTS[kind](strict_server) as client:
            normalize_client(client, on_error="raise")
            providers = [LedgerProvider(), NoHistoryProvider()]
            one = agent(client, "a", default_options=defaults, context_providers=providers)
            await answer(one, history("call_Ab1"), stream=stream, session=session)
            session = af.AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))

    first, last = strict_server.requests
    assert begins_with(first, last, key)
    assert sum("late call_Ab1" in text for text in seen_texts(last)) == 1


async def test_a_session_is_not_kept_twice(strict_server: StrictServer, stream: bool) -> None:
    """Where nothing was made up there is nothing to keep: ids go in the same way each time."""
    strict_server.play("A2")
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise")
        one = agent(
            client,
            "a",
            default_options={"store": False},
            context_providers=[LedgerProvider(), NoHistoryProvider()],
        )
        session = one.create_session()
        ids = {"fc_id": "fc_1"}
        call = af.Content.from_function_call(
            "call_Ab1", "look", arguments="{}", additional_properties=ids
        )
        told = [said("U1"), af.Message("assistant", [call]), found("call_Ab1", "r"), said("U2")]
        await answer(one, told, stream=stream, session=session)

    assert "fc_1" not in str(strict_server.requests[0].body)
    assert LAST not in json.dumps(session.to_dict())
