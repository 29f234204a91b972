"""A local history beside the one that the server holds: what is there twice, and the whole."""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from convnorm import envelope
from convnorm.align import align
from convnorm.groups import is_reasoning
from convnorm.ir import Media, Opaque, Reasoning, Text, ToolCall, ToolResult, Turn, same_turn
from convnorm.wire import text_of


class Turns:
    """How turns are compared."""

    @staticmethod
    def proofs(turn: Turn) -> Iterator[tuple[str, str]]:
        """What proves that two turns are one: an id, a call, or the result of a call."""
        if turn.id is not None:
            yield "id", turn.id
        for item in turn.items:
            if isinstance(item, Reasoning) and item.proof:
                yield "seal", item.proof
            if isinstance(item, ToolCall) and item.call_id:
                yield "call", item.call_id
            if isinstance(item, ToolResult) and item.call_id:
                yield "result", item.call_id
        if (told := Turns.quoted(turn)) is not None:
            yield "quotation", "\n".join(told)

    @staticmethod
    def content(turn: Turn) -> Hashable:
        """Equal for turns that say the same."""
        said: list[object] = [turn.role]
        for item in turn.items:
            match item:
                case Text() | Reasoning():
                    said.append(item.text)
                case ToolCall() | ToolResult():
                    said.append(item.call_id)
        return tuple(said)

    @staticmethod
    def same(one: Turn, other: Turn) -> bool:
        """Whether two turns say the same; a reference says what it refers to."""
        if refers(one) or refers(other):
            return one.id is not None and one.id == other.id
        return same_turn(one, other)

    @staticmethod
    def made(turn: Turn) -> bool:
        """Whether the model made it."""
        return turn.role == "assistant"

    @staticmethod
    def light(turn: Turn) -> bool:
        """Whether it may be missing on one side."""
        return is_reasoning(turn) or invented(turn) or Turns.quoted(turn) is not None

    @staticmethod
    def returned(turn: Turn) -> tuple[str, str] | None:
        """What a real result says, and of which call."""
        result = answered(turn)
        if result is None or result.synthetic:
            return None
        return envelope.as_quoted(text_of(result.output, ""), result.call_id)

    @staticmethod
    def quoted(turn: Turn) -> tuple[str, str] | None:
        """The same of the result that a quotation tells."""
        first = turn.items[0] if turn.items and turn.role == "user" else None
        return envelope.quoted(first.text) if isinstance(first, Text) else None


def refers(turn: Turn) -> bool:
    """Whether a turn only points at what the server holds."""
    return any(isinstance(item, Opaque) and item.refers for item in turn.items)


def calls_of(turn: Turn) -> Iterator[ToolCall]:
    """The calls of a turn that wait for a result of the client."""
    return (item for item in turn.items if isinstance(item, ToolCall) and item.answered_by)


def answered(turn: Turn) -> ToolResult | None:
    """The result of a call of the client, if the turn is one."""
    item = turn.items[0] if turn.items else None
    if isinstance(item, ToolResult) and item.paired and item.call_id:
        return item
    return None


def invented(turn: Turn) -> bool:
    """Whether a turn is the result that convnorm made up to close a call."""
    result = answered(turn)
    return result is not None and result.synthetic


def waiting(turns: Sequence[Turn]) -> dict[int, ToolCall]:
    """The calls that wait for a result of the client, by the place of their turn."""
    found: dict[int, ToolCall] = {}
    open_at: dict[tuple[str, str], deque[int]] = {}
    for at, turn in enumerate(turns):
        for item in turn.items:
            if isinstance(item, ToolCall) and item.answered_by and item.call_id:
                found[at] = item
                for kind in item.answered_by:
                    open_at.setdefault((item.call_id, kind), deque()).append(at)
        result = answered(turn)
        places = open_at.get((result.call_id or "", result.kind)) if result else None
        while places:  # it may have been answered by another kind
            if found.pop(places.popleft(), None) is not None:
                break
    return found


def _first_answers(here: Sequence[Turn], calls: Mapping[int, ToolCall]) -> set[int]:
    """Results of calls that wait there, of which the input does not have the call itself."""
    open_ids = Counter(call.call_id for call in calls.values())
    found: set[int] = set()
    for at, turn in enumerate(here):
        for item in turn.items:
            if isinstance(item, ToolCall):
                open_ids.pop(item.call_id, None)
        result = answered(turn)
        if result is not None and open_ids[result.call_id] > 0:
            open_ids[result.call_id] -= 1
            found.add(at)
    return found


