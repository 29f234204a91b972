"""Responses: events, or a response, become its output items."""

from collections.abc import Mapping
from typing import Any

from convnorm.mergers.merger import (
    Answer,
    Keys,
    Note,
    get,
    grow,
    index,
    joined,
    plain,
    text,
    whole_object,
)
from convnorm.wire import LIST, fields

PIECES: Mapping[str, tuple[str, str | None, str | None, str | None]] = {
    "response.output_text.delta": ("text", "content", "content_index", "output_text"),
    "response.refusal.delta": ("refusal", "content", "content_index", "refusal"),
    "response.reasoning_summary_text.delta": ("text", "summary", "summary_index", "summary_text"),
    "response.reasoning_text.delta": ("text", "content", "content_index", "reasoning_text"),
    "response.function_call_arguments.delta": ("arguments", None, None, None),
    "response.mcp_call_arguments.delta": ("arguments", None, None, None),
    "response.custom_tool_call_input.delta": ("input", None, None, None),
    "response.code_interpreter_call_code.delta": ("code", None, None, None),
}
"""By event: the text's key, the list of parts it is in, the event's index there, a part's type."""
WHOLES = {f"{kind.removesuffix('.delta')}.done": where for kind, where in PIECES.items()}
"""The same for the events that say a text once more, whole: some servers send only these."""
PARTS = {
    "response.content_part.added": ("content", "content_index"),
    "response.content_part.done": ("content", "content_index"),
    "response.reasoning_summary_part.added": ("summary", "summary_index"),
    "response.reasoning_summary_part.done": ("summary", "summary_index"),
}
WHOLE_ARGUMENTS = frozenset(
    {"response.function_call_arguments.done", "response.custom_tool_call_input.done"}
)
ENDS = {"response.completed": True, "response.incomplete": True, "response.failed": False}
"""By last event: whether the answer is one that the model itself brought to its end."""
FAILED = ("failed", "cancelled", "in_progress", "queued")
"""A response with this status is not at its end, streamed or not."""
OF_THE_CLIENT = frozenset({"parsed", "parsed_arguments"})
"""What the client's helpers add and the API does not take."""
NEVER_LEFT_OUT = {
    "code_interpreter_call": ("code", "outputs"),
    "image_generation_call": ("result",),
}
"""By type: keys that an item must have when it is sent, be there a value or not."""
CALLS = ("function_call", "custom_tool_call")
NAMED_BY_THE_SERVER = ("message", *CALLS)
"""Items that say all there is to say without their id."""


