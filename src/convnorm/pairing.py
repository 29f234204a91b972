"""Which result answers which call, by occurrence.

Ids are reused, so sets of ids cannot tell. A result answers the nearest call before it that has
its id and is still open: the newest batch first, in order inside a batch, since parallel calls are
answered in parallel. A batch is one turn where results must stand behind their turn, and a run of
call turns elsewhere. Every step is taken once: the cost is linear in the history.
"""

from collections import deque
from dataclasses import dataclass, field

from convnorm.ir import History, Place, Reasoning, ToolCall, ToolResult

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


@dataclass(slots=True)
class Pairing:
    """All calls with their results, and the results that answer nothing."""

    pairs: list[Pair] = field(default_factory=list)
    orphans: list[Place] = field(default_factory=list)
    batch_end: list[int] = field(default_factory=list)
    """By batch: the last turn with a call of it."""


def pair_up(history: History, *, batch_is_turn: bool) -> Pairing:
    """Match every paired result with a call."""
    return _Matcher(history, batch_is_turn=batch_is_turn).run()


class _Matcher:
    def __init__(self, history: History, *, batch_is_turn: bool) -> None:
        self.history = history
        self.batch_is_turn = batch_is_turn
        self.found = Pairing()
        self.open: dict[tuple[str, str], list[deque[Pair]]] = {}
        """By id and kind of result: batches of open calls, the newest last."""
        self.answered: dict[str, Pair] = {}
        """By id: the call that was answered last."""
        self.stood_in: dict[str, list[Pair]] = {}
        """By id: calls that an invented result answers, which a real one would answer better."""
        self.nameless: dict[int, list[Place]] = {}
        """By batch: results without an id that stand behind it."""

    def run(self) -> Pairing:
        late: list[tuple[Place, ToolResult]] = []
        in_batch = False
        turn = -1
        for place, item in self.history.items:
            if place.turn != turn:
                turn = place.turn
                in_batch = in_batch and not self.batch_is_turn
            if isinstance(item, ToolCall) and item.answered_by:
                self._call(place, item, new_batch=not in_batch)
                in_batch = True
                continue
            if not isinstance(item, Reasoning) and not self.batch_is_turn:
                in_batch = False
            if isinstance(item, ToolResult) and item.paired and not self._answer(place, item):
                late.append((place, item))
        self._adopt_nameless()
        self._answer_ahead(late)
        return self.found

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
        """Give the result to a call before it; false when it may answer one behind it."""
        if not result.call_id:
            self.nameless.setdefault(len(self.found.batch_end) - 1, []).append(place)
            return True
        kinds = [result.kind]
        if result.kind in TEXTUAL:
            kinds += [kind for kind in TEXTUAL if kind != result.kind]
        for kind in kinds:
            pair = self._take(result.call_id, kind)
            if pair is not None:
                pair.result = place
                self.answered[result.call_id] = pair
                if result.synthetic:
                    self.stood_in.setdefault(result.call_id, []).append(pair)
                return True
        stood_in = self.stood_in.get(result.call_id)
        if stood_in and not result.synthetic and _fits(result, stood_in[-1].call):
            pair = stood_in.pop()
            pair.extra.append(place)
            return True
        answered = self.answered.get(result.call_id)
        if answered is None or not _fits(result, answered.call):
            return False
        answered.extra.append(place)
        return True

    def _take(self, call_id: str, kind: str) -> Pair | None:
        batches = self.open.get((call_id, kind), [])
        while batches:
            while batches[-1]:
                pair = batches[-1].popleft()
                if pair.result is None:  # else it was taken by another kind it also accepts
                    if not batches[-1]:
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

    def _answer_ahead(self, late: list[tuple[Place, ToolResult]]) -> None:
        """A result that stands before its call answers the next open one with its id."""
        waiting: dict[str, deque[Pair]] = {}
        for pair in self.found.pairs:
            if pair.result is None and pair.call.call_id:
                waiting.setdefault(pair.call.call_id, deque()).append(pair)
        for place, result in late:
            ahead = waiting.get(result.call_id or "", deque())
            while ahead and (ahead[0].place < place or not _fits(result, ahead[0].call)):
                ahead.popleft()
            if ahead:
                ahead.popleft().result = place
            else:
                self.found.orphans.append(place)
        self.found.orphans.sort()


def _fits(result: ToolResult, call: ToolCall) -> bool:
    """Whether the result can be sent as an answer to the call, if need be under another type."""
    if result.kind in call.answered_by:
        return True
    return result.kind in TEXTUAL and call.answered_by[0] in TEXTUAL
