"""What every dialect needs: the shape of its module, and how to refuse what it cannot read."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from convnorm.closing import Closing
from convnorm.context import Context, Provenance
from convnorm.errors import DialectError
from convnorm.facts import Fact
from convnorm.ir import GONE, History, Media, Opaque, Text, Turn
from convnorm.targets import Profile, Target
from convnorm.wire import LIST, SAID, fields, is_whole

NOTHING: frozenset[str] = frozenset()
NOWHERE = Provenance()
USUAL = Closing()
_LEGAL = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
"""Letters that are legal in every name; in an id only its length is asked, or nine of them."""


class CallLimits:
    """What a survey asks of calls: ids, names and arguments that no target could mind."""

    def __init__(self, profile: Profile) -> None:
        most = sys.maxsize if profile.call_id_length is None else profile.call_id_length
        self.id_length = 0 if profile.nine_character_ids == "refused" else most
        self.name_length = profile.name_length
        self.parses = profile.parsed_arguments == "refused"

    def survey(self, name: object, arguments: object, facts: set[Fact]) -> None:
        """Name the facts that could wake the passes for ids and for arguments."""
        if type(arguments) is not str:
            facts.add(Fact.ARGUMENTS)
        elif not is_whole(arguments):
            facts |= {Fact.ARGUMENTS, Fact.FIELDS}
        elif self.parses:
            if not _is_object(arguments):
                facts.add(Fact.ARGUMENTS)
        elif arguments and arguments[-1] != "}":
            facts.add(Fact.ARGUMENTS)
        if not (isinstance(name, str) and name) or (
            self.name_length is not None and (len(name) > self.name_length or not _LEGAL(name))
        ):
            facts.add(Fact.IDS)


@dataclass(frozen=True, slots=True)
class Call:
    """What is known of the coming model call: whose rules, and this call's facts."""

    target: Target
    context: Context
    key: str
    """The request key that holds the history, for messages to the user."""
    decode: Callable[[Sequence[object], Mapping[str, Any], "Call"], History] | None = None
    """How the dialect reads a wire list."""
    frozen: int = 0
    """How many turns at the front were sent and answered: nothing may touch them."""
    closing: Closing = USUAL
    """What stands in for missing results, as the policy says."""
    places: tuple[int | None, ...] = ()
    """By `Turn.at`, where the turn stands in what the caller passed; empty when `at` says it."""

    def turns_of(self, items: Iterable[object]) -> tuple[Turn, ...]:
        """The turns of wire items that the caller did not pass: what a ledger knows."""
        if self.decode is None:
            return ()
        bare = replace(self, context=Context())
        readable = [item for item in items if fields(item) is not None]
        turns = self.decode(readable, {}, bare).turns
        # What is wrong with an item depends on what stands around it: that is read once it is sent.
        return tuple(replace(turn, at=None, flaws=()) for turn in turns)

    def where(self, turn: Turn) -> str:
        """The path of a turn in what the caller passed."""
        at = self.places[turn.at] if self.places and turn.at is not None else turn.at
        return self.key if at is None else f"{self.key}[{at}]"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


class Dialect(Protocol):
    """The names a dialect module has."""

    KEY: str
    """The request key that holds the history."""

    def detect(self, element: Mapping[str, Any]) -> bool:
        """Whether `element` can only be of this dialect."""

    def survey(self, elements: Sequence[object], call: Call) -> set[Fact]:
        """One scan: every fact that could wake a pass. It builds nothing."""

    def decode(self, elements: Sequence[object], request: Mapping[str, Any], call: Call) -> History:
        """The history behind a wire list."""

    def encode(self, history: History, original: History) -> list[Any]:
        """The wire list of a history; turns that are still those of `original` as they came."""


def read(element: object, key: str, at: int) -> Mapping[str, Any]:
    """The keys of one element, or an error that says where and what it is."""
    found = fields(element)
    if found is None:
        raise DialectError(
            f"{key}[{at}] is {_a(element)} that cannot be read as a message: "
            "every element must be a dict, another mapping or an SDK object of JSON values"
        )
    return found


def _a(element: object) -> str:
    return "None" if element is None else f"a {type(element).__name__}"


def text_id(value: object) -> str | None:
    """An id as the passes compare it: a string, or None when it is missing or something else."""
    return value if isinstance(value, str) else None


def text_call_id(value: object) -> str | None:
    """The id of a call as the passes compare it: a number is read as its digits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return str(value)
    return text_id(value)


def holds_halves(value: object) -> bool:
    """Whether a text, or a part of a list, holds half of a character."""
    if isinstance(value, str):
        return not is_whole(value)
    if not isinstance(value, LIST):
        return False
    for part in value:
        keys = part if type(part) is dict else fields(part) or {}
        for text in (part, *map(keys.get, SAID)):
            if isinstance(text, str) and not is_whole(text):
                return True
    return False


def decode_content(
    content: object, texts: Mapping[str, str], media: Mapping[str, str]
) -> tuple[Text | Media | Opaque, ...]:
    """The items of a message's content: a bare string, or a list of parts by their type."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, LIST):
        return () if content is None else (Opaque(content),)
    items: list[Text | Media | Opaque] = []
    for part in content:
        keys = fields(part) or {}
        kind = keys.get("type")
        text = keys.get(texts.get(kind, "")) if isinstance(kind, str) else None
        if isinstance(text, str):
            items.append(Text(text, "refusal" if kind == "refusal" else "text", raw=part))
        elif isinstance(kind, str) and kind in media:
            items.append(Media(media[kind], part))
        else:
            items.append(Opaque(part))
    return tuple(items)


def decoded(turns: list[Turn], request: Mapping[str, Any], context: Context) -> History:
    """The history of these turns, with what the context knows of each."""
    sources, provenance = context.sources, context.provenance
    if sources or provenance != NOWHERE:
        turns = [
            replace(
                turn,
                source=sources[at] if sources else None,
                model=provenance.models.get(at),
                agent=provenance.agents.get(at, turn.agent),
                edited=at in provenance.edited,
            )
            for at, turn in enumerate(turns)
        ]
    all_turns = tuple(turns)
    return History(all_turns, request, origin=all_turns)


def mended(keys: Mapping[str, Any], turn: Turn) -> dict[str, Any]:
    """The keys of a wire message with the flaws written anew that edits took out."""
    new = dict(keys)
    for flaw in turn.mended:
        if flaw.value is GONE:
            new.pop(flaw.key, None)
        else:
            new[flaw.key] = flaw.value
    return new
