"""Which result answers which call, by occurrence.

Ids are reused, so sets of ids cannot tell. A result answers the nearest call before it that has
its id and is still open: the newest batch first, in order inside a batch, since parallel calls are
answered in parallel. A batch is one turn where results must stand behind their turn, and a run of
call turns elsewhere. Every step is taken once: the cost is linear in the history.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate

from convnorm.groups import is_reasoning
from convnorm.ids import is_counter
from convnorm.ir import History, Place, ToolCall, ToolResult, Turn, same

TEXTUAL = ("function", "custom", "local_shell")
"""Kinds whose result is plain text, so that one can be sent as the other."""


@dataclass(slots=True)
class Pair:
    """A call and the result that answers it, if there is one."""

    place: Place
    call: ToolCall
    batch: int
    result: Place | None = None
    extra: list[Place] = field(default_factory=list)
    """Further results of the same call."""
    answered_at: int = -1
    """How many turns without a result stood before its result."""


@dataclass(slots=True)
class Pairing:
    """All calls with their results, and the results that answer nothing."""

    pairs: list[Pair] = field(default_factory=list)
    orphans: list[Place] = field(default_factory=list)
    batch_end: list[int] = field(default_factory=list)
    """By batch: the last turn with a call of it."""


def pair_up(history: History, *, batch_is_turn: bool, settled: int = 0) -> Pairing:
    """Match every paired result with a call.

    An invented result in the first `settled` turns has the last word: what came late for its call
    is no result any more.
    """
    return _Matcher(history, batch_is_turn=batch_is_turn, settled=settled).run()


class _Matcher:
    def __init__(self, history: History, *, batch_is_turn: bool, settled: int) -> None:
        self.history = history
        self.batch_is_turn = batch_is_turn
        self.settled = settled
        self.found = Pairing()
        self.open: dict[tuple[str, str], list[deque[Pair]]] = {}
        """By id and kind of result: batches of open calls, the newest last."""
        self.latest: dict[str, Pair] = {}
        """By id: the newest call that was answered."""
        self.stood_in: dict[str, list[Pair]] = {}
        """By id: calls that an invented result answers, which a real one would answer better."""
        self.nameless: dict[int, list[Place]] = {}
        """By batch: results without an id that stand behind it."""
        self.late: list[tuple[Place, ToolResult]] = []
        """Results that no call before them takes at once."""
        self.turns_between = 0
        """How many turns without a result were seen."""
        self.breaks = list(accumulate(not _is_calling(turn) for turn in history.origin))
        """By turn as it was decoded: how many turns before it end a batch."""

    def run(self) -> Pairing:
        turns = self.history.turns
        in_batch = False
        last = Turn("")
        for t, turn in enumerate(turns):
            calls = [
                (Place(t, i), item)
                for i, item in enumerate(turn.items)
                if isinstance(item, ToolCall) and item.answered_by
            ]
            if calls:
                in_batch = in_batch and not self.batch_is_turn and self._together(last, turn)
                last = turn
                for place, call in calls:
                    self._call(place, call, new_batch=not in_batch)
                    in_batch = True
                self.turns_between += 1
            elif len(turn.items) == 1 and isinstance(result := turn.items[0], ToolResult):
                in_batch = False
                if result.paired and not self._answer(Place(t, 0), result):
                    self.late.append((Place(t, 0), result))
            else:
                in_batch = in_batch and is_reasoning(turn)
                self.turns_between += 1
        self._adopt_nameless()
        self._answer_late()
        self.found.orphans.sort()
        return self.found

    def _together(self, one: Turn, other: Turn) -> bool:
        """Whether nothing stood between two calls, which may have been taken out since."""
        if one.at is None or other.at is None:
            return True
        return self.breaks[one.at] == self.breaks[other.at]

    def _call(self, place: Place, call: ToolCall, *, new_batch: bool) -> None:
        if new_batch:
            self.found.batch_end.append(place.turn)
        self.found.batch_end[-1] = place.turn
        pair = Pair(place, call, batch=len(self.found.batch_end) - 1)
        self.found.pairs.append(pair)
        if not call.call_id:
            return
        for kind in call.answered_by:
            batches = self.open.setdefault((call.call_id, kind), [])
            if not batches or batches[-1][0].batch != pair.batch:
                batches.append(deque())
            batches[-1].append(pair)

    def _answer(self, place: Place, result: ToolResult) -> bool:
        """Give the result to a call before it; false when no call there takes it at once."""
        if not result.call_id:
            self.nameless.setdefault(len(self.found.batch_end) - 1, []).append(place)
            return True
        latest = self.latest.get(result.call_id)
        if latest is not None and self._repeats(latest, result):
            latest.extra.append(place)
            return True
        pair = self._take(result.call_id, result.kind)
        if pair is not None:
            pair.result, pair.answered_at = place, self.turns_between
            if latest is None or latest.place < pair.place:
                self.latest[result.call_id] = pair
            if result.synthetic and place.turn >= self.settled:
                self.stood_in.setdefault(result.call_id, []).append(pair)
            return True
        stood_in = self.stood_in.get(result.call_id)
        if stood_in and not result.synthetic and _fits(result, stood_in[-1].call):
            stood_in.pop().extra.append(place)
            return True
        return False

    def _repeats(self, latest: Pair, result: ToolResult) -> bool:
        """Whether it is another result of the newest call: equal to its result, or in its block."""
        if latest.result is None or result.kind not in latest.call.answered_by:
            return False
        newest = self.open.get((latest.call.call_id or "", result.kind))
        if newest and newest[-1][0].batch >= latest.batch:
            return False  # a call of its batch, or a newer one, still waits
        before = self.history.turns[latest.result.turn].items[latest.result.item]
        assert isinstance(before, ToolResult)
        if same(before.output, result.output):
            return True
        # Where results stand in blocks, a second one in the block is of the same call; but a real
        # result would rather take the place of an invented one.
        waits = self.stood_in.get(result.call_id or "") and not result.synthetic
        in_block = self.batch_is_turn and latest.answered_at == self.turns_between
        return in_block and not waits

    def _take(self, call_id: str, kind: str) -> Pair | None:
        batches = self.open.get((call_id, kind), [])
        while batches:
            batch = batches[-1]
            while batch:
                pair = batch.popleft()
                if pair.result is None:  # else it was taken by another kind it also accepts
                    if not batch:
                        batches.pop()
                    return pair
            batches.pop()
        return None

    def _adopt_nameless(self) -> None:
        """A result without an id belongs to its batch if only one call there is still open."""
        unanswered: dict[int, list[Pair]] = {}
        for pair in self.found.pairs:
            if pair.result is None:
                unanswered.setdefault(pair.batch, []).append(pair)
        for batch, places in self.nameless.items():
            waiting = unanswered.get(batch, [])
            result = self.history.turns[places[0].turn].items[places[0].item]
            assert isinstance(result, ToolResult)
            if len(places) == len(waiting) == 1 and _fits(result, waiting[0].call):
                waiting[0].result = places[0]
            else:
                self.found.orphans.extend(places)

    def _answer_late(self) -> None:
        """Results of another type, second results, and results that stand before their call."""
        calls: dict[str, list[Pair]] = {}
        for pair in self.found.pairs:
            if pair.call.call_id:
                calls.setdefault(pair.call.call_id, []).append(pair)
        seen: dict[str, int] = {}
        before: dict[str, list[Pair]] = {}
        for place, result in self.late:
            call_id = result.call_id or ""
            of_id, stack = calls.get(call_id, []), before.setdefault(call_id, [])
            at = seen.get(call_id, 0)
            while at < len(of_id) and of_id[at].place < place:
                if of_id[at].result is None:
                    stack.append(of_id[at])
                at += 1
            seen[call_id] = at
            while stack and stack[-1].result is not None:
                stack.pop()
            if stack and _fits(result, stack[-1].call):
                stack.pop().result = place
            elif at and of_id[at - 1].result and _fits(result, of_id[at - 1].call):
                of_id[at - 1].extra.append(place)
            elif not at and of_id and _comes_before(result, of_id[0]):
                of_id[0].result = place
            else:
                self.found.orphans.append(place)


def _is_calling(turn: Turn) -> bool:
    """Whether the turn can stand inside a batch; a call that the server runs ends it."""
    return is_reasoning(turn) or any(
        isinstance(item, ToolCall) and item.answered_by for item in turn.items
    )


def _fits(result: ToolResult, call: ToolCall) -> bool:
    """Whether the result can be sent as an answer to the call, if need be under another type."""
    if result.kind in call.answered_by:
        return True
    return result.kind in TEXTUAL and call.answered_by[0] in TEXTUAL


def _comes_before(result: ToolResult, pair: Pair) -> bool:
    """Whether a result was only written down before its call.

    Not if the id could be that of an older call: then it may be what trimming left of another
    exchange, and would be taken for the result of a call that still waits.
    """
    if pair.result is not None or not _fits(result, pair.call):
        return False
    return not is_counter(result.call_id or "", pair.call.name)
