"""Chat Completions: chunks, or a completion, become the assistant's message."""

from collections.abc import Callable, Mapping
from itertools import compress
from operator import not_
from typing import Any

from convnorm.mergers.merger import (
    Answer,
    Keys,
    Note,
    Pieces,
    get,
    grow,
    index,
    joined,
    plain,
    text,
    whole_object,
)
from convnorm.wire import LIST, fields

SCALAR = (str, int, float)
SAID_ONCE = frozenset({"role", "id", "type", "index", "name", "format", "status"})
"""Texts that some servers repeat in every chunk; all others come in pieces."""
OF_THE_CLIENT = frozenset({"parsed", "parsed_arguments"})
"""What the client's helpers add and no server takes."""
FIRST = ("role", "content", "refusal", "reasoning_content", "tool_calls")
"""How a message is written; other keys follow by name, since no two servers order them alike."""
CALL_FIRST = ("id", "type", "function", "custom")
BODY_FIRST = ("name", "arguments", "input")
SPEAKING = ("tool_calls", "function_call", "refusal", "audio")
"""With one of these a message needs no content."""
PROOFS = ("signature", "data")
"""What makes a piece of reasoning one that its provider takes back."""


class OpenaiChat:
    """The message of the first choice."""

    def __init__(self) -> None:
        self._message: Keys = {}
        self._finished = False
        self._usage: Any = None
        self._id: str | None = None
        self._others: set[int] = set()
        self._notes: list[Note] = []

    @staticmethod
    def takes(update: Any) -> bool:
        """Chunks and completions have choices; the client's helper wraps its chunks."""
        return isinstance(get(_chunk(update), "choices"), LIST)

    def add(self, update: Any) -> None:
        """One chunk, one whole completion, or one event of the client's helper."""
        chunk = _chunk(update)
        choices = get(chunk, "choices")
        if not isinstance(choices, LIST):
            if not isinstance(get(update, "type"), str):  # the helper's other events repeat chunks
                self._notes.append(Note(kind="update", why="no chunk", raw=fields(update)))
            return
        self._id = text(chunk, "id") or self._id
        if (usage := get(chunk, "usage")) is not None:
            self._usage = fields(usage)
        for choice in choices:
            if get(choice, "index"):
                self._others.add(index(choice, "index"))
                continue
            if (message := fields(get(choice, "message"))) is not None:
                self._message = dict(message)
            elif (delta := fields(get(choice, "delta"))) is not None:
                _merge(self._message, delta)
            if get(choice, "finish_reason") is not None:
                self._finished = True

    def answer(self, *, over: bool) -> Answer:  # noqa: ARG002  # chunks say themselves when it is over
        """The message as people append it."""
        message = _written(joined(self._message))
        notes = self._notes + [
            Note(kind="choice", why=f"only the first choice is kept, not choice {other}")
            for other in sorted(self._others)
        ]
        if not self._finished:
            notes += _take_halves(message)
        kept = bool(message) and (self._finished or _says_something(message))
        if not kept and (thought := message.get("reasoning_content")):
            notes.append(
                Note(kind="reasoning", why="nothing came of it", raw={"reasoning_content": thought})
            )
        return Answer(
            items=(message,) if kept else (),
            complete=self._finished,
            incomplete=frozenset({0} if kept and not self._finished else ()),
            notes=tuple(notes),
            usage=self._usage,
            response_id=self._id,
        )


def _chunk(update: Any) -> Any:
    return update if get(update, "type") != "chunk" else get(update, "chunk")


def _merge(into: Keys, delta: Mapping[str, Any]) -> None:
    """Lay one delta over what came before."""
    for key, new in delta.items():
        old = into.get(key)
        if new is None:
            into.setdefault(key, None)
        elif isinstance(new, str) and isinstance(old, str | Pieces):
            if key not in SAID_ONCE:
                grow(into, key, new)
        elif isinstance(old, Pieces):
            raise TypeError(f"{key} began as a text and goes on as {new!r}")
        elif isinstance(new, LIST) and isinstance(old, list | None):
            into[key] = [] if old is None else old
            for entry in new:
                _add_entry(into[key], entry, ENTRIES.get(key))
        elif isinstance(new, Mapping) and isinstance(old, dict | None):
            into[key] = {} if old is None else old
            _merge(into[key], new)
        elif isinstance(new, SCALAR) and (old is None or isinstance(new, type(old))):
            into[key] = new
        else:
            raise TypeError(f"{key} began as {type(old).__name__} and goes on as {new!r}")


