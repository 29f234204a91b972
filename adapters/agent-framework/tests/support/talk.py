"""One agent and a user who talks to it, turn by turn."""

from typing import Any

import agent_framework as af
import anyio
from framework import CORE, RELEASED, agent, said
from packaging.version import Version

from convnorm.testing import Reply, call

AT_WORK: list[int] = []
"""Who waits for the slow tool."""


@af.tool
def add(a: int, b: int) -> str:
    """The sum of two numbers."""
    return str(a + b)


@af.tool
async def slow(a: int) -> str:
    """Something that takes its time."""
    AT_WORK.append(a)
    await anyio.sleep(60)
    return str(a)


def talker(client: Any, *, store: bool | None = None, **options: Any) -> Any:
    """An agent with a memory; before 1.0.0 it has none of its own under store=False."""
    if store is not None:
        options["default_options"] = {"store": store}
    if store is False and not RELEASED:
        options["context_providers"] = [af.InMemoryHistoryProvider("in_memory")]
    return agent(client, "a", **options)


class Adder:
    """A scripted model that calls `add` on what a user says, and answers once it has the sum."""

    def __init__(self, *before: Any) -> None:
        self.before, self.turn = before, 0

    def __call__(self, request: Any) -> Reply:
        """The next reply."""
        last = request.seen[-1]
        if last.get("role") == "tool" or last.get("type") == "function_call_output":
            return Reply(f"A{self.turn}")
        self.turn += 1
        numbers = {"a": self.turn, "b": 0}
        return Reply(*self.before, call("add", numbers, call_id=f"call_add_{self.turn}"))


async def answer(one: Any, text: Any, *, stream: bool, **options: Any) -> Any:
    """The agent's response, however it comes."""
    message = said(text) if isinstance(text, str) else text
    if not stream:
        return await one.run(message, **options)
    running = one.run(message, stream=True, **options)
    async for _ in running:
        pass
    return await running.get_final_response()


async def cancelled(one: Any, text: str, *, stream: bool, session: Any, once: Any) -> None:
    """Cancel the run as soon as `once` says so."""
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await answer(one, text, stream=stream, session=session)

        tasks.start_soon(run)
        while not once():  # noqa: ASYNC110  # the server is another thread
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def cancelled_in_tool(one: Any, text: str, *, stream: bool, session: Any) -> None:
    """Cancel the run while its tool is at work."""
    AT_WORK.clear()
    await cancelled(one, text, stream=stream, session=session, once=lambda: AT_WORK)


def remembers(kind: str, store: bool | None, *, stream: bool) -> bool:
    """Whether the release keeps anything of a cancelled run; what it loses nobody can send."""
    linked = kind == "responses" and store is None
    return RELEASED or (linked and stream and CORE >= Version("1.0.0rc2"))
