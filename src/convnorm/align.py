"""Where a local history and one that the server holds tell the same, in linear time.

Equal words prove nothing: a user repeats himself. What proves that the server holds an element is
an id, a call or a result of a call that it knows. Without any, it is a history that begins with all
that it holds, or with the end of it: with words of the model, which are never new. Between two
elements that are proved, equal words are the same element.

What was put in for the server's sake, the other side may never have had: the text that closes a
call, and the quotation of a result that came after that. And a result may stand anywhere behind its
call: some put it where it came, others next to the call.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
        """Whether it may be missing on one side: reasoning often is, and what was put in."""

    def returned(self, one: Any, /) -> Hashable:
        """What a real result says, and of which call; None for anything else."""

    def quoted(self, one: Any, /) -> Hashable:
        """The same of the result that a quotation tells."""


@dataclass(slots=True)
class Alignment:
    """What of the local history is a copy of what the server holds."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Places here and there, both rising."""
    changed: set[int] = field(default_factory=set)
    """Places here of elements that have the id of one there and say something else."""
    told: dict[int, int] = field(default_factory=dict)
    """Results here, and where they stand elsewhere there, or are quoted; these need not rise."""
    guessed: bool = False
    """The elements here are taken for the end of those there by their words alone."""


def align(here: Sequence[Any], there: Sequence[Any], how: Reading) -> Alignment:
    """Match the elements `here` with those `there`."""
    told = _quoted(here, there, how)
    for fixed in _fixed(here, there, how):
        ours = [at for at in _heavy(here, fixed, how) if at not in told]
        theirs = _heavy(there, fixed, how)
        found = _align([here[at] for at in ours], [there[at] for at in theirs], how)
        if found.pairs or found.changed:
            break
    pairs = [(ours[at], theirs[other]) for at, other in found.pairs]
    changed = {ours[at] for at in found.changed}
    free = sorted(set(range(len(there))).difference(theirs))
    pairs = _with_free(here, there, pairs, free, how)
    left = set(range(len(here))).difference(dict(pairs), ours, told)
    told |= _elsewhere(here, there, left, free, how)
    return Alignment(pairs, changed, told, found.guessed)


def _quoted(here: Sequence[Any], there: Sequence[Any], how: Reading) -> dict[int, int]:
    """The results here that are quoted there."""
    quotes: dict[Hashable, deque[int]] = {}
    for at, one in enumerate(there):
        if (key := how.quoted(one)) is not None:
            quotes.setdefault(key, deque()).append(at)
    if not quotes:
        return {}
    held = {how.returned(one) for one in there}
    found: dict[int, int] = {}
    for at, one in enumerate(here):
        key = how.returned(one)
        if places := quotes.get(key):
            found[at] = places[0]
            if len(places) > 1 or key in held:  # an id that is used again
                places.popleft()
    return found


def _fixed(
    here: Sequence[Any], there: Sequence[Any], how: Reading
) -> tuple[AbstractSet[tuple[str, str]], ...]:
    """The results that are bound to their place, and those that are where nothing else tells it.

    A result may stand anywhere behind its call, but where the id of the call is used again.
    """
    mine, theirs = (
        Counter(own for one in side if not how.light(one) for own in how.proofs(one))
        for side in (here, there)
    )
    both = {own for own in mine.keys() & theirs.keys() if own[0] == "result"}
    again = {own for own in both if mine[own] > 1 or theirs[own] > 1}
    alone = {own for own in both if not mine["call", own[1]]}
    return (again, again | alone) if alone else (again,)


def _heavy(elements: Sequence[Any], fixed: AbstractSet[tuple[str, str]], how: Reading) -> list[int]:
    """The places of elements that have to stand in one order on both sides."""
    return [
        at
        for at, one in enumerate(elements)
        if not how.light(one)
        and all(kind != "result" or (kind, own) in fixed for kind, own in how.proofs(one))
    ]


def _elsewhere(
    here: Sequence[Any],
    there: Sequence[Any],
    left: AbstractSet[int],
    free: Sequence[int],
    how: Reading,
) -> dict[int, int]:
    """The results among those `left` here that stand there too, wherever that is."""
    real = (at for at in free if not how.light(there[at]))
    places = {own: at for at in real for own in how.proofs(there[at]) if own[0] == "result"}
    return {
        at: places[own]
        for at in sorted(left)
        for own in how.proofs(here[at])
        if own in places and how.same(here[at], there[places[own]])
    }


def _with_free(
    here: Sequence[Any],
    there: Sequence[Any],
    pairs: list[tuple[int, int]],
    free: Sequence[int],
    how: Reading,
) -> list[tuple[int, int]]:
    """The pairs, and those of free elements that are proved and stand between the same ones."""
    places: dict[tuple[str, str], list[int]] = {}
    for at in free:
        for proof in how.proofs(there[at]):
            places.setdefault(proof, []).append(at)
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
            continue
        limit = ends[next_at][1] if next_at < len(ends) else len(there)
        other = _proved(one, there, places, last, how)
        if other < 0 and how.light(one) and ends[next_at : next_at + 1] == [(at + 1, limit)]:
            other = limit - 1 if how.same(one, there[limit - 1]) else -1
        if last < other < limit:
            last = other
            found.append((at, other))
    return found


def _proved(
    one: Any,
    there: Sequence[Any],
    places: Mapping[tuple[str, str], Sequence[int]],
    last: int,
    how: Reading,
) -> int:
    """The first place behind the last one of what an element is proved to be, or -1."""
    for own in how.proofs(one):
        known = places.get(own, ())
        later = bisect_right(known, last)
        if later < len(known) and (own[0] != "result" or how.same(one, there[known[later]])):
            return known[later]
    return -1


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