def _add_entry(
    entries: list[Any], entry: Any, belongs: Callable[[Keys, Keys], bool] | None
) -> None:
    keys = fields(entry)
    if keys is None or belongs is None:
        entries.append(entry if keys is None else dict(keys))
        return
    found = next((old for old in reversed(entries) if belongs(old, dict(keys))), None)
    if found is None:
        entries.append(found := {})
    _merge(found, keys)


def _same_call(old: Keys, new: Keys) -> bool:
    """By index; a new id begins a new call, since some servers count every call as the first."""
    if new.get("id") and old.get("id") and new["id"] != old["id"]:
        return False
    return new.get("index") is None or old.get("index") == new["index"]


def _same_detail(old: Keys, new: Keys) -> bool:
    return new.get("index") is not None and all(old.get(k) == new.get(k) for k in ("index", "type"))


def _same_block(old: Keys, new: Keys) -> bool:
    return old.get("type") == new.get("type") == "thinking" and not old.get("signature")


ENTRIES: Mapping[str, Callable[[Keys, Keys], bool]] = {
    "tool_calls": _same_call,
    "reasoning_details": _same_detail,
    "thinking_blocks": _same_block,
}
"""By list: whether a new entry belongs to one that is there; in other lists each stands alone."""


def _written(message: Mapping[str, Any]) -> Keys:
    """The message in one form, whether it was streamed or not; nothing if nothing came."""
    if not message:
        return {}
    kept = {key: value for key, value in plain(message, OF_THE_CLIENT).items() if value != []}
    kept = {key: value for key, value in kept.items() if value != "" or key == "content"}
    if isinstance(calls := kept.get("tool_calls"), LIST):
        kept["tool_calls"] = [_written_call(call) for call in calls]
    speaks = any(key in kept for key in SPEAKING)
    content = kept.get("content") or (None if speaks else "")
    return _ordered({**kept, "role": "assistant", "content": content}, FIRST)


def _written_call(call: object) -> Keys:
    keys = plain(call, OF_THE_CLIENT | {"index"})
    for kind in ("function", "custom"):
        if kind in keys:
            keys[kind] = _ordered(plain(keys[kind], OF_THE_CLIENT), BODY_FIRST)
            keys.setdefault("type", kind)
    return _ordered(keys, CALL_FIRST)


def _ordered(keys: Keys, first: tuple[str, ...]) -> Keys:
    names = [*(name for name in first if name in keys), *sorted(keys.keys() - set(first))]
    return {name: keys[name] for name in names}


def _take_halves(message: Keys) -> list[Note]:
    """Take out of a message that was cut what may not be sent: half calls, unproved reasoning."""
    notes: list[Note] = []
    calls = _listed(message.pop("tool_calls", []))
    whole = [_whole(call, last=at == len(calls) - 1) for at, call in enumerate(calls)]
    if any(whole):
        message["tool_calls"] = list(compress(calls, whole))
    notes += [
        Note(kind="call", why="only a part of the call arrived", raw=call)
        for call in compress(calls, map(not_, whole))
    ]
    if (old := message.get("function_call")) and not whole_object(get(old, "arguments")):
        notes.append(Note(kind="call", why="only a part of the call arrived", raw=old))
        del message["function_call"]
    for key in ("reasoning_details", "thinking_blocks"):
        listed = _listed(message.pop(key, []))
        proved = [one for one in listed if any(get(one, proof) for proof in PROOFS)]
        if proved:
            message[key] = proved
        notes += [
            Note(kind="reasoning", why="its proof did not arrive", raw=one)
            for one in listed
            if one not in proved
        ]
    return notes


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _whole(call: Any, *, last: bool) -> bool:
    body = get(call, "function")
    if not get(call, "id") or not get(body, "name"):
        return False
    arguments = get(body, "arguments")
    return whole_object(arguments) or (not arguments and not last)


def _says_something(message: Keys) -> bool:
    return any(message.get(key) for key in ("content", *SPEAKING))
