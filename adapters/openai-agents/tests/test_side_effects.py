"""What rewriting in other hooks brings about, and the provider does not."""

import json
from contextlib import suppress
from typing import Any, cast

import pytest
from agents import (
    Agent,
    ModelProvider,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    SQLiteSession,
)
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import (
    NormalizingModelProvider,
    NormalizingSession,
    input_filter,
)
from openai import BadRequestError
from play import SDK, Site, add, config, kinds, run, site

from convnorm import normalize
from convnorm.delivery import Ledger
from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio


def in_other_words(data: CallModelData[Any]) -> ModelInputData:
    """Rewrites what the user said."""
    items = [
        {**item, "content": "ADD"} if item.get("role") == "user" else item
        for item in data.model_data.input
    ]
    return ModelInputData(items, data.model_data.instructions)


def users(here: Site) -> list[int]:
    """How many messages of a user each request brings."""
    return [sum(item.get("role") == "user" for item in sent) for sent in here.inputs]


BEHIND = ["conversation_id", "auto_previous_response_id"]
SUMS = (Reply(call("add", a=1, b=2)), Reply(call("add", a=3, b=4)), "Done.")
ADDER = Agent[Any](name="adder", tools=[add])


@pytest.mark.parametrize("link", BEHIND)
@pytest.mark.parametrize("stream", [False, True])
async def test_rewriting_in_a_filter_by_the_sdk_alone(link: str, stream: bool) -> None:
    """Of a message that a filter rewrites, the SDK does not know that it was sent."""
    sums = [Reply(call("add", a=at, b=0)) for at in range(6)]
    async with site(*sums, "Done.") as here:
        runs = config(here.bare(), call_model_input_filter=in_other_words)
        await run(ADDER, "add", stream=stream, run_config=runs, **await here.link(link, None))

    again = users(here)[1:]
    assert any(again) if SDK < (0, 17, 7) else all(again)  # #3620 can hide it, now and then


FOREIGN = {"role": "user", "content": [{"type": "text", "text": "add"}]}
"""A message as Chat Completions has it."""
GONE = {"type": "function_call_output", "call_id": "call_gone", "output": "4"}
OPEN = {"type": "function_call", "call_id": "call_open", "name": "add", "arguments": "{}"}
BROKEN = [GONE, OPEN, FOREIGN]


USED_TWICE = [
    {"role": "user", "content": "1 + 2, and 3 + 4?"},
    *(
        item
        for a, b in ((1, 2), (3, 4))
        for item in (
            {**OPEN, "call_id": "call_0", "arguments": f'{{"a":{a},"b":{b}}}'},
            {**GONE, "call_id": "call_0", "output": str(a + b)},
        )
    ),
    {"role": "user", "content": "And?"},
]


@pytest.mark.parametrize("link", BEHIND)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("given", ["add", BROKEN, normalize(USED_TWICE, "openai.responses")])
async def test_no_message_is_sent_again(link: str, stream: bool, given: Any) -> None:
    """With provider and filter all is sent once to a server that holds it, repaired or not.

    A list that uses call ids twice is repaired before the run: of what the filter changes there,
    the SDK would not know either that it was sent.
    """
    async with site(*SUMS) as here:
        more = await here.link(link, None)
        ledger = Ledger()
        if link == "conversation_id":  # the provider has to know what it holds
            ledger = ledger.observed_conversation(more[link])
        provider = NormalizingModelProvider(inner=here.bare(), ledger=ledger, on_error="raise")
        runs = config(provider, call_model_input_filter=input_filter(on_error="raise"))
        await run(ADDER, given, stream=stream, run_config=runs, **more)

    assert users(here) == [1 if given == "add" else 2, 0, 0]
    assert [kinds(sent) for sent in here.inputs[1:]] == [["call_1"], ["call_2"]]
    assert here.rules == [None] * 3


class WithoutIds(SQLiteSession):  # type: ignore[misc]  # no types where mypy runs
    """Reads without ids, as who wants to send items by value may try."""

    async def get_items(self, *given: Any, **more: Any) -> list[Any]:
        items = await super().get_items(*given, **more)
        return [{key: item[key] for key in item if key != "id"} for item in items]


async def compactions(here: Site, session: Any, provider: ModelProvider) -> int:
    """How often two runs have a session compacted that is read through this provider."""
    for text in ("q1", "q2"):
        await run(Agent[Any](name="a"), text, session=session, run_config=config(provider))
    return sum(request.path.endswith("/compact") for request in here.server.requests)


def compacting(here: Site, inner: Any) -> Any:
    """The SDK's session that has the history compacted, once it has two answers."""
    return OpenAIResponsesCompactionSession(
        "one",
        inner,
        client=here.client,
        compaction_mode="input",
        should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= 2,
    )


async def test_compaction_by_the_sdk_alone() -> None:
    """Newer SDKs compact nothing that was not sent as it is stored, such as without its ids."""
    store: Any = WithoutIds("one")
    async with site("One.", "Two.") as here:
        found = await compactions(here, compacting(here, store), here.bare())
    store.close()

    assert found == (0 if SDK > (0, 20, 0) else 1)


