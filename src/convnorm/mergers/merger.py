"""What every merger gives: an answer, whole or as far as it got."""

import json
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from convnorm.options import Options
from convnorm.wire import LIST, fields

Keys = dict[str, Any]


class Note(Options):
    """Something that is not in the history, and why."""

    kind: Literal["turn", "call", "reasoning", "item", "choice", "update"]
    """What it was: a whole turn, a call, reasoning, another item, another choice, an update."""
    why: str
    at: int = 0
    """Where it would stand: in an answer among its items, in a snapshot among all of them."""
    raw: Any = None
    """What arrived of it."""


class Answer(Options):
    """What a model answered: the same for a stream, once it is over, and for a whole response."""

    items: tuple[Any, ...] = ()
    """Wire elements, as the next request sends them."""
    complete: bool = True
    """The answer said by itself that it was at its end."""
    incomplete: frozenset[int] = frozenset()
    """Which of the items were cut short."""
    notes: tuple[Note, ...] = ()
    """What arrived and is not kept as an item."""
    usage: Any = None
    """Tokens, as the provider counts them."""
    response_id: str | None = None
    store: bool | None = None
    """Whether the server says that it keeps the response; None: it says nothing."""


class Merger(Protocol):
    """Puts the updates of one wire format together; each file beside this one has one.

    A merger of your own goes before the others: `Recorder(store, mergers=(Mine, *MERGERS))`.
    """

    @staticmethod
    def takes(update: Any) -> bool:
        """Whether an answer that begins like this is in the merger's format."""

    def add(self, update: Any) -> None:
        """Take one update in, whatever it looks like: a whole response is a single update."""

    def answer(self, *, over: bool) -> Answer:
        """What came so far. `over`: the stream ended by itself."""


def get(thing: object, key: str) -> Any:
    """A field of an update, be it a mapping or the SDK's own object."""
    if isinstance(thing, Mapping):
        return thing.get(key)
    return getattr(thing, key, None)


def text(thing: object, key: str) -> str | None:
    """A field that is a text, and nothing if it is something else."""
    found = get(thing, key)
    return found if isinstance(found, str) else None


def index(thing: object, key: str) -> int:
    """A field that says which one is meant: without it nobody knows."""
    found = get(thing, key)
    if not isinstance(found, int) or found < 0:
        raise TypeError(f"{key} is {found!r}")
    return found


def plain(thing: object, without: frozenset[str] = frozenset()) -> Keys:
    """An object as it would be sent, in a dict of its own; what is no object has no keys.

    Keys without a value go: a stream does not have them. So do those that only a client adds.
    """
    found = fields(thing) or {}
    return {key: found[key] for key in found if found[key] is not None and key not in without}


def ordered(keys: Keys, first: tuple[str, ...]) -> Keys:
    """The same keys in one order, since a stream and a whole message do not come in the same."""
    names = [*(name for name in first if name in keys), *sorted(keys.keys() - set(first))]
    return {name: keys[name] for name in names}


class Pieces(list[str]):
    """A text that is still coming in: joining it each time would cost its whole length."""


def grow(keys: Keys, key: str, piece: object) -> None:
    """Add a piece to a text."""
    old = keys.get(key)
    if not isinstance(piece, str) or not isinstance(old, str | Pieces | None):
        raise TypeError(f"{key} goes on from {old!r} with {piece!r}")
    if isinstance(old, Pieces):
        old.append(piece)
    else:
        keys[key] = Pieces([old or "", piece])


def joined(value: Any) -> Any:
    """The same value with every text in one piece, in new objects."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: joined(each) for key, each in value.items()}
    if isinstance(value, LIST):
        return [joined(each) for each in value]
    return value


def whole_object(arguments: object) -> bool:
    """Whether arguments are whole: no beginning of a JSON object is one itself."""
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(read_json(arguments), dict)
    except (ValueError, RecursionError):
        return False


def read_json(given: str) -> Any:
    """What a text says in JSON, which knows no NaN: no request can hold one."""
    return json.loads(given, parse_constant=_no_json)


def _no_json(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
