"""What every store does, on both event loops."""

import json
import sys
from contextlib import suppress
from threading import Barrier
from typing import Any

import anyio
import anyio.to_thread
import pytest

from convnorm import ConflictError, DialectError, PolicyError, StoreError
from convnorm.delivery import Ledger
from convnorm.mergers import Note
from convnorm.stores import Commit, HistoryStore, OpenTurn, Snapshot, blocking

pytestmark = pytest.mark.anyio

ONE, TWO = {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}
FULL = Commit(
    items=(ONE, TWO),
    incomplete=frozenset({1}),
    notes=(Note(kind="call", why="half", at=1, raw={"id": "call_1"}),),
    turn=OpenTurn(at=0, number=0),
    ledger=Ledger(responses={"resp_1": {"output": [TWO]}}),
    checkpoint={"step": [1, None, "x"]},
)


async def test_a_session_that_was_never_written(store: HistoryStore) -> None:
    """It is empty, and in version 0."""
    assert Snapshot(session="new") == await store.load("new")
    assert ((), 0) == ((found := await store.deliver_since("new", 0)).items, found.bookmark)


async def test_everything_comes_back(store: HistoryStore) -> None:
    """Items, marks, notes, turn, ledger and checkpoint, as they were committed."""
    await store.commit("s", FULL, expected_version=0)

    expected = Snapshot(session="s", bookmark=2, version=1, **dict(FULL))
    assert expected == await store.load("s")


async def test_commits_go_to_the_end(store: HistoryStore) -> None:
    """What is there stays; places count on; what a commit does not name stays as it was."""
    await store.commit("s", FULL, expected_version=0)
    note = Note(kind="turn", why="left", at=1)
    last = Commit(items=(ONE,), incomplete=frozenset({0}), notes=(note,))
    await store.commit("s", last, expected_version=1)
    found = await store.load("s")

    assert ((ONE, TWO, ONE), frozenset({1, 2}), 3, 2) == (
        found.items,
        found.incomplete,
        found.bookmark,
        found.version,
    )
    assert ([1, 3], None) == ([one.at for one in found.notes], found.turn)
    assert (FULL.ledger, FULL.checkpoint) == (found.ledger, found.checkpoint)


async def test_a_commit_to_another_version(store: HistoryStore) -> None:
    """It is refused in words, and stores nothing of itself."""
    await store.commit("s", FULL, expected_version=0)
    for version in (0, 2):
        with pytest.raises(ConflictError, match=f"version 1 and was expected in version {version}"):
            await store.commit("s", Commit(items=[ONE]), expected_version=version)
    assert (ONE, TWO) == (await store.load("s")).items


async def test_sessions_do_not_mix(store: HistoryStore) -> None:
    """Each has its own items and versions, whatever their names look like."""
    names = ["a", "A", "a ", "ä", "a%", "'; --", "\0"]
    for at, name in enumerate(names):
        await store.commit(name, Commit(items=[ONE] * (at + 1)), expected_version=0)

    assert [*range(1, len(names) + 1)] == [len((await store.load(name)).items) for name in names]


async def test_each_item_is_delivered_once(store: HistoryStore) -> None:
    """Whoever goes on from the new bookmark gets what came since, in order."""
    bookmark, got = 0, list[Any]()
    for size in (1, 0, 3, 2):
        before = await store.load("s")
        items = [{"role": "user", "content": str(before.bookmark + at)} for at in range(size)]
        await store.commit("s", Commit(items=items), expected_version=before.version)
        delivery = await store.deliver_since("s", bookmark)
        bookmark = delivery.bookmark
        got += delivery.items
    assert [str(number) for number in range(6)] == [item["content"] for item in got]


@pytest.mark.parametrize("bookmark", [-1, True, "1", None, 1.0])
async def test_what_is_no_bookmark(store: HistoryStore, bookmark: Any) -> None:
    """It is refused in words."""
    with pytest.raises(PolicyError, match="a bookmark is a count of items"):
        await store.deliver_since("s", bookmark)


async def test_a_bookmark_of_another_session(store: HistoryStore) -> None:
    """One behind the end is refused: taking it for the end would lose what comes."""
    await store.commit("s", Commit(items=[ONE]), expected_version=0)
    with pytest.raises(StoreError, match=r"bookmark 2 lies behind the end .* 1 items"):
        await store.deliver_since("s", 2)


@pytest.mark.parametrize("session", ["", None, 7, "\ud83d"])
async def test_what_is_no_name(store: HistoryStore, session: Any) -> None:
    """A session's name is a text."""
    for call in (
        lambda: store.load(session),
        lambda: store.deliver_since(session, 0),
        lambda: store.commit(session, Commit(), expected_version=0),
    ):
        with pytest.raises(PolicyError, match="session"):
            await call()


def cyclic() -> dict[str, Any]:
    item: dict[str, Any] = {"role": "user"}
    item["content"] = [item]
    return item


def nested(depth: int) -> Any:
    item: Any = "deep"
    for _ in range(depth):
        item = [item]
    return item


