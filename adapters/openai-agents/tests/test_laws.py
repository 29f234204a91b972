"""Whatever a model asks, and however a run goes on: each call has its own output."""

import os
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import anyio
from agents import Agent, RunState, SQLiteSession, function_tool
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import (
    Hooks,
    NormalizingModelProvider,
    NormalizingSession,
    ledger_from_state,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from play import config, run, site

from convnorm.testing import Reply, call


@function_tool  # type: ignore[untyped-decorator]  # no types where mypy runs
def quick(number: int) -> str:
    """Returns at once."""
    return f"quick {number}"


@function_tool(needs_approval=True)  # type: ignore[untyped-decorator]  # as above
def careful(number: int) -> str:
    """Waits for approval."""
    return f"careful {number}"


AGENT = Agent[Any](name="a", tools=[quick, careful])
IDS = st.sampled_from(["call_0", "call_0", "call_1", "call_Zk3vQ9pLw2", "call_8fHq1xTbR4"])


EXAMPLES = 200 if os.environ.get("CONVNORM_PROFILE") == "thorough" else 20


@dataclass(frozen=True)
class Play:
    """A run, and what happens to it."""

    link: str
    stream: bool
    turns: list[list[tuple[str, str]]]
    """By turn: the tools that are called, each under a call id."""
    approved: list[bool]
    moves: bool
    """Each time that it waits, the run goes on with a provider that knows its state alone."""
    lost: frozenset[int]
    """The outputs, as they are counted, that the SDK loses."""


WHOLE = ("local", "session")
PLAYS = st.builds(
    Play,
    link=st.sampled_from(
        ["previous_response_id", "conversation_id", "auto_previous_response_id", *WHOLE]
    ),
    stream=st.booleans(),
    turns=st.lists(
        st.lists(st.tuples(st.sampled_from(["quick", "careful"]), IDS), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
    approved=st.lists(st.booleans(), min_size=12, max_size=12),
    moves=st.booleans(),
    lost=st.frozensets(st.integers(0, 12), max_size=4),
)


def script(play: Play) -> list[Any]:
    """What the model says: each call has a number of its own."""
    numbers = iter(range(100))
    return [
        *(
            Reply(*(call(tool, number=next(numbers), call_id=own) for tool, own in turn))
            for turn in play.turns
        ),
        *("Done.", "Bye."),
    ]


def losing(play: Play) -> Any:
    """A filter that loses outputs of the quick tool on their way to a server that waits for them.

    Where the history is sent whole, no release of the SDK loses any.
    """
    seen: dict[str, bool] = {}

    def cut(data: CallModelData[Any]) -> ModelInputData:
        kept = []
        for item in data.model_data.input:
            text = str(item.get("output", ""))
            lost = seen.setdefault(text, len(seen) in play.lost)
            if play.link in WHOLE or not (lost and text.startswith("quick")):
                kept.append(item)
        return ModelInputData(kept or data.model_data.input, data.model_data.instructions)

    return cut


async def played(play: Play) -> Any:
    """The requests of a play, and of the run behind it."""
    store = SQLiteSession("one")
    async with site("Hello.", *script(play)) as here:

        def knowing(**known: Any) -> dict[str, Any]:
            provider = NormalizingModelProvider(inner=here.bare(), on_error="raise", **known)
            runs = config(provider, call_model_input_filter=losing(play))
            return {"stream": play.stream, "run_config": runs, "hooks": Hooks(provider)}

        options = knowing()
        first = await run(AGENT, "Hello", **options)
        more = await here.link(play.link, first)
        if play.link == "session":
            more = {"session": NormalizingSession(store, on_error="raise")}
        result = await run(AGENT, "Go", **options, **more)
        decisions = iter(play.approved)
        while result.interruptions:
            text = result.to_state().to_string()
            state: RunState[Any] = await RunState.from_string(AGENT, text)
            for item in state.get_interruptions():
                (state.approve if next(decisions) else state.reject)(item)
            if play.moves:
                options = knowing(ledger=ledger_from_state(state))
            result = await run(AGENT, state, **options, **more)
        words: Any = "Bye"
        if play.link == "local":
            words = [*result.to_input_list(), {"role": "user", "content": words}]
        elif play.link.endswith("response_id"):
            more = {"previous_response_id": result.last_response_id}
        result = await run(AGENT, words, **options, **more)
    store.close()
    return result, here


@given(PLAYS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,  # a slow machine is no fault
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_each_call_has_its_own_output(play: Play) -> None:
    """No request is refused, and no output is another call's, or lost, or there twice."""
    result, here = anyio.run(played, play)

    assert here.rules == [None] * len(here.rules)
    assert result.final_output == "Bye."
    calls: dict[str, deque[Any]] = defaultdict(deque)
    answered = 0
    for item in here.server.requests[-1].seen:
        if item.get("type") == "function_call":
            calls[item["call_id"]].append(item)
        elif item.get("type") == "function_call_output":
            asked = calls[item["call_id"]].popleft()
            number = asked["arguments"].split(":")[1].strip(" }")
            rejected = asked["name"] == "careful" and "not approved" in item["output"]
            assert rejected or item["output"] == f"{asked['name']} {number}"
            answered += 1
    assert answered == sum(map(len, play.turns))
    assert not any(calls.values())
