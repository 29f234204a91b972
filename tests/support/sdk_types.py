"""Whether the types of an SDK take a request."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError


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
