"""What every history store promises: run it on your own."""

from convnorm.delivery import Ledger
from convnorm.errors import ConflictError, DialectError, StoreError
from convnorm.mergers import Note
from convnorm.stores import Commit, HistoryStore, OpenTurn, Snapshot

ONE, TWO = {"role": "user", "content": "one"}, {"role": "assistant", "content": "two \0 😀"}
FULL = Commit(
    items=(ONE, TWO),
    incomplete=frozenset({1}),
    notes=(Note(kind="call", why="half", at=1, raw={"id": "call_1"}),),
    turn=OpenTurn(at=0, number=0),
    ledger=Ledger(responses={"resp_1": {"output": [TWO]}}),
    checkpoint={"step": [1, None]},
)


async def check_store(store: HistoryStore, session: str = "contract") -> None:
    """Raise AssertionError if a store breaks a promise. It writes to sessions of this name."""
    await everything_comes_back(store, f"{session} 1")
    await conflicts_store_nothing(store, f"{session} 2")
    await each_item_is_delivered_once(store, f"{session} 3")


async def everything_comes_back(store: HistoryStore, session: str) -> None:
    """What is committed is loaded, behind what was there, and stays everybody's own."""
    expected = Snapshot(session=session)
    assert await store.load(session) == expected, "a session that was never written is empty"
    for version, change in enumerate((FULL, Commit(items=(TWO,)), Commit(), FULL)):
        await store.commit(session, change, expected_version=version)
        expected = expected.after(change)
        loaded = await store.load(session)
        assert loaded == expected, f"after commit {version + 1}: {loaded!r} is not {expected!r}"
        for mine in (*loaded.items, *(note.raw for note in loaded.notes), loaded.checkpoint):
            mine["content"] = "changed by whoever loaded it"
    assert await store.load(session) == expected, "what is loaded is the store's own"


async def conflicts_store_nothing(store: HistoryStore, session: str) -> None:
    """Another version, or an item that is no JSON: an error, and nothing has changed."""
    await store.commit(session, FULL, expected_version=0)
    expected = await store.load(session)
    for version in (0, 2):
        try:
            await store.commit(session, FULL, expected_version=version)
        except ConflictError:
            pass
        else:
            raise AssertionError(f"a commit to version {version} is stored in version 1")
    try:
        await store.commit(session, Commit(items=(ONE, {"x": object()})), expected_version=1)
    except DialectError:
        pass
    else:
        raise AssertionError("an item that is no JSON raises no DialectError")
    assert await store.load(session) == expected, "a refused commit has left something"


async def each_item_is_delivered_once(store: HistoryStore, session: str) -> None:
    """Whoever goes on from the new bookmark gets every item once; one behind the end is refused."""
    bookmark, got = 0, list[object]()
    for version, size in enumerate((2, 0, 3)):
        items = [{"role": "user", "content": f"{version} {at}"} for at in range(size)]
        await store.commit(session, Commit(items=tuple(items)), expected_version=version)
        delivery = await store.deliver_since(session, bookmark)
        bookmark, got = delivery.bookmark, [*got, *delivery.items]
    snapshot = await store.load(session)
    assert got == list(snapshot.items), f"delivered is {got!r}"
    assert bookmark == snapshot.bookmark == len(got), f"the bookmark is {bookmark}"
    try:
        await store.deliver_since(session, bookmark + 1)
    except StoreError:
        return
    raise AssertionError("a bookmark behind the end raises no StoreError")
