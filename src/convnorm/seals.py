"""What a ledger tells of reasoning: who sealed it, what it led to, and what the server holds."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from convnorm.context import Context
from convnorm.delivery import Ledger
from convnorm.wire import fields


class Seals:
    """The server's side of reasoning; without a ledger nothing is known."""

    def __init__(self, ledger: Ledger | None, context: Context) -> None:
        self.stored: frozenset[str] = frozenset()
        """The ids that the server would find."""
        self.chain: frozenset[str] = frozenset()
        """The ids of what the server puts before the input."""
        self.followers: dict[str, str] = {}
        """By the id of stored reasoning: the id of the item it led to."""
        self.leads: dict[str, str] = {}
        """By the id of a stored item: the id of the reasoning that led to it."""
        self._ledger = ledger
        self._sealed: set[str] = set()
        if ledger is None:
            return
        self.stored = frozenset(_ids(ledger.stored_items()))
        held = ledger.holds(context.link)
        self.chain = frozenset(_ids(held))
        for items in ledger.stored_outputs():
            for before, after in pairwise(_objects(items)):
                own, led = before.get("id"), after.get("id")
                if not isinstance(own, str) or not isinstance(led, str):
                    continue
                if before.get("type") == "reasoning" and _made(after):
                    self.followers[own], self.leads[led] = led, own
        self._issued = {seal for one in _objects(ledger.issued_items()) for seal in _seal(one)}
        self._taken = {seal for one in _objects(ledger.stored_items()) for seal in _seal(one)}

    def lost(self, own: str | None) -> bool:
        """Whether the server would not find an id."""
        return self._ledger is not None and own is not None and own not in self.stored

    def refused(self, seal: str) -> bool:
        """Whether an encrypted content is known to be another server's or organization's."""
        if self._ledger is None:
            return False
        maker = self._ledger.encrypted_content.get(seal)
        if maker is not None:
            owner, ours = (fields(maker) or {}).get("organization"), self._ledger.organization
            return None not in (owner, ours) and owner != ours
        return bool(self._issued) and seal not in self._issued | self._taken


def _objects(items: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    return (keys for item in items if (keys := fields(item)) is not None)


def _ids(items: Iterable[Any]) -> Iterator[str]:
    return (own for item in _objects(items) if isinstance(own := item.get("id"), str))


def _seal(item: Mapping[str, Any]) -> Iterator[str]:
    if item.get("type") == "reasoning" and isinstance(seal := item.get("encrypted_content"), str):
        yield seal


def _made(item: Mapping[str, Any]) -> bool:
    """Whether the model made an item: no output, and no message of someone else."""
    kind = item.get("type")
    output = isinstance(kind, str) and kind.endswith("_output")
    return item.get("role") in (None, "assistant") and not output