@pytest.mark.parametrize(
    "wrapped, broken", [("nothing", False), ("session", False), ("inside", False), ("inside", True)]
)
async def test_compaction_still_runs(wrapped: str, broken: bool) -> None:
    """The session wrapped, outside or inside, compaction happens as without it.

    A broken store is wrapped inside, since the compaction session reads it for itself too.
    """
    store: Any = SQLiteSession("one")
    if broken:
        await store.add_items([GONE])
    async with site("One.", "Two.") as here:
        inner = NormalizingSession(store, on_error="raise") if wrapped == "inside" else store
        session = compacting(here, inner)
        if wrapped == "session":
            session = NormalizingSession(session, on_error="raise")
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        found = await compactions(here, session, here.bare() if wrapped == "nothing" else provider)
    store.close()

    assert found == 1
    assert set(here.rules) == {None}


def rewritten(history: list[Any], new: list[Any]) -> list[Any]:
    """A callback that gives back what is in the session, without ids."""
    return [*({key: one[key] for key in one if key != "id"} for one in history), *new]


async def test_a_callback_by_the_sdk_alone() -> None:
    """What a callback rewrites of the history is stored once more, as if it were new."""
    store, sizes = SQLiteSession("one"), []
    async with site("One.", "Two.", "Three.") as here:
        runs = config(here.bare(), session_input_callback=rewritten)
        for text in ("q1", "q2", "q3"):
            await run(Agent[Any](name="a"), text, session=store, run_config=runs)
            sizes.append(len(await store.get_items()))
    store.close()

    assert sizes == [2, 5, 9]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_callback_of_your_own_is_heard(stream: bool) -> None:
    """One that keeps the items as they are gets what the wrapped session reads, repaired."""
    store, sizes, heard = SQLiteSession("one"), [], []

    def listening(history: list[Any], new: list[Any]) -> list[Any]:
        heard.append(kinds(history))
        return history + new

    await store.add_items([GONE])
    async with site("One.", "Two.", "Three.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        runs = config(provider, session_input_callback=listening)
        session = NormalizingSession(store, on_error="raise")
        for text in ("q1", "q2", "q3"):
            await run(Agent[Any](name="a"), text, stream=stream, session=session, run_config=runs)
            sizes.append(len(await store.get_items()))
    store.close()

    assert heard[-1] == ["user", "user", "assistant", "user", "assistant"]
    assert sizes == [3, 5, 7]
    assert [len(sent) for sent in here.inputs] == [2, 4, 6]


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


async def test_default_settings_by_the_sdk_alone() -> None:
    """A model of the run's, instead of its name, has no settings of its own."""
    async with site("One.", "Two.") as here:
        bare = OpenAIResponsesModel("gpt-5", here.client)
        for model in (None, bare):
            agent = Agent[Any](name="a", model="gpt-5")
            await run(agent, "q", run_config=config(here.bare(), model=model))

    by_name, by_model = here.bodies
    assert ("text" in by_name) == (SDK >= (0, 20))  # older ones set nothing for a model by name
    assert "text" not in by_model


@pytest.mark.parametrize("stream", [False, True])
async def test_default_settings_are_kept(stream: bool) -> None:
    """A model by name keeps the settings that the SDK has for it, with the provider as without."""
    async with site("One.", "Two.") as here:
        for provider in (here.bare(), NormalizingModelProvider(inner=here.bare())):
            agent = Agent[Any](name="a", model="gpt-5")
            await run(agent, "q", stream=stream, run_config=config(provider, model=None))

    alone, wrapped = here.bodies
    assert alone == wrapped
    assert ("text" in alone) == (SDK >= (0, 20))


@pytest.mark.parametrize("name", ["used twice", "broken", "a pair twice"])
@pytest.mark.parametrize("safe", [False, True])
async def test_the_sdk_merges_nothing_behind_the_filter(name: str, safe: bool) -> None:
    """The SDK merges by call ids behind every filter; behind ours there is nothing to merge."""
    pair = USED_TWICE[1:3]
    given = {
        "used twice": USED_TWICE,
        "broken": BROKEN,
        "a pair twice": [USED_TWICE[0], *pair, *pair, USED_TWICE[-1]],
    }[name]
    ours, left = input_filter(whole=True, on_error="raise"), []

    async def listening(data: CallModelData[Any]) -> ModelInputData:
        found = await ours(data) if safe else data.model_data
        left.append(json.dumps(found.input))
        return cast("ModelInputData", found)

    async with site("Fine.") as here:
        with suppress(BadRequestError):
            runs = config(here.bare(), call_model_input_filter=listening)
            await run(Agent[Any](name="a"), given, run_config=runs)

    merged = not safe and name != "broken"
    assert ([json.dumps(sent) for sent in here.inputs] != left) == merged
    if safe and name == "used twice":
        assert [item["output"] for item in here.inputs[0] if "output" in item] == ["3", "7"]
