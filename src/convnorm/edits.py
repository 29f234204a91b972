"""What a pass may ask for, and `apply`, the one place that builds a history.

Positions always mean the history the pass was given, so a pass never has to count along.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from convnorm.errors import PolicyError
from convnorm.ir import Flaw, History, Item, Turn

FRONT = -1
"""The place before the first turn, for `Insert` and `Move`."""


class Loss(StrEnum):
    """Everything a repair may cost. A default policy never costs more than the first seven."""

    REASONING = "reasoning that its provider would not take back"
    EMPTY = "a message that said nothing"
    ID = "an id"
    COPY = "an older or unfinished copy of the same item"
    MEDIA = "media over a limit"
    FIELD = "a key or a value that the target refuses"
    RANK = "the rank of an instruction"
    # Only by an option the user set:
    RESULT = "a tool result"
    CALL = "a tool call"
    HISTORY = "turns of a source that does not own the history"
    OLDEST = "the oldest turns"
    END = "the end of a long text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why an edit is made: the rule it repairs, in whose words, and what it costs.

    An opt-in pass that does what no rule asks for gives its own name for the rule.
    """

    rule: str
    why: str
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Drop(Reason):
    """Take out a turn, or one item of it."""

    turn: int
    item: int | None = None
    joined: bool = False
    """Another turn says now what it said."""


@dataclass(frozen=True, slots=True)
class Insert(Reason):
    """Put a new turn behind the turn `after`."""

    after: int
    new: Turn


@dataclass(frozen=True, slots=True)
class Replace(Reason):
    """Put another turn in the place of a turn, or another item in the place of an item."""

    turn: int
    new: Turn | Item
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Move(Reason):
    """Carry a turn to the place behind the turn `after`."""

    turn: int
    after: int


@dataclass(frozen=True, slots=True)
class SetTurn(Reason):
    """Change what a turn says of itself: its id, its role, its empty fields."""

    turn: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mend(Reason):
    """Write one key of a turn as the target takes it."""

    turn: int
    flaw: Flaw


@dataclass(frozen=True, slots=True)
class SetField(Reason):
    """Change a field of the request; `None` takes it out."""

    key: str
    value: Any


Edit = Drop | Insert | Replace | Move | SetTurn | Mend | SetField


@dataclass(frozen=True, slots=True)
class Assumed:
    """Not an edit: something a pass had to take for granted, for the report."""

    what: str


@dataclass(frozen=True, slots=True)
class Unrepairable:
    """Not an edit: a fault that nothing may repair silently; the policy says what that means."""

    turn: int
    rule: str
    remedy: str


def apply(history: History, edits: Iterable[Edit]) -> History:
    """Build the history that `edits` ask for; without edits it is the same object."""
    plan = _Plan()
    for edit in edits:
        plan.add(edit)
    if plan.is_empty:
        return history
    turns: list[Turn] = [*plan.arriving(FRONT, history)]
    for at, turn in enumerate(history.turns):
        if at not in plan.leaving:
            changed = plan.changed(at, turn)
            if changed is not None:
                turns.append(changed)
        turns.extend(plan.arriving(at, history))
    fields = {key: value for key, value in history.fields.items() if key not in plan.fields}
    fields |= {key: value for key, value in plan.fields.items() if value is not None}
    return replace(history, turns=tuple(turns), fields=fields if plan.fields else history.fields)


@dataclass(slots=True)
class _Plan:
    """Edits sorted by the turn they touch. One thing is edited once: a second edit is a bug."""

    items: dict[int, dict[int, Item | None]] = field(default_factory=dict)
    turns: dict[int, Turn | None] = field(default_factory=dict)
    values: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    behind: dict[int, list[int | Turn]] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)
    mended: dict[int, list[Flaw]] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)

    def add(self, edit: Edit) -> None:
        match edit:
            case Drop(turn=turn, item=None):
                _once(turn not in self.turns, f"turn {turn} is dropped or replaced twice")
                self.turns[turn] = None
            case Replace(turn=turn, new=Turn() as new):
                _once(turn not in self.turns, f"turn {turn} is dropped or replaced twice")
                self.turns[turn] = new
            case Drop(turn=turn, item=item) if item is not None:
                self._edit_item(turn, item, None)
            case Replace(turn=turn, item=int() as item, new=new) if not isinstance(new, Turn):
                self._edit_item(turn, item, new)
            case Insert(after=after, new=new):
                self.behind.setdefault(after, []).append(new)
            case Move(turn=turn, after=after):
                _once(turn not in self.leaving, f"turn {turn} is moved twice")
                self.leaving.add(turn)
                self.behind.setdefault(after, []).append(turn)
            case SetTurn(turn=turn, values=values):
                _once(turn not in self.values, f"turn {turn} is set twice")
                self.values[turn] = values
            case Mend(turn=turn, flaw=flaw):
                self.mended.setdefault(turn, []).append(flaw)
            case SetField(key=key, value=value):
                _once(key not in self.fields, f"field {key} is set twice")
                self.fields[key] = value

    def _edit_item(self, turn: int, item: int, new: Item | None) -> None:
        of_turn = self.items.setdefault(turn, {})
        _once(item not in of_turn, f"item {item} of turn {turn} is edited twice")
        of_turn[item] = new

    @property
    def is_empty(self) -> bool:
        return not (
            self.items or self.turns or self.values or self.mended or self.behind or self.fields
        )

    def changed(self, at: int, turn: Turn) -> Turn | None:
        """The turn after its edits; None when it goes, also by losing its last item."""
        turn_or_none = self.turns.get(at, turn)
        if turn_or_none is None:
            return None
        turn = turn_or_none
        if at in self.items:
            edited = self.items[at]
            items = (edited.get(i, item) for i, item in enumerate(turn.items))
            turn = replace(turn, items=tuple(item for item in items if item is not None))
            if not turn.items:
                return None
        if at in self.mended:
            flaws = self.mended[at]
            turn = replace(
                turn,
                flaws=tuple(one for one in turn.flaws if not any(one is flaw for flaw in flaws)),
                mended=(*turn.mended, *flaws),
            )
        return replace(turn, **self.values[at]) if at in self.values else turn

    def arriving(self, after: int, history: History) -> Iterable[Turn]:
        for turn in self.behind.get(after, ()):
            new = turn if isinstance(turn, Turn) else self.changed(turn, history.turns[turn])
            if new is not None:
                yield new


def _once(holds: bool, otherwise: str) -> None:  # noqa: FBT001  # reads like an assertion
    if not holds:
        raise PolicyError(f"a pass contradicts itself: {otherwise}")
