"""A stream is interrupted at every event, in every way, on both stores and both event loops."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convnorm import ConflictError
from convnorm.mergers import merger_for
from convnorm.recorder import Recorder
from convnorm.stores import Commit, HistoryStore, MemoryStore, Snapshot
from convnorm.testing.strict_server import Call, Reply, call, reasoning, text
from next_request import NEXT, calls, next_violations
from streams import STREAMS, Stream

pytestmark = pytest.mark.anyio

REPLY = Reply(
    reasoning("Both of them."),
    "Let me look.",
    call("weather", city="Oslo"),
    call("weather", city="Rome"),
)
BEFORE = ({"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"})
ASKED = {"role": "user", "content": "weather?"}
Events = list[Any]


class ProducerError(Exception):
    """The wire is cut."""


class ConsumerError(Exception):
    """The code that reads the stream fails."""


async def produced(events: Events, fails_at: int | None = None) -> AsyncIterator[Any]:
    for at, event in enumerate([*events, None]):
        if at == fails_at:
            raise ProducerError
        if event is not None:
            await anyio.lowlevel.checkpoint()
            yield event


Way = Callable[[Any, Events, int], Awaitable[None]]
"""Reads the updates of a recording that is made of the events, and is stopped at one of them."""


async def leaves(record: Any, events: Events, stop: int) -> None:
    """The consumer breaks out of the loop."""
    async with record(produced(events)) as updates:
        for _ in range(stop):
            await anext(updates)


async def fails(record: Any, events: Events, stop: int) -> None:
    """The consumer raises."""
    with suppress(ConsumerError):
        async with record(produced(events)) as updates:
            for _ in range(stop):
                await anext(updates)
            raise ConsumerError


async def is_cut(record: Any, events: Events, stop: int) -> None:
    """The producer raises."""
    with suppress(ProducerError):
        async with record(produced(events, fails_at=stop)) as updates:
            async for _ in updates:
                pass


async def stops(record: Any, events: Events, stop: int) -> None:
    """The stream ends without a word, as when a proxy closes it."""
    async with record(produced(events[:stop])) as updates:
        async for _ in updates:
            pass


async def is_cancelled(record: Any, events: Events, stop: int) -> None:
    """The consumer is cancelled while it waits for an event."""
    with anyio.CancelScope() as scope:
        async with record(produced(events)) as updates:
            for _ in range(stop):
                await anext(updates)
            scope.cancel()
            await anyio.lowlevel.checkpoint()


async def is_cancelled_and_leaves(record: Any, events: Events, stop: int) -> None:
    """The consumer is cancelled and leaves before it notices: only `finish` waits for anything."""
    with anyio.CancelScope() as scope:
        async with record(produced(events)) as updates:
            for _ in range(stop):
                await anext(updates)
            scope.cancel()


async def times_out(record: Any, events: Events, stop: int) -> None:
    """A timeout around the recording runs out."""
    with suppress(TimeoutError), anyio.fail_after(60) as scope:
        async with record(produced(events)) as updates:
            for _ in range(stop):
                await anext(updates)
            scope.deadline = anyio.current_time()
            await anyio.sleep_forever()


async def is_closed(record: Any, events: Events, stop: int) -> None:
    """The consumer is a generator, and its own consumer closes it."""

    async def passed_on() -> AsyncIterator[Any]:
        async with record(produced(events)) as updates:
            async for update in updates:
                yield update

    consumer: Any = passed_on()
    for _ in range(stop):
        await anext(consumer)
    await consumer.aclose()


WAYS: tuple[Way, ...] = (
    *(leaves, fails, is_cut, stops),
    *(is_cancelled, is_cancelled_and_leaves, times_out),
)

# ---------------------------------------------------------------- what must be true afterwards

FINISHED = {
    "openai.chat": lambda e: any(one.get("finish_reason") for one in e["choices"]),
    "openai.responses": lambda e: e["type"] == "response.completed",
    "anthropic.messages": lambda e: e["type"] == "message_delta",
}
SAID = {
    "openai.chat": lambda e: "".join(one["delta"].get("content") or "" for one in e["choices"]),
    "openai.responses": lambda e: e["delta"] if e["type"] == "response.output_text.delta" else "",
    "anthropic.messages": lambda e: e.get("delta", {}).get("text", ""),
}
"""By target: whether an event ends the answer, and the text in it. The test's own reading."""


def texts(items: tuple[Any, ...]) -> str:
    """All text of these elements, in whatever format."""
    return "".join(
        each if isinstance(each, str) else str(each.get("text", ""))
        for item in items
        for each in item.get("content") or ()
    )


@cache
def scripted(target: str) -> Stream:
    return STREAMS[target](REPLY)


async def begun(store: HistoryStore, session: str) -> Snapshot:
    await store.commit(session, Commit(items=BEFORE), expected_version=0)
    return await store.load(session)


