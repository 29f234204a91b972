"""What `check` accepts, the types of the anthropic SDK accept too."""

import json
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from anthropic.types.beta import (
    BetaAssistantMessageParam,
    BetaMessageParam,
    BetaSystemMessageParam,
    BetaTextBlockParam,
    BetaToolResultBlockParam,
    BetaUserMessageParam,
    BetaWebSearchToolRequestErrorParam,
)
from hypothesis import settings
from pydantic import TypeAdapter

from convnorm import check
from convnorm.rules.anthropic_messages.schema import BLOCKS, INSIDE, SYSTEM_KEYS
from mutate import accepted, damaged, in_one_place
from sdk_types import by_type, hints, members, refusals, required, sample, union, variants

API = "anthropic.messages"
COUNT = settings().max_examples * 20
MOST = settings().max_examples * 50
"""How many of all requests that differ in one place; `make thorough` takes half of them."""


def blocks_of(kind: Any) -> Any:
    """The union of the blocks that a message or a tool result may hold in its list."""
    _, listed = typing.get_args(hints(kind)["content"])
    return typing.get_args(listed)[0]


TYPES = by_type(blocks_of(BetaUserMessageParam))
INNER = by_type(blocks_of(BetaToolResultBlockParam))
# Beside its typed dicts the union has the classes of replies, which take more.
BLOCK: TypeAdapter[Any] = TypeAdapter(union(members(blocks_of(BetaUserMessageParam))))
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "messages": TypeAdapter(list[BetaMessageParam]),
    "system": TypeAdapter(str | list[BetaTextBlockParam] | None),
}
UNSEEN = {"tool_definition": {"definition": {"name": "x", "input_schema": {"type": "object"}}}}
"""Definitions of tools, which are no part of a history: `check` does not look into them."""


ERRORS = {"web_search_tool_result": TypeAdapter(BetaWebSearchToolRequestErrorParam)}
"""By type of result: what it holds instead of a list of blocks when the tool failed."""
DEPTH = 4
"""How deep choices are made: the tools that a block adds have hundreds."""


def refused(request: Mapping[str, Any]) -> list[str]:
    """Where the types refuse a request."""
    whole = seen(request)
    found = [
        said
        for key, adapter in ADAPTERS.items()
        if key in whole
        for said in refusals(adapter, whole[key])
    ]
    listed = list(blocks_in(whole["messages"]))
    for given in blocks_in(request["messages"]):
        adapter = ERRORS.get(str(given.get("type")))
        if adapter and isinstance(error := given.get("content"), dict):
            found += refusals(adapter, error)
    return found + [said for block in listed for said in refusals(BLOCK, block)]


