"""The pass `repair_tool_pairs`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from convnorm import envelope
from convnorm.closing import Closing
from convnorm.context import Context
from convnorm.delivery.items import map_proofs
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Insert, Loss, Move, Replace, Unrepairable
from convnorm.errors import NotReadyError, UnrepairableError
from convnorm.facts import Fact
from convnorm.ir import (
    History,
    Item,
    Opaque,
    Place,
    Text,
    ToolResult,
    Turn,
    media_of,
    same,
)
from convnorm.pairing import Pair, pair_up
from convnorm.targets import Fault
from convnorm.wire import text_of


class RepairToolPairs(Closing):
    """Give every tool call exactly one result, and every result its call.

    ## Why
    Trimming, crashes, approvals and replays separate calls from their results, and providers refuse
    both halves: "An assistant message with 'tool_calls' must be followed by tool messages
    responding to each 'tool_call_id'.", "No tool output found for function call call_x.",
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    "No tool call found for function call output with call_id call_x."

    ## Example
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9a", "type": "function", "function": {"name": "scan", "arguments": "{}"}},
        {"id": "call_9b", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
      {"role": "user", "content": "and?"},
      {"role": "tool", "tool_call_id": "call_9a", "content": "clean"}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9a", "type": "function", "function": {"name": "scan", "arguments": "{}"}},
        {"id": "call_9b", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9a", "content": "clean"},
      {"role": "tool", "tool_call_id": "call_9b", "content":
       "[convnorm:no-result 5553e945a597] No result was recorded for this call. [/convnorm]"},
      {"role": "user", "content": "and?"}]}
    ```

    ## Safety
    Pairs by occurrence, so a reused id answers the right call. A real result is moved to its call,
    never replaced. A missing one is closed with a marked text that claims neither success nor
    failure; when the real one arrives, it wins. A result whose call is nowhere becomes a user turn
    that quotes it as data, behind a delimiter it cannot break out of. A second, different result of
    one call is quoted in the same way; an equal one goes. Reused and missing call ids are renamed
    on both sides, for the later occurrence only. Calls that the server runs itself are left alone,
    and so are outputs whose call may be on the server (`previous_response_id`, `conversation`,
    item references). A call in `Context.live_calls` that nothing follows raises `NotReadyError`; a
    computer call without its screenshot cannot be closed, since none can be invented: it raises
    `UnrepairableError`, or is left to the provider under `unrepairable = "send"`.
    """

    name: Literal["repair_tool_pairs"] = "repair_tool_pairs"
    missing: Literal["close", "drop"] = "close"
    """An unanswered call: `close` it with a marked text, and nothing is lost; or `drop` it, and the
    model does not know that it called: the call is lost, and the reasoning that led to it."""
    orphans: Literal["text", "drop", "raise"] = "text"
    """A result without a call, and a second, different one: quote it as `text`, and only that it
    was a tool's message is lost; `drop` it, and the result is lost; or `raise`, and nothing is
    sent."""
    duplicates: Literal["first", "last"] = "first"
    """Which of several different real results answers a call; the others go the way of `orphans`.
    A marked text never beats a real result, and an equal one goes without loss."""

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.PAIRING, Fact.LINK})

    def __call__(self, history: History, call: Call) -> Iterator[Edit | Unrepairable]:
        """Ask for the edits this history needs."""
        yield from _Repair(self, history, call).edits()


class _Repair:
    """One run: the pairing, and what becomes of each turn that holds a result."""

    def __init__(self, options: RepairToolPairs, history: History, call: Call) -> None:
        self.options, self.turns, self.call = options, history.turns, call
        self.target, self.rules = call.target, call.target.rules
        batch_is_turn = self.target.adjacent_results
        # What came late for a call that was sent, `keep_prefix` has quoted.
        self.found = pair_up(history, batch_is_turn=batch_is_turn, settled=call.frozen)
        self.names = _Names(per_turn=self.target.unique_call_ids == "turn")
        self.uses = Counter(pair.call.call_id for pair in self.found.pairs if pair.call.call_id)
        self.leaving: set[int] = set()
        """Turns with a result that do not stay where they are."""
        self.quoted: dict[int, str] = {}
        """Turns with a result that become a user turn, and the rule that wants it."""
        self.chosen: set[int] = set()
        """Turns with a result that was taken instead of an earlier one."""
        self.behind_block: list[tuple[int, int]] = []
        """Quoted turns that stand inside a block of results, and where it ends."""
        self.refers_at = next(
            (at.turn for at, item in history.items if isinstance(item, Opaque) and item.refers),
            len(self.turns),
        )
        """The first item that is only referred to: it may be a call."""
        self.held = _held_calls(call.context)
        self.last_word = max(
            (at for at, turn in enumerate(self.turns) if turn.role != "tool"), default=-1
        )
        """The last turn that is no result."""

    def edits(self) -> Iterator[Edit | Unrepairable]:
        yield from self._settle_extras()
        yield from self._settle_orphans()
        answers = {pair.result.turn: pair.place.turn for pair in self.found.pairs if pair.result}
        blocks: dict[int, tuple[int, int]] = {}
        for pair in self.found.pairs:
            at = pair.place.turn
            if at not in blocks:
                blocks[at] = (self._block_end(at, answers), at)
            end, behind = blocks[at]
            call_id = self.names.settle(at, pair)
            yield from self._name_call(pair, call_id)
            if pair.result is None:
                yield from self._close(pair, call_id, behind)
                continue
            yield from self._name_result(pair, call_id)
            where = pair.result.turn
            if self.target.adjacent_results and at < where <= end:
                blocks[at] = (end, max(behind, where))
            elif self.target.adjacent_results or where < at:
                # Where another result stood in its place, nothing was unanswered.
                fault = Fault.SECOND_RESULT if where in self.chosen else Fault.DISPLACED
                yield Move(
                    where,
                    behind,
                    rule=self.rules[fault],
                    why=f"the result of {call_id} belongs behind its call",
                )
        for turn, end in self.behind_block:
            why = "a quotation cannot stand between results"
            yield Move(turn, end, rule=self.quoted[turn], why=why)

    def _block_end(self, at: int, answers: dict[int, int]) -> int:
        """The last turn of the block of results that stands behind turn `at` and may stay there."""
        end = at
        for turn in range(at + 1, len(self.turns)):
            if answers.get(turn) == at:
                end = turn
            elif not (turn in self.leaving or turn in self.quoted or turn in answers):
                break  # else it goes elsewhere, and what follows it closes up
        self.behind_block += [(turn, end) for turn in range(at + 1, end) if turn in self.quoted]
        return end

    def _result(self, place: Place) -> ToolResult:
        result = self.turns[place.turn].items[place.item]
        assert isinstance(result, ToolResult)
        return result

    def _settle_extras(self) -> Iterator[Edit]:
        """Choose the one result of each call; the others go if they add nothing."""
        rule = self.rules[Fault.SECOND_RESULT]
        for pair in self.found.pairs:
            for place in pair.extra:
                assert pair.result is not None
                kept, other = pair.result, place
                weak = _says_nothing(self._result(kept)), _says_nothing(self._result(other))
                if weak == (True, False) or (
                    weak == (False, False) and self.options.duplicates == "last"
                ):
                    kept, other = other, kept
                    self.chosen.add(kept.turn)
                pair.result = kept
                loser = self._result(other)
                if _says_nothing(loser) or same(loser.output, self._result(kept).output):
                    self.leaving.add(other.turn)
                    yield Drop(other.turn, rule=rule, why=f"{loser.call_id} has a result already")
                else:
                    yield from self._quote(
                        other,
                        rule,
                        f"a second, different result of {loser.call_id}",
                        pair.call.name,
                    )

    def _settle_orphans(self) -> Iterator[Edit]:
        called = {pair.call.call_id: pair.place for pair in reversed(self.found.pairs)}
        for place in self.found.orphans:
            result = self._result(place)
            there = self.held is None or result.call_id in self.held
            beyond = (self.call.context.linked and there) or self.refers_at < place.turn
            if result.call_id and beyond and called.get(result.call_id, place) >= place:
                continue  # its call may be on the server
            fault = Fault.ORPHAN if result.call_id else Fault.RESULT_ID_MISSING
            why = f"no call before it has the id {result.call_id!r}"
            if result.synthetic:
                self.leaving.add(place.turn)
                yield Drop(place.turn, rule=self.rules[fault], why=why)
            else:
                yield from self._quote(place, self.rules[fault], why, None)

    def _quote(self, place: Place, rule: str, why: str, name: str | None) -> Iterator[Edit]:
        turn, result = self.turns[place.turn], self._result(place)
        match self.options.orphans:
            case "raise":
                raise UnrepairableError(
                    rule, self.call.where(turn), f"{why}: restore its call, or set orphans to text"
                )
            case "drop":
                self.leaving.add(place.turn)
                yield Drop(place.turn, rule=rule, why=why, loss=Loss.RESULT)
            case "text":
                self.quoted[place.turn] = rule
                text = envelope.quote(
                    text_of(result.output, self.call.where(turn)), call_id=result.call_id, name=name
                )
                items: tuple[Item, ...] = (Text(text), *media_of(result.output))
                new = Turn("user", items, at=turn.at, source=turn.source)
                yield Replace(place.turn, new, rule=rule, why=f"{why}: quoted as data")

    def _name_call(self, pair: Pair, call_id: str) -> Iterator[Edit]:
        if call_id != pair.call.call_id:
            yield Replace(
                pair.place.turn,
                replace(pair.call, call_id=call_id),
                pair.place.item,
                rule=self.rules[_name_fault(pair.call.call_id)],
                why=f"{pair.call.call_id!r} does not name one call: it is {call_id} here",
                loss=Loss.ID if pair.call.call_id else None,
            )

    def _name_result(self, pair: Pair, call_id: str) -> Iterator[Edit]:
        assert pair.result is not None
        result = self._result(pair.result)
        kinds = pair.call.answered_by
        kind = result.kind if result.kind in kinds else kinds[0]
        if result.call_id == call_id and result.kind == kind:
            return
        output = result.output
        if result.synthetic and isinstance(output, str):  # its envelope names the call
            output = envelope.close(call_id, self.options.sentence(pair.call, live=False))
        if result.kind != kind:
            fault, why = Fault.UNANSWERED, f"{call_id} is answered as {result.kind}, not as {kind}"
        elif pair.call.call_id == call_id:
            fault, why = Fault.RESULT_ID_MISSING, f"{call_id} is the one call it can answer"
        else:
            fault, why = _name_fault(pair.call.call_id), f"its call is {call_id} here"
        yield Replace(
            pair.result.turn,
            replace(result, call_id=call_id, kind=kind, output=output),
            pair.result.item,
            rule=self.rules[fault],
            why=why,
        )

    def _close(self, pair: Pair, call_id: str, behind: int) -> Iterator[Edit | Unrepairable]:
        turn = self.turns[pair.place.turn]
        # Without an id of its own, nobody can tell whose a result is that may be there.
        shared = self.target.unique_call_ids == "history" and self.uses[pair.call.call_id or ""] > 1
        unnamed = shared or not pair.call.call_id
        rule = self.rules[_name_fault(pair.call.call_id) if unnamed else Fault.UNANSWERED]
        live = pair.call.call_id in self.call.context.live_calls
        if live and self.last_word <= self.found.batch_end[pair.batch]:
            raise NotReadyError(
                f"call {call_id} is still being answered and nothing follows it: "
                "wait for its result, or take it out of live_calls"
            )
        if self.options.missing == "drop" and not live:
            yield Drop(*pair.place, rule=rule, why=f"call {call_id} has no result", loss=Loss.CALL)
            return
        if not pair.call.closable:
            yield Unrepairable(
                pair.place.turn,
                rule,
                f"the {pair.call.kind} call {call_id} has no output and none can be invented: "
                "add it, or take the call out",
            )
            return
        result = ToolResult(
            call_id,
            envelope.close(call_id, self.options.sentence(pair.call, live=live)),
            kind=pair.call.answered_by[0],
            synthetic=True,
            closes=pair.call,
        )
        new = Turn("tool", (result,), at=turn.at, source=turn.source)
        yield Insert(behind, new, rule=rule, why=f"call {call_id} has no result")


def _held_calls(context: Context) -> frozenset[str] | None:
    """The ids of the calls behind the link; None if more may stand there than anybody knows."""
    ledger, link = context.ledger, context.link
    if ledger is None or not (ledger.knows(link) and ledger.whole(link)):
        return None
    return frozenset(own for kind, own in map_proofs(ledger.holds(link)) if kind == "call")


class _Names:
    """Ids that name one call each, as far as the target asks; decided in order of appearance."""

    def __init__(self, *, per_turn: bool) -> None:
        self.per_turn = per_turn
        self.turn = -1
        self.used: set[str] = set()
        self.ever: set[str] = set()
        self.renamed: dict[tuple[str, str], int] = {}

    def settle(self, turn: int, pair: Pair) -> str:
        if self.per_turn and turn != self.turn:
            self.turn, self.used = turn, set()
        call_id = pair.call.call_id
        if not call_id or call_id in self.used:
            call_id = self._new(call_id or "", pair.call.name or "")
        self.used.add(call_id)
        self.ever.add(call_id)
        return call_id

    def _new(self, old: str, name: str) -> str:
        while True:
            number = self.renamed[old, name] = self.renamed.get((old, name), 1) + 1
            new = f"call_{envelope.digest(old, name, str(number))}"
            if new not in self.ever:
                return new


def _name_fault(old: str | None) -> Fault:
    if old is None:
        return Fault.CALL_ID_MISSING
    return Fault.REUSED_CALL_ID if old else Fault.CALL_ID_EMPTY


def _says_nothing(result: ToolResult) -> bool:
    return result.synthetic or result.output is None
