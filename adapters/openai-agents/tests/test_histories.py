"""Broken histories that the SDK sends as they are, as lists and as sessions."""

from contextlib import suppress
from typing import Any, cast

import pytest
from agents import Agent, OpenAIConversationsSession, SQLiteSession
from agents.memory import SessionSettings
from convnorm_openai_agents import (
    NormalizingConversationsSession,
    NormalizingModelProvider,
    NormalizingSession,
    input_filter,
)
from openai import BadRequestError
from play import SDK, Site, config, run, site

pytestmark = pytest.mark.anyio

USER = {"role": "user", "content": "q1"}
CALL = {
    "type": "function_call",
    "id": "fc_71",
    "call_id": "call_1",
    "name": "add",
    "arguments": '{"a":1,"b":2}',
    "status": "completed",
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
OTHER_CALL = {**CALL, "id": "fc_72", "arguments": '{"a":3,"b":4}'}
OTHER_OUTPUT = {**OUTPUT, "output": "7"}
REASONING = {"type": "reasoning", "id": "rs_71", "summary": [], "encrypted_content": "gAAAAA"}


def said(text: str, own: str = "msg_71") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": own,
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


HISTORIES: dict[str, tuple[list[dict[str, Any]], str, str | None]] = {
    # name: the history, the refusal as a list, the refusal as a session (None: the SDK repairs it)
    "orphan call": ([USER, CALL], "resp-call-output-missing", None),
    "orphan output": ([USER, OUTPUT], "resp-output-without-call", "resp-output-without-call"),
    # What 0.22.0 to 0.23.1 left of an approved call; the session is refused ever after (#4827).
    "approval": ([USER, OUTPUT, said("3")], "resp-output-without-call", "resp-output-without-call"),
    "output first": (
        [USER, OUTPUT, CALL, said("3")],
        "resp-output-without-call",
        "resp-output-without-call",
    ),
    "message id twice": (
        [USER, said("a"), {"role": "user", "content": "q2"}, said("b")],
        "resp-duplicate-item-id",
        "resp-duplicate-item-id",
    ),
    "dangling reasoning": (
        [USER, REASONING],
        "resp-reasoning-without-following",
        "resp-reasoning-without-following",
    ),
    "wrong id prefix": (
        [USER, {**CALL, "id": "call_1"}, OUTPUT, said("3")],
        "resp-id-prefix",
        "resp-id-prefix",
    ),
}
AGENT = Agent[Any](name="adder", model="gpt-5.1")
NEW = {"role": "user", "content": "and now?"}


async def stored(items: list[dict[str, Any]]) -> SQLiteSession:
    session = SQLiteSession("one")
    await session.add_items([dict(item) for item in items])
    return session


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_list_by_the_sdk_alone(name: str) -> None:
    """The SDK repairs nothing of a list that it is given."""
    history, rule, _ = HISTORIES[name]
    async with site("Fine.") as here:
        with pytest.raises(BadRequestError):
            await run(AGENT, [*history, NEW], run_config=config(here.bare(), model=None))

    assert here.rules == [rule]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_list_with_convnorm(name: str, stream: bool) -> None:
    """The same list is accepted, and what it says is still there."""
    history, _, _ = HISTORIES[name]
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        runs = config(provider, model=None)
        done = await run(AGENT, [*history, NEW], stream=stream, run_config=runs)

    assert here.rules == [None]
    assert done.final_output == "Fine."
    texts = str(here.inputs[0])
    assert all(str(item["output"]) in texts for item in history if "output" in item)


BEHIND = ("previous_response_id", "conversation_id", "auto_previous_response_id")


async def goes_on(here: Site, link: str, given: Any, **options: Any) -> None:
    """A run, and the next one behind it."""
    more = await here.link(link, None) if link != "previous_response_id" else {}
    first = await run(AGENT, "Hello", **options, **more)
    if link != "conversation_id":
        more = {"previous_response_id": first.last_response_id}
    await run(AGENT, given, **options, **more)


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("link", BEHIND)
async def test_a_list_behind_a_link_by_the_sdk_alone(name: str, link: str) -> None:
    """Behind a link the SDK repairs nothing either."""
    history, rule, _ = HISTORIES[name]
    async with site("Hello.", "Fine.") as here:
        with pytest.raises(BadRequestError):
            await goes_on(here, link, [*history, NEW], run_config=config(here.bare(), model=None))

    assert here.rules == [None, rule]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("link", BEHIND)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_list_behind_a_link_with_convnorm(name: str, link: str, stream: bool) -> None:
    """Behind a link that the provider saw, the same list is accepted, and nothing of it is lost."""
    history, _, _ = HISTORIES[name]
    async with site("Hello.", "Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options = {"stream": stream, "run_config": config(provider, model=None)}
        await goes_on(here, link, [*history, NEW], **options)

    assert here.rules == [None, None]
    texts = str(here.inputs[1])
    assert all(str(item["output"]) in texts for item in history if "output" in item)
    assert here.server.requests[-1].seen[0] == {"role": "user", "content": "Hello"}


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_session_by_the_sdk_alone(name: str) -> None:
    """Of a session the SDK drops calls without outputs, and repairs nothing else."""
    history, _, rule = HISTORIES[name]
    session = await stored(history)
    async with site("Fine.") as here:
        with suppress(BadRequestError):
            await run(
                AGENT, "and now?", session=session, run_config=config(here.bare(), model=None)
            )
    session.close()

    assert here.rules == [rule]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_session_with_convnorm(name: str, stream: bool) -> None:
    """With the provider and the session wrapped, every stored history is accepted, twice."""
    history, _, _ = HISTORIES[name]
    session = await stored(history)
    async with site("Fine.", "Good.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options = {
            "session": NormalizingSession(session, on_error="raise"),
            "stream": stream,
            "run_config": config(provider, model=None),
        }
        await run(AGENT, "and now?", **options)
        await run(AGENT, "and then?", **options)
    held = await session.get_items()
    session.close()

    assert here.rules == [None, None]
    assert held[: len(history)] == history
    assert len(held) == len(history) + 4


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("callback", [None, lambda history, new: history + new])
async def test_a_limit_that_cuts_a_pair(stream: bool, safe: bool, callback: Any) -> None:
    """Where only the end of a session is read, the output of a call that is cut off is quoted.

    The SDK drops it, from 0.20 on, and with a callback it leaves it: then the request is refused.
    """
    store = await stored([USER, CALL, OUTPUT, said("3")])
    async with site("Fine.") as here:
        runs = config(
            NormalizingModelProvider(inner=here.bare(), on_error="raise") if safe else here.bare(),
            session_settings=SessionSettings(limit=2),
            session_input_callback=callback,
            model=None,
        )
        session = NormalizingSession(store, on_error="raise") if safe else store
        with suppress(BadRequestError):
            await run(AGENT, "and now?", stream=stream, session=session, run_config=runs)
    store.close()

    broken = not safe and (SDK < (0, 20) or callback is not None)
    assert here.rules == ["resp-output-without-call" if broken else None]
    if safe:
        quoted, *rest = here.inputs[0]
        assert (quoted["role"], [item["role"] for item in rest]) == ("user", ["assistant", "user"])
        assert "call_1" in str(quoted["content"])


REUSED = [
    *(USER, CALL, OUTPUT, said("3")),
    *({"role": "user", "content": "q2"}, OTHER_CALL, OTHER_OUTPUT, said("7", "msg_72")),
]


async def test_a_reused_call_id_by_the_sdk_alone() -> None:
    """Of two calls with one id the SDK sends one, or both with one output."""
    async with site("Fine.") as here:
        with suppress(BadRequestError):
            await run(AGENT, [*REUSED, NEW], run_config=config(here.bare(), model=None))

    outputs = [item["output"] for item in here.inputs[0] if "output" in item]
    assert outputs == ["7"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reused_call_id_with_convnorm(stream: bool) -> None:
    """A session that is read repaired gives the second call an id of its own: both are sent."""
    session = await stored(REUSED)
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        await run(
            AGENT,
            "and now?",
            session=NormalizingSession(session, on_error="raise"),
            stream=stream,
            run_config=config(provider, model=None),
        )
    session.close()

    sent = [item for item in here.inputs[0] if "call_id" in item]
    assert here.rules == [None]
    assert [item.get("arguments") or item["output"] for item in sent] == [
        CALL["arguments"],
        "3",
        OTHER_CALL["arguments"],
        "7",
    ]
    assert len({item["call_id"] for item in sent}) == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reused_call_id_in_a_list(stream: bool) -> None:
    """In a list it is the filter that comes before the SDK merges by call ids."""
    async with site("Fine.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        once = input_filter(on_error="raise")
        runs = config(provider, model=None, call_model_input_filter=once)
        await run(AGENT, [*REUSED, NEW], stream=stream, run_config=runs)

    assert here.rules == [None]
    outputs = [item["output"] for item in here.inputs[0] if "output" in item]
    assert outputs == ["3", "7"]


@pytest.mark.parametrize("safe", [False, True])
async def test_a_conversations_session(safe: bool) -> None:
    """A session in OpenAI's Conversations is read repaired, too."""
    async with site("Fine.") as here:
        held = await here.client.conversations.create(items=cast("Any", [USER, OUTPUT]))
        where: dict[str, Any] = {"conversation_id": held.id, "openai_client": here.client}
        session = (
            NormalizingConversationsSession(on_error="raise", **where)
            if safe
            else OpenAIConversationsSession(**where)
        )
        with suppress(BadRequestError):
            runs = config(here.bare(), model=None)
            await run(AGENT, "and now?", session=session, run_config=runs)

    assert here.rules == [None if safe else "resp-output-without-call"]


@pytest.mark.parametrize("safe", [False, True])
async def test_the_last_item_of_a_conversations_session_is_taken_away(safe: bool) -> None:
    """What is read in other words is still found and deleted by what it is."""
    kind = NormalizingConversationsSession if safe else OpenAIConversationsSession
    async with site() as here:
        held = await here.client.conversations.create(items=cast("Any", [USER, OUTPUT]))
        session = kind(conversation_id=held.id, openai_client=here.client)
        before = await session.get_items()
        popped = await session.pop_item()
        after = await session.get_items()

    assert [kind_of(item) for item in before] == ["message", "message" if safe else popped["type"]]
    assert (popped["type"], popped["call_id"]) == ("function_call_output", "call_1")
    assert [kind_of(item) for item in after] == ["message"]


def kind_of(item: Any) -> str:
    return str(item.get("type") or "message")


async def test_what_cannot_be_wrapped_says_so() -> None:
    """The SDK treats a Conversations session by its class: wrapping it would change that."""
    async with site() as here:
        session = OpenAIConversationsSession(openai_client=here.client)
        with pytest.raises(TypeError, match="use NormalizingConversationsSession"):
            NormalizingSession(session)


async def test_the_session_keeps_its_context() -> None:
    """The SDK's context reaches an inner session that takes it, and no other."""
    heard = []

    class Own(SQLiteSession):  # type: ignore[misc]  # no types where mypy runs
        async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
            heard.append(wrapper)
            return await super().get_items(limit)  # type: ignore[no-any-return]  # no types where mypy runs

        async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
            await super().add_items(items)

        async def pop_item(self, *, wrapper: Any = None) -> Any:
            return await super().pop_item()

        async def clear_session(self, *, wrapper: Any = None) -> None:
            await super().clear_session()

    for kind in (Own, SQLiteSession):
        inner = kind("one")
        session = NormalizingSession(inner, on_error="raise")
        await session.add_items([NEW], wrapper="context")
        assert await session.get_items(5, wrapper="context") == [NEW]
        assert await session.pop_item(wrapper="context") == NEW
        await session.clear_session(wrapper="context")
        inner.close()

    assert heard == ["context"]
