"""Calls that cannot be sent as calls: what they asked for, and what came back, as quoted data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from convnorm import envelope
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Insert, Move, Replace
from convnorm.ir import History, Item, Text, ToolResult, Turn, media_of
from convnorm.pairing import Pair
from convnorm.wire import json_text, text_of


@dataclass(frozen=True, slots=True)
class Demotion:
    """A call that is told with its result, the rule that wants it, and why."""

    pair: Pair
    rule: str
    why: str


def demoted(history: History, demotions: Sequence[Demotion], call: Call) -> Iterator[Edit]:
    """The edits that turn pairs into user turns which quote both halves.

    A quotation stands where the result stood, or behind those results of its batch that stay, where
    nothing may come between them.
    """
    turns = history.turns
    told = {one.pair.result.turn for one in demotions if one.pair.result is not None}
    adjacent = call.target.adjacent_results
    calling = {one.pair.place.turn for one in demotions}
    ends = {at: _end_of_block(turns, at) if adjacent else at for at in calling}
    # By turn that calls: the last of the results behind it that stay.
    stay = {
        at: next((turn for turn in range(end, at, -1) if turn not in told), at)
        for at, end in ends.items()
    }
    for one in demotions:
        pair, rule, why = one.pair, one.rule, one.why
        at = pair.place.turn
        turn = turns[at]
        result = None if pair.result is None else turns[pair.result.turn].items[pair.result.item]
        assert isinstance(result, ToolResult | None)
        output = None if result is None or result.synthetic else result.output
        given, where = pair.call.arguments, call.where(turn)
        asked = {} if given is None else given
        text = envelope.quote_call(
            asked if isinstance(asked, str) else json_text(asked, where),
            None if output is None else text_of(output, where),
            call_id=pair.call.call_id,
            name=pair.call.name,
            agent=turn.agent,
        )
        items: tuple[Item, ...] = (Text(text), *media_of(output))
        new = Turn("user", items, at=turn.at, source=turn.source)
        yield Drop(*pair.place, rule=rule, why=f"{why}: quoted as data")
        if pair.result is None:
            yield Insert(ends[at], new, rule=rule, why="the call that cannot be sent")
            continue
        here = pair.result.turn
        yield Replace(here, new, rule=rule, why="the result of the call that cannot be sent")
        if here < stay[at]:
            yield Move(here, stay[at], rule=rule, why="a quotation cannot stand between results")


def _end_of_block(turns: tuple[Turn, ...], at: int) -> int:
    """The last of the results that stand directly behind turn `at`."""
    while at + 1 < len(turns) and turns[at + 1].role == "tool":
        at += 1
    return at
