from contextlib import suppress
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIResponsesModel,
    RunHooks,
    function_tool,
)
from convnorm_openai_agents import Hooks, NormalizingModelProvider, normalize_model
from openai import BadRequestError
from play import add, config, run, site

from convnorm import ChangeError, Policy
from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio

ORPHAN = [
    {"type": "function_call_output", "call_id": "call_1", "output": "3"},
    {"role": "user", "content": "and?"},
]
GIVEN = [{"role": "user", "content": "q"}]


async def test_a_model_behaves_as_the_bare_one() -> None:
    """A wrapped model is sent the same request as the bare one, by the agent and by the run."""
    async with site(*["Fine."] * 4) as here:
        bare = OpenAIResponsesModel("gpt-5", here.client)
        safe = normalize_model(bare, on_error="raise")
        for model in (bare, safe):
            await run(
                Agent[Any](name="a", model=model), "q", run_config=config(here.bare(), model=None)
            )
            await run(Agent[Any](name="a"), "q", run_config=config(here.bare(), model=model))
        of_agent, of_run, safe_of_agent, safe_of_run = here.bodies

    assert (of_agent, of_run) == (safe_of_agent, safe_of_run)
    assert safe.model == "gpt-5"


async def test_a_change_can_be_an_error() -> None:
    """A policy that forbids changes is obeyed, whatever becomes of our own errors."""
    policy = Policy.for_target("openai.responses", on_change="raise")
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(policy, inner=here.bare())
        with pytest.raises(ChangeError):
            await run(Agent[Any](name="a"), ORPHAN, run_config=config(provider))

    assert here.rules == []


async def test_nothing_given_is_changed() -> None:
    """The caller's list and its items stay as they were, also where they are repaired."""
    given = [dict(item) for item in ORPHAN]
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        await run(Agent[Any](name="a"), given, run_config=config(provider))

    assert given == ORPHAN
    assert here.inputs != [given]


@pytest.mark.parametrize("policy", [None, "openai.responses", Policy(target="openai.responses")])
@pytest.mark.parametrize("chat", [False, True])
async def test_a_policy_may_be_a_name(policy: Any, chat: bool) -> None:
    """Whose rules hold is said by a policy, by a target's name, or by nothing."""
    async with site("Fine.") as here:
        bare = here.bare(chat=chat)
        provider = NormalizingModelProvider(policy, inner=bare, on_error="raise")
        await run(Agent[Any](name="a"), ORPHAN, run_config=config(provider))

    assert here.rules == [None]


@pytest.mark.parametrize("link", ["conversation_id", "previous_response_id"])
@pytest.mark.parametrize("known", [False, True])
async def test_what_else_a_link_holds_is_not_lost(link: str, known: bool) -> None:
    """A history that tells the past in other words replaces a link only if all behind it is known.

    In a conversation others may have spoken: there, and behind what this provider never saw, the
    request is sent as it was, whatever the API says to it.
    """
    agent = Agent[Any](name="a")
    async with site("Hello Bob.", "Yes.", "Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare())
        safe = {"run_config": config(provider)}
        more = await here.link(link, None) if link == "conversation_id" else {}
        begun = safe if known else {"run_config": config(here.bare())}
        first = await run(agent, "I am Bob", **begun, **more)
        second = await run(agent, "There?", **safe, **(more or await here.link(link, first)))
        answer = second.to_input_list()[-1]
        again = {"role": "user", "content": "Are you there?"}
        told = [*first.to_input_list(), again, answer, *GIVEN]
        with suppress(BadRequestError):
            await run(agent, told, **safe, **(more or await here.link(link, second)))

    replaced = known and link == "previous_response_id"
    assert here.rules[2] == (None if replaced else "resp-duplicate-item-id")
    assert here.inputs[2] == told


async def test_the_inner_model_is_asked() -> None:
    """Closing, advice and whatever else a model can do are the inner model's."""
    heard = []

    class Own(OpenAIResponsesModel):  # type: ignore[misc]  # no types where mypy runs
        greeting = "hello"

        async def close(self) -> None:
            heard.append("close")

        def get_retry_advice(self, request: Any) -> Any:
            heard.append(request)

        async def _cleanup_on_run_end(self, owner: object) -> None:
            heard.append("cleanup")

    async with site() as here:
        model = normalize_model(Own("gpt-4.1", here.client))
        await model.close()
        model.get_retry_advice("advice?")
        await model._cleanup_on_run_end(None)

    assert heard == ["close", "advice?", "cleanup"]
    assert model.greeting == "hello"
    with pytest.raises(AttributeError):
        _ = model.nothing


def test_hooks_pass_everything_on() -> None:
    """Every hook of the SDK has its place in ours."""
    known = {name for name in dir(RunHooks) if name.startswith("on_")}

    assert known <= vars(Hooks).keys()


@pytest.mark.parametrize("stream", [False, True])
async def test_hooks_of_your_own_hear_the_same(stream: bool) -> None:
    """Behind ours, a user's hooks hear what they hear alone."""

    class Own(RunHooks[Any]):  # type: ignore[misc]  # no types where mypy runs
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def on_agent_start(self, context: Any, agent: Any) -> None:
            self.heard.append("agent start")

        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            self.heard.append(f"agent end {output}")

        async def on_llm_start(
            self, context: Any, agent: Any, system_prompt: Any, input_items: Any
        ) -> None:
            self.heard.append(f"llm start {len(input_items)}")

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self.heard.append("llm end")

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            self.heard.append(f"tool start {tool.name}")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            self.heard.append(f"tool end {result}")

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            self.heard.append(f"handoff {to_agent.name}")

    script = (Reply(call("transfer_to_adder", {})), Reply(call("add", a=1, b=2)), "Three.")
    agent = Agent[Any](name="triage", handoffs=[Agent[Any](name="adder", tools=[add])])
    alone, chained = Own(), Own()
    for own in (alone, chained):
        async with site(*script) as here:
            provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
            hooks = own if own is alone else Hooks(provider, chain=own)
            await run(agent, "1 + 2?", stream=stream, run_config=config(provider), hooks=hooks)

    assert alone.heard == chained.heard
    assert {word.split()[0] for word in alone.heard} == {"agent", "llm", "tool", "handoff"}


async def test_an_output_is_noted_as_the_sdk_sends_it() -> None:
    """What the hooks tell the ledger is the item that the SDK makes of the tool's result."""

    @function_tool  # type: ignore[untyped-decorator]  # no types where mypy runs
    def table() -> dict[str, list[int]]:
        """Rows."""
        return {"rows": [1, 2]}

    async with site(Reply(call("table", {})), "Done.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        hooks = Hooks(provider)
        noted = []
        note = provider.keeper.observed_output

        class Listening(type(provider.keeper)):  # type: ignore[misc]  # no types where mypy runs
            def observed_output(self, item: object, call: object) -> None:
                noted.append(item)
                note(item, call)

        hooks.keeper = Listening()
        await run(
            Agent[Any](name="a", tools=[table]), "q", run_config=config(provider), hooks=hooks
        )

    assert noted == [item for item in here.inputs[1] if item.get("type") == "function_call_output"]
