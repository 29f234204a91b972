"""The SDK's own example patterns: where nothing is broken, the adapter changes no byte."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    HandoffInputData,
    InputGuardrail,
    ModelProvider,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    OutputGuardrail,
    SQLiteSession,
    StopAtTools,
    handoff,
)
from agents.extensions.handoff_filters import remove_all_tools
from agents.extensions.memory import AdvancedSQLiteSession
from agents.memory import SessionSettings
from convnorm_openai_agents import (
    Hooks,
    NormalizingConversationsSession,
    NormalizingModelProvider,
    NormalizingSession,
    handoff_filter,
    input_filter,
)
from play import THREE_CALLS, Site, add, approve, config, operator, run, run_diagnostic, site
from pydantic import BaseModel

from convnorm.testing import Reply, call, reasoning

pytestmark = pytest.mark.anyio

Pattern = Callable[[Site, dict[str, Any], bool], Awaitable[None]]
"""A pattern plays on a site, with these options for each run, with the adapter or without."""


async def handoffs(here: Site, options: dict[str, Any], safe: bool) -> None:
    """A triage agent hands off; the next run goes on with the last agent."""
    writer = Agent[Any](name="writer", tools=[add])
    triage = Agent[Any](name="triage", handoffs=[writer])
    here.server.play(
        Reply(call("transfer_to_writer", {})), Reply(call("add", a=1, b=2)), "Three.", "More."
    )
    result = await run(triage, "1 + 2?", **options)
    given = [*result.to_input_list(), {"role": "user", "content": "and?"}]
    await run(result.last_agent, given, **options)


async def nested_handoffs(here: Site, options: dict[str, Any], safe: bool) -> None:
    """The history before a handoff is told as one message."""
    writer = Agent[Any](name="writer")
    triage = Agent[Any](name="triage", tools=[add], handoffs=[writer])
    here.server.play(Reply(call("add", a=1, b=2)), Reply(call("transfer_to_writer", {})), "Three.")
    options["run_config"].nest_handoff_history = True
    await run(triage, "1 + 2?", **options)


async def approvals(here: Site, options: dict[str, Any], safe: bool) -> None:
    """A run waits for approval and goes on from its serialised state."""
    agent = operator()
    here.server.play(THREE_CALLS, "Done.")
    waiting = await run(agent, "Clean up", **options)
    state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
    await run(agent, state, **options)


async def sessions(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Three runs with tools share a session."""
    store = SQLiteSession("one")
    here.server.play(
        Reply(call("add", a=1, b=2)), "Three.", "Yes.", Reply("I", call("add", a=1, b=1)), "2"
    )
    agent = Agent[Any](name="adder", tools=[add])
    session = NormalizingSession(store, on_error="raise") if safe else store
    for text in ("1 + 2?", "Sure?", "1 + 1?"):
        await run(agent, text, session=session, **options)
    store.close()