async def stored_once(store: HistoryStore, before: Snapshot, after: Snapshot) -> None:
    """Whoever goes on from his bookmark gets what is new, and nothing a second time."""
    new = await store.deliver_since(before.session, before.bookmark)
    again = await store.deliver_since(before.session, new.bookmark)
    assert ((*before.items, *new.items), ()) == (after.items, again.items)
    assert len(after.items) == after.bookmark == new.bookmark == again.bookmark


async def interrupted(
    store: HistoryStore, way: Way, target: str, stream: Stream, stop: int, *, name: str
) -> None:
    """One stream, stopped at one event: everything that must be true of what is left."""
    whole, events = stream
    before = await begun(store, name)
    recorder = Recorder(store)
    recordings: list[Any] = []

    def record(source: Any) -> Any:
        recordings.append(
            recorder(source, before, input=[ASKED], checkpoint={"step": "asked", "n": stop})
        )
        return recordings[0]

    await way(record, events, stop)
    after = await store.load(name)

    came = events[:stop]
    answer = after.items[len(BEFORE) + 1 :]
    assert (*BEFORE, ASKED) == after.items[: len(BEFORE) + 1]
    assert (None, {"step": "asked", "n": stop}, 3) == (after.turn, after.checkpoint, after.version)
    await stored_once(store, before, after)
    assert "".join(map(SAID[target], came)) == texts(answer)
    all_calls = calls(whole_items(whole))
    assert calls(answer) == all_calls[: len(calls(answer))]
    ended_early = not any(map(FINISHED[target], came))
    assert ended_early == any(note.kind == "turn" for note in after.notes)
    # A message of Responses says itself whether it is whole; elsewhere it is all of the answer.
    marks = [one.get("status", "incomplete") for one in answer if ended_early and "role" in one]
    assert marks.count("incomplete") == len(after.incomplete)
    assert all("role" in after.items[at] for at in after.incomplete)
    if not ended_early:
        assert json.dumps(whole_items(whole)) == json.dumps(answer)
    assert [] == next_violations(target, after.items)


def whole_items(whole: Any) -> tuple[Any, ...]:
    """What is stored of the response that is not streamed."""
    merger = merger_for(whole)
    merger.add(whole)
    return merger.answer(over=True).items


@pytest.mark.parametrize("way", [*WAYS, is_closed], ids=lambda way: way.__name__)
@pytest.mark.parametrize("target", STREAMS)
async def test_every_event_and_every_way(store: HistoryStore, target: str, way: Way) -> None:
    """Whatever ends a stream, and wherever: input and answer are stored once, and can be sent."""
    stream = scripted(target)
    first = 1 if way is is_closed else 0  # a generator that gave nothing yet has not begun
    for stop in range(first, len(stream[1]) + 1):
        await interrupted(store, way, target, stream, stop, name=f"session {stop}")


ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"city": "Oslo"},
    {"deep": {"list": [1, {"a": "}"}]}, "n": 1.5},
)
parts: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["Let me look.", "one  two\n", "\ud83d\ude00", "x"]).map(text),
    st.sampled_from(["Both of them.", ""]).map(reasoning),
    st.sampled_from(ARGUMENTS).map(lambda arguments: call("weather", arguments)),
)
replies = st.lists(parts, max_size=3)


@pytest.mark.parametrize("target", STREAMS)
@settings(max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 2)
@given(said=replies, way=st.sampled_from(WAYS), stop=st.integers(0, 40))
async def test_any_reply(target: str, said: list[Any], way: Way, stop: int) -> None:
    """The same for replies of any kind and order."""
    listed = [*said, text("That is all.")]
    if target == "anthropic.messages":  # its model never thinks last, and speaks before it calls
        listed.sort(key=lambda part: isinstance(part, Call))
    stream = STREAMS[target](Reply(*listed))
    stop = min(stop, len(stream[1]))
    await interrupted(MemoryStore(), way, target, stream, stop, name="any")


@pytest.mark.parametrize("stop", [0, 3])
@pytest.mark.parametrize("target", STREAMS)
async def test_a_bare_break(store: HistoryStore, target: str, stop: int) -> None:
    """Without a block nothing ends the turn: the input holds, and the next turn closes this one."""
    before = await begun(store, "bare")
    held = aiter(Recorder(store)(produced(scripted(target)[1]), before, input=[ASKED]))
    if stop:
        async for _ in held:
            stop -= 1
            if not stop:
                break
    else:
        await anext(held)
    after = await store.load("bare")

    assert after.turn is not None
    assert ((*BEFORE, ASKED), len(BEFORE)) == (after.items, after.turn.at)
    await stored_once(store, before, after)
    assert [] == next_violations(target, after.items)
    again = {"role": "user", "content": "again"}
    async with Recorder(store)(produced(scripted(target)[1]), after, input=[again]) as updates:
        async for _ in updates:
            pass
    last = await store.load("bare")
    assert None is last.turn
    assert [("turn", 3)] == [(note.kind, note.at) for note in last.notes]
    await stored_once(store, before, last)
    with pytest.raises(ConflictError, match="nothing was stored"):
        async for _ in held:  # whoever goes on with the old stream finds the session taken
            pass
    assert last == await store.load("bare")


