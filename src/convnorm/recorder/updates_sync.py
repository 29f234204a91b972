"""The updates of one turn, for code that is not asynchronous: `updates` without the waiting."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from convnorm.errors import PolicyError
from convnorm.recorder.turn import Turn, TurnView
from convnorm.stores import Commit, HistoryStore, blocking
from convnorm.wire import LIST


class SyncUpdates(TurnView):
    """The source's updates, each handed on as soon as it is merged."""

    def __init__(self, source: Any, store: HistoryStore, turn: Turn) -> None:
        super().__init__(turn)
        self._source, self._store = source, store
        self._updates: Iterator[Any] = iter(())
        self._stack = ExitStack()
        self._bare = True

    def __iter__(self) -> "SyncUpdates":
        return self

    def __next__(self) -> Any:
        if not self._turn.begun:
            self.begin(bare=True)
        while not self._turn.over and self._turn.report is None:  # nothing more would be stored
            try:
                update = next(self._updates)
                self._turn.take(update)
            except StopIteration:
                self._turn.over = True
                break
            except BaseException as error:
                self._turn.failed = error
                if self._bare:
                    self.end(error)
                raise
            if self._turn.emit != "final":
                return update
        if self._bare:
            self.end(None)
        if self._turn.emit == "updates" or self._turn.final:
            raise StopIteration
        self._turn.final = True
        return self._turn.answer()

    def begin(self, *, bare: bool) -> None:
        """Store the input, then make the call."""
        self._bare = bare
        try:
            self._commit(self._turn.begin())
            self._updates = _opened(self._source, self._stack)
        except BaseException as error:
            if self._turn.begun:
                self._turn.failed = error
                self.end(error)
            raise

    def end(self, error: BaseException | None) -> None:
        """Store the answer, whatever happened, and let go of the source."""
        try:
            if self._turn.report is None:
                change = self._turn.finish(error, cancelled=False)
                try:
                    self._commit(change)
                except Exception as failure:  # noqa: BLE001  # whatever a store of somebody else raises
                    self._turn.unsaved(change, failure, error)
        finally:
            self._stack.__exit__(type(error) if error else None, error, None)

    def _commit(self, change: Commit) -> None:
        """Commit, and know afterwards whether it is there, though Ctrl-C comes between, once."""
        before = self._turn.snapshot
        after = before.after(change)
        interrupted: KeyboardInterrupt | None = None
        try:
            with blocking(self._store) as store:
                store.commit(before.session, change, expected_version=before.version)
        except KeyboardInterrupt as error:
            interrupted = error
            with blocking(self._store) as store:
                if store.load(before.session) != after:
                    store.commit(before.session, change, expected_version=before.version)
        self._turn.saved(after)
        if interrupted is not None:
            raise interrupted


def _opened(source: Any, stack: ExitStack) -> Iterator[Any]:
    """The updates behind whatever makes them; a whole response is the only update."""
    made = source() if callable(source) else source
    if hasattr(made, "__enter__"):
        made = stack.enter_context(made)
    elif any(hasattr(made, name) for name in ("__await__", "__aiter__", "__aenter__")):
        if inspect.iscoroutine(made):
            made.close()
        raise PolicyError(f"a {type(made).__name__} is awaited: record it in `async with`")
    elif hasattr(made, "close") and hasattr(made, "__next__"):
        stack.callback(made.close)
    # The SDKs' responses are pydantic models, which can be iterated and are no streams.
    whole = isinstance(made, (Mapping, *LIST)) or hasattr(made, "model_dump")
    return iter([made]) if whole or not hasattr(made, "__iter__") else iter(made)
