"""The handoff workflow of the seeds: a coordinator, a researcher and a writer, all autonomous."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from agent_framework import AgentMiddleware
from agent_framework.orchestrations import HandoffBuilder
from framework import CORE, agent, said
from packaging.version import Version

from convnorm.testing import Reply, call

TASK = "TASK: find out and sum up"
HANDOFFS_NEED = Version("1.0.0") < CORE
"""Handoffs want their agents to keep the history call by call."""
SCRIPT = {
    "coordinator": (
        (call("handoff_to_research_agent"),),
        ("PLAN", call("handoff_to_summary_agent")),
        ("FINAL: all done.",),
    ),
    "research_agent": (("FINDING-1",), ("FINDING-2", call("handoff_to_coordinator"))),
    "summary_agent": (("SUMMARY", call("handoff_to_coordinator")),),
}


class Crew:
    """The scripted model of all three agents, by the name each signs with."""

    def __init__(self, *before: Any) -> None:
        self.before, self.asked = before, Counter[str]()

    def __call__(self, request: Any) -> Reply:
        """What whoever asks says next."""
        name = request.body["user"]
        self.asked[name] += 1
        return Reply(*self.before, *SCRIPT[name][self.asked[name] - 1])


class ClearLinks(AgentMiddleware):  # type: ignore[misc]  # typed where the framework is
    """The first repair that #4053 proposes: a session forgets its response behind a handoff."""

    async def process(self, context: Any, call_next: Any) -> None:
        """Run the agent, and let its session forget."""
        session = context.session

        def forget(response: Any) -> Any:
            session.service_session_id = None
            return response

        await call_next()
        if context.stream:
            context.result = context.result.with_result_hook(forget)
        else:
            forget(context.result)


def crew(
    client: Any,
    *,
    providers: Callable[[], Any] = lambda: None,
    middleware: Any = None,
    **defaults: Any,
) -> Any:
    """The workflow, on one client; each agent has the context providers that are made for it."""
    options: dict[str, Any] = {"middleware": middleware}
    if HANDOFFS_NEED:
        options["require_per_service_call_history_persistence"] = True
    coordinator, research, summary = (
        agent(
            client,
            name,
            instructions=f"I am {name}.",
            default_options=defaults,
            context_providers=providers(),
            **options,
        )
        for name in SCRIPT
    )
    builder = HandoffBuilder(
        name="crew",
        participants=[coordinator, research, summary],
        termination_condition=lambda messages: any("FINAL" in one.text for one in messages),
    )
    return (
        builder.with_start_agent(coordinator)
        .add_handoff(coordinator, [research, summary])
        .add_handoff(research, [coordinator])
        .add_handoff(summary, [coordinator])
        .with_autonomous_mode(turn_limits=dict.fromkeys(SCRIPT, 3))
        .build()
    )


async def work(workflow: Any, *, stream: bool) -> None:
    """Give the workflow its task and let it come to its end."""
    if stream:
        async for _ in workflow.run(said(TASK), stream=True):
            pass
    else:
        await workflow.run(said(TASK))
