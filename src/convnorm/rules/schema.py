"""A small language for the schema of JSON values, and a walk that says where a value does not fit.

A plain value is described by the name of its type, a word by the set of words it may be. `OWN` is
what a rule of its own judges.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Final, NamedTuple, TypeAlias

from convnorm.rules.scan import key_name, shown
from convnorm.wire import LIST, fields

OWN: Final = "judged elsewhere"
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

CHECKS: Final[Mapping[str, Callable[[object], bool]]] = {
    OWN: lambda _: True,
    GIVEN: lambda _: True,
    ANY: lambda value: value is not None,
    STRING: lambda value: isinstance(value, str),
    BOOLEAN: lambda value: isinstance(value, bool),
    INTEGER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    OBJECT: lambda value: fields(value) is not None,
    ARRAY: lambda value: isinstance(value, LIST),
    FILE: lambda value: isinstance(value, str | PathLike) or hasattr(value, "read"),
}
"""By type name: whether a value is of it."""


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


class Flaw(NamedTuple):
    """One value that does not fit."""

    path: str
    said: str
    unsure: bool = False
    """The types forbid it, and the API may still take it: a new word, or null for nothing."""


def words(*given: str) -> Growing:
    """The words of a list that grows."""
    return Growing(frozenset(given))


def flaws(wanted: Wanted, value: object, path: str = "") -> Iterator[Flaw]:
    """Every place of a value that does not fit; nothing inside of what does not fit itself."""
    match wanted:
        case Nullable():
            if value is not None:
                yield from flaws(wanted.of, value, path)
        case Inside():
            if _has_type(wanted.of, value):
                yield from flaws(wanted.of, value, path)
        case Either():
            fitting = [one for one in wanted.of if _has_type(one, value)]
            if not fitting:
                yield Flaw(path, _said(path, value, wanted))
            for one in fitting[:1]:
                yield from flaws(one, value, path)
        case _ if not _has_type(wanted, value):
            yield Flaw(path, _said(path, value, wanted))
        case frozenset() | Growing():
            known = wanted if isinstance(wanted, frozenset) else wanted.words
            if value not in known:
                yield Flaw(path, _said(path, value, wanted), isinstance(wanted, Growing))
        case ListOf() if isinstance(value, LIST):
            for index, element in enumerate(value):
                yield from flaws(wanted.of, element, f"{path}[{index}]")
        case MapOf():
            for key, element in (fields(value) or {}).items():
                yield from flaws(wanted.of, element, f"{path}.{key_name(key)}")
        case Shape():
            yield from _shape_flaws(wanted, fields(value) or {}, path)
        case OneOf():
            raw = fields(value) or {}
            kind = raw.get("type")
            shape = wanted.shapes.get(kind) if isinstance(kind, str) else None
            if shape is None:
                yield Flaw(f"{path}.type", _said(f"{path}.type", kind), isinstance(kind, str))
            else:
                yield from _shape_flaws(shape, raw, path)


def _shape_flaws(shape: Shape, raw: Mapping[str, object], path: str) -> Iterator[Flaw]:
    for key, wanted in shape.required.items():
        if key in raw:
            yield from flaws(wanted, raw[key], f"{path}.{key}")
        elif wanted != OWN:
            yield Flaw(f"{path}.{key}", f"{path.removeprefix('.')} has no {key}")
    for key, wanted in shape.optional.items():
        if key in raw:
            yield from left_out_or(wanted, raw[key], f"{path}.{key}")


def left_out_or(wanted: Wanted, value: object, path: str) -> Iterator[Flaw]:
    """The flaws of a value that could be left out: null may stand for that."""
    if value is None and not isinstance(wanted, Nullable | Inside) and wanted != OWN:
        yield Flaw(path, _said(path, value, wanted), unsure=True)
    else:
        yield from flaws(wanted, value, path)


def _has_type(wanted: Wanted, value: object) -> bool:
    """Whether a value has the JSON type that is wanted, whatever is inside."""
    match wanted:
        case str():
            return CHECKS[wanted](value)
        case frozenset() | Growing():
            return isinstance(value, str)
        case ListOf():
            return isinstance(value, LIST)
        case Nullable():
            return value is None or _has_type(wanted.of, value)
        case _:
            return fields(value) is not None


NAMES: Final = {ListOf: ARRAY, Shape: OBJECT, OneOf: OBJECT, MapOf: OBJECT}


def _said(path: str, value: object, wanted: Wanted | None = None) -> str:
    said = f"{path.removeprefix('.')} is {shown(value)}"
    right = wanted if isinstance(wanted, str) else NAMES.get(type(wanted))
    return said if right in (None, GIVEN) else f"{said}, not of type {right}"
