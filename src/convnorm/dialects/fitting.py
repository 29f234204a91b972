"""What would fit in the place of a value that does not fit its schema.

The rules have a walk of their own over the same tables, so that neither can hide the other's bugs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from convnorm.ir import GONE
from convnorm.targets.schema import (
    ANY,
    ARRAY,
    BOOLEAN,
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

SAYING: Final = frozenset({"text", "refusal", "stdout", "stderr"})
"""Required keys of which an empty text says as much as nothing."""


def fitted(wanted: Wanted, value: object, lost: list[object]) -> object:
    """The value if it fits, else what would be taken in its place, or `GONE`.

    What cannot be kept is added to `lost`; null is nothing to lose.
    """
    match wanted:
        case Nullable():
            return None if value is None else fitted(wanted.of, value, lost)
        case Inside():
            return fitted(wanted.of, value, lost) if _has_type(wanted.of, value) else value
        case Either():
            return _either(wanted.of, value, lost)
        case frozenset():
            return value if isinstance(value, str) and value in wanted else _left_out(value, lost)
        case Growing():
            return value if isinstance(value, str) else _left_out(value, lost)
        case ListOf():
            return _list(wanted.of, value, lost)
        case MapOf():
            return _map(wanted.of, value, lost)
        case OneOf():
            kind = (fields(value) or {}).get("type")
            if not isinstance(kind, str):
                return _left_out(value, lost)
            shape = wanted.shapes.get(kind)  # another type may be a new one
            return value if shape is None else _object(shape, value, lost)
        case Shape():
            return _object(wanted, value, lost)
        case _:
            return _plain(wanted, value, lost)


def fitted_part(
    shape: Shape, part: Mapping[str, Any], lost: list[object], *, strict: bool
) -> object:
    """A part as its type has it; where the target is `strict`, without keys of nobody's schema."""
    new = _object(shape, part, lost)
    if not strict or not isinstance(new, Mapping) or shape.keys.issuperset(new):
        return new
    lost += [new[key] for key in new if key not in shape.keys and not is_nothing(new[key])]
    return {key: new[key] for key in new if key in shape.keys}


def is_nothing(value: object) -> bool:
    """Whether nothing is lost with a value."""
    return value is None or value in ("", [], {}, ())


def as_text(value: object) -> str | None:
    """A value as JSON text, if it is JSON at all."""
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda each: dict(fields(each) or {}))
    except (TypeError, ValueError, RecursionError):
        return None


def _left_out(value: object, lost: list[object]) -> object:
    if value is not None:
        lost.append(value)
    return GONE


def _plain(wanted: object, value: object, lost: list[object]) -> object:
    if wanted == STRING and not isinstance(value, str) and value is not None:
        text = as_text(value)
        return _left_out(value, lost) if text is None else text
    return value if _has_type(wanted, value) else _left_out(value, lost)


def _has_type(wanted: object, value: object) -> bool:
    """Whether a value has the JSON type that is wanted, whatever is inside."""
    match wanted:
        case str():
            return TYPES[wanted](value)
        case frozenset() | Growing():
            return isinstance(value, str)
        case ListOf():
            return isinstance(value, LIST)
        case Nullable():
            return value is None or _has_type(wanted.of, value)
        case _:
            return fields(value) is not None


TYPES: Final[Mapping[str, Callable[[object], bool]]] = {
    OWN: lambda _: True,
    GIVEN: lambda value: value is not None,
    ANY: lambda value: value is not None,
    STRING: lambda value: isinstance(value, str),
    BOOLEAN: lambda value: isinstance(value, bool),
    INTEGER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    ARRAY: lambda value: isinstance(value, LIST),
    OBJECT: lambda value: fields(value) is not None,
}


def _either(choices: Sequence[Wanted], value: object, lost: list[object]) -> object:
    for wanted in choices:
        if _has_type(wanted, value):
            return fitted(wanted, value, lost)
    return _left_out(value, lost)


def _list(wanted: Wanted, value: object, lost: list[object]) -> object:
    if not isinstance(value, LIST):
        return _left_out(value, lost)
    new = [fitted(wanted, each, lost) for each in value]
    if all(now is was for now, was in zip(new, value, strict=True)):
        return value
    return [each for each in new if each is not GONE]


def _map(wanted: Wanted, value: object, lost: list[object]) -> object:
    keys = fields(value)
    if keys is None:
        return _left_out(value, lost)
    new = {key: fitted(wanted, each, lost) for key, each in keys.items()}
    if all(new[key] is keys[key] for key in keys):
        return value
    return {key: each for key, each in new.items() if each is not GONE}


def _object(shape: Shape, value: object, lost: list[object]) -> object:
    keys = fields(value)
    if keys is None:
        if isinstance(value, str) and [*shape.required.values()] == [STRING]:
            return dict.fromkeys(shape.required, value)  # what it must say, said without it
        return _left_out(value, lost)
    new = dict(keys)
    missed: list[object] = []
    for key, wanted in shape.required.items():
        found = fitted(wanted, keys.get(key), missed)
        if found is GONE and isinstance(wanted, Nullable):
            found = None
        if found is GONE and key in SAYING:
            found = ""
        if found is GONE:
            return _left_out(value, lost)
        new[key] = found
    for key, wanted in shape.optional.items():
        if key in keys:
            new[key] = fitted(wanted, keys[key], missed)
    lost += missed
    if new.keys() == keys.keys() and all(new[key] is keys[key] for key in keys):
        return value
    return {key: each for key, each in new.items() if each is not GONE}