@dataclass(slots=True)
class Overlap:
    """What of the local history `here` the server has `there`."""

    here: Sequence[Turn]
    there: Sequence[Turn]
    pairs: dict[int, int] = field(default_factory=dict)
    """By place here: its place there."""
    changed: set[int] = field(default_factory=set)
    """Places here of what has an id from there and says something else."""
    waiting: dict[int, ToolCall] = field(default_factory=dict)
    """By place there: calls that wait for a result."""
    answers: set[int] = field(default_factory=set)
    """Places here of results that answer one of them."""
    told: dict[int, int] = field(default_factory=dict)
    """By place here: results that stand elsewhere there, or are quoted there."""
    guessed: bool = False
    """What is here is taken for the end of what is there by its words alone."""

    @classmethod
    def of(cls, here: Sequence[Turn], there: Sequence[Turn]) -> "Overlap":
        """Compare two histories."""
        calls = waiting(there)
        # Under an id that is used again, what answers the call that waits equals no older result.
        first = _first_answers(here, calls)
        rest = [at for at in range(len(here)) if at not in first]
        found = align([here[at] for at in rest], there, Turns)
        pairs = {rest[at]: other for at, other in found.pairs}
        changed = {rest[at] for at in found.changed}
        told = {rest[at]: other for at, other in found.told.items()}
        overlap = cls(here, there, pairs, changed, calls, told=told, guessed=found.guessed)
        wanted = {
            (call.call_id, kind): None for call in calls.values() for kind in call.answered_by
        }
        for at, turn in enumerate(here):
            result = answered(turn)
            if result is not None and (result.call_id, result.kind) in wanted:
                overlap.answers.add(at)
        return overlap

    @property
    def end(self) -> int:
        """The last place here that the server has, or -1."""
        return max((*self.pairs, *self.changed), default=-1)

    @property
    def strangers(self) -> list[int]:
        """Places here, before the end of what the server has, of what it does not have.

        The result of a call that was only closed there came late: it can be told behind the link.
        """
        known = {*self.pairs, *self.answers, *self.told}
        closed = self._closed
        return [
            at
            for at in range(self.end + 1)
            if at not in known
            and not _says_nothing(self.here[at])
            and ((result := answered(self.here[at])) is None or result.call_id not in closed)
        ]

    @property
    def _closed(self) -> set[str | None]:
        """The calls there that have no result but the one that was made up."""
        results = [result for turn in self.there if (result := answered(turn)) is not None]
        real = {result.call_id for result in results if not result.synthetic}
        return {result.call_id for result in results} - real

    @property
    def new(self) -> list[int]:
        """Places here of what the server does not have."""
        return [
            at
            for at, turn in enumerate(self.here)
            if at not in self.pairs
            and at not in self.told
            and (at in self.answers or not invented(turn))
        ]

    def unanswered(self) -> dict[int, ToolCall]:
        """The calls there that nothing here answers."""
        given: dict[tuple[str | None, str], int] = {}
        for at in self.answers:
            result = answered(self.here[at])
            assert result is not None
            own = (result.call_id, result.kind)
            given[own] = given.get(own, 0) + 1
        left: dict[int, ToolCall] = {}
        for at, call in self.waiting.items():
            keys = [(call.call_id, kind) for kind in call.answered_by]
            key = next((key for key in keys if given.get(key)), None)
            if key is None:
                left[at] = call
            else:
                given[key] -= 1
        return left

    def covering(self, left_out: set[int]) -> dict[int, int] | None:
        """Where each turn there stands here, but for reasoning, what was put in, and `left_out`.

        None if one is missing. Without any proof, words alone are compared; then a turn of the
        model must be here too, since what continues a history has none.
        """
        spare = left_out | set(self.told.values())
        needed = [
            at for at, turn in enumerate(self.there) if at not in spare and not _says_nothing(turn)
        ]
        places: dict[Hashable, list[int]] = {}
        for at, turn in enumerate(self.here):
            places.setdefault(Turns.content(turn), []).append(at)
        proved = {there: here for here, there in self.pairs.items()}
        found: dict[int, int] = {}
        last = -1
        for at in needed:
            here = proved.get(at)
            if here is None:
                known = places.get(Turns.content(self.there[at]), [])
                later = bisect_right(known, last)
                if later == len(known) or not Turns.same(self.here[known[later]], self.there[at]):
                    return None
                here = known[later]
            if here <= last:
                return None
            found[here] = at
            last = here
        return found if found and any(map(Turns.made, self.here)) else None

    def merged(self) -> Iterator[tuple[int, int]]:
        """What of the server's history has to be put where, so that the local one is whole.

        Yields the place here behind which a turn belongs, -1 for the front, and the place there.
        Where both tell something different between the same neighbours, the local words stand for
        the server's, and what they do not speak of stays.
        """
        before, spare = (-1, -1), self._spare()
        for here in sorted(self.pairs):
            after = here, self.pairs[here]
            yield from self._gap(before, after, spare)
            before = after
        behind = len(self.here) if self.end > before[0] else before[0] + 1
        yield from self._gap(before, (behind, len(self.there)), spare)

    def _spare(self) -> set[int]:
        """Places there of what the results here stand for, or say already."""
        given = {
            result.call_id
            for turn in self.here
            if (result := answered(turn)) and not result.synthetic
        }
        closed = {
            at
            for at, turn in enumerate(self.there)
            if (result := answered(turn)) and result.synthetic and result.call_id in given
        }
        return closed | set(self.told.values())

    def _gap(
        self, start: tuple[int, int], end: tuple[int, int], spare: set[int]
    ) -> Iterator[tuple[int, int]]:
        places: dict[str, list[int]] = {}
        for here in range(start[0] + 1, end[0]):
            if speaks(self.here[here]):
                places.setdefault(self.here[here].role, []).append(here)
        changed = {self.here[at].id for at in self.changed}
        at, kept = start[0], list[tuple[int, int]]()
        for there in range(start[1] + 1, end[1]):
            turn = self.there[there]
            if there in spare or (turn.id is not None and turn.id in changed):
                continue
            said = places.get(turn.role, []) if speaks(turn) else []
            later = bisect_right(said, at)
            if later < len(said):  # said here in other words
                at = said[later]
            else:
                kept.append((at, there))
        staying = {there for _, there in kept} | {end[1]}
        for at, there in kept:
            if is_reasoning(self.there[there]):
                led = there + 1
                while led < end[1] and is_reasoning(self.there[led]):
                    led += 1
                if led not in staying:
                    continue
            yield at, there


def speaks(turn: Turn) -> bool:
    """Whether somebody says something in it; in a quotation, nobody does."""
    return Turns.quoted(turn) is None and any(isinstance(i, Text | Media) for i in turn.items)


def _says_nothing(turn: Turn) -> bool:
    """Whether a history is whole without the turn."""
    return is_reasoning(turn) or invented(turn)
