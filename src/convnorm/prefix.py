"""What of a history was in the last request, and what has come since.

A caller may keep the list that was returned and append to it; then the history begins with the last
request. Or he keeps his own, as it came: then some beginning of it, normalized by itself, is the
last request, but for the results, which may have come at another time.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from convnorm import envelope
from convnorm.context import Context
from convnorm.errors import ConvnormError, PolicyError
from convnorm.ir import Item, Media, Text, ToolCall, ToolResult, Turn, media_of, same, same_item
from convnorm.joining import Apart, is_blank
from convnorm.wire import LIST, fields, text_of

MOST_TRIES = 8
"""How many beginnings of the caller's history are tried, each with the results behind it too."""
BACK = 4
"""How far from its end the last request is searched for a message that the caller has, too."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A history that begins with what was sent, and where each element stands in the caller's."""

    elements: list[Any]
    frozen: int
    places: tuple[int | None, ...] = ()
    """Empty when each stands where it stood."""
    dropped: tuple[Any, ...] = ()
    """The records of what is new and was dropped as a copy of what was sent."""
    assumed: tuple[str, ...] = ()

    def facts(self, context: Context) -> Context:
        """The facts, with what they say of single messages at the places these have now."""
        facts: dict[str, Any] = {"last_request": None}
        if self.places:
            was = self.places
            facts["provenance"] = context.provenance.moved(was)
            # Copies are found already, or were sent: only what is new still has a source.
            facts["sources"] = context.sources and tuple(
                context.sources[old] if at >= self.frozen and old is not None else None
                for at, old in enumerate(was)
            )
        return context.model_copy(update=facts)


@dataclass(frozen=True, slots=True)
class Plain:
    """What is sent when nothing is remembered."""

    elements: Sequence[Any]
    turns: Sequence[Turn]
    """The same as turns; `at` says from which of the caller's elements each was made."""
    gone: Mapping[int, Any]
    """The caller's elements that were dropped without loss, as what they say is there elsewhere,
    each with the record of it."""


NO_PASS: frozenset[str] = frozenset()


class NoGrowthError(Exception):
    """The history is no growth of the last request; the message says why."""


@dataclass(frozen=True, slots=True)
class Search:
    """The last request, and what can be asked of the caller's history."""

    last: Sequence[Any]
    elements: Sequence[Any]
    decode: Callable[[Sequence[Any]], Sequence[Turn]]
    plain: Callable[[int, frozenset[str]], Plain]
    """What is sent for the first so many elements when nothing is remembered, and when some passes
    are left out; of `repair_roles`, only the joining."""

    def run(self) -> Sent:
        """Put the last request in place of what it was made from."""
        end = len(self.last)
        if len(self.elements) >= end and all(map(_equal, self.last, self.elements)):
            # Equal is not the same bytes: what was sent is sent again, not its copy.
            return Sent([*self.last, *self.elements[end:]], end)
        return _Growth(self).sent()


def listed(last: Mapping[str, Any] | Sequence[Any], key: str) -> Sequence[Any]:
    """The list of a request, or of its body."""
    found = last.get(key) if isinstance(last, Mapping) else last
    if isinstance(found, str) and key == "input":
        return ({"role": "user", "content": found},)
    if not isinstance(found, LIST):
        raise NoGrowthError(f"it has no list {key!r}")
    for at, element in enumerate(found):
        if fields(element) is None:
            raise PolicyError(f"last_request: {key}[{at}] cannot be read as a message")
    return found


