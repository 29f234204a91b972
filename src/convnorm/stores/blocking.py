"""Any store, for code that is not asynchronous."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from anyio.from_thread import BlockingPortal, start_blocking_portal

from convnorm.stores.store import Commit, Delivery, HistoryStore, Snapshot


@dataclass(frozen=True, slots=True)
class BlockingStore:
    """The methods of a store, each of which returns when it is done."""

    store: HistoryStore
    portal: BlockingPortal

    def load(self, session: str) -> Snapshot:
        """See `HistoryStore.load`."""
        return self.portal.call(self.store.load, session)

    def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """See `HistoryStore.commit`."""
        step = partial(self.store.commit, session, change, expected_version=expected_version)
        self.portal.call(step)

    def deliver_since(self, session: str, bookmark: int) -> Delivery:
        """See `HistoryStore.deliver_since`."""
        return self.portal.call(self.store.deliver_since, session, bookmark)


@contextmanager
def blocking(store: HistoryStore) -> Iterator[BlockingStore]:
    """The store with methods that block; an event loop runs in a thread as long as it is used."""
    with start_blocking_portal() as portal:
        yield BlockingStore(store, portal)
