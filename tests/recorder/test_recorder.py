"""What a recording takes, hands on and stores."""

import asyncio
import gc
import inspect
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest
import trio

from convnorm import ConflictError, DialectError, PolicyError, StoreError
from convnorm.delivery import Ledger
from convnorm.mergers import MERGERS, Answer
from convnorm.recorder import Recorder, Recording, Updates
from convnorm.stores import Commit, HistoryStore, MemoryStore, SqliteStore
from convnorm.testing.strict_server import Reply, call, reasoning
from streams import STREAMS

pytestmark = pytest.mark.anyio

ASKED = {"role": "user", "content": "weather?"}
SAID = {"role": "assistant", "content": "It rains."}
WHOLE, EVENTS = STREAMS["openai.chat"](Reply("It rains."))
ANSWER = Answer(items=(SAID,), usage=WHOLE["usage"], response_id="chatcmpl-1")


async def stream(*updates: Any) -> AsyncIterator[Any]:
    for update in updates:
        await anyio.lowlevel.checkpoint()
        yield update


class ConsumerError(Exception):
    """The code that reads the stream fails."""


async def read(recording: Recording) -> Updates:
    """Read a stream to its end, in a block."""
    async with recording as updates:
        async for _ in updates:
            pass
    return updates


class Manager:
    """What the clients give for a stream: a context manager around it."""

    def __init__(self, *updates: Any) -> None:
        self.updates, self.seen = updates, list[str]()

    async def __aenter__(self) -> AsyncIterator[Any]:
        self.seen.append("entered")
        self.stream: Any = stream(*self.updates)
        return self.stream

    async def __aexit__(self, *error: object) -> None:
        self.seen.append("left")
        await self.stream.aclose()


async def asked(made: Any) -> Any:
    """A call, as an asynchronous client makes it."""
    await anyio.lowlevel.checkpoint()
    return made


SOURCES: dict[str, Any] = {
    "a stream": lambda: stream(*EVENTS),
    "a call of a stream": lambda: asked(stream(*EVENTS)),
    "a function that calls": lambda: lambda: asked(stream(*EVENTS)),
    "a context manager": lambda: Manager(*EVENTS),
    "a call that is not streamed": lambda: asked(WHOLE),
    "a whole response": lambda: WHOLE,
}


@pytest.mark.parametrize("source", SOURCES)
async def test_every_source_leaves_the_same(store: HistoryStore, source: str) -> None:
    """Streamed or not, made already or not: the same history, and the same report."""
    async with Recorder(store)(SOURCES[source](), await store.load("s"), input=[ASKED]) as updates:
        async for _ in updates:
            pass
    after = await store.load("s")

    assert ((ASKED, SAID), (), None) == (after.items, after.notes, after.turn)
    assert updates.snapshot == after
    assert updates.report is not None
    assert ("complete", ANSWER, True) == (
        updates.report.ended,
        updates.report.answer,
        updates.report.stored,
    )


async def test_a_context_manager_is_left_after_the_answer_is_stored() -> None:
    """A connection that closes slowly, or badly, endangers nothing."""
    store, manager = MemoryStore(), Manager(*EVENTS)
    async with Recorder(store)(manager, await store.load("s")) as updates:
        await anext(updates)
        assert ["entered"] == manager.seen
    assert ["entered", "left"] == manager.seen


async def test_updates_are_handed_on_one_by_one() -> None:
    """No update waits for the next: the consumer has each before the producer makes another."""
    store, log = MemoryStore(), list[tuple[str, int]]()

    async def talking() -> AsyncIterator[Any]:
        for at, event in enumerate(EVENTS):
            log.append(("made", at))
            yield event

    async with Recorder(store)(talking(), await store.load("s")) as updates:
        at = 0
        async for update in updates:
            assert update is EVENTS[at]
            log.append(("read", at))
            at += 1
    assert log == [(word, at) for at in range(len(EVENTS)) for word in ("made", "read")]