async def conversations_session(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Two runs share a session in OpenAI's Conversations."""
    session = (
        NormalizingConversationsSession(on_error="raise", openai_client=here.client)
        if safe
        else OpenAIConversationsSession(openai_client=here.client)
    )
    here.server.play(Reply(call("add", a=1, b=2)), "Three.", "Yes.")
    agent = Agent[Any](name="adder", tools=[add])
    for text in ("1 + 2?", "Sure?"):
        await run(agent, text, session=session, **options)


async def previous_responses(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Each run continues the last response of the one before."""
    agent = Agent[Any](name="adder", tools=[add])
    here.server.play(Reply(call("add", a=1, b=2), call("add", a=3, b=4)), "3, 7.", "Yes.")
    first = await run(agent, "1 + 2, 3 + 4?", auto_previous_response_id=True, **options)
    await run(agent, "Sure?", previous_response_id=first.last_response_id, **options)


async def conversation(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Two runs in one conversation of the server's."""
    held = (await here.client.conversations.create()).id
    agent = Agent[Any](name="adder", tools=[add])
    here.server.play(Reply(call("add", a=1, b=2)), "Three.", "Yes.")
    for text in ("1 + 2?", "Sure?"):
        await run(agent, text, conversation_id=held, **options)


async def agents_as_tools(here: Site, options: dict[str, Any], safe: bool) -> None:
    """An agent is a tool of another one."""
    inner = Agent[Any](name="spanish", model="gpt-4.1").as_tool("translate", "Translates.")
    here.server.play(Reply(call("translate", input="hi")), "hola", "It is hola.")
    await run(Agent[Any](name="boss", tools=[inner]), "Translate hi", **options)


async def structured(here: Site, options: dict[str, Any], safe: bool) -> None:
    """The last message is JSON of a type; a guardrail looks at the input."""

    class Sum(BaseModel):
        total: int

    async def harmless(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    here.server.play(Reply(call("add", a=1, b=2)), '{"total": 3}')
    agent = Agent[Any](
        name="adder",
        tools=[add, run_diagnostic],
        output_type=Sum,
        input_guardrails=[InputGuardrail(guardrail_function=harmless)],
    )
    await run(agent, "1 + 2?", **options)


async def thinking(here: Site, options: dict[str, Any], safe: bool) -> None:
    """A reasoning model that stores nothing carries its reasoning along, sealed."""
    here.server.play(
        Reply(reasoning("Add."), call("add", a=1, b=2)), Reply(reasoning(), "Three."), "Y"
    )
    settings = ModelSettings(response_include=["reasoning.encrypted_content"])
    agent = Agent[Any](name="adder", model="gpt-5.1", model_settings=settings, tools=[add])
    options["run_config"].model = None
    result = await run(agent, "1 + 2?", **options)
    await run(agent, [*result.to_input_list(), {"role": "user", "content": "and?"}], **options)


async def filtered_handoffs(here: Site, options: dict[str, Any], safe: bool) -> None:
    """What is handed over is without tools, by the SDK's own filter, and the last messages only."""

    def last_two(data: HandoffInputData) -> HandoffInputData:
        data = remove_all_tools(data)
        history = data.input_history
        return data.clone(input_history=history[-2:] if isinstance(history, tuple) else history)

    chosen = handoff_filter(chain=last_two, on_error="raise") if safe else last_two
    writer = Agent[Any](name="writer")
    triage = Agent[Any](name="triage", tools=[add], handoffs=[handoff(writer, input_filter=chosen)])
    here.server.play(
        "Hello.", Reply(call("add", a=1, b=2)), Reply(call("transfer_to_writer", {})), "Three."
    )
    first = await run(triage, "Hello", **options)
    given = [*first.to_input_list(), {"role": "user", "content": "1 + 2?"}]
    await run(triage, given, **options)


async def approvals_in_a_session(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Runs that share a session wait, twice, and go on; a call of a waiting turn stays open."""
    store = SQLiteSession("one")
    session = NormalizingSession(store, on_error="raise") if safe else store
    agent = operator()
    here.server.play(
        *("Hello.", THREE_CALLS, Reply(call("run_cleanup", target="c")), "Done.", "Bye.")
    )
    await run(agent, "Hello", session=session, **options)
    result = await run(agent, "Clean up", session=session, **options)
    while result.interruptions:
        state = await approve(result.to_state(), agent, "mixed", serialise=True)
        result = await run(agent, state, session=session, **options)
    await run(agent, "Bye", session=session, **options)
    store.close()


async def guarded_approvals(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Releases from 0.22.0 to 0.23.1 leave an output without its call behind this one (#4827)."""

    async def harmless(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    store = SQLiteSession("one")
    session = NormalizingSession(store, on_error="raise") if safe else store
    agent = operator(
        output_guardrails=[OutputGuardrail(guardrail_function=harmless)],
        tool_use_behavior=StopAtTools(stop_at_tool_names=["other"]),
    )
    here.server.play(Reply(call("run_cleanup", target="a")), "Done.", "Bye.")
    waiting = await run(agent, "Clean up", session=session, **options)
    state = await approve(waiting.to_state(), agent, "approve", serialise=True)
    await run(agent, state, session=session, **options)
    await run(agent, "Bye", session=session, **options)
    store.close()


async def advanced_session(here: Site, options: dict[str, Any], safe: bool) -> None:
    """A session with branches and books of its own, which are asked through ours."""
    store = AdvancedSQLiteSession(session_id="one", create_tables=True)
    session: Any = NormalizingSession(store, on_error="raise") if safe else store
    here.server.play(Reply(call("add", a=1, b=2)), "Three.", "Yes.", "No.")
    agent = Agent[Any](name="adder", tools=[add])
    for text in ("1 + 2?", "Sure?"):
        result = await run(agent, text, session=session, **options)
        await session.store_run_usage(result)
    await session.create_branch_from_turn(2)
    await run(agent, "Really?", session=session, **options)
    assert len(await session.list_branches()) > 1
    store.close()


async def approvals_in_a_conversation(here: Site, options: dict[str, Any], safe: bool) -> None:
    """The same in a conversation of the server's, with one call at a time."""
    held = (await here.client.conversations.create()).id
    agent = operator()
    here.server.play(*(Reply(call("run_cleanup", target=name)) for name in "ab"), "Done.", "Bye.")
    result = await run(agent, "Clean up", conversation_id=held, **options)
    while result.interruptions:
        state = await approve(result.to_state(), agent, "approve", serialise=True)
        result = await run(agent, state, conversation_id=held, **options)
    await run(agent, "Bye", conversation_id=held, **options)


async def approvals_behind_responses(here: Site, options: dict[str, Any], safe: bool) -> None:
    """The same behind responses."""
    agent = operator()
    here.server.play(*(Reply(call("run_cleanup", target=name)) for name in "ab"), "Done.", "Bye.")
    result = await run(agent, "Clean up", auto_previous_response_id=True, **options)
    while result.interruptions:
        state = await approve(result.to_state(), agent, "approve", serialise=True)
        result = await run(agent, state, auto_previous_response_id=True, **options)
    await run(agent, "Bye", previous_response_id=result.last_response_id, **options)


async def limited_session(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Of a session the last items are read, and a callback looks at them."""
    store = SQLiteSession("one")
    session = NormalizingSession(store, on_error="raise") if safe else store
    options["run_config"].session_settings = SessionSettings(limit=2)
    options["run_config"].session_input_callback = lambda history, new: history + new
    here.server.play("One.", "Two.", Reply(call("add", a=1, b=2)), "Three.")
    for text in ("q1", "q2", "1 + 2?"):
        await run(Agent[Any](name="adder", tools=[add]), text, session=session, **options)
    store.close()


async def compacted_session(here: Site, options: dict[str, Any], safe: bool) -> None:
    """The server compacts what a session holds, and the runs go on with that."""
    store = SQLiteSession("one")
    session = OpenAIResponsesCompactionSession(
        "one",
        NormalizingSession(store, on_error="raise") if safe else store,
        client=here.client,
        compaction_mode="input",
        should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) > 1,
    )
    here.server.play("One.", "Two.", "Three.")
    for text in ("q1", "q2", "q3"):
        await run(Agent[Any](name="a"), text, session=session, **options)
    store.close()


async def judged(here: Site, options: dict[str, Any], safe: bool) -> None:
    """A writer writes until a judge is content; both are given the whole list."""
    writer, judge = Agent[Any](name="writer"), Agent[Any](name="judge", instructions="Judge.")
    here.server.play("Once.", "Longer.", "Once upon a time.", "Longer.", "Once, long ago.", "Good.")
    given: list[Any] = [{"role": "user", "content": "A story"}]
    verdict = ""
    while verdict != "Good.":
        given = (await run(writer, given, **options)).to_input_list()
        verdict = (await run(judge, given, **options)).final_output
        given.append({"role": "user", "content": f"Feedback: {verdict}"})


async def one_after_another(here: Site, options: dict[str, Any], safe: bool) -> None:
    """Agents with histories of their own share a provider; one stops at its first tool."""
    stopping = Agent[Any](name="adder", tools=[add], tool_use_behavior="stop_on_first_tool")
    here.server.play(*(Reply(call("add", a=at, b=0, call_id="call_0")) for at in range(3)), "Sum.")
    sums = [(await run(stopping, f"{at} + 0?", **options)).final_output for at in range(3)]
    await run(Agent[Any](name="picker"), f"Sum up {sums}", **options)


PATTERNS: tuple[Pattern, ...] = (
    handoffs,
    nested_handoffs,
    approvals,
    sessions,
    conversations_session,
    previous_responses,
    conversation,
    agents_as_tools,
    structured,
    thinking,
    filtered_handoffs,
    approvals_in_a_session,
    approvals_in_a_conversation,
    approvals_behind_responses,
    limited_session,
    compacted_session,
    judged,
    one_after_another,
    guarded_approvals,
    advanced_session,
)
LINKED = (conversation, previous_responses, approvals_in_a_conversation, approvals_behind_responses)
"""Where the server holds the history, the SDK allows no filters of handoffs."""


async def played(pattern: Pattern, *, stream: bool, safe: bool) -> list[tuple[str, str]]:
    """Every request of a pattern, as text."""
    async with site() as here:
        provider: ModelProvider = here.bare()
        options: dict[str, Any] = {"stream": stream}
        if safe:
            provider = normal = NormalizingModelProvider(inner=provider, on_error="raise")
            options["hooks"] = Hooks(normal)
        options["run_config"] = config(provider)
        if safe and pattern is not nested_handoffs:
            options["run_config"].call_model_input_filter = input_filter(on_error="raise")
            if pattern not in LINKED:
                options["run_config"].handoff_input_filter = handoff_filter(on_error="raise")
        await pattern(here, options, safe)

    assert {request.status for request in here.server.requests} == {200}
    return [(request.path, json.dumps(request.body)) for request in here.server.requests]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("stream", [False, True])
async def test_same_requests(pattern: Pattern, stream: bool) -> None:
    """With everything of the adapter in place, the requests are those of the SDK alone."""
    alone = await played(pattern, stream=stream, safe=False)

    assert await played(pattern, stream=stream, safe=True) == alone
    assert len(alone) > 1
