"""What is known of the server while runs go on, and what fills it."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.models.fake_id import FAKE_RESPONSES_ID

from convnorm import envelope
from convnorm.delivery import Ledger, Link
from convnorm.wire import fields

MOST = 1000
"""So many conversations are known at a time; the one that was used last is forgotten last."""


@dataclass(slots=True, eq=False)
class Strand:
    """What is known of one conversation, and what the next request would continue."""

    ledger: Ledger
    tip: Link
    """Empty for a ledger that was given: it may hold several conversations."""
    names: frozenset[Hashable] = field(init=False)
    """What the server made in it: responses, conversations and items."""

    def __post_init__(self) -> None:
        self.names = frozenset(_names(self.ledger, self.tip))


class LedgerKeeper:
    """Holds a `Ledger` for each conversation: providers read it, providers and hooks tell it.

    Call ids do not tell conversations apart, since some servers count them from one. What the
    server made does: responses, conversations, and the items of an answer.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._strands = [] if ledger is None else [Strand(ledger, Link())]
        self._last: dict[Hashable, Sequence[Any]] = {}

    def last_request(self, speaker: Hashable, items: Sequence[Any]) -> Sequence[Any] | None:
        """The history that this speaker was last sent, if it was repaired and answered.

        Another conversation can begin alike: what its calls are is not told in these items.
        """
        last = self._last.get(speaker, ())
        return last if last and _call_ids(last) <= _call_ids(items) else None

    def remember(self, speaker: Hashable, items: Sequence[Any] | None) -> None:
        """A repaired history was answered, or none: of the speakers, the latest are remembered."""
        self._last.pop(speaker, None)
        if items is not None:
            self._last[speaker] = items
        if len(self._last) > MOST:
            del self._last[next(iter(self._last))]

    def about(self, link: Link, items: Sequence[Any]) -> Ledger | None:
        """The ledger that knows the link, or all ids; else the server knows more than we do.

        For what is not in a ledger, the server does not have.
        """
        strand = self._strand(link, items)
        if strand is None or (link and not strand.ledger.knows(link)):
            return None
        return strand.ledger if link or strand.names.issuperset(_ids(items)) else None

    def behind(self, link: Link) -> Ledger:
        """What is known of one link, and nothing else."""
        strand = self._strand(link, ())
        return strand.ledger.prune(link) if strand else Ledger()

    def accepted(self, request: Mapping[str, Any], response: object, given: Sequence[Any]) -> None:
        """A request was answered; `given` is its input before the repair.

        Who continues the end of a strand takes it over. Who continues from further up begins a new
        one, and the old one stays for whoever goes on there.
        """
        link = Link.of(request)
        strand = self._strand(link, given)
        before = strand.ledger if strand else Ledger()
        taken = strand if strand and _at_tip(strand, link, given) else None
        if link and taken is None:
            before = before.prune(link)
        after = before.accepted(request, response)
        own = next(reversed(after.responses), None)
        if own is None or own in before.responses:
            return  # it is not answered yet, or it failed
        if link.conversation is not None:
            tip = Link(conversation=link.conversation)
            after = after.prune(tip)
        else:
            tip = Link(own)
            after = after if link else _named_in(after, own, given)
        kept = [one for one in self._strands if one is not taken]
        self._strands = [*kept, Strand(after, tip)][-MOST:]

    def observed_output(self, item: object, call: object) -> None:
        """A tool returned something, asked by this call of a model."""
        name = _call_name(fields(call) or {})
        found = [strand for strand in self._strands if name in strand.names]
        if isinstance(name, str) or len(found) == 1:  # else nobody knows whose it is
            for strand in found:
                strand.ledger = strand.ledger.observed_output(item)

    def _strand(self, link: Link, items: Sequence[Any]) -> Strand | None:
        """The newest strand with what a request continues: its link, or the last item by an id."""
        name = link.conversation or link.previous_response_id or next(_ids(reversed(items)), None)
        return next((one for one in reversed(self._strands) if name in one.names), None)


def _at_tip(strand: Strand, link: Link, items: Sequence[Any]) -> bool:
    """Whether a request continues the end of a strand."""
    if link:
        return link == strand.tip
    newest = strand.ledger.responses.get(strand.tip.previous_response_id or "")
    return newest is not None and next(_ids(reversed(items))) in set(_ids(newest.output))


def _named_in(ledger: Ledger, own: str, items: Sequence[Any]) -> Ledger:
    """Of a history that is sent whole: its newest response, and those whose items it names."""
    named = set(_ids(items))
    kept = {
        name: one
        for name, one in ledger.responses.items()
        if name == own or not named.isdisjoint(_ids(one.output))
    }
    for name, one in kept.items():
        if one.repeats is not None and one.repeats[0] not in kept:
            whole = {"input": ledger.input_of(name), "repeats": None}
            kept[name] = one.model_copy(update=whole)
    return ledger.model_copy(update={"responses": kept, "conversations": {}, "outputs": {}})


def _names(ledger: Ledger, tip: Link) -> Iterator[Hashable]:
    """What tells a strand from others; of histories sent whole, only the newest is continued."""
    newest = ledger.responses.get(tip.previous_response_id or "")
    whole = newest is not None and newest.previous_response_id is None
    yield from [tip.previous_response_id] if whole else ledger.responses
    yield from ledger.conversations
    for item in ledger.issued_items():
        keys = fields(item) or {}
        yield from _ids([keys])
        if keys.get("type") == "function_call":
            yield _call_name(keys)


def _call_name(call: Mapping[str, Any]) -> Hashable:
    """The id that the server gave a call; without one, what it says."""
    own = next(_ids([call]), None)
    return own or tuple(str(call.get(key)) for key in ("call_id", "name", "arguments"))


def _ids(items: Iterable[Any]) -> Iterator[str]:
    """The ids of items, but for the SDK's placeholder."""
    for item in items:
        own = item.get("id") if isinstance(item, Mapping) else None
        if isinstance(own, str) and own != FAKE_RESPONSES_ID:
            yield own


def _call_ids(items: Sequence[Any]) -> set[str]:
    """The calls that are made, answered or quoted."""
    found: set[str | None] = set()
    for keys in (fields(item) or {} for item in items):
        made, text = keys.get("call_id"), str(keys.get("content", ""))
        quoted = envelope.quoted(text)
        found |= {made, quoted[0] if quoted else None, envelope.quoted_call_id(text)}
    return {call_id for call_id in found if isinstance(call_id, str)}