@pytest.mark.parametrize(
    "emit, handed_on",
    [("updates", EVENTS), ("final", [ANSWER]), ("both", [*EVENTS, ANSWER])],
)
async def test_emit(store: HistoryStore, emit: Any, handed_on: list[Any]) -> None:
    """What the consumer gets is a setting of its own; what is stored does not depend on it."""
    recorder = Recorder(store, emit=emit)
    async with recorder(stream(*EVENTS), await store.load("s"), input=[ASKED]) as updates:
        assert handed_on == [one async for one in updates]
    assert handed_on == [one async for one in recorder(stream(*EVENTS), await store.load("bare"))]

    assert (ASKED, SAID) == (await store.load("s")).items
    assert (SAID,) == (await store.load("bare")).items


async def test_the_input_is_stored_before_the_call_is_made(store: HistoryStore) -> None:
    """When the model is asked, the question cannot be lost any more."""
    seen = []

    async def called() -> Any:
        seen.append(await store.load("s"))
        return WHOLE

    async with Recorder(store)(called, await store.load("s"), input=[ASKED]) as updates:
        await anext(updates)

    assert [((ASKED,), 0)] == [(found.items, found.turn and found.turn.at) for found in seen]


async def test_a_call_that_fails_ends_the_turn(store: HistoryStore) -> None:
    """A refused request leaves the question and a note."""

    async def refused() -> Any:
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        async with Recorder(store)(refused(), await store.load("s"), input=[ASKED]):
            pass
    after = await store.load("s")

    assert ((ASKED,), None) == (after.items, after.turn)
    assert ["the answer is not whole: the stream failed"] == [note.why for note in after.notes]


@pytest.mark.parametrize("streamed", [True, False])
async def test_cancelled_while_the_call_is_made(store: HistoryStore, streamed: bool) -> None:
    """The question is kept, and the turn is closed."""
    with anyio.CancelScope() as scope:

        async def called() -> Any:
            scope.cancel()
            await anyio.sleep_forever()
            return stream(*EVENTS) if streamed else WHOLE

        async with Recorder(store)(called(), await store.load("s"), input=[ASKED]):
            pass
    after = await store.load("s")

    assert scope.cancelled_caught
    assert ((ASKED,), None) == (after.items, after.turn)
    assert ["the answer is not whole: the consumer was cancelled"] == [n.why for n in after.notes]


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.parametrize("fails", [True, False])
async def test_cancelled_in_a_nursery(store: HistoryStore, fails: bool) -> None:
    """A group of cancellations is one; a group with an error in it is a failure."""
    with suppress(ExceptionGroup), trio.CancelScope() as scope:
        async with Recorder(store)(stream(*EVENTS), await store.load("s")) as updates:
            await anext(updates)
            async with trio.open_nursery(strict_exception_groups=True) as nursery:
                nursery.start_soon(trio.sleep_forever)
                scope.cancel()
                if fails:
                    raise ConsumerError
                await trio.sleep_forever()
    assert updates.report is not None
    assert ("consumer failed" if fails else "cancelled") == updates.report.ended


async def test_cancelled_before_it_begins(store: HistoryStore) -> None:
    """Then nothing is stored, and no call is made."""
    start = await store.load("s")
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with Recorder(store)(asked(WHOLE), start, input=[ASKED]):
            pass
    assert scope.cancelled_caught
    assert start == await store.load("s")
    gc.collect()  # the call that was never made does not complain


async def test_a_failed_stream_is_not_at_its_end(store: HistoryStore) -> None:
    """Whoever catches the error and reads on finds nothing more; the answer is not whole."""

    async def fails() -> AsyncIterator[Any]:
        yield SAID
        raise OSError("cut")

    async with Recorder(store)(fails(), await store.load("s"), input=[ASKED]) as updates:
        await anext(updates)
        with pytest.raises(OSError, match="cut"):
            await anext(updates)
        assert [] == [one async for one in updates]

    assert updates.report is not None
    assert ("producer failed", False) == (updates.report.ended, updates.report.answer.complete)
    assert (ASKED, SAID) == (await store.load("s")).items