def blocks_in(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The blocks of messages that have a list of them."""
    for message in messages:
        if isinstance(content := message.get("content"), list):
            yield from content


def seen(value: Any) -> Any:
    """A request without what `check` does not look into."""
    if isinstance(value, list):
        return [seen(one) for one in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    kind = kind if isinstance(kind, str) else ""
    said = {key: seen(one) for key, one in value.items()}
    if kind in ERRORS and isinstance(said.get("content"), dict):
        said["content"] = []  # pydantic would read it as such
    return said | UNSEEN.get(kind, {})


def disagreements(requests: Iterable[Any]) -> list[tuple[Any, list[str]]]:
    """Requests that `check` accepts and the types do not."""
    return [
        (request, found)
        for request in requests
        if not check(request, API, disputed=True) and (found := refused(request))
    ]


# Histories.


def test_accepted_cases_fit_the_types() -> None:
    """The requests of the cases that are accepted."""
    requests = accepted(API)
    assert len(requests) > 50
    assert [] == disagreements(requests)


def test_damaged_requests_fit_the_types_or_are_reported() -> None:
    """Whatever is done to a request: where `check` finds nothing, the types do not either."""
    requests = list(damaged(API, accepted(API) + list(samples()), COUNT, most=2))
    silent = [request for request in requests if not check(request, API, disputed=True)]
    assert (
        COUNT / 20 < len(silent) < COUNT / 2
    )  # most damage is seen, and enough is left to compare
    assert [] == disagreements(silent)


def test_what_differs_in_one_place_fits_the_types_or_is_reported() -> None:
    """A request for every block, with any one key gone, or something else under it."""
    requests = list(in_one_place(samples(), MOST))
    assert len(requests) > 1000
    assert [] == disagreements(requests)


# Block types.

NAMES = {
    **{name: name.removesuffix("_tool_result") for name in TYPES if name.endswith("_tool_result")},
    "tool_search_tool_result": "tool_search_tool_regex",
}
"""By type of result: the server's tool that made it."""
CALLED = {"tool_result": "tool_use", "mcp_tool_result": "mcp_tool_use"}


def request_with(one: dict[str, Any]) -> dict[str, Any]:
    """A request in which a block has what belongs to it on both sides."""
    kind = one["type"]
    call = sample(TYPES[CALLED.get(kind, "server_tool_use")][0]) | {"name": NAMES.get(kind, "f")}
    ask, so = {"role": "user", "content": "?"}, {"type": "text", "text": "so"}
    turns: list[dict[str, Any]]
    match kind:
        case "tool_result":
            turns = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [one]}]
        case "tool_use":
            answer = {"type": "tool_result", "tool_use_id": "x", "content": "10 EUR"}
            turns = [
                {"role": "assistant", "content": [one]},
                {"role": "user", "content": [answer]},
            ]
        case "server_tool_use" | "mcp_tool_use":
            turns = [{"role": "assistant", "content": [one]}]
        case _ if kind in NAMES:
            turns = [{"role": "assistant", "content": [call, one, so]}, ask]
        case _:
            turns = [{"role": "assistant", "content": [one, so]}, ask]
    tools = [
        {"name": "f", "input_schema": {"type": "object"}},
        {"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5"},
    ]
    return {"messages": [ask, *turns], "tools": tools}


def block(name: str) -> dict[str, Any]:
    """A block of a type with every key it can have."""
    made: dict[str, Any] = sample(TYPES[name][0])
    return made


def samples() -> Iterator[dict[str, Any]]:
    """A request for every type of block that the SDK has, and for every choice in it.

    What a tool holds is no error: that is told in texts.
    """
    for name, kinds in TYPES.items():
        first = block(name)
        for one in variants(kinds[0], DEPTH):
            if all(one[key] == first[key] for key in UNSEEN.get(name, {})):
                yield request_with(one | ({"is_error": False} if name == "tool_result" else {}))
    for kinds in INNER.values():
        for inner in variants(kinds[0], DEPTH):
            held = {"content": [inner], "is_error": False}
            yield request_with(block("tool_result") | held)


def test_what_the_types_make_is_accepted() -> None:
    """A block of each type, with all keys it can have, is accepted and fits the types."""
    for request in samples():
        assert ([], []) == (check(request, API, disputed=True), refused(request)), json.dumps(
            request
        )


@pytest.mark.parametrize("ours, sdk", [(BLOCKS, TYPES), (INSIDE, INNER)], ids=["outer", "inner"])
def test_the_tables_of_blocks_are_those_of_the_types(
    ours: Mapping[str, Any], sdk: Mapping[str, Any]
) -> None:
    """Messages and tool results have the SDK's types of blocks, with the same keys required."""
    assert {name: (shape.keys, set(shape.required)) for name, shape in ours.items()} == {
        name: (hints(kind).keys(), required(kind) - {"type"}) for name, (kind,) in sdk.items()
    }


def test_the_keys_of_messages_are_those_of_the_types() -> None:
    """Every role has its SDK's keys, and all roles have the blocks of the user."""
    assert hints(BetaSystemMessageParam).keys() == SYSTEM_KEYS
    assert hints(BetaUserMessageParam).keys() == hints(BetaAssistantMessageParam).keys()
    assert by_type(blocks_of(BetaAssistantMessageParam)).keys() == TYPES.keys()


def test_what_the_types_require_is_required() -> None:
    """A block that lacks a required key is reported."""
    silent = {
        (name, key)
        for name, (kind,) in TYPES.items()
        for key in required(kind) - {"type"}
        if not check(
            request_with({k: v for k, v in block(name).items() if k != key}), API, disputed=True
        )
    }
    assert silent == set()
