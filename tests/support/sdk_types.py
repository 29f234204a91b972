"""What the types of an SDK say, and whether they take a value."""

import functools
import operator
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Literal, NotRequired, Required

from pydantic import TypeAdapter, ValidationError
from typing_extensions import get_type_hints, is_typeddict


def refusals(adapter: TypeAdapter[Any], value: object) -> list[str]:
    """Where the types refuse the value; an iterable is validated only while it is read."""
    try:
        _consume(adapter.validate_python(value))
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []


def _consume(value: object) -> None:
    if isinstance(value, Mapping):
        for one in value.values():
            _consume(one)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for one in value:
            _consume(one)


def members(given: Any) -> Iterator[Any]:
    """The typed dicts of a union."""
    if is_typeddict(given):
        yield given
    elif typing.get_origin(given) in (typing.Union, types.UnionType, Annotated):
        for one in typing.get_args(given):
            yield from members(one)


def union(kinds: Iterable[Any]) -> Any:
    """The union of these types."""
    return functools.reduce(operator.or_, kinds)


def by_type(given: Any) -> dict[str, list[Any]]:
    """The typed dicts of a union by what their `type` can be."""
    found: dict[str, list[Any]] = {}
    for one in members(given):
        for name in _words(hints(one)["type"]):
            found.setdefault(name, []).append(one)
    return found


def hints(kind: Any) -> dict[str, Any]:
    """The keys of a typed dict, with what stands under them."""
    return {key: _bare(hint) for key, hint in get_type_hints(kind, include_extras=True).items()}


def required(kind: Any) -> set[str]:
    """The keys that a typed dict must have; its own list is wrong under postponed annotations."""
    found = get_type_hints(kind, include_extras=True)
    return {key for key, hint in found.items() if _is_required(hint, total=kind.__total__)}


def sample(hint: Any) -> Any:
    """A value of a type, with every key it can have; where there is a choice, the first one."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_typeddict(hint):
        return {key: sample(one) for key, one in hints(hint).items()}
    if origin is Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType, Annotated):
        return sample(arguments[0])
    if origin is dict:
        return {"x": sample(arguments[1])}
    if origin is not None:
        return [sample(arguments[0])]
    return PLAIN.get(hint, {})


PLAIN: dict[Any, Any] = {str: "x", int: 1, float: 1.5, bool: True, object: {}, Any: {}}


def variants(hint: Any, depth: int = 6) -> Iterator[Any]:
    """The sample of a type, and one for every other choice that stands anywhere in it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if depth == 0:
        yield sample(hint)
    elif is_typeddict(hint):
        whole = sample(hint)
        yield whole
        for key, one in hints(hint).items():
            others = islice(variants(one, depth - 1), 1, None)
            yield from ({**whole, key: other} for other in others)
    elif origin is Literal:
        yield from arguments
    elif origin in (typing.Union, types.UnionType, Annotated):
        for one in arguments if origin is not Annotated else arguments[:1]:
            yield from variants(one, depth)
    elif origin is dict:
        yield from ({"x": one} for one in variants(arguments[1], depth - 1))
    elif origin in (list, Iterable):
        yield from ([one] for one in variants(arguments[0], depth - 1))
    elif hint is type(None):
        yield None
    elif hint in PLAIN:  # what else there is, a path or an open file, is no JSON
        yield sample(hint)


def _words(hint: Any) -> list[str]:
    if typing.get_origin(hint) is Literal:
        return list(typing.get_args(hint))
    return [word for one in typing.get_args(hint) for word in _words(one)]


def _bare(hint: Any) -> Any:
    while typing.get_origin(hint) in (Required, NotRequired, Annotated):
        hint = typing.get_args(hint)[0]
    return hint


def _is_required(hint: Any, *, total: bool) -> bool:
    while typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    origin = typing.get_origin(hint)
    return origin is Required or (total and origin is not NotRequired)
