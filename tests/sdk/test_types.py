"""What `check` accepts, the types of the openai SDK accept too."""

import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import (
    ChatCompletionContentPartParam,
    ChatCompletionMessageParam,
    ChatCompletionMessageToolCallUnionParam,
)
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from convnorm import Policy, check, explain
from convnorm.intake import take_apart
from convnorm.pipeline import run
from convnorm.rules.read_responses import CALLS
from convnorm.targets.responses_items import DISPUTED_KEYS, ITEMS
from convnorm.testing.strategies import Sample, conversations
from mutate import accepted, damaged, in_one_place, plain
from sdk_types import by_type, hints, members, refusals, required, sample, variants

ADAPTERS: dict[str, tuple[str, TypeAdapter[Any]]] = {
    "openai.chat": ("messages", TypeAdapter(list[ChatCompletionMessageParam])),
    "openai.responses": ("input", TypeAdapter(list[ResponseInputItemParam])),
}
TYPES = by_type(ResponseInputItemParam)
NEWEST = os.environ["CONVNORM_LANE_OPENAI"] == "3"
COUNT = settings().max_examples * 20
MOST = settings().max_examples * 50
"""How many of all requests that differ in one place; `make thorough` takes them all."""

for_every_api = pytest.mark.parametrize("api", ADAPTERS)

CODEX = "openai/codex codex-rs/protocol/src/models.rs sends it like that"
FILL: dict[str, tuple[dict[str, Any], str]] = {
    "reasoning": ({"id": "rs_1"}, CODEX),
    "output_text": ({"annotations": []}, CODEX),
    "input_image": ({"detail": "auto"}, CODEX),
    "exec": ({"env": {}}, CODEX),
    "find_in_page": ({"pattern": "x", "url": "x"}, CODEX),
    "image_generation_call": (
        {"result": None, "status": "completed"},
        "public clients send it by its id alone, to have the image edited",
    ),
    "local_shell_call_output": ({"id": "x"}, "clients name the call by call_id, as elsewhere"),
    "function_call_output": ({"call_id": "x"}, "openai 2.x knows none that stands alone"),
}
"""By type: what the types ask for and the API is seen to do without, and where."""
SPOKEN = {"type": "message", "id": "msg_1", "status": "completed"}
"""The same for an assistant message of parts, from the same source."""
NULL = {"tool_calls": "replies are sent back as their model_dump(), which writes null there"}
"""Keys under which the API takes null for nothing, unlike the types, and why we think so."""
UNSEEN: dict[str, dict[str, Any]] = {
    "tool_search_output": {"tools": []},
    "additional_tools": {"tools": []},
}
"""Definitions of tools, which are no part of a history: `check` does not look into them."""


def disagreements(api: str, requests: Iterable[Any]) -> list[tuple[Any, list[str]]]:
    """Requests that `check` accepts and the types do not."""
    return [
        (request, found)
        for request in requests
        if not check(request, api, disputed=True) and (found := refused(api, request))
    ]


def refused(api: str, request: Mapping[str, Any]) -> list[str]:
    """Where the types refuse a history, as far as they know its items."""
    key, adapter = ADAPTERS[api]
    history = request.get(key)
    if history is None or isinstance(history, str):
        return []  # a text has no shape, and a request may only continue what the server has
    known = [item for item in history if item.get("type") in (None, *TYPES)]
    return refusals(adapter, filled(known if key == "input" else history))


