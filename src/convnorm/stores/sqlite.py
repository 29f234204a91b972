"""Sessions in one SQLite file, for any number of processes and threads."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import anyio.to_thread

from convnorm.delivery import Ledger
from convnorm.errors import ConflictError, LedgerError, PolicyError, StoreError
from convnorm.mergers.merger import Note
from convnorm.stores.store import (
    Commit,
    Delivery,
    OpenTurn,
    Snapshot,
    encoded_checkpoint,
    encoded_items,
    encoded_ledger,
    encoded_notes,
    usable_bookmark,
    usable_session,
)

Found = TypeVar("Found")

APPLICATION = 0x636E7631
"""What marks a file as one of ours, whatever its name."""
SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE sessions (
    session TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    bookmark INTEGER NOT NULL,
    turn TEXT,
    ledger TEXT,
    checkpoint TEXT
) WITHOUT ROWID;
CREATE TABLE items (
    session TEXT NOT NULL,
    place INTEGER NOT NULL,
    item TEXT NOT NULL,
    incomplete INTEGER NOT NULL,
    PRIMARY KEY (session, place)
) WITHOUT ROWID;
CREATE TABLE notes (
    session TEXT NOT NULL,
    version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (session, version, number)
) WITHOUT ROWID;
"""
Row = tuple[int, int, str | None, str | None, str | None]
NEW: Row = (0, 0, None, None, None)
"""Version, bookmark, turn, ledger and checkpoint of a session that was never written."""


