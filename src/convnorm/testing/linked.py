"""Hypothesis strategy: requests that continue what a server holds, rightly and wrongly.

Each sample knows the truth: what the model should see, told once and in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from convnorm.context import Context
from convnorm.delivery import Ledger
from convnorm.delivery.items import content_key
from convnorm.targets import find_target
from convnorm.testing import openai_responses
from convnorm.testing.draft import Draft, Element, Pen
from convnorm.testing.strategies import Sample

Items = list[Element]
RESPONSES = "openai.responses"

SERVERS = (
    "response",
    "conversation",
    "unstored",
    "gone",
    "gone conversation",
    "without retention",
    "both",
    "no answer",
    "later",
)
"""What the server makes of the link."""
LOCALS = ("delta", "whole", "bare", "tail", "edited")
"""What the input has of what the server holds; `bare`: without ids and reasoning."""


@dataclass(frozen=True, slots=True)
class Linked:
    """A request behind a link, and what the model should see."""

    sample: Sample
    truth: Items
    """Everything that was said and returned, in order; a missing result is not in it."""


@st.composite
def linked(draw: st.DrawFn) -> Linked:
    """A conversation of which the server holds the beginning."""
    pen = Pen(draw, find_target(RESPONSES))
    draft: Draft = openai_responses.written(pen)
    # Items that only a reference names are not on the server of this strategy.
    said = [item for item in draft.elements if item.get("type") != "item_reference"]
    if not said or not is_made(said[-1]) or "call_id" in said[-1]:
        said.append({"role": "assistant", "content": f"answer {pen.number()}"})
    turns = exchanges([*said, {"role": "user", "content": f"new {pen.number()}"}])
    end = 1 + pen.below(len(turns) - 1)
    held = [item for turn in turns[:end] for item in turn]
    rest = [item for turn in turns[end:] for item in turn]
    if _says_again(held, rest):  # words alone tell it from a copy of the end
        rest.insert(0, {"role": "user", "content": f"again {pen.number()}"})
    outputs: Items = []
    if pen.chance(3):
        held, rest, outputs = _without_an_output(pen, held, rest)
    server, local = pen.pick(SERVERS), pen.pick(LOCALS)
    body = {key: value for key, value in draft.body.items() if not key.startswith("prev")}
    past, told = _local(pen, local, held)
    state, link = _server(pen, server, turns[:end])
    ledger = Ledger.from_state({**state, "outputs": outputs})
    request = {**body, **link, "input": [*past, *rest]}
    sample = Sample(request, Context(ledger=ledger), (server, local))
    return Linked(sample, [*told, *outputs, *rest])


def exchanges(items: Sequence[Element]) -> list[Items]:
    """The history cut into what went in and what came out, each beginning with an input."""
    found: list[Items] = [[]]
    made = False
    for item in items:
        if made and not is_made(item):
            found.append([])
        made = is_made(item)
        found[-1].append(item)
    return found


def is_made(item: Element) -> bool:
    """Whether the model made an item."""
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return not (kind.endswith("_output") or kind in ("item_reference", "mcp_approval_response"))


def _says_again(held: Items, rest: Items) -> bool:
    """Whether what is new begins as the end of what was said, with words of the model."""
    said, new = [*map(content_key, held)], [*map(content_key, rest)]
    return any(
        said[-size:] == new[:size] and any(map(is_made, rest[:size]))
        for size in range(1, min(len(said), len(new)) + 1)
    )


def _without_an_output(pen: Pen, held: Items, rest: Items) -> tuple[Items, Items, Items]:
    """A call that waits on the server, whose output is missing, or was made and not sent."""
    called = {item.get("call_id") for item in held if is_made(item)}
    places = [
        at
        for at, item in enumerate(rest)
        if item.get("type") == "function_call_output" and item.get("call_id") in called
    ]
    if not places:
        return held, rest, []
    at = pen.pick(places)
    left = [*rest[:at], *rest[at + 1 :]]
    if _tells(left, held, rest[at]["call_id"]):  # words alone tell it from a whole history
        return held, rest, []
    return held, left, [rest[at]] if pen.chance() else []


def _tells(new: Items, held: Items, lost: str) -> bool:
    """Whether what is new says all that was said before, but for a call."""
    said = [
        content_key(item)
        for item in held
        if item.get("type") != "reasoning" and item.get("call_id") != lost
    ]
    words = map(content_key, new)
    return all(each in words for each in said)


def _local(pen: Pen, how: str, held: Items) -> tuple[Items, Items]:
    """What the input has of it, and what the whole says then."""
    proofs = [at for at, item in enumerate(held) if is_made(item) and proves(item)]
    match how:
        case "whole":
            return list(held), held
        case "bare":
            by_value = openai_responses.PREFIXES
            return [
                {key: value for key, value in item.items() if key != "id"}
                if item.get("type", "message") in by_value
                else item
                for item in held
                if item.get("type") != "reasoning"
            ], held
        case "tail" if proofs:
            start = pen.below(proofs[-1] + 1)
            tail = held[start:]
            # An output without its call is no history of anybody's, and neither is one with holes.
            return (held if any(_lost_output(item, tail) for item in tail) else tail), held
        case "edited" if proofs:
            users = [at for at in range(proofs[-1]) if held[at].get("role") == "user"]
            if users:
                at = pen.pick(users)
                said = {"role": "user", "content": f"edited {pen.number()}"}
                edited = [*held[:at], said, *held[at + 1 :]]
                return edited, edited
    return [], held


def proves(item: Element) -> bool:
    """Whether a copy of the item can be recognised."""
    return isinstance(item.get("id") or item.get("call_id"), str)


def _lost_output(item: Element, among: Items) -> bool:
    called = {other.get("call_id") for other in among if is_made(other)}
    return not is_made(item) and "call_id" in item and item["call_id"] not in called


def _server(pen: Pen, how: str, turns: list[Items]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The server's state, and the link that the request names."""
    responses: dict[str, Any] = {}
    last = None
    for number, turn in enumerate(turns, 1):
        made = next((at for at, item in enumerate(turn) if is_made(item)), len(turn))
        exchange = {"input": turn[:made], "output": turn[made:], "previous_response_id": last}
        last = f"resp_{number}"
        responses[last] = exchange
    items = [item for turn in turns for item in turn]
    chain, talk = {"previous_response_id": last}, {"conversation": "conv_1"}
    match how:
        case "conversation":
            return {"conversations": {"conv_1": items}}, talk
        case "unstored":
            for name in list(responses)[pen.below(len(responses)) :]:
                responses[name]["stored"] = False
            return {"responses": responses}, chain
        case "gone":
            return {"responses": responses, "gone": [last]}, chain
        case "gone conversation":
            return {"conversations": {"conv_1": items}, "gone": ["conv_1"]}, talk
        case "without retention":
            return {"responses": responses, "zero_data_retention": True}, chain
        case "both":
            held = [item for turn in turns[: pen.below(len(turns) + 1)] for item in turn]
            state = {"responses": responses, "conversations": {"conv_1": held}}
            return state, {**chain, **talk}
        case "no answer":
            lost = {"input": [{"role": "user", "content": "lost"}], "conversation": "conv_1"}
            return {"conversations": {"conv_1": items}, "attempts": {"a": lost}}, talk
    return {"responses": responses}, chain