@pytest.mark.parametrize("target", STREAMS)
async def test_a_bare_loop_to_the_end(store: HistoryStore, target: str) -> None:
    """A stream that comes to its end, or fails, is stored without a block too."""
    whole, events = scripted(target)
    before = await begun(store, "bare")
    async for _ in Recorder(store)(produced(events), before, input=[ASKED]):
        pass
    after = await store.load("bare")
    assert (None, (*BEFORE, ASKED, *whole_items(whole))) == (after.turn, after.items)

    with pytest.raises(ProducerError):
        async for _ in Recorder(store)(produced(events, fails_at=4), after, input=[NEXT]):
            pass
    last = await store.load("bare")
    assert (None, ["turn"]) == (
        last.turn,
        [note.kind for note in last.notes if note.kind == "turn"],
    )
    await stored_once(store, before, last)


async def cancelled(task: asyncio.Task[None]) -> None:
    """Wait until a task has been cancelled; one that goes on fails the test."""
    done, _ = await asyncio.wait([task], timeout=60)
    assert ({task}, True) == (done, task.cancelled())


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("when", ["while it streams", "while it begins"])
async def test_a_task_that_is_cancelled_again_and_again(store: HistoryStore, when: str) -> None:
    """asyncio's own cancellation gets through a shield; the turn is stored once all the same."""
    events = scripted("openai.chat")[1]
    for patience in range(1, 12):
        name = f"storm {patience}"
        before = await begun(store, name)
        streaming = asyncio.Event()

        async def turn(before: Snapshot = before, streaming: asyncio.Event = streaming) -> None:
            async with Recorder(store)(produced(events), before, input=[ASKED]) as updates:
                for _ in range(6):
                    await anext(updates)
                streaming.set()
                await anyio.sleep_forever()

        task = asyncio.create_task(turn())
        if when == "while it streams":
            await streaming.wait()
        else:
            await asyncio.sleep(0)
        for _ in range(20):
            task.cancel()
            for _ in range(patience):
                await asyncio.sleep(0)
        await cancelled(task)
        after = await store.load(name)
        if after.version == 1:
            assert when == "while it begins"  # cancelled before it had begun
            continue
        assert (3, None, (*BEFORE, ASKED)) == (after.version, after.turn, after.items[:3])
        await stored_once(store, before, after)


class CancelledStore(MemoryStore):
    """A store whose own tasks are gone: it says that the caller was cancelled, again and again."""

    is_gone = False

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """Only as long as the tasks are there."""
        await anyio.lowlevel.checkpoint()
        if self.is_gone:
            raise asyncio.CancelledError
        await super().commit(session, change, expected_version=expected_version)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_commit_that_is_always_cancelled() -> None:
    """It is given up some time: the turn stays open, and the block is left."""
    store = CancelledStore()
    before = await begun(store, "s")

    async def turn() -> None:
        async with Recorder(store)(produced([BEFORE[1]]), before, input=[ASKED]):
            store.is_gone = True

    task = asyncio.create_task(turn())
    try:
        await cancelled(task)
    finally:
        store.is_gone = False  # else a task that does not give up would never end
    after = await store.load("s")
    assert ((*BEFORE, ASKED), len(BEFORE)) == (after.items, after.turn and after.turn.at)


class LateStore(MemoryStore):
    """A store over a slow wire: a commit that is cancelled on this side still arrives, later."""

    def __init__(self) -> None:
        super().__init__()
        self.is_late = False
        self.looked_at = asyncio.Event()
        self.sent = asyncio.Event()

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """Once: send it off and wait for ever."""
        arrives = super().commit(session, change, expected_version=expected_version)
        if not self.is_late:
            return await arrives
        self.is_late = False

        async def later() -> None:
            await self.looked_at.wait()
            await arrives

        self.arrival = asyncio.create_task(later())
        self.sent.set()
        return await anyio.sleep_forever()

    async def load(self, session: str) -> Snapshot:
        """As it was before the commit arrives, which it does right afterwards."""
        found = await super().load(session)
        self.looked_at.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return found


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_commit_that_arrives_late() -> None:
    """It arrives between a look and the second try: the turn is stored once, and that is seen."""
    store = LateStore()
    before = await begun(store, "late")
    store.looked_at.clear()

    async def turn() -> None:
        async with Recorder(store)(produced([BEFORE[1]]), before, input=[ASKED]) as updates:
            async for _ in updates:
                pass
            store.is_late = True

    task = asyncio.create_task(turn())
    await store.sent.wait()
    task.cancel()
    await cancelled(task)
    after = await store.load("late")

    assert ((*BEFORE, ASKED, BEFORE[1]), None) == (after.items, after.turn)
