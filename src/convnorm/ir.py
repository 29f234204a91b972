"""The canonical history: turns, each with its items, and the request's other fields.

A turn is one element of the wire list, or the part of it that has one role: a tool result is
always a turn of its own. Every value is frozen; only `edits.apply` builds a changed history.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from convnorm.targets import Fault
from convnorm.wire import LIST, media_kind
from convnorm.wire import fields as keys_of

INSTRUCTING = ("system", "developer")
"""Roles of those who say how the conversation is to be led."""


@dataclass(frozen=True, slots=True)
class Text:
    """Something said, by the role of its turn."""

    text: str
    kind: Literal["text", "refusal"] = "text"
    slot: str = "content"
    """The field of the wire message that holds the item; only the dialect reads it."""
    raw: object = None
    """The wire part the item was read from; None when it was a bare string or is new."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a file; convnorm never looks inside."""

    kind: str
    raw: object
    slot: str = "content"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought, with the proof that lets its provider take it back."""

    text: str
    proof: str | None = None
    leads: bool = False
    """It is an element of its own, and one group with the element that follows."""
    slot: str = "content"
    raw: object = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool."""

    call_id: str | None
    name: str | None
    arguments: object
    kind: str = "function"
    answered_by: tuple[str, ...] = ("function",)
    """Kinds of result that answer it, the usual one first; none if the server runs it itself."""
    closable: bool = True
    """A text can stand for its missing result."""
    slot: str = "content"
    raw: object = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call_id: str | None
    output: object
    kind: str = "function"
    paired: bool = True
    """The API wants its call before it."""
    answers: bool = True
    """It is what a tool of the client returned; an approval, for example, is not."""
    synthetic: bool = False
    """convnorm invented it, in this run or an earlier one."""
    closes: ToolCall | None = None
    """For an invented result: the call it closes, whose marks the dialect may have to repeat."""
    slot: str = "content"
    raw: object = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something the dialect does not know: it passes whole."""

    raw: object
    slot: str = "content"
    refers: bool = False
    """It only points at something the server holds, by its turn's id."""


Item = Text | Media | Reasoning | ToolCall | ToolResult | Opaque


class _Gone(Enum):
    GONE = "gone"


GONE: Final = _Gone.GONE
"""In a flaw's `value`: the key is left out."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A key of a wire message that the target refuses, and what it takes in its place.

    Only the dialect knows its wire format, so it finds flaws while it decodes; a pass decides
    whether they are mended, and says so in an edit.
    """

    fault: Fault
    key: str
    value: object
    why: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the history."""

    role: str
    items: tuple[Item, ...] = ()
    raw: object = None
    """The caller's own element; None when convnorm made the turn."""
    at: int | None = None
    """Its index in the caller's list; for a new turn, of the turn it stands for."""
    id: str | None = None
    needs_id: bool = False
    """The wire format refuses this message without its id."""
    empties: frozenset[str] = frozenset()
    """Wire fields that are there and hold nothing: `content`, `tool_calls`, `output`, …"""
    source: str | None = None
    """Which of several replayed histories it came from."""
    model: str | None = None
    agent: str | None = None
    """Which of several agents made it."""
    edited: bool = False
    """Changed since the model made it."""
    has_more: bool = False
    """It holds keys that say something and that the dialect does not know."""
    name: str | None = None
    """The speaker's name, where the wire format has one."""
    goes_on: bool = False
    """The caller began a reply, and the model is to go on with it."""
    flaws: tuple[Flaw, ...] = ()
    """What its wire form has that the target refuses."""
    mended: tuple[Flaw, ...] = ()
    """Flaws that an edit took out: the dialect writes these keys anew."""


class Place(NamedTuple):
    """Where an item stands: its turn, and its index in that turn."""

    turn: int
    item: int


@dataclass(frozen=True, slots=True)
class History:
    """A whole history: what the passes read and `apply` builds."""

    turns: tuple[Turn, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The request's other keys; empty when only a list was given."""
    origin: tuple[Turn, ...] = ()
    """The turns as they were decoded, which `Turn.at` counts: what stood where before any edit."""

    @property
    def items(self) -> Iterator[tuple[Place, Item]]:
        """Every item in order, whatever turn it belongs to."""
        for t, turn in enumerate(self.turns):
            for i, item in enumerate(turn.items):
                yield Place(t, i), item


def same_turn(one: Turn, other: Turn) -> bool:
    """Whether two turns can be the same message: equal content, and nothing speaks against it."""
    if one is other:
        return True
    return (
        one.role == other.role
        and len(one.items) == len(other.items)
        and not (one.edited or other.edited)
        and (one.id is None or other.id is None or one.id == other.id)
        and (one.model is None or other.model is None or one.model == other.model)
        and all(map(same_item, one.items, other.items))
    )


def same_item(one: Item, other: Item) -> bool:
    """Whether two items say the same, however they were written."""
    if type(one) is not type(other):
        return False
    match one, other:
        case Text(), Text():
            return one.text == other.text and one.kind == other.kind
        case Reasoning(), Reasoning():
            return one.text == other.text and one.proof == other.proof
        case ToolCall(answered_by=()), ToolCall():
            # The server ran it: its results are part of the item.
            return _same_call(one, other) and same(keys_of(one.raw), keys_of(other.raw))
        case ToolCall(), ToolCall():
            return _same_call(one, other)
        case ToolResult(), ToolResult():
            return (
                one.call_id == other.call_id
                and one.kind == other.kind
                and same(one.output, other.output)
            )
    return same(one.raw, other.raw)


def _same_call(one: ToolCall, other: ToolCall) -> bool:
    return (
        one.call_id == other.call_id
        and one.kind == other.kind
        and one.name == other.name
        and same(one.arguments, other.arguments)
    )


def media_of(output: object) -> Iterator[Media]:
    """The parts of an output that are no text."""
    for part in output if isinstance(output, LIST) else ():
        if (kind := media_kind(part)) is not None:
            yield Media(kind, part)


def same(one: object, other: object) -> bool:
    """Equality of JSON-like data of any depth, cycles included, telling 1 from True."""
    todo = [(one, other)]
    seen: dict[tuple[int, int], tuple[object, object]] = {}  # holds them, so that ids stay theirs
    while todo:
        a, b = todo.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if a.keys() != b.keys():
                return False
            seen[id(a), id(b)] = a, b
            todo.extend((a[key], b[key]) for key in a)
        elif isinstance(a, str | bytes) or isinstance(b, str | bytes):
            if a != b:
                return False
        elif isinstance(a, Sequence) and isinstance(b, Sequence):
            if len(a) != len(b):
                return False
            seen[id(a), id(b)] = a, b
            todo.extend(zip(a, b, strict=True))
        elif type(a) is not type(b) or a != b:
            return False
    return True
