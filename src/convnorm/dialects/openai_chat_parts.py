"""Content parts of chat messages: what they are called here, and where they may stand."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convnorm.dialects.fitting import as_text
from convnorm.dialects.parts import (
    Attachment,
    Picture,
    Words,
    chat_part,
    part_type,
    read_part,
    renamed,
)
from convnorm.facts import Fact
from convnorm.ir import Flaw
from convnorm.targets import Fault
from convnorm.targets.chat_values import PARTS
from convnorm.targets.openai_chat import ChatProfile
from convnorm.wire import LIST

IMAGE = "image_url"
USERS = PARTS["user"]


def chat_content(message: Mapping[str, Any]) -> object:
    """The content, with parts of other APIs under the names they have here."""
    content, allowed = listed_content(message.get("content")), _allowed(message)
    if allowed is None or not isinstance(content, LIST):
        return content
    return _named(content, allowed)


def listed_content(content: object) -> object:
    """A content that is neither a text nor a list as one: words, a part in a list, or JSON."""
    if content is None or isinstance(content, (str, *LIST)):
        return content
    match read_part(content):
        case Words(text=words, more=more) if not more:
            return words
        case Words() | Picture() | Attachment():
            return [content]
    text = as_text(content)
    return content if text is None else text


def chat_output(output: object) -> object:
    """An output as a tool message holds it: words between parts are parts, too."""
    return renamed(output, USERS, chat_part) if isinstance(output, LIST) else output


def survey_parts(message: Mapping[str, Any], content: Sequence[object], facts: set[Fact]) -> None:
    """Name the facts that could wake the pass for parts."""
    allowed = _allowed(message) or USERS
    for part in content:
        kind = part_type(part)
        if kind not in allowed:
            facts.add(Fact.PARTS)
        if kind != "text":
            facts.add(Fact.MEDIA)


def part_flaws(message: Mapping[str, Any], profile: ChatProfile) -> Iterator[Flaw]:
    """What is wrong with the parts of a message; what sources dispute stays where it stands."""
    content, allowed = message.get("content"), _allowed(message)
    if allowed is None or not isinstance(content, LIST):
        return
    kinds = [part_type(part) for part in content]
    if allowed.issuperset(kinds):
        return
    role = message.get("role")
    # Beside text, only media can be told from what stands there by mistake.
    told = role == "assistant" and role in profile.text_only
    sure = told or profile.odd_parts == "refused"
    named = _named(content, allowed)
    here = USERS | allowed if sure else None
    known = [part if here is None or part_type(part) in here else _told(part) for part in named]
    if profile.odd_parts != "accepted" and not _are_same(known, content):
        why = f"parts of a {role} message have names that are not known here"
        yield Flaw(Fault.PART_NAME, "content", known, why)
    if IMAGE in kinds and IMAGE not in allowed and profile.images_elsewhere == "refused":
        why = f"a {role} message holds an image"
        yield Flaw(Fault.IMAGE_ELSEWHERE, "content", known, why)
    elif told and any(_is_misplaced(part, allowed) for part in named):
        why = f"a {role} message holds more than text"
        yield Flaw(Fault.MEDIA_LISTED, "content", known, why)
    elif sure and any(_is_misplaced(part, allowed) for part in named):
        why = f"a {role} message holds more than text"
        yield Flaw(Fault.MEDIA_ELSEWHERE, "content", known, why)


def _named(content: Sequence[object], allowed: frozenset[str]) -> Sequence[object]:
    """The parts under the names they have here; null is no part."""
    parts = [part for part in content if part is not None] if None in content else content
    return renamed(parts, allowed, chat_part)


def _is_misplaced(part: object, allowed: frozenset[str]) -> bool:
    kind = part_type(part)
    return kind in USERS and kind not in allowed


def _allowed(message: Mapping[str, Any]) -> frozenset[str] | None:
    role = message.get("role")
    return PARTS.get(role) if isinstance(role, str) else None


def _told(part: object) -> object:
    """A part that this API has no kind of, as its JSON; what is no JSON cannot be sent at all."""
    text = as_text(part)
    return part if text is None else {"type": "text", "text": text}


def _are_same(new: Sequence[object], old: Sequence[object]) -> bool:
    return len(new) == len(old) and all(one is other for one, other in zip(new, old, strict=True))
