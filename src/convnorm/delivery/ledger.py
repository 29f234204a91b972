"""The ledger: what was sent, what was answered, and what the server holds of it."""

import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Self

from pydantic import Field, field_validator, model_serializer

from convnorm.align import align
from convnorm.delivery.exchange import Exchange, Link
from convnorm.delivery.form import pooled, unpooled
from convnorm.delivery.items import (
    ANSWERS,
    Items,
    answered_id,
    as_items,
    map_proofs,
    objects,
    open_calls,
    plain,
)
from convnorm.envelope import digest
from convnorm.errors import LedgerError, PolicyError
from convnorm.options import Options
from convnorm.wire import LIST, fields

UNFINISHED = ("queued", "in_progress")
LOST = ("failed", "cancelled")


class Ledger(Options):
    """The server's side of the history. What is not in it, the server does not have.

    A ledger is a value: every method returns a new one, so two branches of a run cannot disturb
    each other. What exists locally counts as sent only once a request with it was answered.
    """

    responses: dict[str, Exchange] = Field(default_factory=dict)
    """By id: what was answered, in the order of the answers."""
    conversations: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    attempts: dict[str, Exchange] = Field(default_factory=dict)
    """Requests that were sent and not answered, under a name made from what they say."""
    outputs: dict[str, Any] = Field(default_factory=dict)
    """By call id: what tools returned here, whether it was sent or not."""
    items: tuple[Any, ...] = ()
    """Items that are stored, though not by a response or conversation of this ledger."""
    gone: tuple[str, ...] = ()
    """Responses and conversations that the server no longer shows: expired, deleted, or another
    organization's. What they held is still known here."""
    locked: tuple[str, ...] = ()
    """Conversations that another request is using."""
    expired_containers: tuple[str, ...] = ()
    """Containers of the code interpreter that are gone."""
    zero_data_retention: bool = False
    """The organization lets the server keep nothing."""
    organization: str | None = None
    """Whose requests these are."""
    encrypted_content: dict[str, Any] = Field(default_factory=dict)
    """By sealed text: who had it sealed, as `{"organization": "org_…"}`."""

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**unpooled(values))

    @field_validator("conversations", mode="before")
    @classmethod
    def _plain_items(cls, given: Any) -> Any:
        """A conversation is a list of items, or an object that has one under `items`."""
        if not isinstance(given, Mapping):
            return given
        return {
            name: held.get("items", ()) if isinstance(held, Mapping) else held
            for name, held in given.items()
        }

    @field_validator("responses")
    @classmethod
    def _bases_first(cls, given: dict[str, Exchange]) -> dict[str, Exchange]:
        return _in_order(given)

    @field_validator("outputs", mode="before")
    @classmethod
    def _by_call(cls, given: Any) -> Any:
        """Outputs may be given as a list of items."""
        if not isinstance(given, LIST):
            return given
        return {_answered(item): item for item in given}

    @model_serializer
    def _as_form(self) -> dict[str, Any]:
        return pooled(self)

    # ------------------------------------------------------------ from and to plain data

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The ledger of a server whose state is given as plain data, or in the JSON form.

        An output under `outputs` was made here; it counts as sent only if the input of a response
        has it.
        """
        if not isinstance(state, Mapping):
            raise PolicyError(f"a server's state is a mapping, not a {type(state).__name__}")
        return cls(**state)

    def to_json(self) -> str:
        """The ledger as text, each item once."""
        return json.dumps(pooled(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The ledger that `to_json` wrote, in this process or another."""
        try:
            form = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LedgerError(f"this is no ledger, since it is no JSON: {error}") from None
        if not isinstance(form, dict):
            raise LedgerError(f"a ledger is a JSON object, not a {type(form).__name__}")
        return cls(**form)

    # ------------------------------------------------------------ what happened

    def attempted(self, request: Mapping[str, Any]) -> Self:
        """A request is sent now. Until it is answered, nobody knows what became of it."""
        exchange = self._exchange(request)
        return self._with(attempts={**self.attempts, _name(request): exchange})

    def accepted(self, request: Mapping[str, Any], response: object) -> Self:
        """A request was answered: with a response of the SDK, or the body of one."""
        body = fields(response)
        own = None if body is None else body.get("id")
        if body is None or not isinstance(own, str):
            raise LedgerError(f"a {type(response).__name__} is no response with an id")
        if body.get("status") in UNFINISHED:
            return self  # it is not answered yet
        if body.get("status") in LOST:  # a conversation may hold the request all the same
            return self if Link.of(request).conversation else self.refused(request)
        if not isinstance(body.get("output"), LIST):
            raise LedgerError(f"{own} has no list of output: it is none of the Responses API")
        output = tuple(plain(item, "response.output") for item in body["output"])
        kept = body.get("store") is not False and not self.zero_data_retention
        asked = self._exchange(request)
        exchange = asked.model_copy(update={"output": output, "stored": asked.stored and kept})
        called = {item["call_id"] for item in objects(output) if item.get("type") in ANSWERS}
        changes: dict[str, Any] = {
            "responses": {**self.responses, own: exchange},
            "attempts": self._attempts_but(request),
            # A call under a used id is a new call: what the old one returned is not its output.
            "outputs": {key: self.outputs[key] for key in self.outputs if key not in called},
        }
        if exchange.conversation is not None:
            held = self.conversations.get(exchange.conversation, ())
            changes["conversations"] = {
                **self.conversations,
                exchange.conversation: (*held, *exchange.input, *output),
            }
        return self._with(**changes)

    def refused(self, request: Mapping[str, Any]) -> Self:
        """A request was refused: nothing of it is on the server."""
        return self._with(attempts=self._attempts_but(request))

    def observed_output(self, item: object) -> Self:
        """A tool returned something here. It is not sent yet."""
        copy = plain(item, "an output")
        return self._with(outputs={**self.outputs, _answered(copy): copy})

    def observed_conversation(self, name: str, items: Sequence[object] = ()) -> Self:
        """The server was asked what a conversation holds; a new one holds nothing."""
        held = tuple(plain(item, f"conversation {name}") for item in items)
        left = {key: one for key, one in self.attempts.items() if one.conversation != name}
        known = {**self.conversations, name: held}
        gone = tuple(one for one in self.gone if one != name)
        return self._with(conversations=known, attempts=left, gone=gone)

    def forgotten(self, link: Link) -> Self:
        """The server denied a link: the response or conversation is no longer there."""
        denied = [name for name in link if name is not None and name not in self.gone]
        return self._with(gone=(*self.gone, *denied))

    # ------------------------------------------------------------ what the server knows

    def knows(self, link: Link) -> bool:
        """Whether a request may continue here."""
        previous, conversation = link
        if conversation is not None:
            return conversation in self.conversations and conversation not in self.gone
        found = self.responses.get(previous or "")
        return found is not None and found.stored and previous not in self.gone

    def heard_of(self, link: Link) -> bool:
        """Whether the ledger knows what stands behind a link, be it stored or not."""
        if link.conversation is not None:
            return link.conversation in self.conversations
        return link.previous_response_id in self.responses

    def holds(self, link: Link) -> tuple[Any, ...]:
        """All items that the server puts before the input of a request with this link, in order."""
        if not self.knows(link):
            return ()
        if link.conversation is not None:
            return self.conversations[link.conversation]
        return tuple(item for name in self._chain(link, kept=True) for item in self._items_of(name))

    def recall(self, link: Link) -> tuple[Any, ...]:
        """All that the ledger knows to stand behind a link, whether the server still has it."""
        if link.conversation is not None:
            return self.conversations.get(link.conversation, ())
        return tuple(item for name in self._chain(link) for item in self._items_of(name))

    def whole(self, link: Link) -> bool:
        """Whether nothing can stand behind the link that the ledger has not seen."""
        if link.conversation is not None:
            return link.conversation in self.conversations
        chain = [self.responses[name] for name in self._chain(link)]
        unseen = any(one.conversation is not None and one.before is None for one in chain)
        return bool(chain) and chain[0].previous_response_id is None and not unseen

    def pending(self, link: Link) -> list[Mapping[str, Any]]:
        """The calls that wait on the server for an output of the client, in their order."""
        return open_calls(self.holds(link))

    def last(self) -> str | None:
        """The one response that no other continues, by a link or by value; None if there are
        several, or none.
        """
        continued = {one.previous_response_id for one in self.responses.values()}
        for one in self.responses.values():
            if one.repeats is not None:
                name, count = one.repeats
                if count == len(self.input_of(name)):
                    continued.add(name)
        ends = [name for name in self.responses if name not in continued]
        return ends[0] if len(ends) == 1 else None

    def behind(self, link: Link) -> set[str]:
        """The responses that continue this link's, and those that continue them."""
        found: set[str] = set()
        for name, exchange in self.responses.items():
            before = exchange.previous_response_id
            if before is not None and (before in found or before == link.previous_response_id):
                found.add(name)
        return found

    @cached_property
    def makers(self) -> Mapping[str, str]:
        """By id of a call: the newest response that made it."""
        return {
            call_id: name
            for name, exchange in self.responses.items()
            for kind, call_id in map_proofs(exchange.output)
            if kind == "call"
        }

    def newest(self, proofs: Container[tuple[str, str]]) -> str | None:
        """The newest response that was sent, or gave, something that one of these proves."""
        for name, exchange in reversed(self.responses.items()):
            items = chain(exchange.input, exchange.output)
            if any(proof in proofs for proof in map_proofs(items)):
                return name
        return None

    def unknown(self, conversation: str) -> list[Exchange]:
        """The requests on a conversation that got no answer: it may have them, or not."""
        return [one for one in self.attempts.values() if one.conversation == conversation]

    def delta(self, history: Sequence[Any], link: Link) -> list[Any]:
        """What of a local history the server lacks behind this link.

        What it holds is recognised by ids, and where there are none by a history that begins with
        all of it. Equal words alone prove nothing. An output is a copy of its quotation, too.
        """
        first = self._first_answers(history, link)
        rest = [at for at in range(len(history)) if at not in first]
        found = align([history[at] for at in rest], self.holds(link), Items)
        held = {rest[here] for here in (*dict(found.pairs), *found.told)}
        for at in range(len(history) - 2, -1, -1):
            if Items.light(history[at]) and at + 1 in held:
                held.add(at)  # reasoning whose copy there has no id
        return [item for at, item in enumerate(history) if at not in held]

    def _first_answers(self, history: Sequence[Any], link: Link) -> set[int]:
        """Outputs of calls that wait there, of which the history does not have the call itself."""
        open_ids = Counter(call["call_id"] for call in self.pending(link))
        found: set[int] = set()
        for at, item in enumerate(history):
            keys = fields(item) or {}
            answers = answered_id(keys)
            if keys.get("type") in ANSWERS:
                open_ids.pop(str(keys.get("call_id")), None)
            elif answers is not None and open_ids[answers] > 0:
                open_ids[answers] -= 1
                found.add(at)
        return found

    def input_of(self, response: str) -> tuple[Any, ...]:
        """The whole input of a response, with what it repeats of earlier ones."""
        parts: list[tuple[Any, ...]] = []
        count, name, seen = None, response, set[str]()
        while name in self.responses and name not in seen:
            seen.add(name)
            exchange = self.responses[name]
            offset = exchange.repeats[1] if exchange.repeats else 0
            own = len(exchange.input) if count is None else max(0, count - offset)
            parts.append(exchange.input[:own])
            if exchange.repeats is None:
                break
            name = exchange.repeats[0]
            count = offset if count is None else min(count, offset)
        return tuple(item for part in reversed(parts) for item in part)

    def stored_items(self) -> Iterator[Any]:
        """Every item that the server would find by its id."""
        wanted: dict[str, int] = {}  # how much of an input later ones need that repeat it
        for name in reversed(self.responses):
            exchange = self.responses[name]
            offset = exchange.repeats[1] if exchange.repeats else 0
            stored = exchange.stored and name not in self.gone
            needed = offset + len(exchange.input) if stored else wanted.get(name, 0)
            yield from exchange.input[: max(0, needed - offset)]
            if stored:
                yield from exchange.output
            if exchange.repeats is not None:
                base, count = exchange.repeats
                wanted[base] = max(wanted.get(base, 0), min(needed, count))
        for name, items in self.conversations.items():
            if name not in self.gone:
                yield from items
        yield from self.items

    def stored_outputs(self) -> Iterator[tuple[Any, ...]]:
        """What the server keeps in one piece: what each response gave, and each conversation."""
        for name, exchange in self.responses.items():
            if exchange.stored and name not in self.gone:
                yield exchange.output
        for name, items in self.conversations.items():
            if name not in self.gone:
                yield items

    def issued_items(self) -> Iterator[Any]:
        """Every item that the server ever made, stored or not."""
        for exchange in self.responses.values():
            yield from exchange.output
        for items in self.conversations.values():
            yield from items

    # ------------------------------------------------------------ keeping it small and whole

    def prune(self, link: Link) -> Self:
        """Only what a request with this link needs: the rest of the ledger is forgotten."""
        kept = set(self._chain(link))
        for name in reversed(self.responses):
            if name in kept and (repeats := self.responses[name].repeats):
                kept.add(repeats[0])
        places = {link.conversation, *(self.responses[name].conversation for name in kept)}
        waiting = {call["call_id"] for call in open_calls(self.recall(link))}
        seals = {seal for proof, seal in map_proofs(self.recall(link)) if proof == "seal"}
        ours = {seal for proof, seal in map_proofs(self.issued_items()) if proof == "seal"}
        return self._with(
            responses={name: self.responses[name] for name in self.responses if name in kept},
            conversations={n: self.conversations[n] for n in self.conversations if n in places},
            attempts={n: one for n, one in self.attempts.items() if one.conversation in places},
            outputs={key: self.outputs[key] for key in self.outputs if key in waiting},
            # Who sealed what is still known once the response is forgotten.
            encrypted_content={key: {} for key in sorted(seals & ours)} | self.encrypted_content,
        )

    def merge(self, other: Self) -> Self:
        """What two branches of a run know together; an error where they contradict each other."""
        for name in self.responses.keys() & other.responses.keys():
            if self._told(name) != other._told(name):
                raise LedgerError(f"the two ledgers tell different things of response {name}")
        for call_id in self.outputs.keys() & other.outputs.keys():
            if self.outputs[call_id] != other.outputs[call_id]:
                raise LedgerError(f"the two ledgers have different outputs of call {call_id}")
        if None not in (self.organization, other.organization) and (
            self.organization != other.organization
        ):
            raise LedgerError("the two ledgers are of different organizations")
        held = {**other.conversations, **self.conversations}
        for name in self.conversations.keys() & other.conversations.keys():
            short, long = sorted((self.conversations[name], other.conversations[name]), key=len)
            if long[: len(short)] != short:
                raise LedgerError(
                    f"the two ledgers tell different things of conversation {name}: ask the server "
                    "for its items, and tell observed_conversation"
                )
            held[name] = long
        attempts = {**self.attempts, **other.attempts}
        return self._with(
            responses=_in_order({**self.responses, **other.responses}),
            conversations=held,
            attempts={n: one for n, one in attempts.items() if not _arrived(one, held)},
            outputs={**self.outputs, **other.outputs},
            items=(*self.items, *(item for item in other.items if item not in self.items)),
            gone=tuple(dict.fromkeys((*self.gone, *other.gone))),
            locked=tuple(dict.fromkeys((*self.locked, *other.locked))),
            expired_containers=tuple(
                dict.fromkeys((*self.expired_containers, *other.expired_containers))
            ),
            zero_data_retention=self.zero_data_retention or other.zero_data_retention,
            organization=self.organization or other.organization,
            encrypted_content={**self.encrypted_content, **other.encrypted_content},
        )

    # ------------------------------------------------------------ inside

    def _with(self, **changes: Any) -> Self:
        return self.model_copy(update=changes)

    def _chain(self, link: Link, *, kept: bool = False) -> list[str]:
        """The responses behind a link, the first one first; `kept`: as far as the server has them.

        A chain that bites its tail ends there.
        """
        names: dict[str, None] = {}
        name = link.previous_response_id
        while name is not None and name not in names and name in self.responses:
            found = self.responses[name]
            if kept and (not found.stored or name in self.gone):
                break
            names[name] = None
            name = found.previous_response_id
        return list(reversed(names))

    def _items_of(self, name: str) -> tuple[Any, ...]:
        """What a response added to its chain, or all that stood in its conversation by then."""
        exchange = self.responses[name]
        held = self.conversations.get(exchange.conversation or "", ())
        earlier = held[: exchange.before or 0]
        return (*earlier, *self.input_of(name), *exchange.output)

    def _told(self, name: str) -> tuple[object, ...]:
        one = self.responses[name]
        where = (one.previous_response_id, one.conversation, one.stored)
        return (self.input_of(name), one.output, where)

    def _exchange(self, request: Mapping[str, Any]) -> Exchange:
        """A request as an exchange that nobody answered yet."""
        link, sent = Link.of(request), _sent(request)
        repeats = None if link else self._repeated(sent)
        before = self.conversations.get(link.conversation or "")
        return Exchange(
            input=sent[repeats[1] :] if repeats else sent,
            previous_response_id=link.previous_response_id,
            conversation=link.conversation,
            stored=request.get("store") is not False and not self.zero_data_retention,
            repeats=repeats,
            before=None if before is None else len(before),
        )

    def _repeated(self, sent: tuple[Any, ...]) -> tuple[str, int] | None:
        """How much of the newest whole history this one begins with."""
        name = next(reversed(self.responses), None)
        if name is None or Link(*self._link_of(name)):
            return None
        shared = 0
        for old, new in zip(self.input_of(name), sent, strict=False):
            if old != new:
                break
            shared += 1
        return (name, shared) if shared else None

    def _attempts_but(self, request: Mapping[str, Any]) -> dict[str, Exchange]:
        name = _name(request)
        return {key: self.attempts[key] for key in self.attempts if key != name}

    def _link_of(self, name: str) -> tuple[str | None, str | None]:
        return self.responses[name].previous_response_id, self.responses[name].conversation


