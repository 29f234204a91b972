"""Anthropic Messages: events, or a message, become the assistant's message."""

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
    ordered,
    plain,
    read_json,
    text,
    whole_object,
)
from convnorm.wire import LIST, fields

EVENTS = frozenset(
    {
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "error",
    }
)
PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "compaction_delta": ("content", "content"),
}
"""By kind of delta: its key with a piece of text, and the block's key that it goes on with."""
OF_THE_CLIENT = frozenset({"parsed_output"})
"""What the client's helpers add and the API does not take."""
FIRST = ("type",)
"""How a block is written; other keys follow by name."""
THINKING = ("thinking", "redacted_thinking")
PROOFS = ("signature", "data")
INPUT = "the input as text"
"""Where a block keeps its input as long as it comes in."""
RUNS_ON_THE_SERVER = ("server_tool_use", "mcp_tool_use")


class AnthropicMessages:
    """The message, block by block."""

    def __init__(self) -> None:
        self._blocks: dict[int, Keys] = {}
        self._done: set[int] = set()
        self._finished = False
        self._usage: Keys = {}
        self._id: str | None = None
        self._notes: list[Note] = []

    @staticmethod
    def takes(update: Any) -> bool:
        """An event, or a whole message, which unlike an item tells its usage."""
        kind = text(update, "type")
        return kind in EVENTS or (kind == "message" and get(update, "usage") is not None)

    def add(self, update: Any) -> None:
        """One event; those that only the client's helper makes say nothing new."""
        match get(update, "type"):
            case "message_start":
                self._start(get(update, "message"))
            case "message":
                self._start(update)
                self._done.update(self._blocks)
            case "content_block_start":
                block = plain(get(update, "content_block"), OF_THE_CLIENT)
                self._blocks[index(update, "index")] = block
            case "content_block_delta":
                self._delta(index(update, "index"), get(update, "delta"))
            case "content_block_stop":
                self._done.add(index(update, "index"))
            case "message_delta":
                self._usage |= plain(get(update, "usage"))
                self._finished = get(get(update, "delta"), "stop_reason") is not None
            case "error":
                self._notes.append(Note(kind="update", why="an error", raw=fields(update)))

    def answer(self, *, over: bool) -> Answer:  # noqa: ARG002  # events say themselves when it is over
        """The message as people append it: its role and its blocks."""
        blocks: list[Keys] = joined([self._blocks[at] for at in sorted(self._blocks)])
        notes, cut = list(self._notes), False
        if not self._finished:
            blocks, halves = self._kept(blocks)
            notes += halves
            cut = bool(blocks)
        blocks = [ordered(_with_input(block), FIRST) for block in blocks]
        items = ({"role": "assistant", "content": blocks},) if blocks else ()
        return Answer(
            items=items,
            complete=self._finished,
            incomplete=frozenset({0} if cut else ()),
            notes=tuple(notes),
            usage=self._usage or None,
            response_id=self._id,
        )

    def _start(self, message: Any) -> None:
        self._id = text(message, "id")
        self._usage = plain(get(message, "usage"))
        content = get(message, "content")
        for at, block in enumerate(content if isinstance(content, LIST) else ()):
            self._blocks[at] = plain(block, OF_THE_CLIENT)
        self._finished = get(message, "stop_reason") is not None

    def _delta(self, at: int, delta: Any) -> None:
        kind, block = text(delta, "type"), self._blocks[at]
        if kind in PIECES:
            ours, theirs = PIECES[kind]
            grow(block, theirs, get(delta, ours) or "")
        elif kind == "signature_delta":  # it comes whole, behind some servers' own beginnings
            block["signature"] = get(delta, "signature")
        elif kind == "input_json_delta":
            grow(block, INPUT, get(delta, "partial_json"))
        elif kind == "citations_delta":
            cited = fields(get(delta, "citation")) or {}
            block["citations"] = [*block.get("citations", ()), dict(cited)]
        else:
            why = f"a delta of an unknown kind for block {at}"
            self._notes.append(Note(kind="update", why=why, raw=fields(delta)))

    def _kept(self, blocks: list[Keys]) -> tuple[list[Keys], list[Note]]:
        """Of a message that was cut: what may be sent again, and notes of the rest."""
        notes: list[Note] = []
        places = sorted(self._blocks)
        answered = {
            block.get("tool_use_id")
            for at, block in zip(places, blocks, strict=True)
            if at in self._done
        }
        kept: list[Keys] = []
        for at, block in zip(places, blocks, strict=True):
            done = at in self._done or whole_object(block.get(INPUT))
            if why := _why_not(block, done=done, answered=answered):
                notes.append(_note(block, why))
            else:
                kept.append(block)
        while kept and kept[-1].get("type") in THINKING:
            notes.append(_note(kept.pop(), "nothing came of it"))
        return kept, notes


def _with_input(block: Keys) -> Keys:
    """The block with the input that came as text."""
    given = block.pop(INPUT, "")
    if not given:
        return block
    try:
        return block | {"input": read_json(given)}
    except (ValueError, RecursionError):
        return block | {"input": {"INVALID_JSON": given}}  # as the API's own guide has it


def _why_not(block: Mapping[str, Any], *, done: bool, answered: set[Any]) -> str | None:
    """Why a block of a message that was cut is not sent again; None if it is."""
    kind = block.get("type")
    if kind == "text":
        return None if str(block.get("text", "")).strip() else "nothing was said yet"
    if kind in THINKING:
        return None if any(block.get(key) for key in PROOFS) else "its proof did not arrive"
    if not done:
        return f"only a part of the {kind} arrived"
    if kind in RUNS_ON_THE_SERVER and block.get("id") not in answered:
        return "its result did not arrive"
    if (caller := text(block.get("caller"), "tool_id")) and caller not in answered:
        return "the result of the code that calls it did not arrive"
    return None


def _note(block: Keys, why: str) -> Note:
    kind = str(block.get("type"))
    if kind in THINKING:
        return Note(kind="reasoning", why=why, raw=block)
    if given := block.pop(INPUT, None):
        block = block | {"input": given}
    return Note(kind="call" if kind.endswith("tool_use") else "item", why=why, raw=block)