class OpenaiResponses:
    """The output items, each by its index."""

    def __init__(self) -> None:
        self._items: dict[int, Keys] = {}
        self._done: set[int] = set()
        self._finished = False
        self._usage: Any = None
        self._id: str | None = None
        self._store: bool | None = None
        self._notes: list[Note] = []

    @staticmethod
    def takes(update: Any) -> bool:
        """An event of a response, or a whole one."""
        kind = get(update, "type")
        if isinstance(kind, str):
            return kind.startswith("response.")
        return get(update, "object") == "response" and isinstance(get(update, "output"), LIST)

    def add(self, update: Any) -> None:
        """One event; those that only tell of progress say nothing that is kept."""
        kind = text(update, "type")
        if kind is None:
            self._take_response(update, ended=get(update, "status") not in FAILED)
        elif kind in ENDS:
            self._take_response(get(update, "response"), ended=ENDS[kind])
        elif kind in ("response.created", "response.queued", "response.in_progress"):
            self._id = text(get(update, "response"), "id")
        elif kind == "response.output_item.added":
            self._items[index(update, "output_index")] = _written(get(update, "item"))
        elif kind == "response.output_item.done":
            at = index(update, "output_index")
            self._items[at] = _written(get(update, "item"))
            self._done.add(at)
        elif kind in PARTS:
            self._part(update, *PARTS[kind]).update(plain(get(update, "part")))
        elif kind in PIECES:
            key, *where = PIECES[kind]
            grow(self._part(update, *where), key, get(update, "delta"))
        elif kind in WHOLES:
            key, *where = WHOLES[kind]
            if (whole := text(update, key)) is not None:
                self._part(update, *where)[key] = whole
            if kind in WHOLE_ARGUMENTS:
                self._done.add(index(update, "output_index"))
        elif kind == "response.output_text.annotation.added":
            part = self._part(update, "content", "content_index", "output_text")
            part["annotations"] = [*part.get("annotations", ()), plain(get(update, "annotation"))]
        elif kind == "error":
            self._notes.append(Note(kind="update", why="an error", raw=fields(update)))

    def answer(self, *, over: bool) -> Answer:  # noqa: ARG002  # events say themselves when it is over
        """The output items as people append them."""
        items: list[Keys] = joined([self._items[at] for at in sorted(self._items)])
        notes, cut = self._notes, frozenset[int]()
        if not self._finished:
            items, halves, cut = self._kept(items)
            notes = notes + halves
        return Answer(
            items=tuple(items),
            complete=self._finished,
            incomplete=cut,
            notes=tuple(notes),
            usage=self._usage,
            response_id=self._id,
            store=self._store,
        )

    def _part(
        self, update: Any, key: str | None, place: str | None, kind: str | None = None
    ) -> Keys:
        """The part of an item that an update is about; without a list of parts the item."""
        item = self._items[index(update, "output_index")]
        if key is None or place is None:
            return item
        parts: list[Keys] = item.setdefault(key, [])
        if (at := index(update, place)) == len(parts):
            parts.append({} if kind is None else {"type": kind})
        return parts[at]  # one far behind the end is damage

    def _take_response(self, response: Any, *, ended: bool) -> None:
        """A whole response has the last word, unless it leaves out what was streamed."""
        self._id = text(response, "id")
        self._usage = fields(get(response, "usage"))
        self._store = store if isinstance(store := get(response, "store"), bool) else None
        self._finished = ended
        output = get(response, "output")
        if isinstance(output, LIST) and output:
            self._items = {at: _written(item) for at, item in enumerate(output)}
            if ended:
                self._done = set(self._items)
        if (error := get(response, "error")) is not None:
            raw = fields(error) or error
            self._notes.append(Note(kind="update", why="the response failed", raw=raw))

    def _kept(self, items: list[Keys]) -> tuple[list[Keys], list[Note], frozenset[int]]:
        """Of a response that was cut: what may be sent again, and notes of the rest.

        The server keeps no response that it did not finish. So its ids name nothing, and reasoning
        is only taken back if it is sealed, with what it led to.
        """
        places = sorted(self._items)
        why: list[str | None] = []
        for at, item in zip(reversed(places), reversed(items), strict=True):
            led = bool(why) and why[-1] is None  # what follows is kept
            why.append(_why_not(item, done=at in self._done, led=led))
        kept: list[Keys] = []
        notes: list[Note] = []
        cut: set[int] = set()
        for at, item, reason in zip(places, items, reversed(why), strict=True):
            if reason is not None:
                notes.append(_note(item, reason, len(kept)))
                continue
            if at not in self._done and item.get("type") == "message":
                cut.add(len(kept))
            kept.append(_unnamed(item, done=at in self._done))
        return kept, notes, frozenset(cut)


def _written(item: Any) -> Keys:
    given, keys = fields(item) or {}, plain(item, OF_THE_CLIENT)
    wanted = NEVER_LEFT_OUT.get(str(given.get("type")), ())
    keys |= {name: None for name in wanted if name in given and name not in keys}
    for name in ("content", "summary"):  # in lists of their own: they grow
        if isinstance(parts := keys.get(name), LIST):
            keys[name] = [plain(part, OF_THE_CLIENT) for part in parts]
    return keys


def _why_not(item: Mapping[str, Any], *, done: bool, led: bool) -> str | None:
    """Why an item of a response that was cut is not sent again; None if it is."""
    kind = item.get("type")
    if kind == "message":
        parts = item.get("content") or ()
        said = any(part.get("text") or part.get("refusal") for part in parts)
        return None if said else "nothing was said yet"
    if kind == "reasoning":
        if not done or not item.get("encrypted_content"):
            return "its proof did not arrive"
        return None if led else "nothing came of it"
    if kind == "computer_call":
        return "nobody can say what it would have shown"
    if done or (kind == "function_call" and whole_object(item.get("arguments"))):
        return None
    return f"only a part of the {kind} arrived"


def _unnamed(item: Keys, *, done: bool) -> Keys:
    if item.get("type") not in NAMED_BY_THE_SERVER:
        return item
    keys = {key: value for key, value in item.items() if key != "id"}
    if item["type"] in CALLS:
        return keys | {"status": "completed"}  # its arguments are whole
    if done:
        return keys
    said = [part for part in item["content"] if part.get("text") or part.get("refusal")]
    return keys | {"status": "incomplete", "content": said}


def _note(item: Keys, why: str, at: int) -> Note:
    kind = item.get("type")
    if kind == "reasoning":
        return Note(kind="reasoning", why=why, at=at, raw=item)
    called = kind in CALLS or kind == "computer_call"
    return Note(kind="call" if called else "item", why=why, at=at, raw=item)
