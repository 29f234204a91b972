"""The pass `dedupe`."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import ClassVar, Literal, NamedTuple

from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Loss, SetTurn
from convnorm.facts import Fact
from convnorm.groups import group_of, is_reasoning
from convnorm.ids import is_counter
from convnorm.ir import (
    INSTRUCTING,
    History,
    Opaque,
    Reasoning,
    ToolCall,
    ToolResult,
    Turn,
    same,
    same_item,
    same_turn,
)
from convnorm.options import Options
from convnorm.targets import Fault
from convnorm.wire import fields

UNFINISHED = ("in_progress", "incomplete", "searching", "interpreting", "generating", "calling")
"""What streams call items that are not done."""
TOLD = (
    *("call_id", "action", "arguments", "code", "input", "queries"),
    *("output", "outputs", "result", "results", "error", "tools"),
)
"""Keys under which an item says what was asked of a tool, and what it returned."""


class Dedupe(Options):
    """Take out what is in the history twice, where ids prove that it is the same thing.

    ## Why
    Resumed runs and merged histories replay items, and providers refuse them: "Duplicate item
    found with id fc_xxx. Remove duplicate items from your input and try again.", "duplicate
    tool_call_id". Where they do not, the model reads the conversation twice.

    ## Example
    ```json
    {"input": [
      {"role": "user", "content": "balance?"},
      {"type": "function_call", "id": "fc_68af01", "call_id": "call_Zx81kQ",
       "name": "balance", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_Zx81kQ", "output": "10 EUR"},
      {"role": "user", "content": "balance?"},
      {"type": "function_call", "id": "fc_68af01", "call_id": "call_Zx81kQ",
       "name": "balance", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_Zx81kQ", "output": "10 EUR"},
      {"role": "user", "content": "thanks"}]}
    ```
    becomes
    ```json
    {"input": [
      {"role": "user", "content": "balance?"},
      {"type": "function_call", "id": "fc_68af01", "call_id": "call_Zx81kQ",
       "name": "balance", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_Zx81kQ", "output": "10 EUR"},
      {"role": "user", "content": "thanks"}]}
    ```

    ## Safety
    Equal content alone proves nothing: "yes" said twice stays. Evidence is an item or message id,
    or a call with its results. A complete exchange that is repeated is a replay only if its ids
    cannot be minted twice; `call_0` can. A repeated call of which the first copy has no result is
    a replay. Messages without ids go only between two messages that are proved, or when the
    history is replayed whole from its start. Different content under one id is no copy: both stay,
    and the later one loses the id. Of an item that cannot be sent without its id the finished copy
    stays, and the loss is named; two that are done and differ both stay, the later one as data.
    """

    name: Literal["dedupe"] = "dedupe"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.REPEATED_CALL, Fact.REPEATED_ID})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        yield from _Search(history, call).edits()


class Evidence(NamedTuple):
    """What proves that two turns are one: an id of their own, or a call with its id."""

    by: Literal["id", "call"]
    value: str


class _Search:
    def __init__(self, history: History, call: Call) -> None:
        self.turns, self.rules = history.turns, call.target.rules
        self.unique = call.target.unique_call_ids
        self.gone: dict[int, Drop] = {}
        self.hole = range(0)
        """The last stretch of whole copies that were dropped: what stands around it is adjacent."""
        heads = (at for at, turn in enumerate(self.turns) if turn.role not in INSTRUCTING)
        self.start = next(heads, 0)
        """Where the conversation begins, behind the instructions."""
        self.calls: dict[str, list[int]] = {}
        self.results: dict[str, list[int]] = {}
        """By call id: the turns that hold a call, or a result for it."""
        for place, item in history.items:
            if isinstance(item, ToolCall | ToolResult) and item.call_id:
                turns = self.calls if isinstance(item, ToolCall) else self.results
                turns.setdefault(item.call_id, []).append(place.turn)
        others = (not any(_calls(turn)) and not is_reasoning(turn) for turn in history.turns)
        self.batches = list(accumulate(others))
        """By turn: a number that two turns share if only calls stand between them."""

    def edits(self) -> Iterator[Edit]:
        yield from self._copies_in_a_batch()
        self._replays()
        renamed = list(self._same_id())
        yield from self.gone.values()
        yield from renamed

    def _drop(self, at: int, rule: str, why: str, loss: Loss | None = None) -> None:
        self.gone.setdefault(at, Drop(at, rule=rule, why=why, loss=loss))

    # One call twice in one message.

    def _copies_in_a_batch(self) -> Iterator[Edit]:
        rule = self.rules[Fault.REUSED_CALL_ID]
        for at, turn in enumerate(self.turns):
            calls: dict[str, list[int]] = {}
            for i, item in enumerate(turn.items):
                if isinstance(item, ToolCall) and item.answered_by and item.call_id:
                    calls.setdefault(item.call_id, []).append(i)
            for call_id, places in calls.items():
                if len(places) < 2:
                    continue
                for i in places[max(len(self._results_of(call_id, at)), 1) :]:
                    if same_item(turn.items[i], turn.items[places[0]]):
                        yield Drop(at, i, rule=rule, why=f"call {call_id} is in the message twice")

    # Runs of turns that were replayed.

    def _replays(self) -> None:
        latest: dict[Evidence, int] = {}
        end = 0
        for at, turn in enumerate(self.turns):
            if at < end:
                continue
            firsts = {latest[key]: key for key in _evidence(turn) if key in latest}
            for first, evidence in firsts.items():
                if first not in self.gone and self._is_replay(first, at, evidence):
                    end = self._drop_run(first, at, evidence, floor=end)
                    break
            for index in range(at, max(end, at + 1)):
                if index not in self.gone:
                    latest.update(dict.fromkeys(_evidence(self.turns[index]), index))

    def _is_replay(self, first: int, again: int, evidence: Evidence) -> bool:
        if not same_turn(self.turns[first], self.turns[again]):
            return False
        if evidence.by == "id" and not is_counter(evidence.value):
            return True
        return self._is_repeated_exchange(first, again)

    def _is_repeated_exchange(self, first: int, again: int) -> bool:
        names = {item.call_id or "": item.name for item in _calls(self.turns[first])}
        before = [self._results_of(call_id, first) for call_id in names]
        after = [self._results_of(call_id, again) for call_id in names]
        if any(after) and not any(before):
            # Unless the two were called in parallel, and each has its result.
            parallel = self.batches[first] == self.batches[again]
            return not (parallel and all(len(results) > 1 for results in after))
        if not names or any(is_counter(call_id, name) for call_id, name in names.items()):
            return False
        return all(
            same_turn(self.turns[places[one[0]]], self.turns[places[two[0]]])
            for call_id, one, two in zip(names, before, after, strict=True)
            if one and two and (places := self.results[call_id])  # else one copy lacks its result
        )

    def _is_answered(self, at: int) -> bool:
        return any(self._results_of(item.call_id or "", at) for item in _calls(self.turns[at]))

    def _results_of(self, call_id: str, at: int) -> range:
        """The results of the call in turn `at`, as places in `results`: up to the id's next use."""
        calls, results = self.calls[call_id], self.results.get(call_id, [])
        later = bisect_right(calls, at)
        end = bisect_left(results, calls[later]) if later < len(calls) else len(results)
        return range(bisect_right(results, at), end)

    def _drop_run(self, first: int, again: int, evidence: Evidence, floor: int) -> int:
        """Drop one copy of the run around the two turns; returns where the second copy ends."""
        turns = self.turns
        back = 0
        while (
            first - back > 0
            and again - back - 1 > max(first, floor - 1)
            and first - back - 1 not in self.gone
            and same_turn(turns[first - back - 1], turns[again - back - 1])
        ):
            back += 1
        ahead = 0
        while (
            first + ahead + 1 < again - back
            and again + ahead + 1 < len(turns)
            and first + ahead + 1 not in self.gone
            and same_turn(turns[first + ahead + 1], turns[again + ahead + 1])
        ):
            ahead += 1
        run = range(-back, ahead + 1)
        between = range(first + ahead + 1, again - back)
        adjacent = not between or (between[0] in self.hole and between[-1] in self.hole)
        whole = adjacent and first - back <= self.start
        if not whole:  # only what is proved, and what it encloses
            proved = [offset for offset in run if _is_proof(turns[again + offset])]
            run = range(proved[0], proved[-1] + 1)
        # A result is a copy only together with its call.
        while run and turns[again + run[0]].role == "tool":
            run = run[1:]
        if not run:
            return again + 1
        # Of two copies the one that was never answered goes.
        copy, kept = (again, first)
        if self._is_answered(again) and not self._is_answered(first):
            copy, kept = (first, again)
        fault = Fault.ID_TWICE if evidence.by == "id" else Fault.REUSED_CALL_ID
        rule = self.rules.get(fault) if evidence.by == "id" or self.unique == "history" else None
        for offset in run:
            at = turns[kept + offset].at
            self._drop(copy + offset, rule or self.rules[Fault.REPLAY], f"it repeats message {at}")
        if whole and copy == again:
            joins = self.hole and self.hole.stop == again - back
            self.hole = range(self.hole.start if joins else again - back, again + ahead + 1)
        return again + ahead + 1

    # Ids that are left twice.

    def _same_id(self) -> Iterator[Edit]:
        rule = self.rules.get(Fault.ID_TWICE)
        if rule is None:
            return
        named: dict[str, int] = {}
        nameless: set[int] = set()
        for at, turn in enumerate(self.turns):
            if turn.id is None or at in self.gone:
                continue
            first = named.setdefault(turn.id, at)
            if first == at:
                continue
            why = f"the id {turn.id} is used before"
            if _refers(turn):
                self._drop(at, rule, f"{turn.id} is in the history already")
            elif _refers(self.turns[first]):
                self._drop(first, rule, f"{turn.id} is in the history itself")
                named[turn.id] = at
            elif turn.needs_id and not self.turns[first].needs_id:
                nameless.update(group_of(self.turns, first))
                named[turn.id] = at
            elif turn.needs_id and _contradict(turn, self.turns[first]):
                yield SetTurn(at, {"id": None}, rule=rule, why=why, loss=Loss.ID)
            elif turn.needs_id:
                unfinished = first if _finished(turn) > _finished(self.turns[first]) else at
                self._drop(unfinished, rule, why, Loss.COPY)
                named[turn.id] = first + at - unfinished
            elif at not in nameless:
                nameless.update(group_of(self.turns, at))
        for at in sorted(nameless - self.gone.keys()):
            turn = self.turns[at]
            if turn.id is None or turn.needs_id:
                continue
            why = f"the id {turn.id}, or that of its group, is used before"
            if is_reasoning(turn) and not any(
                isinstance(item, Reasoning) and item.proof for item in turn.items
            ):
                self._drop(at, rule, why, Loss.REASONING)
            else:
                yield SetTurn(at, {"id": None}, rule=rule, why=why, loss=Loss.ID)


