"""Where a local history and one that the server holds tell the same, in linear time.

Equal words prove nothing: a user repeats himself. What proves that the server holds an element is
an id, a call or a result of a call that it knows. Without any, it is a history that begins with all
that it holds, or with the end of it: with words of the model, which are never new. Between two
elements that are proved, equal words are the same element.
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

    def light(self, one: Any, /) -> bool:
        """Whether it may be missing on one side: reasoning often is."""


@dataclass(slots=True)
class Alignment:
    """What of the local history is a copy of what the server holds."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Places here and there, both rising."""
    changed: set[int] = field(default_factory=set)
    """Places here of elements that have the id of one there and say something else."""
    guessed: bool = False
    """The elements here are taken for the end of those there by their words alone."""


def align(here: Sequence[Any], there: Sequence[Any], how: Reading) -> Alignment:
    """Match the elements `here` with those `there`."""
    ours, theirs = _heavy(here, how), _heavy(there, how)
    found = _align([here[at] for at in ours], [there[at] for at in theirs], how)
    pairs = [(ours[at], theirs[other]) for at, other in found.pairs]
    changed = {ours[at] for at in found.changed}
    return Alignment(_with_light(here, there, pairs, how), changed, found.guessed)


def _heavy(elements: Sequence[Any], how: Reading) -> list[int]:
    return [at for at, one in enumerate(elements) if not how.light(one)]


def _with_light(
    here: Sequence[Any], there: Sequence[Any], pairs: list[tuple[int, int]], how: Reading
) -> list[tuple[int, int]]:
    """The pairs, and those of light elements that are proved and stand between the same ones."""
    places = {
        proof: at for at, one in enumerate(there) if how.light(one) for proof in how.proofs(one)
    }
    known = dict(pairs)
    ends = sorted(known.items())
    found: list[tuple[int, int]] = []
    last, next_at = -1, 0
    for at, one in enumerate(here):
        while next_at < len(ends) and ends[next_at][0] <= at:
            next_at += 1
        if at in known:
            last = known[at]
            found.append((at, last))
        elif how.light(one):
            other = next((places[proof] for proof in how.proofs(one) if proof in places), -1)
            limit = ends[next_at][1] if next_at < len(ends) else len(there)
            if other < 0 and ends[next_at : next_at + 1] == [(at + 1, limit)]:
                other = limit - 1 if how.same(one, there[limit - 1]) else -1
            if last < other < limit:
                last = other
                found.append((at, other))
    return found


def _align(here: Sequence[Any], there: Sequence[Any], how: Reading) -> Alignment:
    found = _anchors(here, there, how)
    if not found.pairs and not found.changed:
        shared = _shared(here, there, how)
        found.pairs = [(at, len(there) - shared + at) for at in range(shared)]
        found.guessed = 0 < shared < len(there)
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


def _shared(here: Sequence[Any], there: Sequence[Any], how: Reading) -> int:
    """How many elements stand at the end there and at the beginning here, at most."""
    most = min(len(here), len(there))
    if not most or not any(map(how.made, here[:most])):
        return 0
    start = [how.content(one) for one in here[:most]]
    row = [*start, object(), *(how.content(one) for one in there[-most:])]
    ends = [0] * len(row)  # by place: how much of the start stands before it
    for at in range(1, len(row)):
        count = ends[at - 1]
        while count and row[at] != row[count]:
            count = ends[count - 1]
        ends[at] = count + (row[at] == row[count])
    shared = ends[-1]
    same = all(map(how.same, here[:shared], there[len(there) - shared :]))
    return shared if same and any(map(how.made, here[:shared])) else 0


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
    """Equal elements between two that are proved; those that stand next to these come first."""
    behind: list[tuple[int, int]] = []
    while end[0] - 1 > start[0] and end[1] - 1 > start[1]:
        if not how.same(here[end[0] - 1], there[end[1] - 1]):
            break
        end = end[0] - 1, end[1] - 1
        behind.append(end)
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
    return [*found, *reversed(behind)]
