"""One request and its answer, and the link by which a request continues another."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import field_validator

from convnorm.delivery.items import as_items
from convnorm.options import Options
from convnorm.wire import fields


class Link(NamedTuple):
    """What a request continues; without either it holds the whole history itself."""

    previous_response_id: str | None = None
    conversation: str | None = None

    @classmethod
    def of(cls, request: object) -> "Link":
        """The link that a request body names; a conversation may be an object with an id."""
        body = fields(request) or {}
        previous, held = body.get("previous_response_id"), body.get("conversation")
        held = held.get("id") if isinstance(held, Mapping) else held
        return cls(
            previous if isinstance(previous, str) else None, held if isinstance(held, str) else None
        )

    def __bool__(self) -> bool:
        return self.previous_response_id is not None or self.conversation is not None


class Exchange(Options):
    """One request, and what came out of it if it was answered."""

    input: tuple[Any, ...] = ()
    """What went in; behind what it `repeats`."""
    output: tuple[Any, ...] = ()
    previous_response_id: str | None = None
    conversation: str | None = None
    stored: bool = True
    """The server keeps it; what it did not keep it has still issued."""
    repeats: tuple[str, int] | None = None
    """The input begins with so many items of the whole input of that response: requests that carry
    the whole history hold each item once."""
    before: int | None = None
    """How many items the conversation had before this input."""

    @field_validator("input", mode="before")
    @classmethod
    def _as_items(cls, given: Any) -> Any:
        return as_items(given)
