"""Runs of the real SDK against the strict server, with and without the adapter."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from agents import (
    Agent,
    ModelProvider,
    OpenAIProvider,
    RunConfig,
    Runner,
    RunState,
    function_tool,
)
from convnorm_openai_agents import Hooks, NormalizingModelProvider, ledger_from_state
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from convnorm.testing import Reply, StrictServer, call

SDK = tuple(int(part) for part in version("openai-agents").split(".")[:3])
LINKS = ("previous_response_id", "conversation_id", "auto_previous_response_id", "local")


class Site:
    """A strict server and OpenAI's client for it; a refusal is final."""

    def __init__(self, server: StrictServer, client: AsyncOpenAI) -> None:
        self.server = server
        self.client = client

    def bare(self, *, chat: bool = False) -> ModelProvider:
        """The SDK's own provider."""
        return OpenAIProvider(openai_client=self.client, use_responses=not chat)

    @property
    def rules(self) -> list[str | None]:
        """By request that a model answers: the rule it was refused with."""
        return [request.rule for request in self.server.requests if request.api]

    @property
    def bodies(self) -> list[Any]:
        """The body of each request that a model answers."""
        return [request.body for request in self.server.requests if request.api]

    @property
    def inputs(self) -> list[Any]:
        """What each request brought."""
        return [body["input"] for body in self.bodies]

    async def link(self, kind: str, first: Any) -> dict[str, Any]:
        """How a run continues what the server holds."""
        match kind:
            case "previous_response_id":
                return {"previous_response_id": first.last_response_id}
            case "conversation_id":
                return {"conversation_id": (await self.client.conversations.create()).id}
            case "auto_previous_response_id":
                return {"auto_previous_response_id": True}
        return {}


@asynccontextmanager
async def site(*script: Any) -> AsyncIterator[Site]:
    """A server that plays the script."""
    async with StrictServer(script) as server:
        plain = DefaultAsyncHttpxClient(verify=False)  # loopback: reading certificates is slow
        async with AsyncOpenAI(
            base_url=server.base_url, api_key="none", max_retries=0, http_client=plain
        ) as client:
            yield Site(server, client)


@function_tool(needs_approval=True)
def run_cleanup(target: str) -> str:
    """Clean something up."""
    return f"cleaned {target}"


@function_tool
def run_diagnostic(check_name: str) -> str:
    """Check something."""
    return f"{check_name} is well"


@function_tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def operator(**options: Any) -> Agent[Any]:
    """An agent with a tool that needs approval, and one that does not."""
    return Agent(name="operator", tools=[run_cleanup, run_diagnostic], **options)


THREE_CALLS = Reply(
    call("run_cleanup", target="a", call_id="call_CLEANUP1"),
    call("run_diagnostic", check_name="disk", call_id="call_DIAG"),
    call("run_cleanup", target="b", call_id="call_CLEANUP2"),
)
ONE_IS_MISSING = Reply(
    call("run_cleanup", target="a", call_id="call_CLEANUP1"),
    call("nothing_of_the_kind", call_id="call_NONE"),
    call("run_cleanup", target="b", call_id="call_CLEANUP2"),
)
DECISIONS = {"approve": (True, True), "reject": (False, False), "mixed": (True, False)}


async def run(agent: Agent[Any], given: Any, *, stream: bool = False, **options: Any) -> Any:
    """Run the agent to its end, streamed or not."""
    if not stream:
        return await Runner.run(agent, given, **options)
    result = Runner.run_streamed(agent, given, **options)
    async for _ in result.stream_events():
        pass
    return result


def config(provider: ModelProvider, **options: Any) -> RunConfig:
    """The configuration of a run; nothing is traced."""
    options.setdefault("model", "gpt-4.1")
    return RunConfig(model_provider=provider, tracing_disabled=True, **options)


async def told_of_a_missing_tool(
    here: Site, link: str, decision: str, *, stream: bool, safe: str | None
) -> None:
    """A run waits for approval of two calls, beside one of a tool that is not there.

    `safe`: what the provider knows of it from, `hooks` or the `state`; None: there is none.
    """
    agent = operator()
    here.server.play("Hello.", ONE_IS_MISSING, "All done.")
    provider: Any = here.bare()
    options: dict[str, Any] = {"stream": stream}
    if safe == "hooks":
        provider = NormalizingModelProvider(inner=provider, on_error="raise")
        options["hooks"] = Hooks(provider)
    answers = {"tool_not_found_behavior": "return_error_to_model"}
    options["run_config"] = config(provider, **answers)
    first = await run(agent, "Hello", **options)
    more = await here.link(link, first)
    waiting = await run(agent, "Clean up", **options, **more)
    state = await approve(waiting.to_state(), agent, decision, serialise=True)
    if safe == "state":
        ledger = ledger_from_state(state)
        provider = NormalizingModelProvider(inner=provider, ledger=ledger, on_error="raise")
        options["run_config"] = config(provider, **answers)
    await run(agent, state, **options, **more)


async def approve(
    state: RunState[Any], agent: Agent[Any], decision: str, *, serialise: bool
) -> RunState[Any]:
    """Decide on what waits; `serialise`: in a state that was text in between."""
    if serialise:
        state = await RunState.from_string(agent, state.to_string())
    waiting = state.get_interruptions()
    for item, yes in zip(waiting, DECISIONS[decision], strict=False):
        (state.approve if yes else state.reject)(item)
    return state


def kinds(items: Sequence[Any]) -> list[str]:
    """The items of an input, in words."""
    return [item.get("call_id") or item.get("role") or item["type"] for item in items]
