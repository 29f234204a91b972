"""Models over litellm, whose history is always sent whole."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, MultiProvider
from agents.extensions.models.litellm_model import LitellmModel
from convnorm_openai_agents import Hooks, NormalizingModelProvider, normalize_model
from openai import BadRequestError
from play import THREE_CALLS, approve, config, operator, run, site

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The SDK runs on asyncio alone."""
    return "asyncio"


CALL = "call_Zk3vQ9pLw2"
USER = {"role": "user", "content": "q1"}
CALLED = {
    "type": "function_call",
    "call_id": CALL,
    "name": "add",
    "arguments": '{"a":1,"b":2}',
}
RETURNED = {"type": "function_call_output", "call_id": CALL, "output": "3"}
NEW = {"role": "user", "content": "q2"}
HISTORIES = {
    "orphan call": ([USER, CALLED, NEW], ["user", "assistant", "tool", "user"]),
    "orphan output": ([USER, RETURNED, NEW], ["user", "user", "user"]),
    "late output": (
        [USER, CALLED, NEW, RETURNED, NEW],
        ["user", "assistant", "tool", "user", "user"],
    ),
}


def model(here: Any) -> LitellmModel:
    """A model of the strict server, through litellm."""
    return LitellmModel("openai/gpt-4.1", base_url=here.server.base_url, api_key="none")


@pytest.mark.parametrize("name", HISTORIES)
async def test_the_sdk_alone(name: str) -> None:
    """The SDK and litellm turn items into messages, and the API refuses them."""
    async with site("Fine.") as here:
        agent = Agent[Any](name="a", model=model(here))
        with pytest.raises(BadRequestError):  # litellm's error is one of OpenAI's
            await run(agent, HISTORIES[name][0], run_config=config(here.bare(), model=None))

    (rule,) = here.rules
    assert rule in {"chat-tool-calls-unanswered", "chat-tool-message-orphan"}


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_with_convnorm(name: str, stream: bool) -> None:
    """The same items become messages that are accepted."""
    given, roles = HISTORIES[name]
    async with site("Fine.") as here:
        agent = Agent[Any](name="a", model=normalize_model(model(here), on_error="raise"))
        done = await run(agent, given, stream=stream, run_config=config(here.bare(), model=None))

    assert done.final_output == "Fine."
    assert here.rules == [None]
    assert [message["role"] for message in here.bodies[0]["messages"]] == roles


@pytest.fixture
def by_name(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], str]:
    """The name of a model of a strict server, as the SDK's own provider hands it to litellm."""

    def name(here: Any) -> str:
        monkeypatch.setenv("OPENAI_BASE_URL", here.server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        return "litellm/openai/gpt-4.1"

    return name


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_by_name(name: str, stream: bool, by_name: Callable[[Any], str]) -> None:
    """The provider that repairs what OpenAI's models are sent repairs what litellm's are."""
    given, roles = HISTORIES[name]
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(on_error="raise")
        runs = config(provider, model=by_name(here))
        done = await run(Agent[Any](name="a"), given, stream=stream, run_config=runs)

    assert done.final_output == "Fine."
    assert here.rules == [None]
    assert [message["role"] for message in here.bodies[0]["messages"]] == roles


async def test_the_same_requests_by_name(by_name: Callable[[Any], str]) -> None:
    """An approval and a next run over a model by name: not a byte differs."""
    agent, bodies = operator(), []
    for provider in (MultiProvider(), normal := NormalizingModelProvider(on_error="raise")):
        async with site(THREE_CALLS, "Done.", "Yes.") as here:
            options: dict[str, Any] = {"run_config": config(provider, model=by_name(here))}
            if provider is normal:
                options["hooks"] = Hooks(normal)
            waiting = await run(agent, "Clean up", **options)
            state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
            done = await run(agent, state, **options)
            await run(agent, [*done.to_input_list(), NEW], **options)
        assert here.rules == [None] * 3
        bodies.append(json.dumps(here.bodies))

    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("stream", [False, True])
async def test_same_requests(stream: bool) -> None:
    """An approval over litellm: not a byte differs."""
    bodies = []
    for safe in (False, True):
        async with site(THREE_CALLS, "Done.") as here:
            own = normalize_model(model(here), on_error="raise") if safe else model(here)
            agent = operator(model=own)
            options: dict[str, Any] = {
                "stream": stream,
                "run_config": config(here.bare(), model=None),
            }
            waiting = await run(agent, "Clean up", **options)
            state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
            await run(agent, state, **options)
        assert here.rules == [None, None]
        bodies.append(json.dumps(here.bodies))

    assert bodies[0] == bodies[1]
