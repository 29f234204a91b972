"""Let another library clean histories: JSON lines in, JSON lines out.

`python -P benchmarks/peer.py NAME` runs in the environment of that library and imports nothing of
convnorm. The first line out is the versions it ran on; then, for each history read, a line with
what that library would send, or with the error it raised.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Messages = list[dict[str, Any]]
Clean = Callable[[Messages], Messages]


def litellm() -> Clean:
    """The message sanitizer, which litellm runs for Anthropic models under `modify_params`."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network
    import litellm as library
    from litellm.litellm_core_utils.prompt_templates import factory

    library.modify_params = True
    return factory.sanitize_messages_for_tool_calling  # type: ignore[no-any-return]  # no types where mypy runs


def openai_agents(limit: int | None) -> Clean:
    """What a model gets from `Runner.run` when the session holds all but the last message."""
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, SessionSettings, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    text = ResponseOutputText(type="output_text", text="ok", annotations=[])
    reply = ResponseOutputMessage(
        id="msg_1", type="message", role="assistant", status="completed", content=[text]
    )

    class Recorder(Model):  # type: ignore[misc]  # no types where mypy runs
        async def get_response(self, **given: Any) -> Any:
            self.given = given["input"]
            return ModelResponse(output=[reply], usage=Usage(), response_id=None)

        def stream_response(self, **_: Any) -> Any:
            raise NotImplementedError

    class Session:
        session_id = "quality"
        session_settings = None

        def __init__(self, items: Messages) -> None:
            self.items = items

        async def get_items(self, limit: int | None = None) -> Messages:
            return self.items[-limit:] if limit else list(self.items)

        async def add_items(self, items: Messages) -> None:
            self.items = [*self.items, *items]

        async def pop_item(self) -> dict[str, Any] | None:
            return self.items.pop() if self.items else None

        async def clear_session(self) -> None:
            self.items = []

    model = Recorder()
    agent = Agent(name="quality", model=model)
    config = RunConfig(session_settings=SessionSettings(limit=limit))
    loop = asyncio.Runner()

    def clean(items: Messages) -> Messages:
        session = Session(items[:-1])
        loop.run(Runner.run(agent, items[-1:], session=session, run_config=config))
        return model.given  # type: ignore[no-any-return]  # no types where mypy runs

    return clean


def langchain(*, patch: bool) -> Clean:
    """What a model gets from an agent; `patch` adds deepagents' middleware for dangling calls."""
    from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages
    from langchain_core.outputs import ChatGeneration, ChatResult

    given: list[Any] = []

    class Recorder(BaseChatModel):  # type: ignore[misc]  # no types where mypy runs
        @property
        def _llm_type(self) -> str:
            return "recorder"

        def _generate(self, messages: list[Any], *_: Any, **__: Any) -> Any:
            given[:] = messages
            return ChatResult(generations=[ChatGeneration(message=AIMessage("ok"))])

    agent = create_agent(Recorder(), middleware=[PatchToolCallsMiddleware()] if patch else [])

    def clean(messages: Messages) -> Messages:
        agent.invoke({"messages": convert_to_messages(messages)})
        return convert_to_openai_messages(given)  # type: ignore[no-any-return]  # no types where mypy runs

    return clean


LANGCHAIN = ("langchain", "langchain-core", "deepagents")
PEERS: dict[str, tuple[Callable[[], Clean], tuple[str, ...]]] = {
    "litellm": (litellm, ("litellm",)),
    "openai-agents": (lambda: openai_agents(None), ("openai-agents", "openai")),
    "openai-agents-limit": (lambda: openai_agents(10_000), ("openai-agents", "openai")),
    "langchain": (lambda: langchain(patch=False), LANGCHAIN),
    "deepagents": (lambda: langchain(patch=True), LANGCHAIN),
}
"""By name: how to start it, and the packages whose versions matter."""


def main(name: str) -> None:
    """Answer every line with a line."""
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    start, packages = PEERS[name]
    clean = start()
    print(json.dumps({package: version(package) for package in packages}), file=out)
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"messages": clean(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
            answer = {"error": repr(error)}
        print(json.dumps(answer), file=out)


if __name__ == "__main__":
    main(sys.argv[1])
