"""Content parts of messages in `input`: what they are called here, and where they may stand."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from convnorm.dialects.fitting import as_text
from convnorm.dialects.parts import Part, Words, input_part, output_part, part_type, renamed
from convnorm.facts import Fact
from convnorm.ir import Flaw
from convnorm.targets import Fault
from convnorm.targets.openai_responses import ResponsesProfile
from convnorm.targets.profile import Verdict
from convnorm.targets.responses_items import PARTS
from convnorm.wire import LIST, MEDIA

INPUT = PARTS["user"]


def message_content(item: Mapping[str, Any]) -> object:
    """The content, with parts of other APIs under the names they have here."""
    content, role = item.get("content"), item.get("role")
    allowed = PARTS.get(role) if isinstance(role, str) else None
    if allowed is None or not isinstance(content, LIST):
        return content
    return renamed(content, allowed, _writer(role))


def as_output(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool message of Chat Completions as the output that it is; any other item as it came."""
    call_id = item.get("tool_call_id", item.get("call_id"))
    if item.get("role") != "tool" or item.get("type") not in (None, "message"):
        return item
    if not isinstance(call_id, str) or not isinstance(item.get("content"), str | list | tuple):
        return item
    output = item["content"]
    if isinstance(output, LIST):
        output = renamed(output, INPUT, input_part)
    rest = {key: value for key, value in item.items() if key not in TOOL_MESSAGE}
    return {"type": "function_call_output", "call_id": call_id, "output": output, **rest}


TOOL_MESSAGE = ("role", "type", "content", "tool_call_id", "call_id", "name")
"""What such a message has; the name is that of the tool, which its call names."""


def _writer(role: object) -> Callable[[Part], object]:
    return output_part if role == "assistant" else input_part


def survey_parts(item: Mapping[str, Any], facts: set[Fact]) -> None:
    """Name the facts that could wake the pass for parts."""
    content, role = item.get("content"), item.get("role")
    allowed = PARTS.get(role, INPUT) if isinstance(role, str) else INPUT
    if content is not None and not isinstance(content, str | list | tuple):
        facts.add(Fact.PARTS)
    for part in content if isinstance(content, LIST) else ():
        kind = part_type(part)
        if kind not in allowed:
            facts.add(Fact.PARTS)
        if kind in MEDIA:
            facts.add(Fact.MEDIA)


def part_flaws(item: Mapping[str, Any], profile: ResponsesProfile) -> Iterator[Flaw]:
    """What is wrong with the parts of a message; what sources dispute stays where it stands."""
    content, role = item.get("content"), item.get("role")
    allowed = PARTS.get(role) if isinstance(role, str) else None
    if allowed is None or content is None or isinstance(content, str):
        return
    if not isinstance(content, LIST):
        new = [content] if part_type(content) in allowed else as_text(content)
        if new is not None:
            why = f"the content of a {role} message is neither a text nor a list"
            yield Flaw(Fault.PART_NAME, "content", new, why)
        return
    verdict = profile.assistant_input if role == "assistant" else None
    parts = [_fit(part, allowed, role, verdict) for part in content]
    if any(now is not was for now, was in zip(parts, content, strict=True)):
        why = f"parts of a {role} message have names that are not known here"
        yield Flaw(Fault.PART_NAME, "content", parts, why)
    if verdict == "refused" and any(part_type(part) in INPUT for part in parts):
        yield Flaw(Fault.MEDIA_ELSEWHERE, "content", parts, "an assistant message holds media")


def _fit(part: object, allowed: frozenset[str], role: object, verdict: Verdict | None) -> object:
    """A part under the name it has in such a message, as far as it is known to be refused."""
    kind = part_type(part) or ""
    # Kinds of input may have come after these tables; in the assistant's messages servers differ.
    if kind in allowed or (kind.startswith("input_") and verdict in (None, "accepted")):
        return part
    write = _writer(role)
    (new,) = renamed([part], allowed, write)
    if new is not part or kind in INPUT or (kind.startswith("input_") and verdict != "refused"):
        return new
    # This API has nothing of the kind, and what is no JSON cannot be sent at all.
    text = as_text(part)
    return part if text is None else write(Words(text, {}))