class _Growth:
    """The caller's own history, of which a beginning was made into the last request."""

    def __init__(self, search: Search) -> None:
        self.search, self.last = search, search.last
        self.turns = search.decode(search.elements)
        self.sent_turns = search.decode(search.last)
        self.spine = [at for at, turn in enumerate(self.sent_turns) if _is_spine(turn)]
        """What results that come or go do not change in the last request."""
        self.whole = search.plain(len(search.elements), NO_PASS)
        self.places: list[int | None] = [None] * len(self.last)
        self.dropped: list[Any] = []

    def sent(self) -> Sent:
        end = self._beginning()
        new = [*self._late(end)]
        elements = [*self.last, *(element for element, _ in new)]
        places = (*self.places, *(at for _, at in new))
        said = f"the first {end} messages are sent as last_request has them"
        return Sent(elements, len(self.last), places, tuple(self.dropped), (said,))

    def _found(self, where: int, at: int | None) -> None:
        """What was made from several of the caller's elements stands where the first of them is."""
        if self.places[where] is None:
            self.places[where] = at

    def _beginning(self) -> int:
        """How many of the caller's elements the last request was made from."""
        if not self.spine:
            return 0
        for end in self._candidates():
            try:
                plain = self.search.plain(end, NO_PASS)
            except ConvnormError:
                continue  # cut off where it cannot be sent: it was not sent
            mine = [at for at, turn in enumerate(plain.turns) if _is_spine(turn)]
            if len(mine) == len(self.spine) and all(
                _equal(plain.elements[one], self.last[other])
                for one, other in zip(mine, self.spine, strict=True)
            ):
                for one, other in zip(mine, self.spine, strict=True):
                    self._found(other, plain.turns[one].at)
                return end
        return self._alike()

    def _candidates(self) -> list[int]:
        """Where the beginning may end, if what its end was made into is found."""
        made = [*zip(self.whole.turns, self.whole.elements, strict=True)]
        spine = [at for at, turn in enumerate(self.turns) if _is_spine(turn)]
        ends: list[int] = []
        for back in range(min(BACK, len(self.spine))):
            last, least = self.last[self.spine[-1 - back]], len(self.spine) - back
            found = {turn.at for turn, one in made if turn.at is not None and _equal(one, last)}
            found |= {at for at in spine if _equal(self.search.elements[at], last)}
            # One message can be made into two: the end may be as far behind, or nearer.
            likely = [
                end
                for first, at in enumerate(spine)
                if at in found
                for end in spine[first : first + back + 1][::-1]
            ]
            # Little goes and less is added, so it is mostly the first that is far enough.
            likely.sort(key=lambda end: end < least)
            for end in likely[:MOST_TRIES]:
                ends += (self._behind_results(end), end + 1)
            if len(ends) >= 2 * MOST_TRIES:
                break
        return list(dict.fromkeys(ends))[: 2 * MOST_TRIES]

    def _behind_results(self, at: int) -> int:
        """Where what stands behind a message is no result: they come together."""
        end = at + 1
        while end < len(self.turns) and _is_result(self.turns[end]):
            end += 1
        return end

    def _alike(self) -> int:
        """The same where a copy that came since makes the beginning read otherwise by itself."""
        # What was a copy later, was repaired like everything else when it was sent.
        gone = self.whole.gone
        by = frozenset(gone[at].by for at in gone if _is_spine(self.turns[at]))
        repaired = self.search.plain(len(self.turns), by) if by else self.whole
        # How many were joined at a time is seen in what was sent only: each is looked for alone.
        alone = _forms(self.search.plain(len(self.turns), by | {"repair_roles"}))
        joins = alone.keys() != _forms(repaired).keys()
        left = _Left(self.spine, self.sent_turns, joins=joins)
        for at, turn in enumerate(self.turns):
            if left.empty():
                return at
            if not _is_spine(turn):
                continue
            made = alone.get(at, [])
            where = left.find([turn], made)
            if where is not None:
                self._found(where, at)
            elif at not in gone and any(not is_blank(item) for one in made for item in one.items):
                break  # else nothing of it is sent
        if not left.empty():
            raise NoGrowthError("no beginning of this history was made into it")
        return len(self.turns)

    def _late(self, end: int) -> Iterator[tuple[Any, int]]:
        """What has come since: what stands behind the beginning, and results wherever they are."""
        known = _Known(self.sent_turns)
        forms = _results(self.whole)
        # What a tool returned beside words goes with it.
        seen = (media_of(_result(turn).output) for turn in self.turns if _is_result(turn))
        with_media = forms
        if any(True for media in seen for _ in media):
            with_media = _results(self.search.plain(len(self.turns), frozenset({"fit_media"})))
        made = {at: turn for at, (turn, _) in forms.items() if at is not None}
        old = self._old(known, made, end)
        sent = old.union(self.places)
        said = {_first_text(turn) for turn in self.sent_turns}
        folded: set[str | None] = set()
        coming = {call_id for turn in self.turns[end:] for call_id in _call_ids(turn) if call_id}
        for at, (turn, element) in enumerate(zip(self.turns, self.search.elements, strict=True)):
            if at in sent:
                continue
            if at in self.whole.gone:
                self.dropped.append(self.whole.gone[at])
            elif not _is_result(turn):
                if at >= end:
                    yield element, at
            elif at < end and at not in forms and _result(turn).call_id not in coming:
                folded.add(_result(turn).call_id)  # quoted together with its call
            else:
                form, written = with_media.get(at, (turn, element))
                # Under the name its call was sent with.
                yield (written if known.answers(form) else element), at
        if folded and any(
            turn.at is not None
            and turn.at < end
            and _first_text(turn) not in said
            and not folded.isdisjoint(_call_ids(self.turns[turn.at]))
            for turn in self.whole.turns
            if envelope.quoted_call(_first_text(turn))
        ):
            raise NoGrowthError("a call that was quoted has a result now")

    def _old(self, known: "_Known", forms: Mapping[int, Turn], end: int) -> set[int]:
        """The results that are in the last request, in their place or quoted."""
        old: set[int] = set()
        results = [(at, turn) for at, turn in enumerate(self.turns) if _is_result(turn)]
        quotes = [(at, _quoted(turn)) for at, turn in enumerate(self.turns[:end])]
        for at, turn in results:
            where = known.find(turn, forms.get(at, turn))
            if where is not None:
                old.add(at)
                self._found(where, at)
        # What came since can give the same result another call, under another id, or take it away.
        left = known.left()
        named = (call_id for turn in self.turns for call_id in _call_ids(turn) if call_id)
        calls: Counter[str | None] = Counter(named)
        told = [(at, envelope.unmarked(said)) for at, said in quotes if said is not None]
        told += [
            (at, said) for at, turn in results if at not in old for said in _words(turn, calls)
        ]
        for at, said in told:
            if at not in old and (places := left.get(said)):
                old.add(at)
                self._found(places.popleft(), at)
        if any(_is_result(self.sent_turns[at]) for places in left.values() for at in places):
            raise NoGrowthError("a result in it is not in this history any more")
        return old


