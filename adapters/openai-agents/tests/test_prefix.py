"""What was sent and answered is sent again as it was: providers find it in their cache."""

import json
from typing import Any

import pytest
from agents import Agent
from convnorm_openai_agents import NormalizingModelProvider
from play import config, run, site

pytestmark = pytest.mark.anyio

CALL = "call_Zk3vQ9pLw2"
QUESTION = {"role": "user", "content": "1 + 2?"}
CALLED = {"type": "function_call", "call_id": CALL, "name": "add", "arguments": '{"a":1,"b":2}'}
LATE = {"type": "function_call_output", "call_id": CALL, "output": "3"}
HISTORY = [QUESTION, CALLED, {"role": "user", "content": "and?"}]
GROWN = [*HISTORY, {"role": "assistant", "content": "Wait."}, LATE, QUESTION]


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_late_output_changes_nothing_that_was_sent(chat: bool, stream: bool) -> None:
    """An output that comes after its call was closed is told behind what was sent."""
    async with site("Wait.", "Three.") as here:
        provider = NormalizingModelProvider(inner=here.bare(chat=chat), on_error="raise")
        for given in (HISTORY, GROWN):
            runs = config(provider)
            await run(Agent[Any](name="a"), given, stream=stream, run_config=runs)

    first, second = (body["messages" if chat else "input"] for body in here.bodies)
    assert here.rules == [None, None]
    assert json.dumps(second[: len(first)]) == json.dumps(first)
    assert "3" in str(second[len(first) :])


async def test_agents_of_one_conversation_have_histories_of_their_own() -> None:
    """Another agent's request in between changes nothing."""
    writer = Agent[Any](name="writer", instructions="Write.")
    async with site("Wait.", "Written.", "Three.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        for agent, given in (
            (Agent[Any](name="a"), HISTORY),
            (writer, [{"role": "user", "content": "Write"}]),
            (Agent[Any](name="a"), GROWN),
        ):
            await run(agent, given, run_config=config(provider))

    first, _, third = here.inputs
    assert json.dumps(third[: len(first)]) == json.dumps(first)


async def test_conversations_that_look_alike_are_kept_apart() -> None:
    """Two users ask the same, and what one's tool returned is not told to the other."""
    other = "call_8sXk2Qp91Lm"
    hers = [{**item, "call_id": other} if "call_id" in item else item for item in GROWN[:3]]
    async with site("Wait.", "Three.", "Wait.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        for given in (HISTORY, GROWN, [*hers, *GROWN[3:4], QUESTION]):
            await run(Agent[Any](name="a"), given, run_config=config(provider))

    assert CALL in str(here.inputs[1])
    assert CALL not in str(here.inputs[2])
    assert here.rules == [None, None, None]


async def test_a_refused_request_was_not_sent() -> None:
    """What was never answered binds nothing: the late output stands behind its call."""
    async with site({"failure": 400, "message": "no"}, "Three.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        with pytest.raises(Exception, match="no"):
            await run(Agent[Any](name="a"), HISTORY, run_config=config(provider))
        await run(Agent[Any](name="a"), GROWN, run_config=config(provider))

    assert [item.get("output") for item in here.inputs[1] if "output" in item] == ["3"]
