"""What messages say that the target refuses: keys, names, contents; and what it takes instead."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from convnorm import envelope
from convnorm.dialects.dialect import Call
from convnorm.dialects.fitting import as_text, fitted, fitted_part, is_nothing
from convnorm.dialects.openai_chat_calls import call_flaws, chat_calls, whole_call
from convnorm.dialects.openai_chat_parts import listed_content
from convnorm.ir import GONE, Flaw
from convnorm.renaming import Renamer, legal_name, other_name
from convnorm.targets import Fault
from convnorm.targets.chat_values import CUSTOM, PART_SHAPES, PARTS, VALUES
from convnorm.targets.openai_chat import ChatProfile
from convnorm.wire import LIST, fields

BARRED = re.compile(r"[\s<|\\/>]").search
"""What no server was seen to take in the name of a speaker; about other letters they differ."""
NAME_LENGTH = 64
LOOKED_AT = frozenset({"name", "audio", "function_call", "refusal"})
"""Keys under which something can be wrong on any server; the content and the calls are others."""
THOUGHT = "reasoning_content"
NO_KEYS: frozenset[str] = frozenset()


def speakers() -> Renamer:
    """Names for the speakers of one history."""
    return Renamer(
        lambda name: not BARRED(name), lambda old, tries: other_name(old, NAME_LENGTH, tries)
    )


def takes_null(profile: ChatProfile) -> bool:
    """Whether nothing is wrong with a null content by itself."""
    return profile.null_content != "refused" and not profile.content_required


def is_odd_call(call: Mapping[str, Any]) -> bool:
    """Whether a call is no call as its type has it."""
    return whole_call(call) is not call or _call(call, []) is not call


def field_flaws(message: Mapping[str, Any], call: Call, names: Renamer) -> Iterable[Flaw]:
    """What is wrong with a message by itself; each key is named once.

    What goes into the content from elsewhere goes into the content as it is mended by then.
    """
    profile, rules = call.target.chat, call.target.rules
    plain = type(message.get("content")) is str and LOOKED_AT.isdisjoint(message)
    if plain and profile.message_keys is None and not message.get("tool_calls"):
        return ()
    found: dict[str, Flaw] = {}
    now = message
    for look in LOOKS:
        for flaw in look(now, profile, names):
            if flaw.fault not in rules:
                continue
            first = found.setdefault(flaw.key, flaw)
            if flaw.key == "content":
                found["content"] = replace(first, value=flaw.value)
                now = {**message, "content": flaw.value}
    return found.values()


def _calls(message: Mapping[str, Any], _: ChatProfile, __: Renamer) -> Iterator[Flaw]:
    return call_flaws(message)


def _odd_content(message: Mapping[str, Any], _: ChatProfile, __: Renamer) -> Iterator[Flaw]:
    content = message.get("content")
    if (listed := listed_content(content)) is not content:
        yield Flaw(Fault.CONTENT_ODD, "content", listed, "the content is no text and no list")


def _content(message: Mapping[str, Any], profile: ChatProfile, _: Renamer) -> Iterator[Flaw]:
    """A content that the target wants as one text, or wants at all."""
    role, content = message.get("role"), message.get("content")
    if isinstance(content, LIST):
        if isinstance(role, str) and role in profile.text_only:
            yield from _listed(content)
    elif content is None:
        why = "the content is null"
        if profile.null_content == "refused" and "content" in message:
            yield Flaw(Fault.CONTENT_NULL, "content", "", why)
        elif profile.content_required and (role == "function" or _speaks(message)):
            yield Flaw(Fault.CONTENT_MISSING, "content", "", "the message has no content")


def _speaks(message: Mapping[str, Any]) -> bool:
    """Whether an assistant message says something without a content."""
    return message.get("role") == "assistant" and any(map(message.get, (*CALLING, *TOLD)))


def _unknown_keys(message: Mapping[str, Any], profile: ChatProfile, _: Renamer) -> Iterator[Flaw]:
    if (known := profile.message_keys) is None:
        return
    told = [text for text in map(_told, TOLD, map(message.get, TOLD)) if text]
    # Without what goes, the message must still say something, if only an empty text.
    bare = message.get("content") is None and not any(map(message.get, CALLING))
    if (told or (bare and any(map(message.get, TOLD)))) and known.isdisjoint(TOLD):
        why = "what is said beside the content is not taken there"
        yield Flaw(Fault.REFUSAL_KEY, "content", _with(message.get("content"), told), why)
    for key, value in message.items():
        if key in known or (key in profile.disputed_keys and value is not None):
            continue
        if is_nothing(value):
            fault = Fault.KEY_EMPTY
        elif key == "refusal" and isinstance(value, str):
            fault = Fault.REFUSAL_KEY
        else:
            fault = Fault.THOUGHT_KEY if key == THOUGHT else Fault.KEY_UNKNOWN
        yield Flaw(fault, key, GONE, f"the key {key!r} is not taken")


CALLING = ("tool_calls", "function_call")
TOLD = ("refusal", "audio")
"""Keys beside the content under which an assistant says something in words."""


def _told(key: str, value: object) -> str:
    """The words under one of these keys."""
    said = (fields(value) or {}).get("transcript") if key == "audio" else value
    return said if isinstance(said, str) else ""


def _with(content: object, told: Sequence[str]) -> object:
    """The content with more words behind it."""
    if isinstance(content, LIST):
        return [*content, *({"type": "text", "text": text} for text in told)]
    return "\n".join([content, *told] if isinstance(content, str) and content else told)


def _odd_values(message: Mapping[str, Any], profile: ChatProfile, _: Renamer) -> Iterator[Flaw]:
    if not profile.typed:
        return
    role, content = message.get("role"), message.get("content")
    if isinstance(content, LIST) and isinstance(role, str):
        allowed = PARTS.get(role, NO_KEYS)
        lost: list[object] = []
        new = [_part(part, allowed, lost) for part in content]
        if any(now is not was for now, was in zip(new, content, strict=True)):
            left = [part for part in new if part is not GONE]
            yield _value_flaw("content", left, "a part of the content has not its type", lost)
    if role != "assistant":
        return
    for key, wanted in VALUES.items():
        if key in message:
            lost = []
            new_value = fitted(wanted, message[key], lost)
            if new_value is not message[key]:
                yield _value_flaw(key, new_value, f"the {key} has not its type", lost)
    calls = chat_calls(message)
    if isinstance(calls, LIST):
        lost = []
        made = [_call(each, lost) for each in calls]
        if any(now is not was for now, was in zip(made, calls, strict=True)):
            yield _value_flaw("tool_calls", made, "a call has not its type", lost)


def _value_flaw(key: str, new: object, why: str, lost: list[object]) -> Flaw:
    return Flaw(Fault.VALUE_LOST if lost else Fault.VALUE_ODD, key, new, why)


def _part(part: object, allowed: frozenset[str], lost: list[object]) -> object:
    keys = part if type(part) is dict else fields(part)
    kind = None if keys is None else keys.get("type")
    if keys is None or not isinstance(kind, str) or kind not in allowed:
        return part  # another rule's business
    new = fitted_part(PART_SHAPES[kind], keys, lost, strict=False)
    return part if new is keys else new


def _call(given: object, lost: list[object]) -> object:
    """A call of a custom tool as its type has it; one that has no body is another's business."""
    keys = given if type(given) is dict else fields(given)
    body = None if keys is None else fields(keys.get("custom"))
    if keys is None or body is None or fields(keys.get("function")) is not None:
        return given
    new = fitted(CUSTOM, body, lost)
    return given if new is body or new is GONE else {**keys, "custom": new}


