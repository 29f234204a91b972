"""Reasoning in chat messages: what servers want back with them, and what they want only once."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convnorm.ir import GONE, Flaw
from convnorm.targets import Fault
from convnorm.targets.openai_chat import ChatProfile
from convnorm.wire import LIST, fields

FIELD = "reasoning_content"
DETAILS = "reasoning_details"
NONE: Mapping[int, tuple[Flaw, ...]] = {}


def asks(profile: ChatProfile) -> bool:
    """Whether this server asks for anything of the reasoning in messages."""
    wanted = profile.reasoning_returned is not None
    return wanted or profile.signed_calls or profile.unique_reasoning_ids


def reasoning_flaws(
    messages: Sequence[Mapping[str, Any]], profile: ChatProfile, body: Mapping[str, Any]
) -> Mapping[int, tuple[Flaw, ...]]:
    """By message: what is missing there, or there a second time."""
    if not asks(profile):
        return NONE
    found: dict[int, list[Flaw]] = {}
    if profile.reasoning_returned is not None and _thinks(profile, body):
        for at, flaw in _missing(messages, profile):
            found.setdefault(at, []).append(flaw)
    seen: set[str] = set()
    for at, message in enumerate(messages):
        if profile.signed_calls and _calls(message) and not message.get(DETAILS):
            why = "the message calls tools and has no signature"
            found.setdefault(at, []).append(Flaw(Fault.UNSIGNED_CALLS, DETAILS, GONE, why))
        if profile.unique_reasoning_ids and isinstance(details := message.get(DETAILS), LIST):
            left = [detail for detail in details if _id(detail) not in seen]
            if len(left) < len(details):
                why = "an earlier message has the same reasoning"
                new: object = left or GONE
                found.setdefault(at, []).append(Flaw(Fault.REASONING_TWICE, DETAILS, new, why))
            seen.update(own for detail in left if (own := _id(detail)))
    return {at: tuple(flaws) for at, flaws in found.items()}


def _missing(
    messages: Sequence[Mapping[str, Any]], profile: ChatProfile
) -> Iterator[tuple[int, Flaw]]:
    """The replies that should carry their reasoning and do not."""
    wanted = profile.reasoning_returned
    turn: list[int] = []
    tools = False
    for at, message in enumerate([*messages, {"role": "user"}]):
        role = message.get("role")
        if wanted == "calls":
            if _calls(message) and message.get(FIELD) is None:
                yield at, _blank(Fault.REASONING_OF_CALLS, message, "")
        elif role == "user":
            for each in turn if tools else ():
                yield each, _blank(Fault.REASONING_OF_TURNS, messages[each], " ")
            turn, tools = [], False
        elif role == "assistant":
            tools = tools or _calls(message)
            if message.get(FIELD) is None:
                turn.append(at)


def _blank(fault: Fault, message: Mapping[str, Any], blank: str) -> Flaw:
    """What the message says of its reasoning elsewhere, or a blank."""
    details = message.get(DETAILS)
    listed = details if isinstance(details, LIST) else ()
    texts = [message.get("reasoning"), *((fields(one) or {}).get("text") for one in listed)]
    said = "\n".join(text for text in texts if isinstance(text, str) and text)
    return Flaw(fault, FIELD, said or blank, "the reply has no reasoning_content")


def _thinks(profile: ChatProfile, body: Mapping[str, Any]) -> bool:
    """Whether the model thinks: as the request says, else as the model does by itself."""
    for each in (body, fields(body.get("extra_body")) or {}):
        kind = (fields(each.get("thinking")) or {}).get("type")
        if kind == "disabled" or each.get("reasoning_effort") == "none":
            return False
        if kind == "enabled":
            return True
    return profile.thinks


def _calls(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and bool(message.get("tool_calls"))


def _id(detail: object) -> str | None:
    own = (fields(detail) or {}).get("id")
    return own if isinstance(own, str) and own else None
