"""Reasoning and what it produced are one group: neither half is sent without the other."""

from collections.abc import Iterator, Sequence

from convnorm.edits import Drop, Edit, Loss, SetTurn
from convnorm.ir import History, Reasoning, Turn


def is_reasoning(turn: Turn) -> bool:
    """Whether the turn is reasoning that leads the turn behind it."""
    return len(turn.items) == 1 and isinstance(item := turn.items[0], Reasoning) and item.leads


def group_of(turns: Sequence[Turn], at: int) -> Iterator[int]:
    """The turns of the reasoning group around `at`: the reasoning, and what it led directly."""
    start = at
    while start > 0 and is_reasoning(turns[start - 1]):
        start -= 1
    end = start
    while end < len(turns) and is_reasoning(turns[end]):
        yield end
        end += 1
    if end < len(turns) and (end == at or turns[end].role == "assistant"):
        yield end


def leads_of_dropped(history: History, edits: Sequence[Edit]) -> list[Edit]:
    """The edits that keep groups whole when a pass drops what reasoning led.

    The reasoning goes too, and what else it led loses its id, since a server that stored the item
    would ask for the reasoning.
    """
    turns = history.turns
    gone = {edit.turn: edit for edit in edits if isinstance(edit, Drop) and _whole(edit, turns)}
    if not gone:
        return []
    touched = {edit.turn for edit in edits if isinstance(edit, SetTurn)}
    more: list[Edit] = []
    for at in sorted(gone):
        if is_reasoning(turns[at]) or turns[at].role not in ("assistant", ""):
            continue  # reasoning leads what the model made, or a reference to it
        lead = at - 1
        while lead >= 0 and _leads(turns[lead], turns[at]) and lead not in gone:
            why = "it led an item that goes"
            more.append(Drop(lead, rule=gone[at].rule, why=why, loss=Loss.REASONING))
            lead -= 1
        if lead == at - 1:
            continue
        led = at + 1
        while led < len(turns) and turns[led].role == "assistant" and not is_reasoning(turns[led]):
            if led not in gone and led not in touched and _can_lose_id(turns[led]):
                why = "the reasoning that led it goes"
                more.append(SetTurn(led, {"id": None}, rule=gone[at].rule, why=why, loss=Loss.ID))
            led += 1
    return more


def _leads(thought: Turn, turn: Turn) -> bool:
    """Whether reasoning led the turn behind it; what ends one source leads nothing of another."""
    return is_reasoning(thought) and thought.source == turn.source


def _whole(edit: Drop, turns: Sequence[Turn]) -> bool:
    return edit.item is None or len(turns[edit.turn].items) == 1


def _can_lose_id(turn: Turn) -> bool:
    return turn.id is not None and not turn.needs_id
