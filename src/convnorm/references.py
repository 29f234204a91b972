"""What a request only points at: references, bare ids and containers that the server looks up."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from convnorm import envelope
from convnorm.delivery import Ledger
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Insert, Loss, Replace
from convnorm.ir import Text, ToolCall, Turn
from convnorm.overlap import answered, calls_of, refers
from convnorm.seals import Seals
from convnorm.targets import Fault
from convnorm.wire import fields, json_text


class References:
    """What is sent by its id alone, beside what a ledger knows of it."""

    def __init__(
        self,
        turns: tuple[Turn, ...],
        call: Call,
        ledger: Ledger,
        by_value: Callable[[Turn], Turn | None],
    ) -> None:
        self.turns, self.call, self.ledger = turns, call, ledger
        self.by_value = by_value
        """A turn of the ledger as it can be sent without the server's copy."""

    def edits(self) -> Iterator[Edit]:
        """Say what references and bare ids name, where the server cannot or will not look it up."""
        yield from self._gone_containers()
        if not any(map(_is_bare, self.turns)):
            return
        results = {result.call_id for turn in self.turns if (result := answered(turn))}
        leads = Seals(self.call.context.ledger, self.call.context).leads
        inline = {turn.id for turn in self.turns if not _is_bare(turn)}
        for at, turn in enumerate(self.turns):
            if turn.id is None or not _is_bare(turn):
                continue
            held = self.held.get(turn.id)
            if held is None:
                if turn.id not in inline:
                    yield from self._lost(at, turn)
            elif refers(turn) and {call.call_id for call in calls_of(held)} & results:
                rule = self.call.target.rules[Fault.CALL_BY_REFERENCE]
                led = at > 0 and self.turns[at - 1].id == leads.get(turn.id, "")
                new = replace(held, at=turn.at, id=turn.id if led else None)
                yield Replace(at, new, rule=rule, why="its output is sent, so the call is too")

    @cached_property
    def held(self) -> dict[str, Turn]:
        """By id: what the server would find."""
        turns = self.call.turns_of(self.ledger.stored_items())
        return {turn.id: turn for turn in turns if turn.id is not None}

    @cached_property
    def issued(self) -> dict[str, Turn]:
        """By id: what the server made, and may not have kept."""
        turns = self.call.turns_of(self.ledger.issued_items())
        return {turn.id: turn for turn in turns if turn.id is not None}

    def _lost(self, at: int, turn: Turn) -> Iterator[Edit]:
        rule = self.call.target.rules[Fault.REFERENCE_LOST]
        known = self.issued.get(turn.id or "")
        new = None if known is None or _is_bare(known) else self.by_value(known)
        if new is None:
            yield Drop(at, rule=rule, why=f"the server does not have {turn.id}", loss=Loss.ID)
        else:
            new = replace(new, at=turn.at)
            yield Replace(at, new, rule=rule, why=f"{turn.id} is not stored: it is sent by value")

    def _gone_containers(self) -> Iterator[Edit]:
        """Quote what ran in a container that is gone: the server would look for it."""
        for at, turn in enumerate(self.turns if self.ledger.expired_containers else ()):
            item = turn.items[0] if turn.items else None
            keys = fields(item.raw) if isinstance(item, ToolCall) else None
            if keys is None or keys.get("container_id") not in self.ledger.expired_containers:
                continue
            assert isinstance(item, ToolCall)
            rule = self.call.target.rules[Fault.CONTAINER_GONE]
            where, outputs = self.call.where(turn), keys.get("outputs")
            text = envelope.quote_call(
                item.arguments
                if isinstance(item.arguments, str)
                else json_text(item.arguments, where),
                None if outputs is None else json_text(outputs, where),
                call_id=None,
                name=item.kind,
            )
            why = f"container {keys.get('container_id')} is gone: quoted as data"
            yield Drop(at, rule=rule, why=why)
            new = Turn("user", (Text(text),), at=turn.at, source=turn.source)
            yield Insert(at, new, rule=rule, why=why)


def _is_bare(turn: Turn) -> bool:
    """Whether only an id says what it is: a reference, or an item of the server without more."""
    if refers(turn):
        return True
    item = turn.items[0] if turn.items else None
    if not isinstance(item, ToolCall) or item.answered_by or not turn.needs_id:
        return False
    return (fields(item.raw) or {}).keys() <= BARE


BARE = frozenset({"type", "id", "status"})
"""The keys of an item that says nothing by itself."""
