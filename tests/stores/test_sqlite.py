"""What only the SQLite store does: one file, opened late, shared by threads and processes."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from convnorm import ConflictError, StoreError
from convnorm.stores import Commit, SqliteStore, blocking

pytestmark = pytest.mark.anyio

ONE = {"role": "user", "content": "one"}


async def test_opened_on_first_use(tmp_path: Path) -> None:
    """Making a store touches no file; after close it is opened again."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store:
        assert not path.exists()
        await store.commit("s", Commit(items=[ONE]), expected_version=0)
        assert path.exists()
        store.close()
        assert (ONE,) == (await store.load("s")).items


async def test_wal(tmp_path: Path) -> None:
    """Whoever reads does not wait for whoever writes."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as other:
        await store.commit("s", Commit(items=[ONE]), expected_version=0)
        assert ("wal",) == other.execute("PRAGMA journal_mode").fetchone()
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        assert (ONE,) == (await store.load("s")).items


async def test_the_event_loop_runs_while_a_store_waits(tmp_path: Path) -> None:
    """Another process that writes for long stops nobody but the one who waits for it."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as other:
        await store.load("s")
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: store.commit("s", Commit(items=[ONE]), expected_version=0))
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            # Had the commit kept the loop, it would have run out of patience before this line.
            other.execute("ROLLBACK")
        assert (ONE,) == (await store.load("s")).items


async def test_patience_has_an_end(tmp_path: Path) -> None:
    """Then the error says what to do, and nothing is stored."""
    path = tmp_path / "h.db"
    store, other = SqliteStore(path, patience=0.01), sqlite3.connect(path)
    with closing(store), closing(other):
        await store.load("s")
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"h\.db: database is locked: .* patience"):
            await store.commit("s", Commit(items=[ONE]), expected_version=0)
        other.execute("ROLLBACK")
        assert 0 == (await store.load("s")).version


async def test_a_file_of_a_newer_version(tmp_path: Path) -> None:
    """It is left alone, with both numbers and a remedy."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store:
        await store.commit("s", Commit(items=[ONE]), expected_version=0)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 2")
    with (
        closing(SqliteStore(path)) as store,
        pytest.raises(StoreError, match=r"newer convnorm \(schema 2, this one knows 1\): update"),
    ):
        await store.load("s")


@pytest.mark.parametrize("make", ["CREATE TABLE t (x)", "PRAGMA user_version = 1", None])
async def test_a_file_of_somebody_else(tmp_path: Path, make: str | None) -> None:
    """Another program's database, or no database at all, is refused and not changed."""
    path = tmp_path / "h.db"
    if make is None:
        path.write_bytes(b"no database " * 100)
    else:
        with closing(sqlite3.connect(path)) as other:
            other.execute(make)
    before = path.read_bytes()
    with closing(SqliteStore(path)) as store, pytest.raises(StoreError, match="file of its own"):
        await store.load("s")
    assert before == path.read_bytes()


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """The error names the file and the remedy."""
    with (
        closing(SqliteStore(tmp_path / "no" / "h.db")) as store,
        pytest.raises(StoreError, match=r"no/h\.db: .* folder must exist"),
    ):
        await store.load("s")


@pytest.mark.parametrize("damage", ["UPDATE items SET item = '{'", "DELETE FROM items"])
async def test_a_file_that_somebody_changed(tmp_path: Path, damage: str) -> None:
    """A history that does not fit its bookmark is not passed on as if it were whole."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as other:
        await store.commit("s", Commit(items=[ONE]), expected_version=0)
        other.execute(damage)
        other.commit()
        with pytest.raises(StoreError, match=r"h\.db holds what no store wrote"):
            await store.load("s")


async def test_threads_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Many threads commit to one session through one store and through their own."""
    path = tmp_path / "h.db"

    def writes(store: SqliteStore, name: str) -> None:
        with blocking(store) as mine:
            for number in range(5):
                while True:
                    found = mine.load("s")
                    item = {"role": "user", "content": f"{name} {number}"}
                    try:
                        mine.commit("s", Commit(items=[item]), expected_version=found.version)
                    except ConflictError:
                        continue
                    break

    with closing(SqliteStore(path)) as shared, closing(SqliteStore(path)) as own:
        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(anyio.to_thread.run_sync, writes, shared, name)
            group.start_soon(anyio.to_thread.run_sync, writes, own, "d")
        texts = [item["content"] for item in (await shared.load("s")).items]
    assert sorted(f"{name} {number}" for name in "abcd" for number in range(5)) == sorted(texts)
    for name in "abcd":
        assert [f"{name} {n}" for n in range(5)] == [one for one in texts if one[0] == name]


FORKS = """
import anyio, os, sys
from convnorm.stores import Commit, SqliteStore
store = SqliteStore(sys.argv[1])
anyio.run(store.load, "s")
inherited = store._connection
for name in ("a", "b", "c"):
    child = os.fork()
    if child == 0:
        anyio.run(lambda: store.commit(name, Commit(items=[{"role": name}]), expected_version=0))
        os._exit(store._connection is inherited)
    assert os.waitpid(child, 0)[1] == 0
    assert anyio.run(store.load, name).items == ({"role": name},)
"""


def test_a_store_survives_a_fork(tmp_path: Path) -> None:
    """A child that inherits a store in use opens the file for itself."""
    subprocess.run([sys.executable, "-c", FORKS, tmp_path / "h.db"], check=True, timeout=60)  # noqa: S603  # our own interpreter
