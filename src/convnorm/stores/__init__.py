"""Where sessions are kept: the protocol, and the two stores that come with convnorm."""

from convnorm.stores.blocking import BlockingStore, blocking
from convnorm.stores.memory import MemoryStore
from convnorm.stores.sqlite import SqliteStore
from convnorm.stores.store import Commit, Delivery, HistoryStore, OpenTurn, Snapshot

__all__ = [
    "BlockingStore",
    "Commit",
    "Delivery",
    "HistoryStore",
    "MemoryStore",
    "OpenTurn",
    "Snapshot",
    "SqliteStore",
    "blocking",
]