class Patient:
    """A stream that is still there after a wait that was cancelled."""

    def __init__(self, slow_at: int) -> None:
        self.updates: list[Any] = [*EVENTS]
        self.updates.insert(slow_at, None)

    def __aiter__(self) -> "Patient":
        return self

    async def __anext__(self) -> Any:
        if not self.updates:
            raise StopAsyncIteration
        if (update := self.updates.pop(0)) is None:
            await anyio.sleep_forever()
        return update


async def sleepy(slow_at: int) -> AsyncIterator[Any]:
    """A stream that is over once a wait was cancelled."""
    async for update in stream(*EVENTS[:slow_at]):
        yield update
    await anyio.sleep_forever()


async def next_in_time(updates: Updates) -> Any:
    """The next update, or a timeout at once if it does not come by itself."""
    with anyio.fail_after(60) as scope:
        async with anyio.create_task_group() as group:

            async def impatient() -> None:
                await anyio.wait_all_tasks_blocked()
                scope.deadline = anyio.current_time()

            group.start_soon(impatient)
            found = await anext(updates, None)
            group.cancel_scope.cancel()
        return found


@pytest.mark.parametrize("slow_at", range(len(EVENTS)))
async def test_a_wait_that_times_out(store: HistoryStore, slow_at: int) -> None:
    """A timeout for one update inside of the block ends a stream only if the stream says so."""
    waits = 0
    for name, source in (("patient", Patient(slow_at)), ("sleepy", sleepy(slow_at))):
        async with Recorder(store)(source, await store.load(name), input=[ASKED]) as updates:
            while True:
                try:
                    if await next_in_time(updates) is None:
                        break
                except TimeoutError:
                    waits += 1
        report = updates.report
        assert report is not None
        if name == "patient":
            assert ("complete", (SAID,)) == (report.ended, report.answer.items)
        else:
            assert ("cancelled", None) == (report.ended, (await store.load(name)).turn)
    assert 2 == waits


async def test_nothing_is_handed_on_that_would_not_be_stored(store: HistoryStore) -> None:
    """A turn that is stored is over, though its stream could go on."""
    updates = aiter(Recorder(store)(source := Patient(2), await store.load("s"), input=[ASKED]))
    await anext(updates)
    await anext(updates)
    with pytest.raises(TimeoutError):
        await next_in_time(updates)
    assert source.updates
    assert [] == [one async for one in updates]
    assert None is (await store.load("s")).turn

    async with Recorder(store)(stream(*EVENTS), await store.load("other")) as updates:
        await anext(updates)
    assert [] == [one async for one in updates]


async def test_checkpoint_and_ledger_move_with_the_answer(store: HistoryStore) -> None:
    """What belongs to a turn is stored in its steps, never before or after."""
    sent = Ledger(responses={"resp_1": {"output": [SAID]}})
    start = await store.load("s")
    recording = Recorder(store)(
        stream(*EVENTS), start, input=[ASKED], ledger=Ledger(), checkpoint={"step": 1}
    )
    async with recording as updates:
        async for _ in updates:
            pass
        updates.keep(ledger=sent, checkpoint={"step": 2})
        between = await store.load("s")
    after = await store.load("s")

    assert (Ledger(), {"step": 1}, 1) == (between.ledger, between.checkpoint, len(between.items))
    assert (sent, {"step": 2}, 2) == (after.ledger, after.checkpoint, len(after.items))
    with pytest.raises(StoreError, match="stored already"):
        updates.keep(checkpoint={"step": 3})


