"""Whose rules a client gets, and what becomes of an error of convnorm's own."""

import logging
from typing import Any

import agent_framework as af
import openai
import pytest
from convnorm_agent_framework import LedgerProvider, NormalizingMiddleware, normalize_client
from convnorm_agent_framework.service import policy_for, provider_of
from convnorm_agent_framework.turn import LEDGER
from framework import CLIENTS, agent, seen_texts
from talk import answer

from convnorm import ChangeError, Policy, PolicyError
from convnorm.testing import Failure, StrictServer

pytestmark = pytest.mark.anyio

ENDPOINTS = {
    "https://api.openai.com/v1": None,
    "https://mine.openai.azure.com/openai/v1/": "azure",
    "https://mine.cognitiveservices.azure.com/openai/v1/": "azure",
    "https://mine.services.ai.azure.com/api/projects/p/openai/v1/": "azure-foundry",
    "https://openai.azure.com.example.org/v1": None,
}


@pytest.mark.parametrize("url, provider", ENDPOINTS.items())
async def test_the_endpoint_says_who_serves(
    strict_server: StrictServer, url: str, provider: str | None
) -> None:
    """The provider is read from where the requests go."""
    sdk = openai.AsyncOpenAI(base_url=url, api_key="none")
    async with sdk, CLIENTS["responses"](strict_server) as client:
        client.client = sdk

        assert provider_of(client) == provider


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("responses", ("openai.responses", None)),
        ("chat", ("openai.chat", None)),
        ("azure", ("openai.responses", "azure")),
        ("azure-chat", ("openai.chat", "azure")),
        ("foundry", ("openai.responses", "azure-foundry")),
    ],
)
async def test_the_client_says_which_api(
    strict_server: StrictServer, kind: str, expected: tuple[str, str | None]
) -> None:
    """The API is read from the client, in every release."""
    async with CLIENTS[kind](strict_server) as client:
        policy = policy_for(client)

    assert (policy.target, policy.provider) == expected


def test_foundry_is_known_by_its_client() -> None:
    """The clients for Foundry are recognised by their names, whatever their endpoint looks like."""

    class FoundryChatClient:
        STORES_BY_DEFAULT = True

    class AzureAIClient(FoundryChatClient):
        pass

    for kind in (FoundryChatClient, AzureAIClient):
        policy = policy_for(kind())
        assert (policy.target, policy.provider) == ("openai.responses", "azure-foundry")


