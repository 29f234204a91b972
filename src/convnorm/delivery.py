"""What the server knows: the responses and conversations it holds, as a plain value."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import Field, field_validator

from convnorm.errors import PolicyError
from convnorm.options import Options
from convnorm.wire import LIST, fields


class Exchange(Options):
    """One request that was answered: what went in, what came out, and what it continued."""

    input: tuple[Any, ...] = ()
    output: tuple[Any, ...] = ()
    previous_response_id: str | None = None
    conversation: str | None = None
    stored: bool = True
    """The server keeps it; what it did not keep it has still issued."""

    @field_validator("input", mode="before")
    @classmethod
    def _as_items(cls, given: Any) -> Any:
        """An input may be a plain text."""
        return ({"role": "user", "content": given},) if isinstance(given, str) else given


class Ledger(Options):
    """The server's side of the history. What is not in it, the server does not have."""

    responses: dict[str, Exchange] = Field(default_factory=dict)
    conversations: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    items: tuple[Any, ...] = ()
    """Items that are stored, though not by a response or conversation of this ledger."""
    locked: tuple[str, ...] = ()
    """Conversations that another request is using."""
    expired_containers: tuple[str, ...] = ()
    """Containers of the code interpreter that are gone."""
    zero_data_retention: bool = False
    """The organization lets the server keep nothing."""
    organization: str | None = None
    """Whose requests these are."""
    encrypted_content: dict[str, Any] = Field(default_factory=dict)
    """By sealed text: who had it sealed, as `{"organization": "org_…"}`."""

    @field_validator("conversations", mode="before")
    @classmethod
    def _plain_items(cls, given: Any) -> Any:
        """A conversation is a list of items, or an object that has one under `items`."""
        if not isinstance(given, Mapping):
            return given
        return {
            name: held.get("items", ()) if isinstance(held, Mapping) else held
            for name, held in given.items()
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The ledger of a server whose state is given as plain data."""
        if not isinstance(state, Mapping):
            raise PolicyError(f"a server's state is a mapping, not a {type(state).__name__}")
        return cls(**state)

    def holds(self, response: str | None, conversation: str | None = None) -> tuple[Any, ...]:
        """All items that the server puts before the input of a call with this link, in order."""
        if conversation is not None:
            return self.conversations.get(conversation, ())
        chain: list[Exchange] = []
        seen: set[str] = set()
        while response is not None and response not in seen:
            seen.add(response)  # a chain that bites its tail ends there
            found = self.responses.get(response)
            if found is None or not found.stored:
                break
            chain.append(found)
            response = found.previous_response_id
        return tuple(
            item for exchange in reversed(chain) for item in (*exchange.input, *exchange.output)
        )

    def stored_items(self) -> Iterator[Any]:
        """Every item that the server would find by its id."""
        for exchange in self.responses.values():
            if exchange.stored:
                yield from exchange.input
                yield from exchange.output
        for items in self.conversations.values():
            yield from items
        yield from self.items

    def issued_items(self) -> Iterator[Any]:
        """Every item that the server ever made, stored or not."""
        for exchange in self.responses.values():
            yield from exchange.output
        for items in self.conversations.values():
            yield from items


def item_ids(items: Iterable[Any]) -> set[str]:
    """The ids of items that have one."""
    keys = (fields(item) or {} for item in items if not isinstance(item, LIST))
    return {found for one in keys if isinstance(found := one.get("id"), str)}
