"""Values that fit a schema of the rules."""

from typing import Any

from convnorm.targets.schema import (
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

PLAIN: dict[str, Any] = {
    "judged elsewhere": "x",
    "value": "x",
    "string": "x",
    "boolean": False,
    "integer": 1,
    "number": 1.5,
    "object": {},
    "list": [],
    "text or file": "x",
}


def sample(wanted: Wanted, *, optional: bool) -> Any:
    """A value that fits, with all keys it can have, or all it must have."""
    match wanted:
        case str():
            return PLAIN[wanted]
        case frozenset():
            return min(wanted)
        case Growing():
            return min(wanted.words)
        case ListOf():
            return [sample(wanted.of, optional=optional)]
        case MapOf():
            return {"x": sample(wanted.of, optional=optional)}
        case Either():
            return sample(wanted.of[0], optional=optional)
        case Nullable() | Inside():
            return sample(wanted.of, optional=optional)
        case OneOf():
            kind, shape = next(iter(wanted.shapes.items()))
            return {"type": kind} | sample(shape, optional=optional)
        case Shape():
            keys = {**wanted.required, **(wanted.optional if optional else {})}
            return {key: sample(one, optional=optional) for key, one in keys.items()}
