"""Faults that every dialect knows: histories replayed, with and without labels."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Protocol

from convnorm.testing.draft import Draft, Element, Pen


class Mutator(Protocol):
    """Breaks one thing in a draft; it always applies, since it adds what it needs."""

    __name__: str

    def __call__(self, pen: Pen, draft: Draft, /) -> None:
        """Change the draft in place."""


Gaps = Callable[[Sequence[Any]], list[int]]
Exchange = Callable[[Pen], list[Element]]

MOST = 10
"""A longer history is replayed once only, so that examples stay small."""


def place(pen: Pen, draft: Draft, new: list[Element], gaps: Gaps) -> None:
    """Put `new` somewhere between the turns."""
    at = pen.pick(gaps(draft.elements)[::-1])
    draft.elements[at:at] = new


def repeat(pen: Pen, draft: Draft, elements: Sequence[Element]) -> None:
    """Add the elements again: the very same objects, or equal ones."""
    start = len(draft.elements)
    draft.elements += deepcopy(list(elements)) if pen.chance() else elements
    draft.copies.append(range(start, len(draft.elements)))


def vendor_keys(pen: Pen, draft: Draft) -> None:
    """Keys of nobody's schema, everywhere."""
    draft.elements = [{**element, "x_vendor": pen.number()} for element in draft.elements]


def replays(question: Exchange, exchange: Exchange, gaps: Gaps) -> tuple[Mutator, ...]:
    """Whole histories sent twice; `exchange` makes calls under ids that nobody mints twice."""

    def replayed(pen: Pen, draft: Draft) -> None:
        draft.elements += exchange(pen)
        once = list(draft.elements)
        repeat(pen, draft, once)
        if len(once) < MOST and pen.chance(3):
            repeat(pen, draft, once)
        if pen.chance():
            draft.elements += question(pen)

    def replayed_in_part(pen: Pen, draft: Draft) -> None:
        draft.elements += exchange(pen)
        proven = len(draft.elements)
        draft.elements += question(pen)
        if pen.chance():
            draft.elements += exchange(pen)
        end = pen.pick([at for at in gaps(draft.elements) if at >= proven])
        repeat(pen, draft, draft.elements[:end])
        if pen.chance():
            draft.elements += question(pen)

    def replayed_tail(pen: Pen, draft: Draft) -> None:
        tail = [*question(pen), *exchange(pen), *question(pen)]
        draft.elements += tail
        repeat(pen, draft, tail)

    return replayed, replayed_in_part, replayed_tail


def sources(question: Exchange, exchange: Exchange, gaps: Gaps) -> tuple[Mutator, ...]:
    """Several sources of one history, each with its label."""

    def label(pen: Pen, draft: Draft, first: int) -> None:
        """The `first` elements are of one source, the others of another."""
        one, two = pen.pick((("store", "caller"), (None, "caller"), ("store", None)))
        draft.facts["sources"] = (one,) * first + (two,) * (len(draft.elements) - first)

    def source_repeats_all(pen: Pen, draft: Draft) -> None:
        first = len(draft.elements)
        repeat(pen, draft, draft.elements[:])
        label(pen, draft, first)

    def source_repeats_start(pen: Pen, draft: Draft) -> None:
        first = len(draft.elements)
        # A call that is still pending must not come to stand last.
        end = first if "live_calls" in draft.facts else pen.pick(gaps(draft.elements))
        repeat(pen, draft, draft.elements[:end])
        label(pen, draft, first)

    def source_goes_on(pen: Pen, draft: Draft) -> None:
        everything = list(draft.elements)
        first = pen.pick(gaps(everything)[::-1])
        del draft.elements[first:]
        repeat(pen, draft, everything)
        draft.elements += [*question(pen), *exchange(pen)]
        label(pen, draft, first)

    def source_differs(pen: Pen, draft: Draft) -> None:
        first = len(draft.elements)
        draft.elements += [*question(pen), *exchange(pen), *question(pen)]
        label(pen, draft, first)

    return source_repeats_all, source_repeats_start, source_goes_on, source_differs
