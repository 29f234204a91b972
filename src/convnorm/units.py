"""What of a history goes or stays together: exchanges, reasoning groups, turns of a user."""

from collections.abc import Iterator

from convnorm.dialects.dialect import Call
from convnorm.groups import is_reasoning
from convnorm.ir import INSTRUCTING, History, ToolCall, ToolResult
from convnorm.pairing import Pairing, pair_up

STAYING = (*INSTRUCTING, "")
"""Roles of what always stays: instructions, and what convnorm does not look into."""


class Units:
    """The turns of a history in units that can be left out without breaking another."""

    def __init__(self, history: History, call: Call, *, keep_last: int) -> None:
        self.turns = history.turns
        self.found = pair_up(history, batch_is_turn=call.target.adjacent_results)
        self.parent = list(range(len(self.turns)))
        self._join(self.found)
        self.members: dict[int, set[int]] = {}
        for at in range(len(self.turns)):
            self.members.setdefault(self._root(at), set()).add(at)
        self.asked_at = max(
            (at for at, turn in enumerate(self.turns) if turn.role == "user"), default=-1
        )
        """The newest question."""
        stays = {at for at, turn in enumerate(self.turns) if turn.role in STAYING}
        if call.context.linked:  # the server has their calls
            stays |= {place.turn for place in self.found.orphans}
        self.fixed = {self._root(at) for at in stays}
        newest = range(max(0, len(self.turns) - keep_last), len(self.turns))
        self.newest = {self._root(at) for at in newest}

    def oldest_first(self, *, tools: bool) -> Iterator[set[int]]:
        """What can go, in the order in which it goes; each turn once."""
        seen: set[int] = set()
        if tools:
            for root in self._exchanges():
                seen.add(root)
                yield self.members[root]
        for roots in self._rounds():
            left = [root for root in roots if root not in seen]
            seen.update(left)
            if left:
                yield set().union(*(self.members[root] for root in left))
        for root in self._roots(range(self.asked_at + 1, len(self.turns))):
            if root not in seen and not self._stays(root):
                yield self.members[root]

    def _exchanges(self) -> Iterator[int]:
        """Calls with their results, before the newest messages."""
        calling = sorted({pair.place.turn for pair in self.found.pairs})
        for root in self._roots(calling):
            if not self._stays(root):
                yield root

    def _rounds(self) -> Iterator[list[int]]:
        """Each user's turn before the newest one with what answered it, as far as it can go."""
        rounds: list[list[int]] = [[]]
        for root in self._roots(range(max(self.asked_at, 0))):
            if self.turns[min(self.members[root])].role == "user":
                rounds.append([])
            rounds[-1].append(root)
        for roots in rounds:
            # Without its question, what has to stay of a round would begin what is sent.
            if self.newest.isdisjoint(roots):
                yield [root for root in roots if not self._stays(root)]

    def _stays(self, root: int) -> bool:
        return root in self.fixed or root in self.newest or self.asked_at in self.members[root]

    def _roots(self, turns: "range | list[int]") -> Iterator[int]:
        """The units that begin among these turns, in order."""
        for at in turns:
            root = self._root(at)
            if min(self.members[root]) == at:
                yield root

    def _root(self, at: int) -> int:
        while self.parent[at] != at:
            self.parent[at] = self.parent[self.parent[at]]
            at = self.parent[at]
        return at

    def _unite(self, one: int, other: int) -> None:
        low, high = sorted((self._root(one), self._root(other)))
        self.parent[high] = low

    def _join(self, found: Pairing) -> None:
        batches: dict[int, int] = {}
        for pair in found.pairs:
            self._unite(batches.setdefault(pair.batch, pair.place.turn), pair.place.turn)
            for place in (pair.result, *pair.extra):
                if place is not None:
                    self._unite(pair.place.turn, place.turn)
        newest: dict[tuple[str, str | None], int] = {}
        for at, turn in enumerate(self.turns):
            if at and is_reasoning(self.turns[at - 1]) and turn.role == "assistant":
                self._unite(at - 1, at)
            for item in turn.items:
                # What is not paired by its call's id follows what it belongs to.
                if isinstance(item, ToolCall):
                    newest[item.kind, item.call_id] = newest[item.kind, None] = at
                elif isinstance(item, ToolResult) and not item.paired:
                    made = newest.get((item.kind, item.call_id), newest.get((item.kind, None)))
                    if made is not None:
                        self._unite(made, at)
