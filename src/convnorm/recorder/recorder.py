"""The recorder: what is chosen once, and a recording for each turn."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from convnorm.delivery import Ledger
from convnorm.errors import PolicyError
from convnorm.mergers import MERGERS, Merger
from convnorm.recorder.turn import Emit, Turn
from convnorm.recorder.updates import Updates
from convnorm.recorder.updates_sync import SyncUpdates
from convnorm.stores import HistoryStore, Snapshot

AnyUpdates = TypeVar("AnyUpdates", Updates, SyncUpdates)


class Recorder:
    """Records the turns of sessions in a store, streamed or not, however they end.

    ```python
    async with recorder(call, snapshot, input=[question]) as updates:
        async for update in updates:
            ...
    ```
    """

    def __init__(
        self,
        store: HistoryStore,
        *,
        emit: Emit = "updates",
        mergers: Sequence[type[Merger]] = MERGERS,
    ) -> None:
        """`emit`: hand on every update, the `Answer` once the stream is over, or both.

        `mergers` are asked in order whether they know what a stream begins with.
        """
        if emit not in ("updates", "final", "both"):
            raise PolicyError(f"emit is 'updates', 'final' or 'both', not {emit!r}")
        self.store, self.emit, self.mergers = store, emit, tuple(mergers)

    def __call__(
        self,
        source: Any,
        snapshot: Snapshot,
        *,
        input: Sequence[Any] = (),  # noqa: A002  # what every API calls it
        request: Mapping[str, Any] | None = None,
        ledger: Ledger | None = None,
        checkpoint: Any = None,
    ) -> "Recording":
        """A recording of one turn, which begins when it is entered.

        `source` is a function or an awaitable that makes the call, a stream, the client's context
        manager around one, or a whole response. A call that is not made yet is made after the
        input is stored. `snapshot` is what the request was built on, `input` what it adds to it.
        `request`, the body for the Responses API, lets the recorder keep the ledger: attempted with
        the input, accepted with a whole answer. `ledger` (instead of the snapshot's) and
        `checkpoint`, if given, are stored with the input.
        """
        if not isinstance(snapshot, Snapshot):
            raise PolicyError(f"a turn goes on from a Snapshot, not from {snapshot!r}: load it")
        if isinstance(input, str) or not isinstance(input, Sequence):
            raise PolicyError("input is a list of messages or items, those that are not stored yet")
        if request is not None and "input" not in request:
            raise PolicyError("request is a body of the Responses API: only that has a ledger")
        turn = Turn(snapshot, input, self.mergers, self.emit, request, ledger, checkpoint)
        return Recording(source, self.store, turn)


class Recording:
    """One turn. `async with` and `with` store its answer before the block is left.

    A bare `for` stores it if the stream comes to its end or fails. Who breaks out of one leaves the
    turn open; the next turn of the session closes it.
    """

    def __init__(self, source: Any, store: HistoryStore, turn: Turn) -> None:
        self._source, self._store, self._turn = source, store, turn
        self._updates: Updates | SyncUpdates | None = None

    async def __aenter__(self) -> Updates:
        updates = self._once(Updates)
        await updates.begin(bare=False)
        return updates

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert isinstance(self._updates, Updates)
        await self._updates.end(error)

    def __enter__(self) -> SyncUpdates:
        updates = self._once(SyncUpdates)
        updates.begin(bare=False)
        return updates

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert isinstance(self._updates, SyncUpdates)
        self._updates.end(error)

    def __aiter__(self) -> Updates:
        return self._once(Updates)

    def __iter__(self) -> SyncUpdates:
        return self._once(SyncUpdates)

    def _once(self, kind: type[AnyUpdates]) -> AnyUpdates:
        if self._updates is not None:
            raise PolicyError("a recording is of one turn: call the recorder again for the next")
        updates = kind(self._source, self._store, self._turn)
        self._updates = updates
        return updates