@pytest.mark.parametrize("kept", [{"store": True}, {"store": False}, {}], ids=str)
@pytest.mark.parametrize("whole", [True, False])
async def test_the_ledger_is_kept(store: HistoryStore, whole: bool, kept: dict[str, bool]) -> None:
    """What was sent counts as attempted with the input, and as accepted with a whole answer."""
    response, events = STREAMS["openai.responses"](Reply(reasoning("Hm."), "It rains."))
    response = {key: response[key] for key in response if key != "store"} | kept
    body = {"model": "m", "input": [ASKED]}
    events[-1]["response"] = response
    source = stream(*(events if whole else events[:-1]))
    async with Recorder(store)(
        source, await store.load("s"), input=[ASKED], request=body
    ) as updates:
        between = await store.load("s")
        async for _ in updates:
            pass
    after = await store.load("s")

    assert between.ledger == (attempted := Ledger().attempted(body))
    assert after.ledger == (attempted.accepted(body, response) if whole else attempted)
    if whole:
        assert kept.get("store", True) == after.ledger.responses[response["id"]].stored


async def test_a_ledger_of_ones_own_goes_on(store: HistoryStore) -> None:
    """What is given is stored with the input, and what the server accepts is added to it."""
    response, events = STREAMS["openai.responses"](Reply("It rains."))
    body = {"model": "m", "input": [ASKED], "store": True}
    given = Ledger(responses={"resp_0": {"output": [SAID]}})
    start = await store.load("s")
    await read(Recorder(store)(stream(*events), start, input=[ASKED], request=body, ledger=given))

    assert given.attempted(body).accepted(body, response) == (await store.load("s")).ledger


async def test_only_responses_have_a_ledger() -> None:
    """The body of another API is refused by name."""
    store = MemoryStore()
    with pytest.raises(PolicyError, match="a body of the Responses API"):
        Recorder(store)(WHOLE, await store.load("s"), request={"messages": [ASKED]})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_that_is_not_made_is_closed() -> None:
    """A task that is cancelled while its input is stored leaves no call that nobody awaits."""

    class Slow(MemoryStore):
        async def commit(self, *change: Any, **version: Any) -> None:
            await super().commit(*change, **version)
            stored.set()
            await anyio.lowlevel.checkpoint()

    store, stored, call = Slow(), anyio.Event(), asked(WHOLE)
    start = await store.load("s")

    async def turn() -> None:
        async with Recorder(store)(call, start, input=[ASKED]):
            pass

    task = asyncio.create_task(turn())
    await stored.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inspect.CORO_CLOSED == inspect.getcoroutinestate(call)
    assert ((ASKED,), None) == ((found := await store.load("s")).items, found.turn)


async def test_a_conflict_at_the_begin(store: HistoryStore) -> None:
    """A request built on an old history is not made, and nothing is overwritten."""
    old = await store.load("s")
    await store.commit("s", Commit(items=[SAID]), expected_version=0)

    with pytest.raises(ConflictError, match="version 1 and was expected in version 0"):
        async with Recorder(store)(asked(WHOLE), old, input=[ASKED]):
            pass
    assert (SAID,) == (await store.load("s")).items
    gc.collect()  # the call that was never made does not complain


async def test_a_conflict_at_the_end(store: HistoryStore) -> None:
    """The answer is not lost: the report has the commit that was refused, to be made again."""
    start = await store.load("s")
    seen: list[Updates] = []

    async def turn() -> None:
        async with Recorder(store)(stream(*EVENTS), start, input=[ASKED]) as updates:
            seen.append(updates)
            async for _ in updates:
                pass
            await store.commit("s", Commit(items=[ASKED]), expected_version=1)

    with pytest.raises(ConflictError):
        await turn()
    report = seen[0].report
    assert report is not None
    assert not report.stored
    assert report.unsaved is not None
    now = await store.load("s")
    await store.commit("s", report.unsaved, expected_version=now.version)

    assert (ASKED, ASKED, SAID) == (await store.load("s")).items


