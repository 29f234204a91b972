"""What rewriting in other hooks brings about, and the provider does not."""

from typing import Any

import pytest
from agents import Agent, OpenAIResponsesCompactionSession, SQLiteSession
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import (
    NormalizingModelProvider,
    NormalizingSession,
    input_filter,
)
from play import SDK, add, config, run, site

from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio


def in_other_words(data: CallModelData[Any]) -> ModelInputData:
    """Rewrites what the user said."""
    items = [
        {**item, "content": "ADD"} if item.get("role") == "user" else item
        for item in data.model_data.input
    ]
    return ModelInputData(items, data.model_data.instructions)


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id"])
async def test_rewriting_in_a_filter_by_the_sdk_alone(link: str) -> None:
    """Of a message that a filter rewrites, the SDK does not know that it was sent."""
    agent = Agent[Any](name="adder", tools=[add])
    async with site(Reply(call("add", a=1, b=2)), Reply(call("add", a=3, b=4)), "Done.") as here:
        runs = config(here.bare(), call_model_input_filter=in_other_words)
        await run(agent, "add", run_config=runs, **await here.link(link, None))

    users = [sum(item.get("role") == "user" for item in sent) for sent in here.inputs]
    assert users[:2] == [1, 1]


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id"])
async def test_no_message_is_sent_again(link: str) -> None:
    """With provider and filter, the user's message is sent once to a server that holds it."""
    agent = Agent[Any](name="adder", tools=[add])
    async with site(Reply(call("add", a=1, b=2)), Reply(call("add", a=3, b=4)), "Done.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        runs = config(provider, call_model_input_filter=input_filter(on_error="raise"))
        await run(agent, "add", run_config=runs, **await here.link(link, None))

    users = [sum(item.get("role") == "user" for item in sent) for sent in here.inputs]
    assert users == [1, 0, 0]
    assert here.rules == [None] * 3


@pytest.mark.parametrize("wrapped", ["nothing", "session", "inside"])
async def test_compaction_still_runs(wrapped: str) -> None:
    """The session wrapped, outside or inside, compaction happens as without it."""
    store: Any = SQLiteSession("one")
    async with site("One.", "Two.") as here:
        inner = NormalizingSession(store, on_error="raise") if wrapped == "inside" else store
        session: Any = OpenAIResponsesCompactionSession(
            "one",
            inner,
            client=here.client,
            compaction_mode="input",
            should_trigger_compaction=lambda context: (
                len(context["compaction_candidate_items"]) >= 2
            ),
        )
        if wrapped == "session":
            session = NormalizingSession(session, on_error="raise")
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        for text in ("q1", "q2"):
            await run(
                Agent[Any](name="a"),
                text,
                session=session,
                run_config=config(here.bare() if wrapped == "nothing" else provider),
            )
    store.close()

    compactions = [one for one in here.server.requests if one.path.endswith("/compact")]
    assert len(compactions) == 1


async def test_history_is_not_stored_again() -> None:
    """Three runs over a session that is read repaired leave what three runs alone leave."""
    store = SQLiteSession("one")
    orphan = {"type": "function_call_output", "call_id": "call_gone", "output": "4"}
    await store.add_items([orphan])
    sizes = []
    async with site("One.", "Two.", "Three.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        for text in ("q1", "q2", "q3"):
            await run(
                Agent[Any](name="a"),
                text,
                session=NormalizingSession(store, on_error="raise"),
                run_config=config(provider),
            )
            sizes.append(len(await store.get_items()))
    store.close()

    assert sizes == [3, 5, 7]
    assert [len(sent) for sent in here.inputs] == [2, 4, 6]


async def test_default_settings_are_kept() -> None:
    """A model by name keeps the settings that the SDK has for it, with the provider as without."""
    async with site("One.", "Two.") as here:
        for provider in (here.bare(), NormalizingModelProvider(inner=here.bare())):
            agent = Agent[Any](name="a", model="gpt-5")
            await run(agent, "q", run_config=config(provider, model=None))

    alone, wrapped = here.bodies
    assert alone == wrapped
    assert ("text" in alone) == (SDK >= (0, 20))  # older ones set nothing for a model by name
