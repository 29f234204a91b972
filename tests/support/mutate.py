"""Requests with a few random things done to them: what `check` must survive."""

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from convnorm import check
from convnorm.wire import fields

CASES = Path(__file__).parent.parent / "cases"
JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, "", " ", "x", "y" * 70, [], {}, [None], [[]], {"type": None}),
    *("user", "assistant", "tool", "function", "developer", "system", "message", "reasoning"),
    *("tool_use", "tool_result", "thinking", "function_call", "item_reference", "call_1", "rs_1"),
    *({"type": "text", "text": ""}, {"type": "input_text", "text": "t"}, {"id": "rs_1"}),
    *({"type": "tool_result", "tool_use_id": "a"}, {"role": "tool", "content": None}),
)


def requests(dialect: str) -> list[Any]:
    """The requests of the cases in one dialect; one with thousands of messages is left out."""
    found = (
        json.loads(file.read_text(encoding="utf-8"))["request"]
        for file in sorted((CASES / dialect.replace(".", "_")).glob("*.json"))
    )
    return [request for request in found if len(json.dumps(request)) < 100_000]


def accepted(dialect: str) -> list[Any]:
    """The requests of the cases, and the answers they call right, in which `check` sees nothing."""
    cases = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in sorted((CASES / dialect.replace(".", "_")).glob("*.json"))
    ]
    found = [case.get(key) for case in cases for key in ("request", "one_acceptable_answer")]
    return [
        request
        for request in found
        if isinstance(request, dict) and not check(request, dialect, disputed=True)
    ]


def plain(value: Any) -> Any:
    """A request as it would be sent: JSON, whatever its elements are."""
    return json.loads(json.dumps(value, default=lambda one: dict(fields(one) or {})))


def mutated(dialect: str, count: int) -> Iterator[Any]:
    """`count` requests, each with one to four mutations; the same ones in every process."""
    return damaged(dialect, requests(dialect), count)


def damaged(seed: str, originals: list[Any], count: int, most: int = 4) -> Iterator[Any]:
    """`count` of these requests, each with one to `most` mutations; the same ones every time."""
    chance = random.Random(seed)  # noqa: S311  # nobody's secret
    texts = [json.dumps(request) for request in originals]
    for _ in range(count):
        request = json.loads(chance.choice(texts))
        for _ in range(chance.randint(1, most)):
            _mutate(request, chance)
        yield request


def in_one_place(originals: Iterable[Any], most: int) -> Iterator[Any]:
    """The requests with one key or element gone, or something else in its place.

    If there are more than about `most`, they are taken at even distances.
    """
    changes = [
        (original, number, value)
        for original in originals
        for number, (node, key) in enumerate(_places(original))
        for value in (GONE, None, 7, "x", [], {})
        if value is GONE or node[key] != value
    ]
    for original, number, value in changes[:: max(1, len(changes) // most)]:
        request = json.loads(json.dumps(original))
        node, key = _places(request)[number]
        if value is GONE:
            del node[key]
        else:
            node[key] = value
        yield request


GONE = object()


def _mutate(tree: Any, chance: random.Random) -> None:
    """Change one place of a JSON tree: take it out, put junk in, or copy something there."""
    places = _places(tree)
    if not places:
        return
    node, key = chance.choice(places)
    match chance.randint(0, 5):
        case 0:
            del node[key]
        case 1:
            node[key] = json.loads(json.dumps(chance.choice(JUNK)))
        case 2 if isinstance(node, list):
            node.insert(key, json.loads(json.dumps(node[key])))
        case 3 if isinstance(node, list):
            node.append(node.pop(key))
        case 4 if isinstance(node, dict):
            node[chance.choice(("x_vendor", "id", "type", "status", "name"))] = node.pop(key)
        case _:
            other, there = chance.choice(places)
            node[key] = json.loads(json.dumps(other[there]))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every key of every mapping and every index of every list, with what has it."""
    return [
        (node, key)
        for node in _nodes(tree)
        for key in (node if isinstance(node, dict) else range(len(node)))
    ]


def _nodes(tree: Any) -> Iterator[Any]:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo.extend(node.values())
        elif isinstance(node, list):
            yield node
            todo.extend(node)