async def test_a_conflict_hides_no_other_error(
    store: HistoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The consumer's own error goes on its way, with a note about the turn."""
    start = await store.load("s")

    async def turn() -> None:
        async with Recorder(store)(stream(*EVENTS), start, input=[ASKED]):
            await store.commit("s", Commit(), expected_version=1)
            raise ConsumerError

    with pytest.raises(ConsumerError) as error:
        await turn()
    assert ["the turn could not be stored"] == [
        note.partition(":")[0] for note in error.value.__notes__
    ]
    assert "the turn could not be stored" in caplog.text


# ---------------------------------------------------------------- bad input


async def test_a_stream_in_no_known_format(store: HistoryStore) -> None:
    """It is refused by name with a remedy, and the turn is not left open."""
    with pytest.raises(DialectError, match=r"first update is a int .* under mergers"):
        await read(Recorder(store)(stream(1, 2), await store.load("s"), input=[ASKED]))
    after = await store.load("s")

    assert ((ASKED,), None, ["turn"]) == (after.items, after.turn, [n.kind for n in after.notes])
    with pytest.raises(DialectError):
        async for _ in Recorder(store)(stream(1, 2), after):
            pass
    assert None is (await store.load("s")).turn


@pytest.mark.parametrize(
    "damaged",
    [
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": 7}]}}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [None]},
        {"choices": "none"},
        {"choices": [{"delta": object()}]},
        {"choices": [{"delta": {"tool_calls": {b"x"}}}]},
        None,
        7,
    ],
)
async def test_a_damaged_update_stops_no_stream(store: HistoryStore, damaged: Any) -> None:
    """It is handed on as it came; the rest of the answer is kept."""
    updates = [*EVENTS[:-2], damaged, *EVENTS[-2:]]
    async with Recorder(store)(stream(*updates), await store.load("s"), input=[ASKED]) as read:
        assert updates == [one async for one in read]
    after = await store.load("s")

    assert ("assistant", "It rains.") == (
        after.items[1]["role"],
        str(after.items[1]["content"]).removesuffix("7"),
    )


@pytest.mark.parametrize(
    "delta, raw",
    [
        ({"content": 7}, {"choices": [{"delta": {"content": 7}}]}),
        ({"content": b"x"}, "{'choices': [{'delta': {'content': b'x'}}]}"),
        (
            {"content": 7.0, "x": float("nan")},
            "{'choices': [{'delta': {'content': 7.0, 'x': nan}}]}",
        ),
    ],
)
async def test_a_damaged_update_is_noted(store: HistoryStore, delta: Any, raw: Any) -> None:
    """As it came, or described if it is no JSON, in an answer that is whole all the same."""
    updates = [*EVENTS[:-2], {"choices": [{"delta": delta}]}, *EVENTS[-2:]]
    await read(Recorder(store)(stream(*updates), await store.load("s")))
    after = await store.load("s")

    assert ((SAID,), frozenset()) == (after.items, after.incomplete)
    assert [("update", raw)] == [(note.kind, note.raw) for note in after.notes]
    assert after.notes[0].why.startswith("an update could not be read: TypeError: ")


@pytest.mark.parametrize(
    "target, first", [("anthropic.messages", "ping"), ("openai.responses", "keepalive")]
)
async def test_what_only_keeps_a_connection_alive(
    store: HistoryStore, target: str, first: str
) -> None:
    """It may come before all else, and says nothing about the format."""
    whole, events = STREAMS[target](Reply("It rains."))
    await read(Recorder(store)(stream({"type": first}, *events), await store.load("s")))
    await read(Recorder(store)(stream(whole), await store.load("whole")))

    assert (await store.load("whole")).items == (await store.load("s")).items


class Blocking:
    """A context manager around a stream, of a client that is not asynchronous."""

    def __init__(self) -> None:
        self.is_left = False

    def __enter__(self) -> Iterator[Any]:
        return iter(EVENTS)

    def __exit__(self, *error: object) -> None:
        self.is_left = True


@pytest.mark.parametrize("source", [lambda: iter(EVENTS), Blocking], ids=["stream", "manager"])
async def test_a_source_that_is_not_awaited(store: HistoryStore, source: Any) -> None:
    """It is refused with the word that is right for it, and the turn is not left open."""
    with pytest.raises(PolicyError, match="is not awaited: record it in a `with` block"):
        await read(Recorder(store)(source(), await store.load("s")))
    assert None is (await store.load("s")).turn


class Shouting:
    """A merger of somebody else's format."""

    def __init__(self) -> None:
        self.said = ""

    @staticmethod
    def takes(update: Any) -> bool:
        """Texts."""
        return isinstance(update, str)

    def add(self, update: Any) -> None:
        """Louder."""
        self.said += update.upper()

    def answer(self, *, over: bool) -> Answer:
        """As a message."""
        return Answer(items=({"role": "assistant", "content": self.said},), complete=over)


async def test_a_merger_of_ones_own(store: HistoryStore) -> None:
    """Any class with the three methods."""
    recorder = Recorder(store, mergers=(Shouting, *MERGERS))
    async with recorder(stream("it ", "rains"), await store.load("s")) as updates:
        async for _ in updates:
            pass
    assert ({"role": "assistant", "content": "IT RAINS"},) == (await store.load("s")).items


async def test_an_item_that_is_no_json(store: HistoryStore) -> None:
    """It is refused with its place; what was stored before holds."""
    item = {"role": "assistant", "content": b"bytes"}
    with pytest.raises(DialectError, match=r"items\[1\] cannot be stored, it is no JSON"):
        await read(Recorder(store)(stream(SAID, item), await store.load("s")))
    with pytest.raises(DialectError, match=r"items\[0\] is a str: an item is an object"):
        async with Recorder(store)(stream(SAID), await store.load("other"), input=["hello"]):
            pass
    assert ((), 0) == ((await store.load("other")).items, (await store.load("other")).version)


async def test_a_recording_is_used_once(store: HistoryStore) -> None:
    """A turn begins once; for the next one the recorder is called again."""
    recording = Recorder(store)(stream(*EVENTS), await store.load("s"))
    async with recording:
        pass
    with pytest.raises(PolicyError, match="a recording is of one turn"):
        async with recording:
            pass


@pytest.mark.parametrize("emit", ["all", None])
def test_an_unknown_emit(emit: Any) -> None:
    """The three words are named."""
    with pytest.raises(PolicyError, match="'updates', 'final' or 'both'"):
        Recorder(MemoryStore(), emit=emit)


@pytest.mark.parametrize(
    "snapshot, given", [("s", []), (None, []), ("loaded", "text"), ("loaded", 7)]
)
async def test_wrong_arguments(snapshot: Any, given: Any) -> None:
    """They are refused before anything is stored or called."""
    store = MemoryStore()
    loaded = await store.load("s") if snapshot == "loaded" else snapshot
    with pytest.raises(PolicyError):
        Recorder(store)(WHOLE, loaded, input=given)


# ---------------------------------------------------------------- without async


def sync_stream(*updates: Any) -> Iterator[Any]:
    yield from updates


SYNC_SOURCES: dict[str, Any] = {
    "a stream": lambda: sync_stream(*EVENTS),
    "a function that calls": lambda: lambda: sync_stream(*EVENTS),
    "a call that is not streamed": lambda: lambda: WHOLE,
    "a whole response": lambda: WHOLE,
}


@pytest.fixture
def loaded(store: HistoryStore) -> Any:
    return lambda: anyio.run(store.load, "s")


@pytest.mark.parametrize("source", SYNC_SOURCES)
def test_every_source_without_async(store: HistoryStore, source: str, loaded: Any) -> None:
    """`with` and `for` do what `async with` and `async for` do."""
    with Recorder(store)(SYNC_SOURCES[source](), loaded(), input=[ASKED]) as updates:
        for _ in updates:
            pass
    assert ((ASKED, SAID), None) == (loaded().items, loaded().turn)
    for _ in Recorder(store)(SYNC_SOURCES[source](), loaded(), input=[ASKED]):
        pass
    assert ((ASKED, SAID, ASKED, SAID), None) == (loaded().items, loaded().turn)


@pytest.mark.parametrize(
    "emit, count", [("updates", len(EVENTS)), ("final", 1), ("both", len(EVENTS) + 1)]
)
def test_emit_without_async(store: HistoryStore, emit: Any, count: int, loaded: Any) -> None:
    """The same three settings."""
    with Recorder(store, emit=emit)(sync_stream(*EVENTS), loaded()) as updates:
        assert count == len(list(updates))


@pytest.mark.parametrize(
    "source",
    [
        lambda: asked(WHOLE),
        lambda: stream(*EVENTS),
        lambda: Manager(*EVENTS),
        lambda: lambda: asked(WHOLE),
    ],
    ids=["call", "stream", "manager", "function"],
)
def test_a_source_that_is_awaited(store: HistoryStore, source: Any, loaded: Any) -> None:
    """It is refused with the word that is right for it, and the turn is not left open."""
    with (
        pytest.raises(PolicyError, match="is awaited: record it in `async with`"),
        Recorder(store)(source(), loaded()),
    ):
        pass
    assert None is loaded().turn
    gc.collect()  # the call that was never made does not complain


def failing(fails_at: int) -> Iterator[Any]:
    yield from EVENTS[:fails_at]
    raise OSError("cut")


@pytest.mark.parametrize("stop", range(len(EVENTS) + 1))
@pytest.mark.parametrize("way", ["break", "consumer", "producer", "generator", "interrupt"])
def test_every_event_without_async(store: HistoryStore, way: str, stop: int, loaded: Any) -> None:
    """Whatever ends a stream: what came is stored once, and nothing is left open."""
    source = failing(stop) if way == "producer" else sync_stream(*EVENTS)
    error = {"consumer": ConsumerError, "interrupt": KeyboardInterrupt, "producer": OSError}

    def passed_on() -> Iterator[Any]:
        with Recorder(store)(source, loaded(), input=[ASKED]) as updates:
            yield None
            yield from updates

    def read() -> None:
        with Recorder(store)(source, loaded(), input=[ASKED]) as updates:
            for _ in range(stop):
                next(updates)
            if way == "producer":
                next(updates)
            if way != "break":
                raise error[way]

    if way == "generator":
        consumer: Any = passed_on()
        for _ in range(stop + 1):
            next(consumer)
        consumer.close()
    elif way == "break":
        read()
    else:
        with pytest.raises(error[way]):
            read()
    after = loaded()

    said = "".join(
        one["choices"][0]["delta"].get("content") or "" for one in EVENTS[:stop] if one["choices"]
    )
    assert (None, ASKED, 2) == (after.turn, after.items[0], after.version)
    assert said == "".join(item["content"] for item in after.items[1:])


class Interrupting(MemoryStore):
    """A store during one of whose commits somebody presses Ctrl-C."""

    def __init__(self, when: int, *, late: bool) -> None:
        super().__init__()
        self.when, self.late, self.noticed = when, late, False

    def press(self, *_: object) -> None:
        """What the key does, once."""
        if not self.noticed:
            self.noticed = True
            raise KeyboardInterrupt

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """As it was, and the main thread is interrupted before or behind it."""
        now = expected_version == self.when
        if now and self.late:
            await super().commit(session, change, expected_version=expected_version)
        if now:
            self.when = -1
            main = threading.main_thread().ident
            assert main is not None
            while not self.noticed:  # a thread that just begins to wait does not notice
                signal.pthread_kill(main, signal.SIGINT)
                await anyio.sleep(0.01)
            await anyio.sleep_forever()  # the interrupted thread sees to it that it is left
        await super().commit(session, change, expected_version=expected_version)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("when, stored", [(0, (ASKED,)), (1, (ASKED, SAID))])
def test_interrupted_while_it_is_stored(when: int, stored: Any, late: bool) -> None:
    """Ctrl-C during a commit: it is stored, once, before the block is left."""
    store = Interrupting(when, late=late)
    start, before = anyio.run(store.load, "s"), signal.signal(signal.SIGINT, store.press)
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            Recorder(store)(sync_stream(*EVENTS), start, input=[ASKED]) as updates,
        ):
            list(updates)
    finally:
        signal.signal(signal.SIGINT, before)
    after = anyio.run(store.load, "s")

    assert (stored, None, 2) == (after.items, after.turn, after.version)


