"""What only the SQLite store does: one file, opened late, shared by threads and processes."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from convnorm import ConflictError, StoreError
from convnorm.delivery import Ledger
from convnorm.mergers import Note
from convnorm.stores import Commit, OpenTurn, SqliteStore, blocking

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


FULL = Commit(
    items=[ONE],
    notes=(Note(kind="turn", why="left"),),
    turn=OpenTurn(at=0, number=0),
    ledger=Ledger(),
    checkpoint={},
)
ITEMS = (
    *("UPDATE items SET item = '{'", "UPDATE items SET item = '[]'", "UPDATE items SET item = 7"),
    *("UPDATE items SET item = x'ff'", "UPDATE items SET place = 5", "DELETE FROM items"),
    *("UPDATE sessions SET version = 'x'", "UPDATE sessions SET bookmark = 'x'"),
)
BESIDE = (
    *("UPDATE sessions SET turn = '[]'", 'UPDATE sessions SET turn = \'{"at": "x"}\''),
    *("UPDATE sessions SET ledger = '7'", "UPDATE sessions SET ledger = '{\"x\": 1}'"),
    "UPDATE sessions SET ledger = replace(hex(zeroblob(50000)), '0', '[')",
    *("UPDATE sessions SET checkpoint = '{'", "UPDATE notes SET note = '[]'"),
    'UPDATE notes SET note = \'{"kind": "other", "why": ""}\'',
)


@pytest.mark.parametrize("damage", [*ITEMS, *BESIDE])
async def test_a_file_that_somebody_changed(tmp_path: Path, damage: str) -> None:
    """What does not come back as it was written is not passed on as if it were whole."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as other:
        await store.commit("s", FULL, expected_version=0)
        other.execute(damage)
        other.commit()
        with pytest.raises(StoreError, match=r"h\.db holds what no store wrote"):
            await store.load("s")
        if damage in BESIDE:
            assert (ONE,) == (await store.deliver_since("s", 0)).items
        else:
            with pytest.raises(StoreError, match=r"h\.db holds what no store wrote"):
                await store.deliver_since("s", 0)


async def test_a_file_that_is_damaged(tmp_path: Path) -> None:
    """Pages of rubbish, and a table that is gone, are told with the file."""
    path = tmp_path / "h.db"
    with closing(SqliteStore(path)) as store:
        await store.commit("s", FULL, expected_version=0)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"rubbish!" * (len(whole[4096:]) // 8))
    with closing(SqliteStore(path)) as store:
        with pytest.raises(StoreError, match=r"h\.db: .*: the file is damaged"):
            await store.load("s")
        with pytest.raises(StoreError, match=r"h\.db: .*: the file is damaged"):
            await store.commit("s", FULL, expected_version=1)
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE items")
    with closing(SqliteStore(path)) as store, pytest.raises(StoreError, match="no such table"):
        await store.load("s")


async def test_many_first_users(tmp_path: Path) -> None:
    """Whoever comes to a new file at the same moment as others waits his turn."""

    def first(path: Path, start: Barrier) -> None:
        with closing(SqliteStore(path)) as store, blocking(store) as mine:
            start.wait()
            mine.load("s")

    for number in range(10):
        start = Barrier(6)
        async with anyio.create_task_group() as group:
            for _ in range(6):
                path = tmp_path / f"{number}.db"
                group.start_soon(anyio.to_thread.run_sync, first, path, start)


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


async def test_a_load_sees_one_moment(tmp_path: Path) -> None:
    """Whoever loads while somebody commits gets a session as it was between two commits."""
    path = tmp_path / "h.db"

    def writes() -> None:
        with closing(SqliteStore(path)) as store, blocking(store) as mine:
            for version in range(150):
                change = Commit(items=[ONE, ONE], checkpoint=version + 1)
                mine.commit("s", change, expected_version=version)

    with closing(SqliteStore(path)) as store:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, writes)
            while (found := await store.load("s")).version < 150:
                assert len(found.items) == found.bookmark == 2 * (found.checkpoint or 0)


async def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """What was acknowledged survives a power cut, which no test can make."""
    with closing(SqliteStore(tmp_path / "h.db")) as store:
        await store.load("s")
        [connection] = store._connections.values()
        assert (2,) == connection.execute("PRAGMA synchronous").fetchone()


