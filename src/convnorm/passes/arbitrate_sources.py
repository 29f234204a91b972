"""The pass `arbitrate_sources`."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from convnorm.dialects.dialect import Call
from convnorm.edits import Assumed, Drop, Edit, Loss
from convnorm.errors import PolicyError
from convnorm.facts import Fact
from convnorm.ir import History, ToolCall, ToolResult, Turn, same_turn
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
    Drops only copies: a source that holds an earlier one whole, in order and from its start, or
    single messages that share an id with an earlier source. What is new in a source stays. Sources
    that truly differ are both kept, in order, and the report says so. Messages without a label, and
    repetitions inside one source, are never touched. `longest` and `prefer` also drop what the
    owner does not have, up to the last source's own new messages; that is reported as a loss.
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
        kept = self._owner_first(sources)
        owner = next(iter(kept))
        last = list(sources)[-1]
        for number, (label, mine) in enumerate(kept.items()):
            if number == 0:
                continue
            earlier = list(kept)[:number]
            others = [kept[other] for other in earlier]
            copies = _copies(turns, mine, others, newest=label == last)
            for at, original in copies.items():
                yield Drop(
                    at,
                    rule=rule,
                    why=f"source {label!r} replays source {turns[original].source!r}",
                )
            rest = [at for at in mine if at not in copies]
            if self.strategy != "merge":
                # The last source carries what is new: what it adds behind its copies stays.
                new = _behind(mine, copies) if label == last else set[int]()
                for at in rest:
                    if at not in new:
                        yield Drop(
                            at,
                            rule=rule,
                            why=f"source {owner!r} owns the history, not {label!r}",
                            loss=Loss.HISTORY,
                        )
            elif rest and (not copies or copies.keys() != set(mine[: len(copies)])):
                yield Assumed(
                    f"source {label!r} replays no other whole: what it has alone was kept"
                )

    def _owner_first(self, sources: dict[str, list[int]]) -> dict[str, list[int]]:
        if self.strategy == "merge":
            return sources
        if self.strategy == "longest":
            owner = max(sources, key=lambda label: len(sources[label]))
        else:
            owner = self.strategy.removeprefix("prefer:")
            if owner not in sources:
                raise PolicyError(
                    f"arbitrate_sources prefers source {owner!r}; the context has {list(sources)}"
                )
        return {owner: sources[owner]} | sources


def _copies(
    turns: Sequence[Turn], mine: list[int], others: list[list[int]], *, newest: bool
) -> dict[int, int]:
    """Which of my turns are copies, and of which turn: by a whole shared start, or by ids."""
    copies: dict[int, int] = {}
    for other in others:
        shared = _shared_start(turns, mine, other)
        if shared == len(other):
            pass  # I repeat all of it and go on
        elif shared == len(mine):
            # It holds all of me. A user's last words are new if I am the newest source.
            while newest and shared and turns[mine[shared - 1]].role == "user":
                shared -= 1
        else:
            continue
        for at, original in zip(mine[:shared], other, strict=False):
            copies.setdefault(at, original)
    by_id = {key: at for other in others for at in other for key in _ids(turns[at])}
    for at in mine:
        for key in _ids(turns[at]):
            if key in by_id and same_turn(turns[at], turns[by_id[key]]):
                copies.setdefault(at, by_id[key])
    return copies


def _shared_start(turns: Sequence[Turn], mine: list[int], other: list[int]) -> int:
    shared = 0
    for a, b in zip(mine, other, strict=False):
        if not same_turn(turns[a], turns[b]):
            break
        shared += 1
    return shared


def _ids(turn: Turn) -> Iterator[tuple[str, str]]:
    if turn.id is not None:
        yield "id", turn.id
    for item in turn.items:
        if isinstance(item, ToolCall | ToolResult) and item.call_id:
            yield type(item).__name__, item.call_id


def _behind(mine: list[int], copies: dict[int, int]) -> set[int]:
    """My turns behind my last copy; all of them when there is none."""
    last = max((at for at in mine if at in copies), default=-1)
    return {at for at in mine if at > last}
