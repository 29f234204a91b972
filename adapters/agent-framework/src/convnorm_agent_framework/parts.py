"""An answer that is still coming in, as plain data that a session can keep.

What is told of it afterwards are items of the Responses API: texts as far as they came, calls that
are whole with what was returned, and reasoning that is sealed and led to something.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from convnorm.mergers.merger import whole_object
from convnorm_agent_framework.codec import output_of, sealed_of

Part = dict[str, Any]


def take(
    parts: list[Part],
    contents: Iterable[Any],
    *,
    speaker: Any,
    whole: bool,
    strangers: bool = False,
) -> None:
    """Add contents. `speaker` tells answers apart; `whole`: nothing more comes to any of them.

    `strangers`: results of calls that were made before this answer are taken, too.
    """
    for content in contents:
        match content.type:
            case "text":
                _grow(_last(parts, "text", speaker), content)
            case "text_reasoning":
                thought = _last(parts, "thought", _id(content) or speaker)
                thought["id"] = thought.get("id") or _id(content)
                thought["sealed"] = thought.get("sealed") or sealed_of(content)
                _grow(thought, content)
            case "function_call":
                _call(parts, content, whole=whole)
            case "function_result" if _is_waited_for(parts, content.call_id, strangers):
                result = {"kind": "result", "call_id": content.call_id}
                parts.append({**result, "output": output_of(content)})


def items(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """What is kept of it, in order."""
    kept: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    torn: set[str] = set()
    for part in parts:
        item = _item(part)
        if item is None or part.get("call_id") in torn:
            if part["kind"] == "call":
                torn.add(part["call_id"])
            continue
        if part["kind"] == "thought":
            thoughts.append(item)
            continue
        kept += [*thoughts, item]
        thoughts = []
    return kept


def _item(part: Part) -> dict[str, Any] | None:
    """A part as an item; None if it cannot be told."""
    said = "".join(part.get("pieces", ()))
    match part["kind"]:
        case "text" if said:
            content = [{"type": "output_text", "text": said}]
            return {"type": "message", "role": "assistant", "content": content}
        case "call" if part["name"] and (part["whole"] or whole_object(said)):
            call = {"type": "function_call", "call_id": part["call_id"], "name": part["name"]}
            return {**call, "arguments": said}
        case "result":
            result = {"type": "function_call_output", "call_id": part["call_id"]}
            return {**result, "output": part["output"]}
        case "thought" if part["sealed"]:
            summary = [{"type": "summary_text", "text": said}] if said else []
            own = {"id": part["id"]} if part["id"] else {}
            sealed = {"encrypted_content": part["sealed"]}
            return {"type": "reasoning", "summary": summary, **own, **sealed}
    return None


def _last(parts: list[Part], kind: str, speaker: Any) -> Part:
    """The part that such a content goes on with: a new one, if something else came between."""
    last = parts[-1] if parts else None
    if last is None or last["kind"] != kind or last["by"] != speaker:
        last = {"kind": kind, "by": speaker, "pieces": [], "final": 0}
        parts.append(last)
    return last


def _grow(part: Part, content: Any) -> None:
    """Add a piece of a text, or put the whole text in place of its pieces."""
    pieces: list[str] = part["pieces"]
    if getattr(content, "merge_mode", None) == "replace":
        del pieces[part["final"] :]
        part["final"] = len(pieces) + 1
    pieces.append(content.text or "")


def _call(parts: list[Part], content: Any, *, whole: bool) -> None:
    """A call, or some more of its arguments; these can come for several calls in turns."""
    index = content.additional_properties.get("tool_call_index")
    part = next(
        (
            one
            for one in reversed(parts)
            if one["kind"] == "call"
            and not one["whole"]
            and (
                content.call_id == one["call_id"]
                if content.call_id
                else index is None or index == one["index"]
            )
        ),
        None,
    )
    if part is None:
        if not content.call_id:
            return
        part = {"kind": "call", "call_id": content.call_id, "index": index, "pieces": []}
        parts.append({**part, "name": content.name, "whole": whole})
        part = parts[-1]
    given = content.arguments
    if getattr(content, "merge_mode", None) == "replace":
        part["pieces"].clear()
    if given is not None:
        part["pieces"].append(given if isinstance(given, str) else json.dumps(given, default=str))


def _is_waited_for(parts: Sequence[Part], call_id: str | None, stranger: bool) -> bool:  # noqa: FBT001  # what to say of a call that is not here
    """Whether a call is not answered yet."""
    waiting = stranger and bool(call_id)
    for part in parts:
        if part.get("call_id") == call_id:
            waiting = part["kind"] == "call"
    return waiting


def _id(content: Any) -> str | None:
    found = getattr(content, "id", None)
    return found if isinstance(found, str) else None
