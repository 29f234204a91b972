"""Where a local history and one that the server holds tell the same, in linear time.

Equal words prove nothing: a user repeats himself. What proves that the server holds an element is
an id, a call or a result of a call that it knows, or a history that begins with all that it holds.
Between two elements that are proved, equal words are the same element.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Reading(Protocol):
    """How elements of one kind are compared."""

    def proofs(self, one: Any, /) -> Iterable[tuple[str, str]]:
        """What proves that two elements are one."""

    def content(self, one: Any, /) -> Hashable:
        """Equal for elements that say the same."""

    def same(self, one: Any, other: Any, /) -> bool:
        """Whether two elements say the same."""

    def made(self, one: Any, /) -> bool:
        """Whether the model made it."""


@dataclass(slots=True)
class Alignment:
    """What of the local history is a copy of what the server holds."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Places here and there, both rising."""
    changed: set[int] = field(default_factory=set)
    """Places here of elements that have the id of one there and say something else."""


def align(here: Sequence[Any], there: Sequence[Any], how: Reading) -> Alignment:
    """Match the elements `here` with those `there`."""
    found = _anchors(here, there, how)
    if not found.pairs and not found.changed:
        whole = 0 < len(there) <= len(here) and any(map(how.made, there))
        if whole and all(map(how.same, here, there)):
            found.pairs = [(at, at) for at in range(len(there))]
        return found
    pairs: list[tuple[int, int]] = []
    before = (-1, -1)
    for anchor in found.pairs:
        pairs += _between(here, there, before, anchor, how)
        pairs.append(anchor)
        before = anchor
    at, other = (before[0] + 1, before[1] + 1) if pairs else (len(here), 0)
    while at < len(here) and other < len(there) and how.same(here[at], there[other]):
        pairs.append((at, other))
        at, other = at + 1, other + 1
    found.pairs = pairs
    return found


def _anchors(here: Sequence[Any], there: Sequence[Any], how: Reading) -> Alignment:
    """The elements that are proved to be the same."""
    places: dict[tuple[str, str], list[int]] = {}
    for at, one in enumerate(there):
        for proof in how.proofs(one):
            places.setdefault(proof, []).append(at)
    found = Alignment()
    last = -1
    for at, one in enumerate(here):
        for proof in how.proofs(one):
            known = places.get(proof, [])
            later = bisect_right(known, last)
            if later == len(known):
                continue
            if how.same(one, there[known[later]]):
                last = known[later]
                found.pairs.append((at, last))
                break
            if proof[0] == "id":
                found.changed.add(at)
                break
    return found


def _between(
    here: Sequence[Any],
    there: Sequence[Any],
    start: tuple[int, int],
    end: tuple[int, int],
    how: Reading,
) -> list[tuple[int, int]]:
    """Equal elements between two that are proved."""
    places: dict[Hashable, list[int]] = {}
    for at in range(start[1] + 1, end[1]):
        places.setdefault(how.content(there[at]), []).append(at)
    found: list[tuple[int, int]] = []
    last = start[1]
    for at in range(start[0] + 1, end[0]):
        known = places.get(how.content(here[at]), [])
        later = bisect_right(known, last)
        if later < len(known) and how.same(here[at], there[known[later]]):
            last = known[later]
            found.append((at, last))
    return found