def _forms(plain: Plain) -> dict[int | None, list[Turn]]:
    """What each of the caller's elements was made into, but for results."""
    forms: dict[int | None, list[Turn]] = {}
    for turn in plain.turns:
        if _is_spine(turn):
            forms.setdefault(turn.at, []).append(turn)
    return forms


def _results(plain: Plain) -> dict[int | None, tuple[Turn, Any]]:
    """What each result was made into, as a turn and as an element."""
    return {
        turn.at: (turn, element)
        for turn, element in zip(plain.turns, plain.elements, strict=True)
        if _is_result(turn) or _is_quote(turn)
    }


class _Left:
    """What of the last request was not found yet: in its order, but for the calls that are quoted.

    A call is quoted where its result stands, and without one where it stands itself.
    """

    def __init__(self, spine: Sequence[int], turns: Sequence[Turn], *, joins: bool) -> None:
        self.turns, self.joins = turns, joins
        self.rest: deque[int] = deque()
        self.begun: Apart | None = None
        """The first of the rest, if it was joined and not all of it was found yet."""
        self.quoted: dict[str, deque[int]] = {}
        for at in spine:
            call = envelope.quoted_call(_first_text(turns[at]))
            (self.quoted.setdefault(call, deque()) if call else self.rest).append(at)

    def empty(self) -> bool:
        return not self.rest and not any(self.quoted.values())

    def find(self, *forms: Sequence[Turn]) -> int | None:
        """Where that stands which one of the forms says: all that is said there, or a part."""
        found = chain(map(self._whole, forms), map(self._part, forms))
        return next((at for at in found if at is not None), None)

    def _whole(self, made: Sequence[Turn]) -> int | None:
        """Where turns stand that say the same; nowhere unless all of them do."""
        found: list[tuple[deque[int], int]] = []
        for turn in made:
            call = envelope.quoted_call(_first_text(turn))
            these = self.quoted.get(call, deque()) if call else self.rest
            taken = sum(each is these for each, _ in found)
            at = next(islice(these, taken, None), None)
            begun = these is self.rest and self.begun is not None
            if at is None or begun or not _alike(turn, self.turns[at]):
                return None
            found.append((these, at))
        for these, _ in found:
            these.popleft()
        return found[0][1] if found else None

    def _part(self, made: Sequence[Turn]) -> int | None:
        """Where one stands that was joined and goes on with this, or begins with it."""
        if not (self.joins and self.rest and len(made) == 1):
            return None
        (part,), at = made, self.rest[0]
        # Instructions are joined to what the user says, and to others of another rank.
        if (part.role == "assistant") != (self.turns[at].role == "assistant"):
            return None
        whole = self.begun or Apart(self.turns[at])
        if not whole.goes_on_with(part):
            return None
        self.begun = whole
        if whole.done():
            self.rest.popleft()
            self.begun = None
        return at