@pytest.mark.parametrize(
    "item",
    [
        *(cyclic(), nested(100_000), {"content": {1, 2}}, {"content": b"x"}, "text", None, [ONE]),
        *({"x": float("nan")}, {"x": [float("inf")]}),  # no request can hold them
    ],
    ids=["cyclic", "nested", "set", "bytes", "text", "none", "list", "nan", "infinity"],
)
async def test_an_item_that_cannot_be_stored(store: HistoryStore, item: Any) -> None:
    """It is named by its place, and nothing of the commit is stored."""
    with pytest.raises(DialectError, match=r"items\[1\]"):
        await store.commit("s", Commit(items=(ONE, item)), expected_version=0)
    assert Snapshot(session="s") == await store.load("s")


async def test_a_checkpoint_that_cannot_be_stored(store: HistoryStore) -> None:
    """It is named, and nothing of the commit is stored."""
    with pytest.raises(DialectError, match="checkpoint cannot be stored"):
        await store.commit("s", Commit(items=(ONE,), checkpoint=object()), expected_version=0)
    assert Snapshot(session="s") == await store.load("s")


@pytest.mark.parametrize(
    "wrong",
    [
        {"incomplete": {2}},
        {"incomplete": {-1}},
        {"notes": [{"kind": "call", "why": "half", "at": 3}]},
        {"notes": [{"kind": "other", "why": "half"}]},
        {"items": 7},
        {"item": [ONE]},
    ],
    ids=str,
)
def test_a_commit_that_means_something_else(wrong: Any) -> None:
    """Marks outside of its items, and keys it does not have, are refused where it is made."""
    with pytest.raises(PolicyError, match=r"^(Commit|Note)\b"):
        Commit(**{"items": (ONE, TWO), **wrong})


async def test_a_snapshot_survives_json(store: HistoryStore) -> None:
    """Marks, notes and ledger with it."""
    await store.commit("s", FULL, expected_version=0)
    found = await store.load("s")

    assert found == Snapshot(**json.loads(found.model_dump_json()))


async def test_strange_texts_survive(store: HistoryStore) -> None:
    """Any text that JSON can hold, halves of surrogate pairs and zeros included."""
    item = {"role": "user", "content": "\ud83d \0 \u2028 😀", "n": 2**70, "x": 1e300}
    await store.commit("s", Commit(items=(item,)), expected_version=0)

    assert (item,) == (await store.load("s")).items


@pytest.mark.parametrize(
    "name", ["n" * 100_000, "\u202e\u200b", "\ufffe", "e\u0301", "\u00e9", "😀", " ", "\n"]
)
async def test_any_text_is_a_name(store: HistoryStore, name: str) -> None:
    """Long, invisible or not: what goes in under a name comes back under it, and only there."""
    await store.commit(name, Commit(items=[ONE]), expected_version=0)

    assert ((ONE,), name) == ((found := await store.load(name)).items, found.session)
    assert 0 == (await store.load(f"{name}2")).version


@pytest.mark.parametrize(
    "content", [nested(700), "x" * 20_000_000, ["x"] * 200_000], ids=["deep", "long", "wide"]
)
async def test_big_items_come_back(store: HistoryStore, content: Any) -> None:
    """What can be stored can be loaded."""
    item = {"role": "user", "content": content}
    await store.commit("s", Commit(items=[item], checkpoint=content), expected_version=0)

    assert (item,) == (await store.load("s")).items == (await store.deliver_since("s", 0)).items


async def test_a_change_of_the_callers_objects_gets_in_nowhere(store: HistoryStore) -> None:
    """What was stored, and what was loaded, are everybody's own."""
    item: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "one"}]}
    checkpoint = {"steps": [1]}
    await store.commit("s", Commit(items=(item,), checkpoint=checkpoint), expected_version=0)
    item["content"][0]["text"] = checkpoint["steps"][0] = "changed"  # type: ignore[call-overload]
    loaded = await store.load("s")
    loaded.items[0]["content"][0]["text"] = loaded.checkpoint["steps"][0] = "changed"
    delivered = await store.deliver_since("s", 0)
    delivered.items[0]["content"][0]["text"] = "changed"
    found = await store.load("s")

    assert ("one", [1]) == (found.items[0]["content"][0]["text"], found.checkpoint["steps"])


async def test_threads_overwrite_nothing(store: HistoryStore) -> None:
    """Of two threads that commit to one version, one meets a conflict."""
    stored, items, together = list[int](), [ONE] * 2000, Barrier(4)

    def writes() -> None:
        with blocking(store) as mine:
            for version in range(15):
                together.wait()
                with suppress(ConflictError):
                    mine.commit("s", Commit(items=items), expected_version=version)
                    stored.append(version)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns all the time
    try:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(anyio.to_thread.run_sync, writes)
    finally:
        sys.setswitchinterval(interval)
    assert stored == [*range(15)]
    assert 15 == (await store.load("s")).version


async def test_what_follows_is_what_is_stored(store: HistoryStore) -> None:
    """A snapshot after a commit is what the store loads after it."""
    snapshot = Snapshot(session="s")
    for version, change in enumerate((FULL, Commit(items=(TWO,)), FULL)):
        await store.commit("s", change, expected_version=version)
        snapshot = snapshot.after(change)
        assert snapshot == await store.load("s")
