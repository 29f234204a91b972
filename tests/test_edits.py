"""`apply` builds exactly the history that the edits ask for."""

from typing import Any

import pytest

from convnorm import PolicyError
from convnorm.edits import FRONT, Drop, Edit, Insert, Move, Replace, SetField, SetTurn, apply
from convnorm.ir import History, Text, Turn

BECAUSE: dict[str, Any] = {"rule": "a-rule", "why": "because"}


def turn(*texts: str) -> Turn:
    return Turn("user", tuple(Text(text) for text in texts))


def words(history: History) -> list[list[str]]:
    return [[item.text for item in t.items if isinstance(item, Text)] for t in history.turns]


ABC = History((turn("a"), turn("b", "b2"), turn("c")), {"model": "m", "store": True})


def test_no_edits_give_the_same_object() -> None:
    """Nothing to do means nothing is built."""
    assert ABC is apply(ABC, [])


def test_positions_mean_the_history_as_given() -> None:
    """Edits of one pass do not shift each other."""
    edits: list[Edit] = [
        Drop(0, **BECAUSE),
        Insert(FRONT, turn("first"), **BECAUSE),
        Insert(0, turn("x"), **BECAUSE),
        Insert(2, turn("y"), **BECAUSE),
        Move(1, 2, **BECAUSE),
    ]

    assert [["first"], ["x"], ["c"], ["y"], ["b", "b2"]] == words(apply(ABC, edits))


def test_untouched_turns_are_the_same_objects() -> None:
    """A moved turn, too, is the caller's own."""
    done = apply(ABC, [Move(0, 2, **BECAUSE)])

    assert [ABC.turns[1], ABC.turns[2], ABC.turns[0]] == list(done.turns)
    assert all(
        t is original
        for t, original in zip(done.turns, [ABC.turns[i] for i in (1, 2, 0)], strict=True)
    )


def test_items_are_dropped_and_replaced_in_place() -> None:
    """A turn that loses its last item goes."""
    edits: list[Edit] = [
        Drop(0, 0, **BECAUSE),
        Replace(1, Text("B"), 0, **BECAUSE),
        Drop(1, 1, **BECAUSE),
        Replace(2, turn("C"), **BECAUSE),
    ]

    assert [["B"], ["C"]] == words(apply(ABC, edits))


def test_turns_and_fields_are_set() -> None:
    """None takes a field out."""
    edits: list[Edit] = [
        SetTurn(0, {"role": "system"}, **BECAUSE),
        SetField("store", None, **BECAUSE),
        SetField("include", ["x"], **BECAUSE),
    ]

    done = apply(ABC, edits)
    assert ("system", {"model": "m", "include": ["x"]}) == (done.turns[0].role, done.fields)
    assert {"model": "m", "store": True} == ABC.fields


@pytest.mark.parametrize(
    "edits",
    [
        [Drop(0, **BECAUSE), Drop(0, **BECAUSE)],
        [Drop(0, **BECAUSE), Replace(0, turn("x"), **BECAUSE)],
        [Drop(0, 0, **BECAUSE), Replace(0, Text("x"), 0, **BECAUSE)],
        [Move(0, 1, **BECAUSE), Move(0, 2, **BECAUSE)],
        [SetTurn(0, {}, **BECAUSE), SetTurn(0, {}, **BECAUSE)],
        [SetField("a", 1, **BECAUSE), SetField("a", 2, **BECAUSE)],
    ],
)
def test_one_thing_is_edited_once(edits: list[Edit]) -> None:
    """A pass that contradicts itself is told so."""
    with pytest.raises(PolicyError, match="a pass contradicts itself"):
        apply(ABC, edits)
