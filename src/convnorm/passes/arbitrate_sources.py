"""The pass `arbitrate_sources`."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import ClassVar, Literal

from pydantic import Field

from convnorm.dialects.dialect import Call
from convnorm.edits import Assumed, Drop, Edit, Loss
from convnorm.errors import PolicyError
from convnorm.facts import Fact
from convnorm.ir import (
    INSTRUCTING,
    History,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    same_turn,
)
from convnorm.options import Options
from convnorm.targets import Fault


class ArbitrateSources(Options):
    """Let one of several replayed histories own what they share.

    ## Why
    An executor passes the whole conversation, a history provider adds its own copy, and the model
    reads everything twice: N messages become 2N, then 3N, and results end up far from their calls
    ("An assistant message with 'tool_calls' must be followed by tool messages responding to each
    'tool_call_id'."). Only labels tell a replay from a user who repeats himself, so this pass works
    only when `Context.sources` names the source of every message.

    ## Example
    ```json
    {"context": {"sources": ["store", "store", "input", "input", "input"]},
     "messages": [
      {"role": "user", "content": "hello"},
      {"role": "assistant", "content": "hi"},
      {"role": "user", "content": "hello"},
      {"role": "assistant", "content": "hi"},
      {"role": "user", "content": "where is my parcel?"}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "user", "content": "hello"},
      {"role": "assistant", "content": "hi"},
      {"role": "user", "content": "where is my parcel?"}]}
    ```

    ## Safety
    Drops only copies: the beginning of a source that holds an earlier one whole, in order and from
    its start, or a source that an earlier one holds in that way. What is new in a source stays,
    and so do the last words of a user in the newest source. Sources that truly differ are both
    kept, in order, and the report says so; single messages that share an id are left to `dedupe`.
    Instructions at the head of a source need not be in the other. Messages without a label, and
    repetitions inside one source, are never touched. `longest` and `prefer` also drop what only
    other sources have, except the newest; that is reported as a loss.
    """

    name: Literal["arbitrate_sources"] = "arbitrate_sources"
    strategy: str = Field("merge", pattern=r"^(merge|longest|prefer:.+)$")
    """`merge` drops copies only; `longest` and `prefer:<label>` make one source the owner."""

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.SOURCES})

    def __call__(self, history: History, call: Call) -> Iterator[Edit | Assumed]:
        """Ask for the edits this history needs."""
        turns = history.turns
        sources: dict[str, list[int]] = {}
        for at, turn in enumerate(turns):
            if turn.source is not None:
                sources.setdefault(turn.source, []).append(at)
        if len(sources) < 2:
            return
        rule = call.target.rules[Fault.REPLAY]
        newest = list(sources)[-1]
        owner = self._owner(sources)
        told = _Told(turns)
        for label, mine in ({owner: sources[owner]} | sources).items():
            copies = told.copies(mine, newest=label == newest)
            for at, original in copies.items():
                why = f"source {label!r} replays source {turns[original].source!r}"
                yield Drop(at, rule=rule, why=why)
            rest = [at for at in mine if at not in copies]
            if self.strategy != "merge" and label not in (owner, newest):
                for at in rest:
                    why = f"source {owner!r} owns the history, not {label!r}"
                    yield Drop(at, rule=rule, why=why, loss=Loss.HISTORY)
            elif rest and not copies and label != owner:
                yield Assumed(f"source {label!r} replays no other: all of it was kept, in order")

    def _owner(self, sources: dict[str, list[int]]) -> str:
        match self.strategy.partition(":"):
            case "longest", _, _:
                return max(sources, key=lambda label: len(sources[label]))
            case "prefer", _, owner:
                if owner not in sources:
                    raise PolicyError(
                        f"arbitrate_sources prefers {owner!r}; the sources are {list(sources)}"
                    )
                return owner
        return next(iter(sources))


class _Node:
    """A turn that some source told at this point of its history."""

    __slots__ = ("at", "ends", "next")

    def __init__(self, at: int) -> None:
        self.at = at
        self.next: dict[tuple[object, ...], _Node] = {}
        self.ends = False
        """Whether a whole source is told up to here."""


class _Told:
    """All that the sources before have told, as a tree: shared beginnings are stored once."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.root = _Node(-1)
        self.heads: dict[tuple[object, ...], int] = {}

    def copies(self, mine: list[int], *, newest: bool) -> dict[int, int]:
        """The turns of this source that are copies, and of which ones; and remember the source.

        A source copies another only if it holds it whole, from the start, or is held by it whole.
        Instructions at its head are no part of that: not every source keeps them.
        """
        heads = list(takewhile(lambda at: self.turns[at].role in INSTRUCTING, mine))
        body = mine[len(heads) :]
        copies = dict(zip(body, self._body(body, newest=newest), strict=False))
        for at in heads:
            first = self.heads.setdefault(_key(self.turns[at]), at)
            told = first != at and same_turn(self.turns[first], self.turns[at])
            if told and (copies or not body or self.root.ends):
                copies[at] = first
        return copies

    def _body(self, mine: list[int], *, newest: bool) -> list[int]:
        """What the beginning of this source copies."""
        node, shared, whole = self.root, list[int](), 0
        for at in mine:
            key = _key(self.turns[at])
            found = node.next.get(key)
            if found is None or not same_turn(self.turns[found.at], self.turns[at]):
                break
            shared.append(found.at)
            node = found
            if node.ends:
                whole = len(shared)
        held = len(shared) == len(mine)
        for at in mine[len(shared) :]:
            key = _key(self.turns[at])
            if key in node.next:  # it is told at this point, and is another message after all
                key = (*key, at)
            told = node.next[key] = _Node(at)
            node = told
        node.ends = True
        if held and whole < len(mine):
            # A user's last words are new, if nobody newer could have said them.
            end = len(mine)
            while newest and end > whole and self.turns[mine[end - 1]].role == "user":
                end -= 1
            return shared[:end]
        return shared[:whole]


def _key(turn: Turn) -> tuple[object, ...]:
    """Equal for turns that can be the same message."""
    said: list[object] = [turn.role, len(turn.items)]
    for item in turn.items:
        match item:
            case Text() | Reasoning():
                said.append(item.text)
            case ToolCall() | ToolResult():
                said.append(item.call_id)
    return tuple(said)
