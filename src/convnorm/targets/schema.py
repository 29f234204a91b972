"""A small language for the schema of JSON values: what a value may be, as data.

A plain value is described by the name of its type, a word by the set of words it may be. Rules say
where a value does not fit, and dialects what would fit in its place, each with a walk of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

OWN: Final = "judged elsewhere"
"""What a rule of its own judges."""
ANY: Final = "value"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
INTEGER: Final = "integer"
NUMBER: Final = "number"
OBJECT: Final = "object"
ARRAY: Final = "list"
GIVEN: Final = "not null"
"""As `OWN`; only whether null may stand for nothing is judged here."""
FILE: Final = "text or file"
"""Data in base64; an SDK reads paths and open files itself."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An object: what it must have, and what it may have."""

    required: Mapping[str, "Wanted"] = field(default_factory=dict)
    optional: Mapping[str, "Wanted"] = field(default_factory=dict)
    keys: frozenset[str] = field(init=False)
    """All keys it can have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", frozenset({"type", *self.required, *self.optional}))


@dataclass(frozen=True, slots=True)
class OneOf:
    """An object that is one of several, as its `type` says."""

    shapes: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose elements are all alike."""

    of: "Wanted"


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys, whose values are all alike."""

    of: "Wanted"


@dataclass(frozen=True, slots=True)
class Growing:
    """A word of a list to which the API adds: another one may be new."""

    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Nullable:
    """A value, or null."""

    of: "Wanted"


@dataclass(frozen=True, slots=True)
class Either:
    """A value of one of several JSON types."""

    of: tuple["Wanted", ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """What is in a list or an object; whether it is one, a rule of its own judges."""

    of: "Wanted"


Wanted: TypeAlias = (
    str | frozenset[str] | Shape | OneOf | ListOf | MapOf | Growing | Nullable | Either | Inside
)


def words(*given: str) -> Growing:
    """The words of a list that grows."""
    return Growing(frozenset(given))