def _odd_name(message: Mapping[str, Any], profile: ChatProfile, names: Renamer) -> Iterator[Flaw]:
    role, content, name = message.get("role"), message.get("content"), message.get("name")
    if not profile.checks_names or "name" not in message or role == "tool":
        return  # it has none by its type: who sends one gets by with any
    if is_nothing(name) and role != "function":
        fault = Fault.VALUE_ODD if name is None else Fault.SPEAKER_IN_TEXT
        yield Flaw(fault, "name", GONE, "there is no name")
    if not isinstance(name, str) or not name:
        return
    if role == "function":  # it is the name of the call before it, which is cleaned alike
        new = legal_name(name, NAME_LENGTH) if BARRED(name) else name
    else:
        new = names.settle(name)
    if new == name:
        return
    why = f"the name {name[:NAME_LENGTH]!r} cannot be sent"
    if role == "function" or re.search(r"[a-zA-Z0-9]", legal_name(name, NAME_LENGTH)):
        yield Flaw(Fault.SPEAKER_NAME, "name", new, why)
    elif (said := _named(name, content)) is None:
        new = f"speaker_{envelope.digest(name)}"
        yield Flaw(Fault.SPEAKER_NAME, "name", new, why)
    else:
        yield Flaw(Fault.SPEAKER_IN_TEXT, "name", GONE, why)
        yield Flaw(Fault.SPEAKER_IN_TEXT, "content", said, f"{why}: the text says it")


def _named(name: str, content: object) -> object:
    """A content that says who speaks, where there is a text that could."""
    if isinstance(content, str):
        return f"{name}: {content}"
    if isinstance(content, LIST):
        for at, part in enumerate(content):
            keys = fields(part) or {}
            if keys.get("type") == "text" and isinstance(keys.get("text"), str):
                return [
                    *content[:at],
                    {**keys, "text": f"{name}: {keys['text']}"},
                    *content[at + 1 :],
                ]
    return None


def _listed(content: Sequence[object]) -> Iterator[Flaw]:
    """The parts of a content as one text, where all of them are texts and nothing else."""
    texts = []
    for part in content:
        keys = fields(part) or {}
        kind = keys.get("type")
        if kind not in ("text", "refusal"):
            return
        given = keys.get(kind)
        text = given if isinstance(given, str) else "" if given is None else as_text(given)
        if text is None or any(not is_nothing(keys[key]) for key in keys.keys() - {"type", kind}):
            return
        texts.append(text)
    if texts:
        yield Flaw(Fault.CONTENT_LISTED, "content", "\n".join(texts), "the content is a list")


LOOKS = (_calls, _odd_content, _unknown_keys, _odd_values, _odd_name, _content)
"""In the order in which a content is mended: what comes later sees what came before."""
