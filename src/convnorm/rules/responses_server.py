"""What a ledger says about the server that a request goes to."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from convnorm.context import Context
from convnorm.delivery import Ledger, Link
from convnorm.wire import fields

Keys = Mapping[str, Any]


class Server:
    """The server's side of one request; everything is worked out when a rule first asks."""

    def __init__(self, ledger: Ledger, context: Context) -> None:
        self.ledger = ledger
        self._response = context.previous_response_id
        self._conversation = context.conversation

    @property
    def knows_response(self) -> bool:
        """Whether the response that the request continues is stored."""
        found = self.ledger.responses.get(self._response or "")
        return found is not None and found.stored and self._response not in self.ledger.gone

    @property
    def knows_conversation(self) -> bool:
        """Whether the conversation that the request continues exists."""
        named, ledger = self._conversation, self.ledger
        return named in ledger.conversations and named not in ledger.gone

    def can_replay(self, views: Sequence[Keys | None]) -> bool:
        """Whether anybody still knows what stood behind a link that cannot be used.

        An input without anything of the model is no whole history: a request that continues
        something is not the first one.
        """
        known = self.ledger.heard_of(Link(self._response, self._conversation))
        return known or any(view is not None and _tells(view) for view in views)

    def made_call(self, call_id: str | None) -> bool:
        """Whether some response made the call."""
        return call_id in self.ledger.makers

    @cached_property
    def whole(self) -> bool:
        """Whether the ledger has the chain down to its first response, so that nothing is unseen.

        A link that leads nowhere has nothing behind it, which is whole, too.
        """
        if self._conversation is not None:
            return True
        named, seen = self._response, set[str]()
        while named is not None and named not in seen:
            found = self.ledger.responses.get(named)
            if found is None or not found.stored:
                return not seen
            if found.conversation is not None:
                return False
            seen.add(named)
            named = found.previous_response_id
        return True

    @cached_property
    def chain(self) -> list[Keys]:
        """What the server puts before the input; with two links, what either puts there."""
        return [item for chain in self.chains for item in chain]

    @cached_property
    def chains(self) -> list[list[Keys]]:
        """What each link puts before the input; a request can name two, and must not."""
        links = (Link(self._response), Link(None, self._conversation))
        return [list(_objects(self.ledger.holds(link))) for link in links if link]

    @cached_property
    def chain_ids(self) -> set[str]:
        """The ids of what the server puts before the input."""
        return {own for item in self.chain if (own := _id(item))}

    @cached_property
    def stored(self) -> dict[str, Keys]:
        """By id: everything that the server would find."""
        return {own: item for item in _objects(self.ledger.stored_items()) if (own := _id(item))}

    @cached_property
    def unstored(self) -> set[str]:
        """The ids that the server gave out and did not keep."""
        issued = {own for item in _objects(self.ledger.issued_items()) if (own := _id(item))}
        return issued.difference(self.stored)

    @cached_property
    def followers(self) -> dict[str, str]:
        """By the id of stored reasoning: the id of the item it led to."""
        found: dict[str, str] = {}
        for items in self.ledger.stored_outputs():
            listed = list(_objects(items))
            for before, after in pairwise(listed):
                own, led = _id(before), _id(after)
                if before.get("type") == "reasoning" and own and led and _is_made(after):
                    found[own] = led
        return found

    @cached_property
    def leads(self) -> dict[str, str]:
        """By the id of a stored item: the id of the reasoning that led to it."""
        return {led: own for own, led in self.followers.items()}

    @cached_property
    def ends_in_reasoning(self) -> str | None:
        """The id of the reasoning that the chain ends with, if it does."""
        last = self.chain[-1] if self.chain else {}
        return _id(last) if last.get("type") == "reasoning" else None

    def refuses(self, kind: str, sealed: str) -> bool:
        """Whether an encrypted content cannot be this server's."""
        maker = self.ledger.encrypted_content.get(sealed)
        if maker is not None:
            organization = (fields(maker) or {}).get("organization")
            return None not in (organization, self.ledger.organization) and (
                organization != self.ledger.organization
            )
        known = self._sealed.get(kind)
        return known is not None and sealed not in known

    @cached_property
    def _sealed(self) -> dict[str, set[str]]:
        """By item type: what the server sealed, and what it took before."""
        issued: dict[str, set[str]] = {}
        for kind, text in _seals(self.ledger.issued_items()):
            issued.setdefault(kind, set()).add(text)
        for kind, text in _seals(self.ledger.stored_items()):
            if kind in issued:
                issued[kind].add(text)
        return issued


def _objects(items: Iterator[Any] | Sequence[Any]) -> Iterator[Keys]:
    for item in items:
        if (keys := fields(item)) is not None:
            yield keys


def _id(item: Keys) -> str | None:
    own = item.get("id")
    return own if isinstance(own, str) else None


def _is_made(item: Keys) -> bool:
    """Whether the model made an item: it is no output and no message of someone else."""
    kind, role = item.get("type"), item.get("role")
    return role in (None, "assistant") and not (isinstance(kind, str) and kind.endswith("_output"))


def _tells(item: Keys) -> bool:
    """Whether the model made an item that is here itself."""
    referred = item.get("type") == "item_reference" or ("type" not in item and "role" not in item)
    return _is_made(item) and not referred and item.get("type") not in UNMADE


UNMADE = ("mcp_approval_response", "compaction_trigger", "additional_tools", "configuration_update")


def _seals(items: Iterator[Any]) -> Iterator[tuple[str, str]]:
    for item in _objects(items):
        kind, text = item.get("type"), item.get("encrypted_content")
        if isinstance(kind, str) and isinstance(text, str):
            yield kind, text
