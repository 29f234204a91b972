"""Chat Completions: chunks, or a completion, become the assistant's message."""

from collections.abc import Callable, Mapping
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
    ordered,
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
        if (usage := get(chunk, "usage")) is not None:
            self._usage = fields(usage)
        elif not isinstance(choices, LIST):
            if not isinstance(get(update, "type"), str):  # the helper's other events repeat chunks
                self._notes.append(Note(kind="update", why="no chunk", raw=fields(update)))
            return
        self._id = text(chunk, "id") or self._id
        for choice in choices or ():  # some servers leave them out beside the usage
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
    for key, given in delta.items():
        old, new = into.get(key), given
        if key == "content" and _is_listed(old) != _is_listed(new):
            into[key] = old = _parts(old)
            new = _parts(new)
        if new is None:
            into.setdefault(key, None)
        elif isinstance(new, str) and isinstance(old, str | Pieces):
            if key not in SAID_ONCE:
                grow(into, key, new)
            elif not old:
                into[key] = new
        elif isinstance(old, Pieces):
            raise TypeError(f"{key} began as a text and goes on as {new!r}")
        elif isinstance(new, LIST) and isinstance(old, list | None):
            into[key] = [] if old is None else old
            for entry in new:
                _add_entry(into[key], entry, ENTRIES.get(key, _alone))
        elif isinstance(new, Mapping) and isinstance(old, dict | None):
            into[key] = {} if old is None else old
            _merge(into[key], new)
        elif isinstance(new, SCALAR) and (old is None or isinstance(new, type(old))):
            into[key] = new
        else:
            raise TypeError(f"{key} began as {type(old).__name__} and goes on as {new!r}")


def _is_listed(content: Any) -> bool:
    return isinstance(content, LIST) and not isinstance(content, Pieces)


def _parts(content: Any) -> list[Any]:
    """Content as a list: some servers begin with a text and go on with parts, or come back."""
    said = joined(content)
    if isinstance(said, list):
        return said
    if not isinstance(said, str | None):
        raise TypeError(f"content goes on with {said!r}")
    return [{"type": "text", "text": said}] if said else []


def _add_entry(entries: list[Any], entry: Any, found: Callable[[list[Any], Keys], Any]) -> None:
    keys = fields(entry)
    if keys is None:
        entries.append(entry)
        return
    old = found(entries, dict(keys))
    if old is None:
        entries.append(old := {})
    _merge(old, keys)


def _alone(entries: list[Keys], new: Keys) -> None:  # noqa: ARG001  # whatever there is
    return None


def _call(entries: list[Keys], new: Keys) -> Keys | None:
    """By index; a new id begins a new call, since some servers count every call as the first."""
    for old in reversed(entries):
        other = new.get("id") and old.get("id") and new["id"] != old["id"]
        if not other and (new.get("index") is None or old.get("index") == new["index"]):
            return old
    return None


def _detail(entries: list[Keys], new: Keys) -> Keys | None:
    index, kind = new.get("index"), new.get("type")
    same = (old for old in entries if (old.get("index"), old.get("type")) == (index, kind))
    return None if index is None else next(same, None)


def _block(entries: list[Keys], new: Keys) -> Keys | None:
    """A signature ends a block of thinking."""
    last = entries[-1] if entries else {}
    goes_on = last.get("type") == new.get("type") == "thinking" and not last.get("signature")
    return last if goes_on else None


def _part(entries: list[Keys], new: Keys) -> Keys | None:
    last = entries[-1] if entries else {}
    return last if last.get("type") == new.get("type") in ("text", "thinking") else None


ENTRIES: Mapping[str, Callable[[list[Any], Keys], Any]] = {
    "tool_calls": _call,
    "reasoning_details": _detail,
    "thinking_blocks": _block,
    "content": _part,
    "thinking": _part,
}
"""By list: the entry that a new one goes on with; in other lists each stands alone."""


def _written(message: Mapping[str, Any]) -> Keys:
    """The message in one form, whether it was streamed or not; nothing if nothing came."""
    if not message:
        return {}
    kept = {key: value for key, value in plain(message, OF_THE_CLIENT).items() if value != []}
    kept = {key: value for key, value in kept.items() if value != "" or key == "content"}
    if isinstance(calls := kept.get("tool_calls"), LIST):
        kept["tool_calls"] = [_written_call(call) for call in sorted(calls, key=_place)]
    speaks = any(key in kept for key in SPEAKING)
    content = kept.get("content") or (None if speaks else "")
    return ordered({**kept, "role": "assistant", "content": content}, FIRST)


def _place(call: object) -> int:
    """Calls stand as they are counted, however they come; those without a number as they came."""
    place = get(call, "index")
    return place if isinstance(place, int) else 0


def _written_call(call: object) -> Keys:
    keys = plain(call, OF_THE_CLIENT | {"index"})
    for kind in ("function", "custom"):
        if kind in keys:
            keys[kind] = ordered(plain(keys[kind], OF_THE_CLIENT), BODY_FIRST)
            keys.setdefault("type", kind)
    return ordered(keys, CALL_FIRST)


def _take_halves(message: Keys) -> list[Note]:
    """Take out of a message that was cut what may not be sent: half calls, unproved reasoning."""
    notes: list[Note] = []
    calls = _listed(message.pop("tool_calls", []))
    if whole := [call for call in calls if _whole(call)]:
        message["tool_calls"] = whole
    notes += [
        Note(kind="call", why="only a part of the call arrived", raw=call)
        for call in calls
        if not _whole(call)
    ]
    if (old := message.get("function_call")) and not whole_object(get(old, "arguments")):
        notes.append(Note(kind="call", why="only a part of the call arrived", raw=old))
        del message["function_call"]
    if (audio := message.get("audio")) and get(audio, "expires_at") is None:
        # The id of a sound that is not whole names nothing; what was said is a text.
        del message["audio"]
        message["content"] = message["content"] or text(audio, "transcript") or ""
        notes.append(Note(kind="item", why="only a part of the audio arrived", raw=audio))
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


def _whole(call: Any) -> bool:
    """Whether nothing of a call can be missing; one without arguments may still get some."""
    body = get(call, "function")
    named = bool(get(call, "id") and get(body, "name"))
    return named and whole_object(get(body, "arguments"))


def _says_something(message: Keys) -> bool:
    return any(message.get(key) for key in ("content", *SPEAKING))