FORKS = """
import anyio, os, sys
from convnorm.stores import Commit, SqliteStore
store = SqliteStore(sys.argv[1])
anyio.run(store.load, "s")
inherited = set(store._connections.values())
for name in ("a", "b", "c"):
    child = os.fork()
    if child == 0:
        anyio.run(lambda: store.commit(name, Commit(items=[{"role": name}]), expected_version=0))
        os._exit(store._connections[os.getpid()] in inherited)
    assert os.waitpid(child, 0)[1] == 0
    assert anyio.run(store.load, name).items == ({"role": name},)
"""


def test_a_store_survives_a_fork(tmp_path: Path) -> None:
    """A child that inherits a store in use opens the file for itself."""
    assert [] == told(FORKS, tmp_path / "h.db")


FORKS_AT_WORK = """
import anyio, os, sqlite3, sys, threading, time
from convnorm.stores import Commit, SqliteStore
store, other = SqliteStore(sys.argv[1]), sqlite3.connect(sys.argv[1], isolation_level=None)
anyio.run(store.load, "s")
other.execute("BEGIN IMMEDIATE")
def commit():
    return store.commit("s", Commit(items=[{"role": "user"}]), expected_version=0)
at_work = threading.Thread(target=anyio.run, args=[commit])
at_work.start()
time.sleep(0.5)
child = os.fork()
if child == 0:
    os._exit(anyio.run(store.load, "s").version)
deadline = time.monotonic() + 20
while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
    time.sleep(0.01)
if done == (0, 0):
    os.kill(child, 9)
print("waits for ever" if done == (0, 0) else "reads")
other.execute("ROLLBACK")
at_work.join()
print(anyio.run(store.load, "s").version)
"""


def test_a_fork_while_a_thread_is_at_work(tmp_path: Path) -> None:
    """The child does not wait for a thread that only its parent has."""
    assert ["reads", "1"] == told(FORKS_AT_WORK, tmp_path / "h.db")


DISK_FULL = """
import anyio, os, resource, sys
from convnorm import StoreError
from convnorm.stores import Commit, SqliteStore
path, size = sys.argv[1], int(sys.argv[2])
store, old = SqliteStore(path), resource.getrlimit(resource.RLIMIT_FSIZE)
def commit(content, store=store):
    change = Commit(items=[{"role": "user", "content": content}])
    version = anyio.run(store.load, "s").version
    anyio.run(lambda: store.commit("s", change, expected_version=version))
commit("one")
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path + "-wal") + 20_000, old[1]))
for _ in range(2):
    try:
        commit("x" * size)
    except StoreError as error:
        print(str(error).removeprefix(path))
resource.setrlimit(resource.RLIMIT_FSIZE, old)
commit("two")
commit("three", SqliteStore(path, patience=0.1))
print(*(item["content"] for item in anyio.run(store.load, "s").items))
"""


@pytest.mark.parametrize("size", [50_000, 5_000_000])
def test_a_full_disk(tmp_path: Path, size: int) -> None:
    """It is said in words, stores nothing and locks nobody out; later commits go on."""
    full = ": disk I/O error: the disk is full or fails"
    assert [full, full, "one two three"] == told(DISK_FULL, tmp_path / "h.db", size)


READ_ONLY = """
import anyio, anyio.to_thread, os, sys
from convnorm import StoreError
from convnorm.stores import Commit, SqliteStore
anyio.run(anyio.to_thread.run_sync, os.getpid)  # loads what is needed while it can be read
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    try:
        anyio.run(lambda: SqliteStore(path).commit("s", Commit(), expected_version=0))
    except StoreError as error:
        print(str(error).removeprefix(path))
"""


def test_a_file_that_may_not_be_written() -> None:
    """Be it the file, its folder, or neither: the remedy is told."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        files = [folder / name / "h.db" for name in ("file", "folder", "none")]
        for path, mode in zip(files, (0o444, 0o666, 0o000), strict=True):
            path.parent.mkdir()
            with closing(SqliteStore(path)) as store:
                anyio.run(store.load, "s")
            path.chmod(mode)
        folder.chmod(0o755)
        files[0].parent.chmod(0o777)
        files[1].parent.chmod(0o555)
        said = told(READ_ONLY, *files)
        files[1].parent.chmod(0o755)
    writable = ": attempt to write a readonly database: the file and its folder must be writable"
    cannot = ": unable to open database file: its folder must exist and be writable"
    assert [writable, writable, cannot] == said


def told(program: str, *arguments: object) -> list[str]:
    """What a process of its own prints."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(words, check=True, timeout=60, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own interpreter
    return done.stdout.splitlines()
