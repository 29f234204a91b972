"""Reasoning and what it produced are one group: neither half is sent without the other."""

from collections.abc import Collection, Iterator, Sequence

from convnorm.ir import Reasoning, Turn


def is_reasoning(turn: Turn) -> bool:
    """Whether the turn is nothing but reasoning, as an item of its own on the wire."""
    return bool(turn.items) and all(isinstance(item, Reasoning) for item in turn.items)


def dangling(turns: Sequence[Turn], gone: Collection[int]) -> Iterator[int]:
    """Reasoning turns that led only turns in `gone`, so that nothing would follow them."""
    if not gone:
        return
    followed = False
    next_gone = False
    for at in range(len(turns) - 1, -1, -1):
        turn = turns[at]
        if at in gone:
            next_gone = True
        elif is_reasoning(turn):
            if next_gone and not followed:
                yield at
        else:
            followed, next_gone = turn.role == "assistant", False


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