def filled(value: Any) -> Any:
    """The items with what the types ask for and the API does not."""
    if isinstance(value, list):
        return [filled(one) for one in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    name = kind if isinstance(kind, str) else ""
    more, _ = FILL.get(name, ({}, ""))
    said = {key: one for key, one in value.items() if one is not None or key not in NULL}
    if value.get("role") == "assistant":
        if isinstance(value.get("content"), list):
            more = SPOKEN
        else:  # with an id, pydantic takes a text for an output message: a list of letters
            said.pop("status", None)
    said |= UNSEEN.get(name, {})
    return {**more, **{key: filled(one) for key, one in said.items()}}


# Histories.


@for_every_api
def test_accepted_cases_fit_the_types(api: str) -> None:
    """The requests of the cases that are accepted."""
    requests = accepted(api)
    assert len(requests) > 100
    assert [] == disagreements(api, requests)


@for_every_api
@given(st.data())
def test_valid_histories_fit_the_types(api: str, data: st.DataObject) -> None:
    """The histories that are right by construction."""
    drawn: Sample = data.draw(conversations(api))
    assert [] == refused(api, plain(drawn.request))


@for_every_api
def test_damaged_requests_fit_the_types_or_are_reported(api: str) -> None:
    """Whatever is done to a request: where `check` finds nothing, the types do not either."""
    originals = accepted(api) + list(SAMPLES[api]())
    requests = list(damaged(api, originals, COUNT, most=2))
    silent = [request for request in requests if not check(request, api, disputed=True)]
    assert (
        COUNT / 20 < len(silent) < COUNT / 2
    )  # most damage is seen, and enough is left to compare
    assert [] == disagreements(api, silent)


@for_every_api
def test_what_repairs_are_promised_are_made(api: str) -> None:
    """Whatever is wrong in one place: what `check` says a pass repairs is repaired, and for good.

    Where something is wrong that nobody may repair, it may hide what else is.
    """
    policy = Policy.for_target(api, unrepairable="send")
    passes = {pass_.name for pass_ in policy.passes}
    for request in in_one_place(SAMPLES[api](), MOST):
        if any(one.repair is None for one in check(request, policy)):
            continue
        report = explain(request, policy)
        left = [one for one in report.remaining if one.repair in passes]
        assert ([], ()) == (left, explain(report.request or {}, policy).edits), json.dumps(request)


@for_every_api
def test_what_is_in_order_comes_back_as_it_is(api: str) -> None:
    """Every shape that the types have is left alone, even when every pass looks at it."""
    key, _ = ADAPTERS[api]
    for request in SAMPLES[api]():
        if check(request, api, disputed=True):
            continue
        for force in (False, True):
            outcome = run(take_apart(request, api, None), force=force)
            assert () == outcome.edits, json.dumps(request)
            assert all(map(operator.is_, outcome.elements, request[key]))


# Item types.


def items(kind: Any, name: str) -> Iterator[dict[str, Any]]:
    """Items with every key that their type has, save those that users saw refused.

    The first is the simplest; each of the others makes one choice in another way.
    """
    ours = {"id": f"{ITEMS[name].prefix or name}_1"} if ITEMS[name].named else {}
    left_out = {*DISPUTED_KEYS.get(name, ()), *NOT_TAKEN.get(name, {})}
    first = sample(kind)
    for one in variants(kind):
        if all(one.get(key) == first.get(key) for key in (*left_out, *UNSEEN.get(name, {}))):
            said = {key: one[key] for key in one if key not in left_out}
            yield said | ours | OURS.get(name, {})


def item(kind: Any, name: str) -> dict[str, Any]:
    """The simplest of them."""
    return next(items(kind, name))


OURS: dict[str, dict[str, Any]] = {"mcp_approval_response": {"approval_request_id": "mcpr_1"}}
"""What has to be the same as in another item."""
NOT_TAKEN = {
    "reasoning": {
        "status": "Unknown parameter: 'input[1].status': BerriAI/litellm#13420",
        "content": "plain text is judged by resp-reasoning-content-not-allowed",
    },
    "mcp_call": {"error": "an object in 3.x, and a text in 2.x"},
}
"""By type: keys that the types have, and that OpenAI refuses or that are not sure."""
FOLLOWS = {
    **{f"{name}_output": name for name in CALLS},
    "mcp_approval_response": "mcp_approval_request",
    "program_output": "program",
}
"""By type: what an item stands behind."""
PRECEDES = {before: after for after, before in FOLLOWS.items() if before in CALLS}


def request_with(one: dict[str, Any]) -> dict[str, Any]:
    """A request in which an item has what belongs to it on both sides."""
    name = one.get("type", "message")
    before, after = FOLLOWS.get(name), PRECEDES.get(name)
    reply = {"role": "assistant", "content": "hi"}
    return {
        "input": [
            *([item(TYPES[before][0], before)] if before else []),
            one,
            *([item(TYPES[after][0], after)] if after else []),
            *([reply] if name == "reasoning" else []),
        ]
    }


def samples() -> Iterator[dict[str, Any]]:
    """A request for every type of item that the SDK has, and for every choice in it."""
    for name, kinds in TYPES.items():
        for kind in kinds:
            yield from map(request_with, items(kind, name))


# Messages.

PARTS = by_type(ChatCompletionContentPartParam)
TOOLS = by_type(ChatCompletionMessageToolCallUnionParam)
REFUSAL = {"type": "refusal", "refusal": "no"}


def messages() -> Iterator[dict[str, Any]]:
    """A request for every role, part and call that the SDK has, and for every choice in them."""
    asked = {"role": "user", "content": "?"}
    call = called(sample(TOOLS["function"][0]))
    for kind in members(ChatCompletionMessageParam):
        match one := sample(kind):
            case {"role": "assistant"}:
                said = {key: one[key] for key in one if key != "tool_calls"}  # those come below
                yield {"messages": [asked, {**said, "content": [REFUSAL]}]}
            case {"role": "tool"}:
                yield {"messages": [asked, call, one]}
            case _:
                yield {"messages": [asked, one]}
    for name, kinds in PARTS.items():
        roles = ("user", "assistant", "system", "tool") if name == "text" else ("user",)
        for role in roles:
            for part in variants(kinds[0]):
                said = {"role": role, "content": [part]}
                if role == "tool":
                    yield {"messages": [call, {**ANSWER, **said}]}
                else:
                    yield {"messages": [asked, said]}
    for kinds in TOOLS.values():
        for made in variants(kinds[0]):
            yield {"messages": [called(made), ANSWER, asked]}


ANSWER = {"role": "tool", "tool_call_id": "x", "content": "yes"}


def called(call: dict[str, Any]) -> dict[str, Any]:
    """The assistant's message that makes a call."""
    return {"role": "assistant", "content": None, "tool_calls": [call]}


AROUND = {
    "resp-call-output-missing",
    "resp-computer-safety-unacknowledged",
    "resp-program-caller-unknown",
}
"""Rules about what stands around an item: some choices ask for more than `request_with` gives."""
SAMPLES = {"openai.chat": messages, "openai.responses": samples}


@for_every_api
def test_what_the_types_make_is_accepted(api: str) -> None:
    """Whatever the types have, with all keys it can have, is accepted and fits the types."""
    for request in SAMPLES[api]():
        found = [one for one in check(request, api, disputed=True) if one.rule not in AROUND]
        assert ([], []) == (found, refused(api, request)), json.dumps(request)


@for_every_api
def test_what_differs_in_one_place_fits_the_types_or_is_reported(api: str) -> None:
    """Each of them with any one key gone, or something else under it."""
    requests = list(in_one_place(SAMPLES[api](), MOST))
    assert len(requests) > 1000
    assert [] == disagreements(api, requests)


ONLY_IN_3 = frozenset({"configuration_update"})
KEYS_ONLY_OURS = {"local_shell_call_output": {"call_id"}, "custom_tool_call": {"status"}}
"""By type: keys that clients send and the types do not have."""


def test_the_table_of_items_is_that_of_the_types() -> None:
    """The table and the newest SDK have the same types, with the same keys."""
    assert ITEMS.keys() - (set() if NEWEST else ONLY_IN_3) == TYPES.keys()
    table = {name: set(ITEMS[name].keys - KEYS_ONLY_OURS.get(name, set())) for name in TYPES}
    sdk = {name: {key for kind in kinds for key in hints(kind)} for name, kinds in TYPES.items()}
    for name, keys in NOT_TAKEN.items():
        sdk[name] -= keys.keys() - table[name]
    assert sdk == (table if NEWEST else {name: sdk[name] & table[name] for name in sdk})


def test_what_the_types_require_is_required() -> None:
    """An item that lacks a required key is reported, unless the API is known to do without it."""
    silent = {
        (name, key)
        for name, kinds in TYPES.items()
        for kind in kinds
        for key in required(kind) - {"type"}
        if not check(
            request_with({k: v for k, v in item(kind, name).items() if k != key}),
            "openai.responses",
            disputed=True,
        )
    }
    lax = {(name, key) for name, (more, _) in FILL.items() for key in more if name in TYPES}
    lax |= {("message", key) for key in SPOKEN}
    assert silent - lax == set()
