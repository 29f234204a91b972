"""Sessions in memory, for tests and for what may be forgotten."""

from threading import Lock

from convnorm.errors import ConflictError
from convnorm.stores.store import (
    Commit,
    Delivery,
    Snapshot,
    copied,
    usable_bookmark,
    usable_session,
)


class MemoryStore:
    """One process's sessions, safe with threads. Nobody else's change to an item gets in."""

    def __init__(self) -> None:
        self._sessions: dict[str, Snapshot] = {}
        self._lock = Lock()

    async def load(self, session: str) -> Snapshot:
        """The session as it is now."""
        kept = self._kept(session)
        return kept.model_copy(
            update={
                "items": tuple(map(copied, kept.items)),
                "notes": tuple(
                    note.model_copy(update={"raw": copied(note.raw)}) for note in kept.notes
                ),
                "checkpoint": copied(kept.checkpoint),
            }
        )

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """Store all of `change`, or raise ConflictError."""
        with self._lock:
            before = self._kept(session)
            if before.version != expected_version:
                raise ConflictError(session, expected_version, before.version)
            self._sessions[session] = before.after(change)

    async def deliver_since(self, session: str, bookmark: int) -> Delivery:
        """The items behind a bookmark."""
        kept = self._kept(session)
        since = usable_bookmark(bookmark, kept.bookmark)
        return Delivery(items=tuple(map(copied, kept.items[since:])), bookmark=kept.bookmark)

    def _kept(self, session: str) -> Snapshot:
        return self._sessions.get(usable_session(session)) or Snapshot(session=session)