class _Known:
    """The results in the last request, each to be found once."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.calls = {
            item.call_id: item.name
            for turn in turns
            for item in turn.items
            if isinstance(item, ToolCall) and item.answered_by
        }
        self.results: dict[tuple[str | None, str], deque[int]] = {}
        self.quotes: dict[str, deque[int]] = {}
        for at, turn in enumerate(turns):
            if (quoted := _quoted(turn)) is not None:
                self.quotes.setdefault(quoted, deque()).append(at)
            elif _is_result(turn) and not _says_nothing(result := _result(turn)):
                key = (result.call_id, _bytes(result.output))
                self.results.setdefault(key, deque()).append(at)

    def find(self, turn: Turn, form: Turn) -> int | None:
        """Where the result stands, in its place or quoted; `form` is what it would be now."""
        mine = _result(turn)
        asked = [_result(form), mine] if _is_result(form) else [mine]
        for one in asked:
            if found := self.results.get((one.call_id, _bytes(one.output))):
                return found.popleft()
        texts = [_quoted(form)]
        texts += [
            _quotation(mine, one.call_id, name)
            for one in asked
            for name in dict.fromkeys((self.calls.get(one.call_id), None))
        ]
        for text in texts:
            if text is not None and (found := self.quotes.get(text)):
                return found.popleft()
        return None

    def left(self) -> dict[str, deque[int]]:
        """The results that were not found, in their place or quoted, by what they say."""
        left: dict[str, deque[int]] = {}
        for (_, output), places in self.results.items():
            left.setdefault(output, deque()).extend(places)
        for quoted, places in self.quotes.items():
            left.setdefault(envelope.unmarked(quoted), deque()).extend(places)
        return left

    def answers(self, form: Turn) -> bool:
        """Whether a result, in this form, is of a call that was sent."""
        return _is_result(form) and _result(form).call_id in self.calls


def _is_spine(turn: Turn) -> bool:
    """Whether it is neither a result nor something that was put in beside the caller's turns."""
    first = _first_text(turn)
    ours = envelope.is_turn(first) or (turn.role == "user" and envelope.is_media_note(first))
    return not (ours or _is_result(turn) or _is_quote(turn))


def _call_ids(turn: Turn) -> Iterator[str | None]:
    return (item.call_id for item in turn.items if isinstance(item, ToolCall))


def _is_result(turn: Turn) -> bool:
    return len(turn.items) == 1 and isinstance(item := turn.items[0], ToolResult) and item.paired


def _is_quote(turn: Turn) -> bool:
    return turn.role == "user" and envelope.is_quote(_first_text(turn))


def _alike(one: Turn, other: Turn) -> bool:
    """Whether two turns say the same, under whatever ids and however often."""
    mine, its = _told(one), _told(other)
    return one.role == other.role and len(mine) == len(its) and all(map(same_item, mine, its))


def _told(turn: Turn) -> list[Item]:
    """The items of a turn; its calls without their ids or results, and equal ones once."""
    told: list[Item] = []
    in_quote = False
    for item in turn.items:
        one = item
        if in_quote and isinstance(item, Media):
            continue  # the quoted call returned it
        in_quote = False
        if isinstance(item, ToolCall):
            one = replace(item, call_id=None)
        elif isinstance(item, Text) and (quoted := envelope.quoted_call(item.text)):
            one, in_quote = Text(quoted), True
        if not (isinstance(one, ToolCall) and told and same_item(told[-1], one)):
            told.append(one)
    return told


def _result(turn: Turn) -> ToolResult:
    (result,) = turn.items
    assert isinstance(result, ToolResult)
    return result


def _first_text(turn: Turn) -> str:
    first = turn.items[0] if turn.items else None
    return first.text if isinstance(first, Text) else ""


def _words(turn: Turn, calls: Mapping[str | None, int]) -> Iterator[str]:
    """What a result says in its place and, if it is not sure which call's it is, quoted."""
    result = _result(turn)
    yield _bytes(result.output)
    if calls.get(result.call_id) != 1:
        yield envelope.unmarked(_quotation(result, None, None))


def _quotation(result: ToolResult, call_id: str | None, name: str | None) -> str:
    text = envelope.quote(text_of(result.output, ""), call_id=call_id, name=name)
    return envelope.quoted_output(text) or ""


def _quoted(turn: Turn) -> str | None:
    """The output that the turn quotes, alone or behind its call, and whose it is."""
    return envelope.quoted_output(_first_text(turn)) if turn.role == "user" else None


def _says_nothing(result: ToolResult) -> bool:
    return result.synthetic or not result.output


def _bytes(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=lambda other: dict(fields(other) or {}))


def _equal(one: object, other: object) -> bool:
    if one is other:
        return True
    left, right = fields(one), fields(other)
    return left is not None and right is not None and same(left, right)
