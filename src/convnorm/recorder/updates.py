"""The updates of one turn, on asyncio and trio."""

import inspect
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.lowlevel

from convnorm.errors import ConflictError, PolicyError
from convnorm.recorder.turn import Turn, TurnView
from convnorm.stores import Commit, HistoryStore

TRIES = 1000
"""How many cancellations a commit outlives; behind them it is given up, and the turn stays open."""


class Updates(TurnView):
    """The source's updates, each handed on as soon as it is merged."""

    def __init__(self, source: Any, store: HistoryStore, turn: Turn) -> None:
        super().__init__(turn)
        self._source, self._store = source, store
        self._updates: AsyncIterator[Any] | None = None
        self._stack = AsyncExitStack()
        self._bare = True

    def __aiter__(self) -> "Updates":
        return self

    async def __anext__(self) -> Any:
        if not self._turn.begun:
            await self.begin(bare=True)
        while not self._turn.over and self._turn.report is None:  # nothing more would be stored
            for update in await self._next():
                if self._turn.emit != "final":
                    return update
        if self._bare:
            await self.end(None)
        if self._turn.emit == "updates" or self._turn.final:
            raise StopAsyncIteration
        self._turn.final = True
        return self._turn.answer()

    async def begin(self, *, bare: bool) -> None:
        """Store the input, then make the call."""
        self._bare = bare
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()  # then nothing has begun
            await self._commit(self._turn.begin())
            self._updates = await _opened(self._source, self._stack)
        except BaseException as error:
            if self._turn.begun:
                self._turn.failed = error
                await self.end(error)
            raise
        finally:
            if inspect.iscoroutine(self._source):
                self._source.close()  # it is over, or the call is not made

    async def end(self, error: BaseException | None) -> None:
        """Store the answer, whatever happened, and let go of the source."""
        try:
            if self._turn.report is None:
                cancelled = _is_cancelled(error) or _is_cancelled(self._turn.failed)
                change = self._turn.finish(error, cancelled=cancelled)
                try:
                    await self._commit(change)
                except Exception as failure:  # noqa: BLE001  # whatever a store of somebody else raises
                    self._turn.unsaved(change, failure, error)
        finally:
            await self._stack.__aexit__(type(error) if error else None, error, None)

    async def _next(self) -> tuple[Any, ...]:
        """The next update, merged; nothing when the stream is over."""
        assert self._updates is not None
        try:
            update = await anext(self._updates)
            self._turn.take(update)
        except StopAsyncIteration:
            self._turn.over = True
            return ()
        except BaseException as error:
            self._turn.failed = error
            if self._bare:
                await self.end(error)
            raise
        else:
            return (update,)

    async def _commit(self, change: Commit) -> None:
        """Commit, and know afterwards whether it is there, however often somebody cancels.

        A shield holds off anyio's cancellation and trio's. On asyncio a task's own `cancel` gets
        through it while the store may be at work: then only a look can tell what was stored.
        """
        session, before = self._turn.snapshot.session, self._turn.snapshot.version
        after = self._turn.snapshot.after(change)
        cancelled: BaseException | None = None
        looked = False
        with anyio.CancelScope(shield=True):
            for _ in range(TRIES):
                try:
                    if cancelled is None or await self._store.load(session) != after:
                        await self._store.commit(session, change, expected_version=before)
                    self._turn.saved(after)
                    break
                except anyio.get_cancelled_exc_class() as error:
                    cancelled = error
                except ConflictError:
                    # What was cancelled may have come through since we looked.
                    if cancelled is None or looked:
                        raise
                    looked = True
        if cancelled is not None:
            raise cancelled


def _is_cancelled(error: BaseException | None) -> bool:
    """Whether an error says that the task was cancelled; trio may say it several times at once."""
    kind = anyio.get_cancelled_exc_class()
    if isinstance(error, BaseExceptionGroup):
        return error.split(kind)[1] is None
    return isinstance(error, kind)


async def _opened(source: Any, stack: AsyncExitStack) -> AsyncIterator[Any]:
    """The updates behind whatever makes them; a whole response is the only update."""
    made = source() if callable(source) else source
    if inspect.isawaitable(made):
        made = await made
    if hasattr(made, "__aenter__"):
        made = await stack.enter_async_context(made)
    elif not hasattr(made, "__aiter__") and (
        hasattr(made, "__next__") or hasattr(made, "__enter__")
    ):
        raise PolicyError(f"a {type(made).__name__} is not awaited: record it in a `with` block")
    updates = aiter(made) if hasattr(made, "__aiter__") else _alone(made)
    if inspect.isasyncgen(updates):
        stack.push_async_callback(updates.aclose)
    return updates


async def _alone(response: Any) -> AsyncIterator[Any]:
    yield response