def _evidence(turn: Turn) -> Iterator[Evidence]:
    if turn.id is not None and not _refers(turn):
        yield Evidence("id", turn.id)
    for call in _calls(turn):
        if call.call_id:
            yield Evidence("call", call.call_id)


def _calls(turn: Turn) -> Iterator[ToolCall]:
    for item in turn.items:
        if isinstance(item, ToolCall) and item.answered_by and item.call_id:
            yield item


def _is_proof(turn: Turn) -> bool:
    return turn.id is not None or any(
        isinstance(item, ToolCall | ToolResult) for item in turn.items
    )


def _refers(turn: Turn) -> bool:
    return any(isinstance(item, Opaque) and item.refers for item in turn.items)


def _contradict(one: Turn, other: Turn) -> bool:
    """Whether two items that are both done say different things: then neither is a copy."""
    mine, its = fields(one.raw) or {}, fields(other.raw) or {}
    if not {mine.get("status"), its.get("status")}.isdisjoint(UNFINISHED):
        return False
    both = (key for key in TOLD if None not in (mine.get(key), its.get(key)))
    return any(not same(mine[key], its[key]) for key in both)


def _finished(turn: Turn) -> tuple[bool, int]:
    """How complete an item is that the server made: streams leave unfinished copies."""
    keys = fields(turn.raw) or {}
    return keys.get("status") == "completed", sum(value is not None for value in keys.values())
