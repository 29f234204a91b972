"""What a store holds of a session, and what every store can do."""

import json
from typing import Any, Protocol, Self

from pydantic import model_validator

from convnorm.delivery import Ledger
from convnorm.errors import DialectError, PolicyError, StoreError
from convnorm.mergers.merger import Note
from convnorm.options import Options
from convnorm.wire import fields


class OpenTurn(Options):
    """A turn that has begun: its input is in the history, its answer is not."""

    at: int
    """Where its input begins."""
    number: int
    """The version of the session in which it began: no two turns of a session have the same."""


class Commit(Options):
    """One step of a session: everything in it is stored, or nothing."""

    items: tuple[Any, ...] = ()
    """Wire elements that go to the end of the history; what is there is never changed."""
    incomplete: frozenset[int] = frozenset()
    """Which of these items were cut short."""
    notes: tuple[Note, ...] = ()
    """What is not kept as an item; their places count from the first of these items."""
    turn: OpenTurn | None = None
    """The turn that is open after this step."""
    ledger: Ledger | None = None
    """What the server holds now; None: as before."""
    checkpoint: Any = None
    """The caller's own state, as JSON; None: as before."""

    @model_validator(mode="after")
    def _in_place(self) -> Self:
        """A place outside of the commit would mark what somebody else has written."""
        for at in self.incomplete:
            if not 0 <= at < len(self.items):
                raise ValueError(f"incomplete names item {at} of {len(self.items)}")
        for note in self.notes:
            if not 0 <= note.at <= len(self.items):
                raise ValueError(f"a note stands at item {note.at} of {len(self.items)}")
        return self


class Snapshot(Options):
    """A session as it was loaded. A session that was never written is empty, in version 0."""

    session: str
    items: tuple[Any, ...] = ()
    """Wire elements, oldest first, ready for `normalize`."""
    incomplete: frozenset[int] = frozenset()
    """Which items were cut short when a stream ended early."""
    notes: tuple[Note, ...] = ()
    """What is not in the history, and where it would stand."""
    bookmark: int = 0
    """The place behind the last item: what `deliver_since` goes on from."""
    turn: OpenTurn | None = None
    """A turn that has begun and not ended; its recorder may be at work, or gone."""
    ledger: Ledger | None = None
    checkpoint: Any = None
    version: int = 0
    """Counts the commits."""

    def after(self, change: Commit) -> "Snapshot":
        """The session once `change` is committed to it."""
        here, given = self.bookmark, encoded_checkpoint(change)
        return Snapshot(
            session=self.session,
            items=(*self.items, *map(json.loads, encoded_items(change))),
            incomplete=self.incomplete | {here + at for at in change.incomplete},
            notes=(
                *self.notes,
                *(Note(**json.loads(text)) for text in encoded_notes(change, here)),
            ),
            bookmark=here + len(change.items),
            turn=change.turn,
            ledger=self.ledger if change.ledger is None else change.ledger,
            checkpoint=self.checkpoint if given is None else json.loads(given),
            version=self.version + 1,
        )


class Delivery(Options):
    """What came after a bookmark, and the bookmark to ask with the next time."""

    items: tuple[Any, ...]
    bookmark: int


class HistoryStore(Protocol):
    """Where sessions are kept. Any object with these three methods is one."""

    async def load(self, session: str) -> Snapshot:
        """The session as it is now. It writes nothing: an open turn stays open."""

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """Store all of `change` in one step, unless the session is not in this version.

        Once it returns, the change is there whatever happens to this process. If the version is
        another one, it raises ConflictError and stores nothing.
        """

    async def deliver_since(self, session: str, bookmark: int) -> Delivery:
        """The items behind a bookmark. Whoever goes on from the new one gets each item once."""


# ---------------------------------------------------------------- for those who write a store


def encoded(value: object, where: str) -> str:
    """A value as JSON text; what is no JSON is an error that says where it stands."""
    try:
        # In ASCII, so that any string can be stored, half a surrogate pair included.
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DialectError(f"{where} cannot be stored, it is no JSON: {error}") from None


def encoded_items(change: Commit) -> list[str]:
    """The items of a change as JSON text, one each."""
    return [_encoded_item(item, f"items[{at}]") for at, item in enumerate(change.items)]


def _encoded_item(item: object, where: str) -> str:
    keys = fields(item)
    if keys is None:
        raise DialectError(
            f"{where} is a {type(item).__name__}: an item is an object, as it is sent"
        )
    return encoded(dict(keys), where)


def _plain(value: object) -> object:
    found = fields(value)
    if found is None:
        raise TypeError(f"a {type(value).__name__} is no JSON value")
    return dict(found)


def copied(value: Any) -> Any:
    """A value of JSON, in new objects: what a caller does to one does nothing to the other."""
    return json.loads(json.dumps(value))


def encoded_notes(change: Commit, here: int) -> list[str]:
    """The notes of a change as JSON text, each at its place in the history."""
    return [
        encoded({**note.model_dump(), "at": here + note.at}, f"notes[{at}]")
        for at, note in enumerate(change.notes)
    ]


def encoded_ledger(change: Commit) -> str | None:
    """The ledger in its own JSON form; None if it stays as it was."""
    return None if change.ledger is None else encoded(change.ledger.model_dump(), "ledger")


def encoded_checkpoint(change: Commit) -> str | None:
    """The caller's own state as JSON text; None if it stays as it was."""
    return None if change.checkpoint is None else encoded(change.checkpoint, "checkpoint")


def usable_session(session: object) -> str:
    """A session's name, or an error that says why it is none."""
    if not isinstance(session, str) or not session:
        raise PolicyError(f"a session is named by a text, not by {session!r}")
    try:
        session.encode()
    except UnicodeEncodeError:
        raise PolicyError(f"the session's name {session!r} is no Unicode text") from None
    return session


def usable_bookmark(bookmark: object, last: int) -> int:
    """A bookmark of this history, or an error that says why it is none."""
    if not isinstance(bookmark, int) or isinstance(bookmark, bool) or bookmark < 0:
        raise PolicyError(f"a bookmark is a count of items, not {bookmark!r}")
    if bookmark > last:
        raise StoreError(
            f"bookmark {bookmark} lies behind the end of the history, which has {last} items: it "
            "is of another session, or the history was deleted; begin anew with bookmark 0"
        )
    return bookmark