def _in_order(responses: Mapping[str, Exchange]) -> dict[str, Exchange]:
    """The responses in their order, but none before what it continues or repeats."""
    done: dict[str, Exchange] = {}
    opened: set[str] = set()
    for name in responses:
        stack = [name]
        while stack:
            top = stack[-1]
            found = responses[top]
            bases = {found.previous_response_id, found.repeats[0] if found.repeats else None}
            ahead = [one for one in responses.keys() & bases if one not in opened]
            opened.update(ahead)
            stack += sorted(ahead)
            if not ahead:
                done.setdefault(top, found)
                stack.pop()
    return done


def _answered(item: object) -> str:
    found = answered_id(fields(item) or {})
    if found is None:
        raise LedgerError("an output needs a type that answers calls, and the call_id it answers")
    return found


def _name(request: Mapping[str, Any]) -> str:
    """The name of an attempt: the same for the same request."""
    return digest(json.dumps([Link.of(request), _sent(request)], sort_keys=True))


def _sent(request: object) -> tuple[Any, ...]:
    """The input items of a request, as a copy."""
    body = fields(request)
    given = None if body is None else as_items(body.get("input") or ())
    if not isinstance(given, LIST):
        raise LedgerError("a request is a body of the Responses API, with a list as its input")
    return tuple(plain(item, f"input[{at}]") for at, item in enumerate(given))


def _arrived(attempt: Exchange, held: Mapping[str, tuple[Any, ...]]) -> bool:
    """Whether a request that one branch never heard of is in what the other saw."""
    items, before = held.get(attempt.conversation or "", ()), attempt.before
    if before is None or not attempt.input:
        return False
    return items[before : before + len(attempt.input)] == attempt.input
