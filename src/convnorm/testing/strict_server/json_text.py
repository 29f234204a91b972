"""JSON over the wire, as it is read and as it is written."""

import json
from math import isfinite
from typing import Any, NoReturn

MOST_DEEP = 200
"""How many lists and objects may stand in each other; Python cannot write much more than that."""


def parsed(text: str) -> Any:
    """The value of a JSON text. Whatever else it is, is a ValueError."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        value = None
        deep = True
    else:
        deep = _deep(value)
    if deep:
        raise ValueError(f"more than {MOST_DEEP} lists and objects stand in each other")
    return value


def written(value: Any) -> bytes:
    """JSON in ASCII: what a script or a client wrote may hold what UTF-8 cannot."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _deep(value: Any) -> bool:
    level = [value]
    for _ in range(MOST_DEEP + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _finite(digits: str) -> float:
    return number if isfinite(number := float(digits)) else _no_number(digits)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
