"""One walk over a request, shared by all rules: what is odd, and which result answers which call.

The walk looks at keys, types and ids and never into texts. It sorts the few places a rule could
object to into short lists, so that a rule costs nothing on what is sound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from convnorm.context import Context
from convnorm.targets import Target
from convnorm.wire import LIST


@dataclass(slots=True, eq=False)
class Call:
    """A tool call that the API wants answered."""

    position: int
    index: int
    """Its place in the `tool_calls` of its message; -1 where the call is an item of its own."""
    id: str | None
    kind: str
    raw: Mapping[str, Any]
    batch: int
    answered: bool = False

    @property
    def where(self) -> str:
        """The path to the call behind its message."""
        return "" if self.index < 0 else f".tool_calls[{self.index}]"


@dataclass(slots=True, eq=False)
class Result:
    """A tool result that the API wants a call for."""

    position: int
    id: str | None
    raw: Mapping[str, Any]
    kinds: tuple[str, ...]
    """The kinds of call it can answer."""
    batch: int
    """The batch of calls it stands behind; -1 when none is open for an answer here."""
    call: Call | None = None


class Pairs:
    """All calls and results, matched by occurrence while the walk goes on.

    A result answers the nearest call before it that has its id, is of its kind and is still open.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.held: list[Call] = []
        self.results: list[Result] = []
        self.batch = -1
        self._behind = -1
        self._open: dict[tuple[str, str], list[Call]] = {}
        self._nameless: dict[int, list[Result]] = {}

    def new_batch(self) -> None:
        """The calls to come were made together."""
        self.batch += 1
        self._behind = self.batch

    def add_call(
        self, position: int, index: int, call_id: object, kind: str, raw: Mapping[str, Any]
    ) -> None:
        """Open a call of the current batch."""
        call = Call(position, index, joined_by(call_id), kind, raw, self.batch)
        self.calls.append(call)
        if call.id is not None:
            self._open.setdefault((kind, call.id), []).append(call)

    def hold(self, calls: list[Call]) -> None:
        """Calls that the server puts before the history, and that still wait for an answer."""
        self.held = calls
        for call in calls:
            if call.id is not None:
                self._open.setdefault((call.kind, call.id), []).append(call)

    def add_result(
        self, position: int, call_id: object, kinds: tuple[str, ...], raw: Mapping[str, Any]
    ) -> None:
        """Give a result to the call it answers."""
        result = Result(position, joined_by(call_id), raw, kinds, self._behind)
        self.results.append(result)
        if result.id is None:
            self._nameless.setdefault(self.batch, []).append(result)
            return
        for kind in kinds:
            if waiting := self._open.get((kind, result.id)):
                result.call = waiting.pop()
                result.call.answered = True
                return

    def close(self) -> None:
        """What comes from here on can answer no call made before."""
        if self._behind >= 0:
            self._behind = -1
            self._open = {}

    def adopt(self) -> None:
        """A result without an id answers the one open call of its batch, if there is no doubt."""
        if not self._nameless:
            return
        waiting: dict[int, list[Call]] = {}
        for call in self.calls:
            if not call.answered:
                waiting.setdefault(call.batch, []).append(call)
        for batch, nameless in self._nameless.items():
            calls = waiting.get(batch, [])
            if len(nameless) != 1 or len(calls) != 1:
                continue
            [result], [call] = nameless, calls
            if result.batch < 0 or call.kind not in result.kinds or call.id in self.results_by_id:
                continue
            result.call = call
            call.answered = True

    @cached_property
    def calls_by_id(self) -> dict[str, list[Call]]:
        """The calls that have an id, in order."""
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.id is not None:
                found.setdefault(call.id, []).append(call)
        return found

    @cached_property
    def astray(self) -> dict[str, int]:
        """By id: the position of the first result that answers no call."""
        found: dict[str, int] = {}
        for result in self.results:
            if result.id is not None and result.call is None:
                found.setdefault(result.id, result.position)
        return found

    @cached_property
    def results_by_id(self) -> dict[str, list[Result]]:
        """The results that have an id, in order."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            if result.id is not None:
                found.setdefault(result.id, []).append(result)
        return found


@dataclass(slots=True, eq=False)
class Scan:
    """What one walk over a request found; the lists hold positions."""

    key: str
    """The request key that holds the history."""
    target: Target
    context: Context
    fields: Mapping[str, Any]
    """The request's other keys; empty when only a list was given."""
    views: list[Mapping[str, Any] | None] = field(default_factory=list)
    """The keys of every element; None for one that is no object."""
    no_list: bool = False
    """The history is no list at all; then there is nothing else to see."""
    no_objects: list[int] = field(default_factory=list)
    odd_roles: list[int] = field(default_factory=list)
    """Messages whose role the API does not have."""
    no_text: list[int] = field(default_factory=list)
    """Messages whose content is no string (chat), or is missing (Responses)."""
    no_output: list[int] = field(default_factory=list)
    """Function and custom outputs whose output is missing (Responses)."""
    with_calls: list[int] = field(default_factory=list)
    """Messages that have `tool_calls` (chat)."""
    reasoning: list[int] = field(default_factory=list)
    """Reasoning items (Responses)."""
    refers_at: int | None = None
    """Where the first item stands that only the server knows: it may be a call (Responses)."""
    named: list[int] = field(default_factory=list)
    """Messages that have a name (chat)."""
    functions: list[int] = field(default_factory=list)
    """Messages of the old role `function` (chat)."""
    instructing: list[int] = field(default_factory=list)
    """System and developer messages (chat)."""
    odd_parts: list[tuple[int, int, Mapping[str, Any] | None]] = field(default_factory=list)
    """Content parts that the role does not have: message, index and keys (chat)."""
    odd_names: list[tuple[int, str, object]] = field(default_factory=list)
    """Functions whose name does not fit the pattern: message, path and name (chat)."""
    odd_arguments: list[tuple[int, str, object]] = field(default_factory=list)
    """Functions whose arguments are no string: message, path and arguments (chat)."""
    no_body: list[tuple[int, str, object]] = field(default_factory=list)
    """Tool calls without a body of their own: message, path and name (chat)."""
    no_kind: list[tuple[int, str, object]] = field(default_factory=list)
    """Tool calls whose type is not that of their body: message, path and type (chat)."""
    malformed: list[tuple[int, str, str, bool]] = field(default_factory=list)
    """Values that do not fit the schema: message or item, path, what is wrong, and whether the API
    may still take it."""
    pairs: Pairs = field(default_factory=Pairs)

    def note(self, at: int, flaws: Iterable[tuple[str, str, bool]]) -> None:
        """Keep what does not fit the schema: path, what is wrong, and whether that is unsure."""
        self.malformed += [(at, *flaw) for flaw in flaws]

    @property
    def linked(self) -> bool:
        """The request continues something that the server holds."""
        return (
            self.context.previous_response_id is not None or self.context.conversation is not None
        )


def joined_by(call_id: object) -> str | None:
    """The id by which a call and its result belong together; a number does that, too."""
    return str(call_id) if _is_number(call_id) else usable(call_id)


def repair_of_id(given: object) -> str:
    """What repairs the id of a call that is no text: a number is written as its digits."""
    return "legalise_ids" if _is_number(given) else "repair_tool_pairs"


def _is_number(call_id: object) -> bool:
    return isinstance(call_id, int) and not isinstance(call_id, bool) and abs(call_id) < 2**63


def usable(value: object) -> str | None:
    """An id that can name something: a string with something in it."""
    return value if isinstance(value, str) and value else None


def key_name(key: object) -> str:
    """A key as a path names it, whatever it is."""
    return key[:64] if isinstance(key, str) else type(key).__name__


def shown(value: object) -> str:
    """A value as a message may quote it: short, and without looking inside."""
    if isinstance(value, str):
        return repr(value if len(value) <= 64 else f"{value[:60]}…")
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, LIST):
        return "a list"
    return "null" if value is None else f"a value of type {type(value).__name__}"
