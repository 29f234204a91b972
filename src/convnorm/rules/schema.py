"""A walk over a JSON value that says where it does not fit its schema."""

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Final, NamedTuple

from convnorm.rules.scan import key_name, shown
from convnorm.targets.schema import (
    ANY,
    ARRAY,
    BOOLEAN,
    FILE,
    GIVEN,
    INTEGER,
    NUMBER,
    OBJECT,
    OWN,
    STRING,
    Either,
    Growing,
    Inside,
    ListOf,
    MapOf,
    Nullable,
    OneOf,
    Shape,
    Wanted,
)
from convnorm.wire import LIST, fields

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


class Flaw(NamedTuple):
    """One value that does not fit."""

    path: str
    said: str
    unsure: bool = False
    """The types forbid it, and the API may still take it: a new word, or null for nothing."""


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
