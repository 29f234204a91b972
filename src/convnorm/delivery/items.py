"""What the ledger has to know of input and output items: ids, calls and what answers them."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from convnorm import envelope
from convnorm.wire import LIST, fields, json_text, text_of

ANSWERS = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "computer_call": ("computer_call_output",),
    "shell_call": ("shell_call_output",),
    "apply_patch_call": ("apply_patch_call_output",),
    "local_shell_call": ("local_shell_call_output", "function_call_output"),
}
"""By type of the calls that wait for the client: what answers them."""
OUTPUTS = frozenset(name for names in ANSWERS.values() for name in names)


def as_items(given: Any) -> Any:
    """An input as a tuple of items; it may be a plain text."""
    return ({"role": "user", "content": given},) if isinstance(given, str) else given


def plain(item: object, where: str) -> Any:
    """A copy of an item as JSON values, which no later change of the caller's own can reach."""
    return json.loads(json_text(item, where))


def objects(items: Iterable[object]) -> Iterator[Mapping[str, Any]]:
    """The items that are objects, with their keys."""
    return (keys for item in items if (keys := fields(item)) is not None)


def own_id(item: Mapping[str, Any]) -> str | None:
    """The id of the item itself."""
    found = item.get("id")
    return found if isinstance(found, str) else None


def answered_id(item: Mapping[str, Any]) -> str | None:
    """The id of the call that an output answers; None for what is no output."""
    if item.get("type") not in OUTPUTS:
        return None
    found = item.get("call_id")
    if found is None and item.get("type") == "local_shell_call_output":
        found = item.get("id")
    return found if isinstance(found, str) else None


def open_calls(items: Iterable[object]) -> list[Mapping[str, Any]]:
    """The calls among the items that wait for an output, in order; an id may be used again."""
    waiting: dict[str, deque[Mapping[str, Any]]] = {}
    for item in objects(items):
        call_id = item.get("call_id")
        if item.get("type") in ANSWERS and isinstance(call_id, str):
            waiting.setdefault(call_id, deque()).append(item)
        elif (answered := answered_id(item)) is not None:
            calls = waiting.get(answered, deque())
            fits = (at for at, call in enumerate(calls) if item["type"] in ANSWERS[call["type"]])
            if (found := next(fits, None)) is not None:
                del calls[found]  # the first one, but where the kinds of calls differ
    left = {id(call) for calls in waiting.values() for call in calls}
    return [item for item in objects(items) if id(item) in left]


def same_item(one: object, other: object) -> bool:
    """Whether two items say the same, whatever the server noted beside it."""
    return _said(one) == _said(other)


def content_key(item: object) -> str:
    """Equal for items that say the same."""
    return json.dumps(_said(item), sort_keys=True, default=str)


NOTES = frozenset({"id", "status", "created_by", "annotations", "logprobs"})
"""Keys that say nothing to the model."""


def _said(item: object) -> object:
    keys = fields(item)
    if keys is None:
        return item
    said = {key: value for key, value in keys.items() if value is not None and key not in NOTES}
    if "role" in said:
        said["type"] = "message"
    if isinstance(content := said.get("content"), LIST):
        said["content"] = [_part(part) for part in content]
        if len(content) == 1 and isinstance(text := said["content"][0].get("text"), str):
            said["content"] = text
    return said


def _part(part: object) -> dict[str, Any]:
    keys = fields(part) or {"part": part}
    return {key: value for key, value in keys.items() if key not in NOTES and value is not None}


class Items:
    """How wire items are compared."""

    same = staticmethod(same_item)
    content = staticmethod(content_key)

    @staticmethod
    def proofs(item: object) -> Iterator[tuple[str, str]]:
        """What proves that two items are one."""
        keys = fields(item) or {}
        if (own := own_id(keys)) is not None:
            yield "id", own
        if keys.get("type") == "reasoning" and isinstance(
            seal := keys.get("encrypted_content"), str
        ):
            yield "seal", seal
        if keys.get("type") in ANSWERS and isinstance(keys.get("call_id"), str):
            yield "call", keys["call_id"]
        if (answered := answered_id(keys)) is not None:
            yield "result", answered
        if (told := Items.quoted(keys)) is not None:
            yield "quotation", "\n".join(told)

    @staticmethod
    def light(item: object) -> bool:
        """Whether an item may be missing on one side."""
        keys = fields(item) or {}
        if keys.get("type") == "reasoning" or Items.quoted(keys) is not None:
            return True
        return envelope.is_close(_text(keys.get("output")), answered_id(keys))

    @staticmethod
    def returned(item: object) -> tuple[str, str] | None:
        """What a real output says, and of which call."""
        keys = fields(item) or {}
        answered = answered_id(keys)
        if answered is None or Items.light(keys):
            return None
        return envelope.as_quoted(text_of(keys.get("output"), "an output"), answered)

    @staticmethod
    def quoted(item: object) -> tuple[str, str] | None:
        """The same of the output that a quotation tells."""
        keys = fields(item) or {}
        content = keys.get("content") if keys.get("role") == "user" else None
        first = content[0] if isinstance(content, LIST) and content else None
        text = content if first is None else (fields(first) or {}).get("text")
        return envelope.quoted(text) if isinstance(text, str) else None

    @staticmethod
    def made(item: object) -> bool:
        """Whether the model made an item."""
        keys = fields(item) or {}
        return answered_id(keys) is None and keys.get("role", "assistant") == "assistant"


def _text(output: object) -> object:
    """The text of an output; of a shell output, what its only chunk wrote to stderr."""
    if isinstance(output, LIST) and len(output) == 1:
        return (fields(output[0]) or {}).get("stderr")
    return output


def map_proofs(items: Iterable[object]) -> Iterator[tuple[str, str]]:
    """What proves which items are which."""
    return chain.from_iterable(map(Items.proofs, items))