def test_a_call_that_fails_without_async(store: HistoryStore, loaded: Any) -> None:
    """A refused request leaves the question and a note."""

    def refused() -> Any:
        raise OSError("no route")

    with (
        pytest.raises(OSError, match="no route"),
        Recorder(store)(refused, loaded(), input=[ASKED]),
    ):
        pass
    assert ((ASKED,), None) == (loaded().items, loaded().turn)


def test_a_bare_stream_that_fails_without_async(store: HistoryStore, loaded: Any) -> None:
    """What came is stored, and the turn is closed."""
    with pytest.raises(OSError, match="cut"):
        for _ in Recorder(store)(failing(3), loaded(), input=[ASKED]):
            pass
    after = loaded()
    assert (ASKED, None, ["turn"]) == (after.items[0], after.turn, [n.kind for n in after.notes])


def test_a_source_is_let_go_without_async(store: HistoryStore, loaded: Any) -> None:
    """A context manager is left and a generator is closed, whoever leaves the stream early."""
    manager, generator = Blocking(), sync_stream(*EVENTS)
    for source in (manager, generator):
        with Recorder(store)(source, loaded()) as updates:
            next(updates)
    assert manager.is_left
    assert inspect.GEN_CLOSED == inspect.getgeneratorstate(generator)  # type: ignore[arg-type]


