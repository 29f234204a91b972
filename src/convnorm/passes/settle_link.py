"""The pass `settle_link`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Literal

from convnorm import envelope
from convnorm.delivery import Ledger, Link
from convnorm.dialects.dialect import Call
from convnorm.edits import FRONT, Assumed, Drop, Edit, Insert, Replace, SetField
from convnorm.errors import NotReadyError
from convnorm.facts import Fact
from convnorm.groups import is_reasoning
from convnorm.ir import History, Reasoning, Text, ToolCall, ToolResult, Turn, media_of, same
from convnorm.options import Options
from convnorm.overlap import Overlap, Turns, answered, calls_of, waiting
from convnorm.references import References
from convnorm.targets import Fault
from convnorm.wire import json_text, text_of

Asked = Iterator[Edit | Assumed]
MOST_CHAINS = 8
"""How many other chains are brought to a request; what answers calls of more is told as data."""


class SettleLink(Options):
    """Send what the server lacks, and only that, behind a link that it knows.

    ## Why
    `previous_response_id` and `conversation` put a history of the server's before the input. The
    link goes stale ("Previous response with id 'resp_x' not found."), the server waits for a call
    that nobody remembers ("No tool output found for function call call_x."), or the history is
    sent again behind itself ("Duplicate item found with id fc_xxx. Remove duplicate items from
    your input and try again."). Dropping the link alone loses the conversation without a word.
    Only a `Ledger` in the context tells what the server holds.

    ## Example
    ```json
    {"context": {"ledger": {"responses": {"resp_1": {
      "input": "Scan the host.",
      "output": [
       {"type": "function_call", "call_id": "call_1", "name": "scan", "arguments": "{}"},
       {"type": "function_call", "call_id": "call_2", "name": "clean", "arguments": "{}"}]}},
      "outputs": [{"type": "function_call_output", "call_id": "call_1", "output": "2 threats"}]}},
     "previous_response_id": "resp_1",
     "input": [{"type": "function_call_output", "call_id": "call_2", "output": "not approved"}]}
    ```
    becomes
    ```json
    {"previous_response_id": "resp_1",
     "input": [
      {"type": "function_call_output", "call_id": "call_1", "output": "2 threats"},
      {"type": "function_call_output", "call_id": "call_2", "output": "not approved"}]}
    ```

    ## Safety
    Sends nothing that the server holds behind the link, and everything that it lacks. A copy is
    recognised by an id, a call id, or a history that begins with all that the server holds, or with
    the end of it, words of the model among them; other equal words prove nothing. What closed a
    call there, and the quotation of a late result, the local history need not have. Every call that
    waits on the server gets its output: the real one from the ledger, else a marked text. Where the
    local history is whole without that call, the link is given up instead. A link that cannot be
    used is replaced by the items themselves, as far as the ledger knows them; where the local
    history tells the past in other words, its words are sent, by value. An output whose call
    another chain made moves the link there if that chain has all of this one; else what the other
    chain held is sent in front, by value. A second result of a call that the server has an output
    for is quoted as data. Where the facts do not decide, nothing is
    left out, and the report says what was assumed. What nobody knows any more is not passed over:
    the request is refused with the rule. Without a ledger only two links at once, and links to
    servers that keep nothing, are settled.
    """

    name: Literal["settle_link"] = "settle_link"
    unanswered: Literal["replay", "send"] = "replay"
    """A conversation on which a request got no answer may hold that request, or not: `replay`
    everything without it, which repeats nothing, or `send` on it. What a closed call says is an
    option of `repair_tool_pairs`."""

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.LINK})

    def __call__(self, history: History, call: Call) -> Asked:
        """Ask for the edits this history needs."""
        if Fault.TWO_LINKS not in call.target.rules:
            return
        settle = _Settle(self, history, call)
        asked = _decided([*settle.link_edits(), *settle.own_outputs()])
        if not asked and settle.informed:
            # What is only referred to is judged behind the link that will be sent.
            yield from References(history.turns, call, settle.ledger, settle.by_value).edits()
        yield from asked


class _Settle:
    """One run: the local turns, the link, and what the ledger knows of it."""

    def __init__(self, options: SettleLink, history: History, call: Call) -> None:
        self.options, self.turns, self.call = options, history.turns, call
        self.rules, self.link = call.target.rules, call.context.link
        self.ledger = call.context.ledger or Ledger()
        self.informed = call.context.ledger is not None
        self.added: Sequence[Turn] = ()
        """What the server lacks and is put in front."""
        self.moved: str | None = None
        """The rule that made the link another one: all that follows is for its sake."""

    @cached_property
    def stored(self) -> frozenset[str]:
        """The ids that the server will find, whatever becomes of this request."""
        if self.call.context.store is False or self.ledger.zero_data_retention:
            return frozenset()
        turns = self.call.turns_of(self.ledger.stored_items())
        return frozenset(turn.id for turn in turns if turn.id is not None)

    def _rule(self, fault: Fault) -> str:
        """The rule that asks for an edit."""
        return self.moved or self.rules[fault]

    # ------------------------------------------------------------ the link

    def link_edits(self) -> Asked:
        """Settle what the request continues."""
        if None not in self.link:
            yield from self._choose()
        previous, conversation = self.link
        if previous is not None and not self.call.target.responses.keeps_responses:
            yield from self._replace(Fault.LINK_UNSUPPORTED, "this server keeps no responses")
        elif not self.informed or not self.link:
            return
        elif previous is not None and self.ledger.zero_data_retention:
            yield from self._replace(Fault.LINK_FORBIDDEN, "the server may keep no responses")
        elif not self.ledger.knows(self.link):
            fault = Fault.LINK_UNKNOWN if previous is not None else Fault.CONVERSATION_UNKNOWN
            yield from self._replace(fault, f"the server does not have {_name(self.link)}")
        elif (
            conversation is not None
            and self.options.unanswered == "replay"
            and self.ledger.unknown(conversation)
        ):
            why = f"a request on {conversation} got no answer: nobody knows whether it holds it"
            yield from self._replace(Fault.DELIVERY_UNKNOWN, why)
        else:
            yield from self._continue()

    def _choose(self) -> Asked:
        """Keep one of two links, and send what only the other has."""
        one, two = Link(self.link.previous_response_id), Link(None, self.link.conversation)
        chain, talk = (self.call.turns_of(self.ledger.recall(link)) for link in (one, two))
        shared = Overlap.of(talk, chain)
        begins = len(talk) < len(chain) and all(map(Turns.same, talk, chain))
        lacks: list[Turn] = []
        longer = begins or (not shared.new and len(shared.pairs) < len(chain))
        self.link, left = two, one
        if self.ledger.heard_of(one) and (
            not self.ledger.knows(two) or (longer and self.ledger.knows(one))
        ):
            self.link, left = one, two
        elif self.ledger.heard_of(one):
            lacks = _beside(talk, chain)
        else:
            yield Assumed(f"{_name(two)} is taken to hold what {_name(one)} holds")
        rule = self.moved = self.rules[Fault.TWO_LINKS]
        yield self._leave(left, rule, f"{_name(self.link)} is continued")
        new = _beside(self.turns, lacks)
        yield from self._in_front(new, talk, rule, f"only {_name(left)} has it")

    def _replace(self, fault: Fault, why: str) -> Asked:
        """Give up a link that cannot be used, and send what stood behind it."""
        rule = self._rule(fault)
        there = self.call.turns_of(self.ledger.recall(self.link))
        overlap = Overlap.of(self.turns, there)
        if self.ledger.heard_of(self.link):
            yield from self._replay(overlap, rule, why)
            if not self.ledger.whole(self.link):
                yield Assumed(f"what stood before the known part of {_name(self.link)} is lost")
            return
        last = self._followed() if self.link.conversation is None else None
        told = any(turn.role == "assistant" for turn in self.turns)
        if last is not None and fault is Fault.LINK_UNKNOWN:
            overlap = Overlap.of(self.turns, self.call.turns_of(self.ledger.recall(Link(last))))
            if not told or overlap.pairs or overlap.answers:
                yield Assumed(f"the input is taken to go on from {last}, which the ledger knows")
                if self.ledger.knows(Link(last)):
                    yield from self._move(last, rule, why)
                else:
                    yield from self._replay(overlap, rule, why)
                return
        if told or fault is Fault.LINK_UNSUPPORTED:
            yield Assumed("the input is taken for the whole history: nothing else is known")
            yield self._leave(self.link, rule, why)

    def _followed(self) -> str | None:
        """The response that the input goes on from: the newest one with something of it, or with
        a call that it answers; else the only end.
        """
        known = {proof for turn in self.turns for proof in Turns.proofs(turn)}
        calls = {("call", own) for kind, own in known if kind == "result"}
        return self.ledger.newest(known | calls) or self.ledger.last()

    def _continue(self) -> Asked:
        """Send only what is new, and an output for each call that waits."""
        # Most requests say something that nothing can be a copy of: then nothing is decoded.
        if all(map(_is_news, self.turns)) and self.turns and not self.ledger.pending(self.link):
            return
        overlap = Overlap.of(self.turns, self.call.turns_of(self.ledger.holds(self.link)))
        if overlap.strangers:
            why = f"the input tells what {_name(self.link)} holds in other words"
            yield from self._replay(overlap, self._copied(overlap), why)
            return
        makers = self._makers(overlap)
        behind = self.ledger.behind(self.link) if makers else set()
        for name in reversed(makers):
            if name in behind and self.ledger.knows(Link(name)):
                yield from self._move(name, self._rule(Fault.ORPHAN), makers[name])
                return
        yield from self._others(overlap)
        missing = {
            at: call
            for at, call in overlap.unanswered().items()
            if call.call_id not in self.ledger.outputs
        }
        if missing and self.ledger.whole(self.link) and not missing.keys() & _values(overlap):
            covering = overlap.covering(set(missing))
            if covering is not None:
                names = ", ".join(str(call.call_id) for call in missing.values())
                why = f"{_name(self.link)} waits for {names}, and the input is whole without it"
                yield self._leave(self.link, self._rule(Fault.UNANSWERED), why)
                return
        copies = set(overlap.pairs)
        if (copies or overlap.told) and not overlap.new and not overlap.unanswered():
            copies -= set(self._last_words())
            if len(copies) == len(overlap.pairs):
                why = f"{_name(self.link)} holds the whole input: there is nothing to add to it"
                yield from self._replay(overlap, self._copied(overlap), why)
                return
            yield Assumed("the last words of the user are taken for said again")
        if overlap.guessed:
            yield Assumed(f"the input is taken to begin with the end of {_name(self.link)}")
        yield from self._outputs(overlap)
        yield from self._drop_copies(overlap, copies | overlap.told.keys())
        yield from self._second_results(overlap)

    def _replay(self, overlap: Overlap, rule: str, why: str) -> Asked:
        """Leave the link, and put what the server held around what the input has."""
        yield self._leave(self.link, rule, why)
        yield from self._others(overlap)
        because = f"it stood behind {_name(self.link)}"
        missing = overlap.unanswered()
        real = {at for at, call in missing.items() if call.call_id in self.ledger.outputs}
        here = {there: at for at, there in overlap.pairs.items()}
        without = missing.keys() - real - here.keys()
        # Whole but for calls that nobody answered: then their owner took them out.
        whole = bool(without) and overlap.covering(without) is not None
        for after, there in () if whole else overlap.merged():
            turn = self.by_value(overlap.there[there])
            if turn is None:
                continue
            call = missing.get(there)
            if call is not None and there not in real and not call.closable:
                yield Insert(after, self._quoted(turn, call), rule=rule, why=because)
                continue
            yield Insert(after, turn, rule=rule, why=because)
            for output, missed in self._output_of(call) if call else ():
                yield Insert(after, output, rule=rule, why=missed)
        for there in sorted(real & here.keys()):
            for output, missed in self._output_of(missing[there]):
                yield Insert(here[there], output, rule=rule, why=missed)

    def by_value(self, turn: Turn) -> Turn | None:
        """A turn of the ledger as it can be sent without the server's copy."""
        if turn.id is None or turn.id in self.stored:
            return turn
        item = turn.items[0] if turn.items else None
        readable = self.call.target.reasoning_by_value
        if isinstance(item, Reasoning) and item.proof is None and not readable:
            return None
        keeps = turn.needs_id or self.call.target.unstored_ids == "keep"
        return turn if keeps else replace(turn, id=None)

    def _quoted(self, turn: Turn, call: ToolCall) -> Turn:
        """A call whose result nobody can invent, as data."""
        asked, where = call.arguments, self.call.where(turn)
        text = envelope.quote_call(
            asked if isinstance(asked, str) else json_text(asked, where),
            None,
            call_id=call.call_id,
            name=call.name or call.kind,
        )
        return Turn("user", (Text(text),))

    def _output_of(self, call: ToolCall) -> Iterator[tuple[Turn, str]]:
        """The output of a call that waits: the one that was made here, or a marked text."""
        call_id = call.call_id or ""
        if call_id in self.ledger.outputs:
            for turn in self.call.turns_of([self.ledger.outputs[call_id]]):
                yield turn, f"the output of {call_id} was made and not sent"
            return
        live = call_id in self.call.context.live_calls
        result = ToolResult(
            call_id,
            envelope.close(call_id, self.call.closing.sentence(call, live=live)),
            kind=call.answered_by[0],
            synthetic=True,
            closes=call,
        )
        yield Turn("tool", (result,)), f"call {call_id} waits for a result and has none"

    def _leave(self, link: Link, rule: str, why: str) -> SetField:
        key = "conversation" if link.conversation is not None else "previous_response_id"
        return SetField(key, None, rule=rule, why=why)

    def _in_front(
        self, lacks: Sequence[Turn], before: Sequence[Turn], rule: str, why: str
    ) -> Iterator[Edit]:
        """Turns that stand before the input nowhere, with what was made here for their calls."""
        held = {item.call_id: item.name for turn in before for item in calls_of(turn)}
        turns = [self._told(turn, held) for turn in lacks]
        self.added = (*self.added, *turns)
        missing = waiting([*turns, *self.turns])
        for at, turn in enumerate(turns):
            new = self.by_value(turn)
            if new is not None:
                yield Insert(FRONT, new, rule=rule, why=why)
            call = missing.get(at)
            if call is not None and call.call_id in self.ledger.outputs:
                for output, missed in self._output_of(call):
                    yield Insert(FRONT, output, rule=rule, why=missed)

    # ------------------------------------------------------------ behind a link that is kept

    def _move(self, response: str, rule: str, why: str) -> Asked:
        """Continue another response."""
        self.link, self.moved = Link(response), rule
        yield SetField("previous_response_id", response, rule=rule, why=why)
        yield from self._continue()

    def _others(self, overlap: Overlap) -> Iterator[Edit]:
        """What other chains held whose calls the input answers, by value."""
        for name, why in self._makers(overlap).items():
            there = self.call.turns_of(self.ledger.recall(Link(name)))
            before = (*overlap.there, *self.added)
            lacks = _beside(self.turns, _beside(before, there))
            yield from self._in_front(lacks, before, self._rule(Fault.ORPHAN), why)

    def _told(self, turn: Turn, held: Mapping[str | None, str | None]) -> Turn:
        """A turn of another chain; its result of a call that has one here, as data."""
        result = answered(turn)
        if result is None or result.call_id not in held:
            return turn
        return self._quote(turn, result, held[result.call_id])

    def _makers(self, overlap: Overlap) -> dict[str, str]:
        """The newest responses that made calls of which the input has only the outputs, with the
        reason: one of the calls.
        """
        before = (*overlap.there, *self.added)
        known = {item.call_id for turn in before for item in calls_of(turn)}
        found: dict[str, str] = {}
        for turn in self.turns:
            known |= {item.call_id for item in calls_of(turn)}
            result = answered(turn)
            if result is not None and result.call_id and result.call_id not in known:
                name = self.ledger.makers.get(result.call_id)
                if name is not None:
                    found.setdefault(name, f"{name} made the call {result.call_id}")
        newest = [name for name in self.ledger.responses if name in found][-MOST_CHAINS:]
        return {name: found[name] for name in newest}

    def _last_words(self) -> Iterator[int]:
        """The user's turns at the end of the input."""
        for at in range(len(self.turns) - 1, -1, -1):
            if self.turns[at].role != "user":
                return
            yield at

    def _copied(self, overlap: Overlap) -> str:
        """The rule that forbids what is there twice."""
        named = {turn.id for turn in overlap.there if turn.id is not None}
        twice = any(self.turns[at].id in named for at in (*overlap.pairs, *overlap.changed))
        return self._rule(Fault.ID_TWICE if twice else Fault.REPLAY)

    def _drop_copies(self, overlap: Overlap, copies: set[int]) -> Iterator[Edit]:
        rule = self._copied(overlap)
        why = f"{_name(self.link)} holds it"
        called = {item.call_id for turn in overlap.there for item in calls_of(turn)}
        for at, turn in enumerate(self.turns):
            if at in copies or (is_reasoning(turn) and _led(self.turns, at) in copies):
                result = answered(turn) if at in overlap.told else None
                alone = result is not None and result.call_id not in called
                yield Drop(at, rule=self._rule(Fault.ORPHAN) if alone else rule, why=why)

    def _outputs(self, overlap: Overlap) -> Iterator[Edit]:
        """An output for each call that waits on the server, in the order of the calls."""
        rule = self._rule(Fault.UNANSWERED)
        spoken = any(answered(self.turns[at]) is None for at in overlap.new)
        for call in overlap.unanswered().values():
            made = call.call_id in self.ledger.outputs
            if call.call_id in self.call.context.live_calls and not made and not spoken:
                raise NotReadyError(
                    f"call {call.call_id} is still being answered, and the server waits for it: "
                    "wait for its result, or take it out of live_calls"
                )
            if made or call.closable:  # else nothing can stand for its result: the rule says so
                for turn, why in self._output_of(call):
                    yield Insert(FRONT, turn, rule=rule, why=why)

    def own_outputs(self) -> Iterator[Edit]:
        """Outputs that were made here, for calls that the input itself makes."""
        held = self.call.turns_of(self.ledger.recall(self.link)) if self.ledger.outputs else ()
        paired = Overlap.of(self.turns, held).pairs if self.ledger.outputs else {}
        for at, call in waiting(self.turns).items() if self.ledger.outputs else ():
            if at not in paired and call.call_id in self.ledger.outputs:
                for turn, why in self._output_of(call):
                    yield Insert(at, turn, rule=self._rule(Fault.UNANSWERED), why=why)

    def _second_results(self, overlap: Overlap) -> Iterator[Edit]:
        """Results of calls that have theirs on the server, or further up in the input."""
        second, replay = self._rule(Fault.SECOND_RESULT), self._rule(Fault.REPLAY)
        again = {item.call_id for turn in self.turns for item in calls_of(turn)}
        held = {result.call_id: result for turn in overlap.there if (result := answered(turn))}
        called = {item.call_id: item.name for turn in overlap.there for item in calls_of(turn)}
        said: set[tuple[str, str] | None] = set()
        open_ids = Counter(call.call_id for call in overlap.waiting.values())
        first: dict[str | None, ToolResult] = {}
        for at in self._real_first(overlap):
            turn = self.turns[at]
            result = answered(turn)
            if result is None or result.call_id not in called:
                continue
            if open_ids[result.call_id] > 0:
                open_ids[result.call_id] -= 1
                first[result.call_id] = result
                continue
            other = first.get(result.call_id) or held.get(result.call_id)
            why = f"the server has a result of {result.call_id}"
            # Where the input has the call as well, only that it is all there twice is wrong.
            rule = replay if result.call_id in again else second
            quoted = self._quote(turn, result, called[result.call_id])
            equal = other is not None and same(other.output, result.output)
            if result.synthetic or equal or Turns.quoted(quoted) in said:
                yield Drop(at, rule=rule, why=why)
            elif other is not None:
                said.add(Turns.quoted(quoted))
                yield Replace(at, quoted, rule=rule, why=f"{why}: quoted as data")

    def _quote(self, turn: Turn, result: ToolResult, name: str | None) -> Turn:
        """A result as quoted data."""
        text = text_of(result.output, self.call.where(turn))
        quoted = Text(envelope.quote(text, call_id=result.call_id, name=name))
        return Turn("user", (quoted, *media_of(result.output)), at=turn.at)

    def _real_first(self, overlap: Overlap) -> list[int]:
        """The new results whose calls are not in the input, invented ones last."""
        own: set[str | None] = set()
        found: list[int] = []
        for at, turn in enumerate(self.turns):
            own |= {item.call_id for item in calls_of(turn) if at not in overlap.pairs}
            result = answered(turn)
            known = at in overlap.pairs or at in overlap.told
            if result is not None and not known and result.call_id not in own:
                found.append(at)
        return sorted(found, key=lambda at: bool((answered(self.turns[at]) or _NONE).synthetic))


def _decided(asked: Sequence[Edit | Assumed]) -> list[Edit | Assumed]:
    """What is asked for, with each field as it was set last: a link may lead on to another one."""
    last = {edit.key: edit for edit in asked if isinstance(edit, SetField)}
    return [one for one in asked if not isinstance(one, SetField) or last[one.key] is one]


def _is_news(turn: Turn) -> bool:
    """Whether nothing could tell that the server has it: words of a user, without an id."""
    return turn.role == "user" and turn.id is None


_NONE = ToolResult(None, None)


def _name(link: Link) -> str:
    return link.previous_response_id or link.conversation or "the link"


def _beside(here: Sequence[Turn], there: Sequence[Turn]) -> list[Turn]:
    """What is there and not here."""
    overlap = Overlap.of(here, there)
    known = {*_values(overlap), *overlap.told.values()}
    return [turn for at, turn in enumerate(there) if at not in known]


def _values(overlap: Overlap) -> set[int]:
    """Places there of what is here too."""
    return set(overlap.pairs.values())


def _led(turns: tuple[Turn, ...], at: int) -> int:
    """The turn that a reasoning turn leads."""
    while at < len(turns) and is_reasoning(turns[at]):
        at += 1
    return at