def test_an_unknown_client_needs_a_policy() -> None:
    """Nothing is guessed about an API that nobody knows."""

    class Other(af.BaseChatClient):  # type: ignore[misc]  # typed where the framework is
        def _inner_get_response(self, **_: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(PolicyError, match="Other"):
        normalize_client(Other())
    client = Other()
    assert normalize_client(client, "openai.chat") is client


async def test_a_second_policy_takes_the_place(strict_server: StrictServer) -> None:
    """A client that is normalized twice is wrapped once."""
    async with CLIENTS["chat"](strict_server) as client:
        normalize_client(client)
        wrapped = client._inner_get_response
        normalize_client(client, "openai.chat")

        assert client._inner_get_response == wrapped
        with pytest.raises(PolicyError, match="on_error"):
            normalize_client(client, on_error="quietly")  # type: ignore[arg-type]  # on purpose


async def broken(server: StrictServer, client: Any, times: int = 1) -> None:
    """Turns whose history has a call without a result."""
    server.play(*["A1"] * times)
    asked = af.Content.from_function_call("call_Ab1", "add", arguments="{}")
    for _ in range(times):
        given = [af.Message("assistant", [asked]), af.Message("user", ["U1"])]
        await answer(agent(client, "a"), given, stream=False)


async def test_a_policy_that_forbids_changes(strict_server: StrictServer) -> None:
    """`on_change: raise` ends the call: that is what it is for."""
    async with CLIENTS["chat"](strict_server) as client:
        normalize_client(client, Policy.for_target("openai.chat", on_change="raise"))
        with pytest.raises(ChangeError, match="repair_tool_pairs"):
            await broken(strict_server, client)

    assert strict_server.requests == []


class Failing:
    """A pass of somebody else that has a bug."""

    name = "failing"

    def __call__(self, history: Any, call: Any) -> Any:
        """Fail."""
        raise RuntimeError("a bug")


async def test_an_error_of_ours_does_not_end_the_call(
    strict_server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The request is sent as it was, and the log says so once."""
    policy = Policy(target="openai.chat", passes=[Failing()])
    strict_server.play("A1", "A2")
    async with CLIENTS["chat"](strict_server) as client:
        one = agent(normalize_client(client, policy), "a")
        with caplog.at_level(logging.ERROR, logger="convnorm"):
            for text in ("U1", "U2"):
                await answer(one, text, stream=False)

    assert [seen_texts(request) for request in strict_server.requests] == [["U1"], ["U2"]]
    assert [record.message for record in caplog.records] == [
        "convnorm failed, and the request is sent as it was: RuntimeError: a bug"
    ]


async def test_on_error_raise(strict_server: StrictServer) -> None:
    """For tests: the error comes out."""
    policy = Policy(target="openai.chat", passes=[Failing()])
    async with CLIENTS["chat"](strict_server) as client:
        one = agent(normalize_client(client, policy, on_error="raise"), "a")
        with pytest.raises(RuntimeError, match="a bug"):
            await answer(one, "U1", stream=False)

    assert strict_server.requests == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["responses", "chat"])
@pytest.mark.parametrize("status", [400, 500])
async def test_errors_of_the_provider_are_its_own(
    kind: str, status: int, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What the server refuses comes out as it does without us, and the session can go on."""
    said = []
    for prepared in (unprepared, normalized):
        with StrictServer(["A1", Failure(status, "not today"), "A3"]) as server:
            async with CLIENTS[kind](server) as client:
                one = agent(prepared(client), "a")
                session = one.create_session()
                await answer(one, "U1", stream=stream, session=session)
                with pytest.raises(Exception, match="not today") as failed:
                    await answer(one, "U2", stream=stream, session=session)
                await answer(one, "U3", stream=stream, session=session)
            said.append((type(failed.value), str(failed.value), seen_texts(server.requests[-1])))

    assert said[0] == said[1]
    assert [text for text in said[0][2] if text in ("U1", "A1", "U3")] == ["U1", "A1", "U3"]
    assert [record for record in caplog.records if record.name == "convnorm"] == []


def unprepared(client: Any) -> Any:
    return client


def normalized(client: Any) -> Any:
    return normalize_client(client)


async def test_middleware_of_a_client_that_nobody_knows(
    strict_server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The call goes on as it would without us, and the log says so once."""
    strict_server.play("A1", "A2")
    middleware = NormalizingMiddleware()
    async with CLIENTS["chat"](strict_server) as inner:
        one = agent(Around(inner), "a", middleware=[middleware])
        with caplog.at_level(logging.ERROR, logger="convnorm"):
            for text in ("U1", "U2"):
                await answer(one, text, stream=False)

    assert [seen_texts(request) for request in strict_server.requests] == [["U1"], ["U2"]]
    (record,) = (one for one in caplog.records if one.name == "convnorm")
    assert "the client is left as it is: PolicyError: nothing is known of the API of Around" in (
        record.message
    )


LAYERS = (af.ChatMiddlewareLayer, af.FunctionInvocationLayer, af.BaseChatClient)


class Around(*LAYERS):  # type: ignore[misc]  # typed where the framework is
    """A client of somebody's own."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def _inner_get_response(self, **request: Any) -> Any:
        return self.inner._inner_get_response(**request)


async def test_a_ledger_that_cannot_be_read(
    strict_server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A session whose notes are damaged is used without them."""
    strict_server.play("A1", "A2")
    async with CLIENTS["responses"](strict_server) as client:
        one = agent(normalize_client(client), "a", context_providers=[LedgerProvider()])
        session = one.create_session()
        await answer(one, "U1", stream=False, session=session)
        for state in (session.state, *session.state.values()):
            if LEDGER in state:
                state[LEDGER]["ledger"] = "[]"
        await answer(one, "U2", stream=False, session=session)

    assert seen_texts(strict_server.requests[-1]) == ["U1", "A1", "U2"]
    assert "what the session knows is not used" in caplog.text


@pytest.mark.parametrize("kind", ["responses", "chat"])
async def test_a_client_that_is_asked_without_an_agent(
    strict_server: StrictServer, kind: str
) -> None:
    """A call by hand is repaired like any other."""
    strict_server.play("A1")
    asked = af.Content.from_function_call("call_Ab1", "add", arguments="{}")
    async with CLIENTS[kind](strict_server) as client:
        given = [af.Message("assistant", [asked]), af.Message("user", ["U1"])]
        response = await normalize_client(client, on_error="raise").get_response(given)

    assert response.text == "A1"
    assert [request.status for request in strict_server.requests] == [200]
