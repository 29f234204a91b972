"""What the scripted model says: replies made of parts, in Python or as plain JSON.

In JSON a part is a text, or an object with `text`, `reasoning`, `call` or `delay`; a reply is one
part, a list of parts, or an object with `reply` or `failure` and its options.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from convnorm.errors import PolicyError
from convnorm.options import nearest
from convnorm.wire import LIST


@dataclass(frozen=True, slots=True)
class Text:
    """Something the model says."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Something the model thinks."""

    summary: str = ""
    """What is shown of it; nothing when empty."""
    encrypted: str | None = None
    """The sealed form: `encrypted_content`, or a thinking block's signature. None: counted up."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls; calls of one reply are made in parallel."""

    name: str
    arguments: str
    """As JSON text, sent as it is, even when it is broken."""
    id: str | None = None
    """A fixed call id. None: counted up."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds of silence at this place of a stream; without a stream, before the answer."""

    seconds: float


Part = Text | Reasoning | Call | Delay


class Reply:
    """One answer of the model."""

    def __init__(self, *parts: Part | str, abort_after: int | None = None) -> None:
        self.parts: tuple[Part, ...] = tuple(
            Text(part) if isinstance(part, str) else part for part in parts
        )
        for part in self.parts:
            if not isinstance(part, Part):
                raise PolicyError(
                    f"a reply is made of text, reasoning, calls and delays, not of {part!r}"
                )
        if abort_after is not None:
            _must(abort_after, int, "abort_after")
        self.abort_after = abort_after
        """The connection is cut after this many events of a stream; without one, at once."""

    def __repr__(self) -> str:
        words = [repr(part) for part in self.parts]
        if self.abort_after is not None:
            words.append(f"abort_after={self.abort_after}")
        return f"Reply({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in place of an answer, of a request that was in order."""

    status: int
    message: str = ""
    code: str | None = None
    body: Any = None
    """The whole body, where the provider's usual shape is not wanted; a string is sent as text."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    """Seconds before the error."""

    def __post_init__(self) -> None:
        _must(self.status, int, "the status of a failure")
        _must(self.delay, int | float, "the delay of a failure")
        try:
            json.dumps(self.body)
        except (TypeError, ValueError) as error:
            raise PolicyError(f"the body of a failure is no JSON: {error}") from None


Answer = Reply | Failure
Script = Iterable[Any] | Callable[[Any], Any]
"""Replies in order, or a function from the request to its reply."""


def text(said: str) -> Text:
    """Something the model says; a plain string is the same."""
    return Text(said)


def reasoning(summary: str = "", *, encrypted: str | None = None) -> Reasoning:
    """Something the model thinks, with what is shown of it."""
    return Reasoning(summary, encrypted)


def call(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    /,
    *,
    call_id: str | None = None,
    **named: Any,
) -> Call:
    """A tool call. Arguments are named, or one mapping; a string is sent as it is."""
    if isinstance(arguments, str):
        return Call(name, arguments, call_id)
    written = json.dumps({**(arguments or {}), **named}, separators=(",", ":"), ensure_ascii=False)
    return Call(name, written, call_id)


def delay(seconds: float) -> Delay:
    """Seconds of silence."""
    return Delay(seconds)


# ---------------------------------------------------------------- plain JSON


def replies_of(script: Iterable[Any]) -> Iterable[Any]:
    """The replies of a script, checked at once where they are a list; one stands for itself."""
    if isinstance(script, str | Mapping | Answer):
        return (answer_of(script),)
    if not isinstance(script, Iterable):
        raise PolicyError(f"a script is a list of replies or a function, not {script!r}")
    return [answer_of(one) for one in script] if isinstance(script, LIST) else script


def answer_of(given: Any) -> Answer:
    """One reply of a script, in whatever form it was written."""
    if isinstance(given, Answer):
        return given
    if isinstance(given, Mapping) and "failure" in given:
        allowed = {"failure", "message", "code", "body", "headers", "delay"}
        _only(given, allowed, "a failure")
        return Failure(given["failure"], **{key: given[key] for key in given if key != "failure"})
    if isinstance(given, Mapping) and "reply" in given:
        _only(given, {"reply", "abort_after"}, "a reply")
        return Reply(*_parts(given["reply"]), abort_after=given.get("abort_after"))
    return Reply(*_parts(given))


def _parts(given: Any) -> Iterable[Part]:
    return map(_part, given) if isinstance(given, LIST) else (_part(given),)


def _part(given: Any) -> Part:
    if isinstance(given, str):
        return Text(given)
    if isinstance(given, Part):
        return given
    if isinstance(given, Mapping):
        for key, (allowed, made) in _FORMS.items():
            if key in given:
                _only(given, {key, *allowed}, f"a part with {key!r}")
                _must(given[key], int | float if key == "delay" else str, f"a part's {key}")
                return made(given)
    raise PolicyError(
        f"a part of a reply is a text or an object with {', '.join(_FORMS)}, not {given!r}"
    )


_FORMS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Part]]] = {
    "text": ((), lambda given: Text(given["text"])),
    "reasoning": (
        ("encrypted",),
        lambda given: Reasoning(given["reasoning"], given.get("encrypted")),
    ),
    "call": (
        ("arguments", "id"),
        lambda given: call(given["call"], given.get("arguments"), call_id=given.get("id")),
    ),
    "delay": ((), lambda given: Delay(given["delay"])),
}
"""By the key that names it: what else a part may have, and how it is made."""


def _must(value: Any, kind: Any, what: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PolicyError(f"{what} cannot be {value!r}")


def _only(given: Mapping[str, Any], allowed: set[str], what: str) -> None:
    for key in given:
        if key not in allowed:
            raise PolicyError(f"{what} has no {key!r}; {nearest(str(key), allowed)}")
