"""The contract that comes with convnorm holds for its stores, and fails where it is broken."""

from typing import Any

import pytest

from convnorm.stores import Commit, Delivery, HistoryStore, MemoryStore, Snapshot
from convnorm.testing.stores import check_store

pytestmark = pytest.mark.anyio


async def test_our_stores_keep_it(store: HistoryStore) -> None:
    """Both of them, and twice in one store."""
    await check_store(store)
    await check_store(store, "another")


class Overwrites(MemoryStore):
    """It takes any version."""

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:  # noqa: ARG002
        """As if nobody else wrote."""
        version = (await self.load(session)).version
        await super().commit(session, change, expected_version=version)


class Forgets(MemoryStore):
    """It keeps no notes."""

    async def commit(self, session: str, change: Commit, *, expected_version: int) -> None:
        """Without them."""
        without = change.model_copy(update={"notes": ()})
        await super().commit(session, without, expected_version=expected_version)


class Shares(MemoryStore):
    """It hands out its own objects."""

    async def load(self, session: str) -> Snapshot:
        """Without a copy."""
        return self._kept(session)


class SharesNotes(MemoryStore):
    """It hands out its own notes."""

    async def load(self, session: str) -> Snapshot:
        """With copies of all else."""
        found = await super().load(session)
        return found.model_copy(update={"notes": self._kept(session).notes})


class Repeats(MemoryStore):
    """It delivers the last item again."""

    async def deliver_since(self, session: str, bookmark: int) -> Delivery:
        """From one place before."""
        return await super().deliver_since(session, max(0, bookmark - 1))


class Guesses(MemoryStore):
    """It takes a bookmark behind the end for the end."""

    async def deliver_since(self, session: str, bookmark: int) -> Delivery:
        """From the end at the latest."""
        last = (await self.load(session)).bookmark
        return await super().deliver_since(session, min(bookmark, last))


@pytest.mark.parametrize("broken", [Overwrites, Forgets, Shares, SharesNotes, Repeats, Guesses])
async def test_a_store_that_breaks_it(broken: Any) -> None:
    """Each way to break it is found."""
    with pytest.raises(AssertionError):
        await check_store(broken())