class SqliteStore:
    """A file with all sessions, opened on first use. A commit that returned survives a crash.

    Every method works in a thread, so the event loop is never blocked.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30) -> None:
        """`patience`: how many seconds to wait while another process writes."""
        self._path = Path(path)
        self._patience = patience
        # By process: a forked child must not wait for a thread that only its parent has, and
        # SQLite forbids it even to close the connection that it inherited.
        self._locks: dict[int, Lock] = {}
        self._connections: dict[int, sqlite3.Connection] = {}

    async def load(self, session: str) -> Snapshot:
        """The session as it is now."""
        name = usable_session(session)
        return await anyio.to_thread.run_sync(self._run, lambda db: _load(db, name))

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """Store all of `change` on the disk, or raise ConflictError."""
        await anyio.to_thread.run_sync(self._commit, session, change, expected_version)

    async def deliver_since(self, session: str, bookmark: int) -> Delivery:
        """The items behind a bookmark; only these are read."""
        name = usable_session(session)
        return await anyio.to_thread.run_sync(self._run, lambda db: _since(db, name, bookmark))

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock():
            if connection := self._connections.pop(os.getpid(), None):
                connection.close()

    def _commit(self, session: str, change: Commit, expected: int) -> None:
        self._run(_Write(usable_session(session), change, expected))

    def _lock(self) -> Lock:
        return self._locks.setdefault(os.getpid(), Lock())

    def _run(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        with self._lock():
            try:
                return work(self._open())
            except sqlite3.Error as error:
                raise StoreError(f"{self._path}: {error}{_remedy(error)}") from error
            except ValueError as error:
                raise StoreError(f"{self._path} holds what no store wrote: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if found := self._connections.get(os.getpid()):
            return found
        connection = sqlite3.connect(
            self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, self._path, self._patience)
        except BaseException:
            connection.close()
            raise
        self._connections[os.getpid()] = connection
        return connection


# ---------------------------------------------------------------- the file


def _prepare(db: sqlite3.Connection, path: Path, patience: float) -> None:
    """Make the file ours if it is new, and leave it alone if it is not ours or too new."""
    _judge(db, path)
    _use_wal(db, patience)
    db.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power cut too
    if _number(db, "user_version") == 0:
        with _transaction(db, "IMMEDIATE"):
            _judge(db, path)  # another process may have been first
            if _number(db, "user_version") == 0:
                _create(db)


def _judge(db: sqlite3.Connection, path: Path) -> None:
    used = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    found, owner = _number(db, "user_version"), _number(db, "application_id")
    if owner != APPLICATION and (used or found or owner):
        raise StoreError(
            f"{path} is a database of something else: give the store a file of its own"
        )
    if found > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by a newer convnorm (schema {found}, this one knows "
            f"{SCHEMA_VERSION}): update convnorm, or use another file"
        )


def _create(db: sqlite3.Connection) -> None:
    for statement in SCHEMA.split(";")[:-1]:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _use_wal(db: sqlite3.Connection, patience: float) -> None:
    """SQLite does not wait its turn where the mode is changed, so two first users wait here."""
    until = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def _remedy(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return {
        sqlite3.SQLITE_BUSY: ": another process writes for long; wait longer with patience",
        sqlite3.SQLITE_CANTOPEN: ": its folder must exist and be writable",
        sqlite3.SQLITE_CORRUPT: ": the file is damaged; put a copy in its place",
        sqlite3.SQLITE_FULL: ": make room on the disk and commit again",
        sqlite3.SQLITE_IOERR: ": the disk is full or fails",
        sqlite3.SQLITE_NOTADB: ": give the store a file of its own",
        sqlite3.SQLITE_READONLY: ": the file and its folder must be writable",
    }.get(code, "")


@contextmanager
def _transaction(db: sqlite3.Connection, kind: str) -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # where the disk is full SQLite has rolled back by itself
            db.execute("ROLLBACK")
        raise


# ---------------------------------------------------------------- the sessions


def _row(db: sqlite3.Connection, session: str) -> Row:
    found: Row | None = db.execute(
        "SELECT version, bookmark, turn, ledger, checkpoint FROM sessions WHERE session = ?",
        (session,),
    ).fetchone()
    if found is None:
        return NEW
    if not all(isinstance(number, int) for number in found[:2]):
        raise ValueError(f"version {found[0]!r} and bookmark {found[1]!r} are no numbers")
    return found


@contextmanager
def _reading() -> Iterator[None]:
    """What does not come back as it was written was changed by somebody else."""
    try:
        yield
    except (TypeError, RecursionError, LedgerError, PolicyError) as error:
        raise ValueError(str(error)) from error


def _rows(
    db: sqlite3.Connection, session: str, since: int, last: int
) -> list[tuple[int, str, int]]:
    """The items from one place to the bookmark, not read yet."""
    rows = db.execute(
        "SELECT place, item, incomplete FROM items WHERE session = ? AND place >= ? ORDER BY place",
        (session, since),
    ).fetchall()
    if [place for place, *_ in rows] != [*range(since, last)]:
        raise ValueError(f"its {len(rows)} items do not go from {since} to the bookmark {last}")
    return rows


def _item(text: str) -> dict[str, Any]:
    item = json.loads(text)
    if not isinstance(item, dict):
        raise TypeError(f"{text[:40]} is no item")
    return item


def _load(db: sqlite3.Connection, session: str) -> Snapshot:
    with _transaction(db, "DEFERRED"):
        version, bookmark, turn, ledger, checkpoint = _row(db, session)
        rows = _rows(db, session, 0, bookmark)
        notes = db.execute(
            "SELECT note FROM notes WHERE session = ? ORDER BY version, number", (session,)
        ).fetchall()
    with _reading():
        return Snapshot(
            session=session,
            items=tuple(_item(item) for _, item, _ in rows),
            incomplete=frozenset(at for at, _, cut in rows if cut),
            notes=tuple(Note(**json.loads(note)) for (note,) in notes),
            bookmark=bookmark,
            turn=None if turn is None else OpenTurn(**json.loads(turn)),
            ledger=None if ledger is None else Ledger(**json.loads(ledger)),
            checkpoint=None if checkpoint is None else json.loads(checkpoint),
            version=version,
        )


def _since(db: sqlite3.Connection, session: str, bookmark: int) -> Delivery:
    with _transaction(db, "DEFERRED"):
        _, last, *_ = _row(db, session)
        since = usable_bookmark(bookmark, last)
        rows = _rows(db, session, since, last)
    with _reading():
        return Delivery(items=tuple(_item(item) for _, item, _ in rows), bookmark=last)


class _Write:
    """A commit, made into text before anybody has to wait for it."""

    def __init__(self, session: str, change: Commit, expected: int) -> None:
        self._session, self._change, self._expected = session, change, expected
        self._items = encoded_items(change)
        self._turn = None if change.turn is None else change.turn.model_dump_json()
        self._ledger = encoded_ledger(change)
        self._checkpoint = encoded_checkpoint(change)

    def __call__(self, db: sqlite3.Connection) -> None:
        with _transaction(db, "IMMEDIATE"):
            version, here, _, ledger, checkpoint = _row(db, self._session)
            if version != self._expected:
                raise ConflictError(self._session, self._expected, version)
            change, name = self._change, self._session
            state: tuple[Any, ...] = (
                *(name, version + 1, here + len(self._items), self._turn),
                *(self._ledger or ledger, self._checkpoint or checkpoint),
            )
            db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?)", state)
            rows = (
                (name, here + at, item, at in change.incomplete)
                for at, item in enumerate(self._items)
            )
            db.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", rows)
            db.executemany(
                "INSERT INTO notes VALUES (?, ?, ?, ?)",
                (
                    (name, version + 1, number, text)
                    for number, text in enumerate(encoded_notes(change, here))
                ),
            )