def test_a_bare_break_without_async(store: HistoryStore, loaded: Any) -> None:
    """The reference is held, and the input is there in the next statement."""
    held = iter(Recorder(store)(sync_stream(*EVENTS), loaded(), input=[ASKED]))
    for _ in held:
        break
    after = loaded()
    assert ((ASKED,), 0) == (after.items, after.turn and after.turn.at)


def test_one_store_with_and_without_async(tmp_path: Any) -> None:
    """A file that was used in one event loop goes on in another, and in a thread."""
    store = SqliteStore(tmp_path / "h.db")
    for turn in range(3):
        with Recorder(store)(WHOLE, anyio.run(store.load, "s"), input=[ASKED]) as updates:
            next(updates)
        assert 2 * (turn + 1) == len(anyio.run(store.load, "s", backend="trio").items)
    store.close()


def test_reasoning_and_calls_of_a_whole_response(store: HistoryStore, loaded: Any) -> None:
    """A message with everything is kept with everything."""
    reply = Reply(reasoning("Hm."), "Let me look.", call("weather", city="Oslo"))
    whole, events = STREAMS["openai.chat"](reply)
    with Recorder(store)(sync_stream(*events), loaded()) as updates:
        list(updates)
    with Recorder(store)(whole, loaded()) as updates:
        list(updates)
    streamed, at_once = loaded().items

    function = {"name": "weather", "arguments": '{"city":"Oslo"}'}
    assert (
        streamed
        == at_once
        == {
            "role": "assistant",
            "content": "Let me look.",
            "reasoning_content": "Hm.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    )
