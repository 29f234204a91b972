"""Histories that a provider adds to a transcript that already tells them."""

import json
from collections.abc import Hashable, Sequence
from typing import Any

from convnorm.envelope import is_close
from convnorm_agent_framework.codec import Codec

ATTRIBUTION = "_attribution"
"""The framework's note on a message: which provider put it there."""


ANY = "openai.chat"
"""Messages are compared in one shape, whatever API they go to."""


def without_replays(messages: Sequence[Any]) -> Sequence[Any]:
    """The messages without what a provider's history tells of the input a second time.

    An executor or a caller passes on a whole transcript, and a history provider adds what it
    stored of the same turns; where every turn was such a transcript, it stored that each time. The
    history goes only if it is nothing but beginnings of the transcript, each from its start, and
    if the transcript has every result in it. Results count where their calls stand, since
    executors move them. A user who says the same again sends one message: that is no transcript.
    """
    provided = [_is_provided(message) for message in messages]
    if True not in provided:
        return messages
    start = provided.index(True)
    end = provided.index(False, start) if False in provided[start:] else len(messages)
    if len(messages) - end < 2 or any(provided[end:]):
        return messages
    told, given = messages[start:end], messages[end:]
    if _results(told) <= _results(given) and _repeats(_said(told), _said(given)):
        return [*messages[:start], *given]
    return messages


def new_in(given: Sequence[Any], held: Sequence[Any]) -> list[Any]:
    """What a stored history does not have of a transcript that begins with it.

    Single messages are always new: a user may say the same again.
    """
    if len(given) < 2 or not held:
        return list(given)
    told, said = _said(held), _said(given)
    if not told or not _repeats(told, said):
        return list(given)
    known, results = max(_beginnings(told, said)), _results(held)
    new = []
    for message in given:
        if _said([message]):
            known -= 1
            is_new = known < 0
        else:
            is_new = bool(_results([message]) - results)
        if is_new:
            new.append(message)
    return new


def _is_provided(message: Any) -> bool:
    return ATTRIBUTION in message.additional_properties


def _results(messages: Sequence[Any]) -> set[str]:
    """The calls that have a result; one that we made up says nothing."""
    return {
        content.call_id
        for message in messages
        for content in message.contents
        if content.type == "function_result"
        and content.call_id
        and not is_close(content.result, content.call_id)
    }


def _said(messages: Sequence[Any]) -> list[str]:
    """What each message says, but for results of tools, in a form that can be compared."""
    said: dict[int, list[Any]] = {}
    for unit in Codec(messages, ANY).units:
        if unit.contents[0].type != "function_result":
            said.setdefault(unit.message, []).append(unit.element)
    return [json.dumps(elements, sort_keys=True, default=str) for elements in said.values()]


def _repeats(told: Sequence[Hashable], given: Sequence[Hashable]) -> bool:
    """Whether `told` is nothing but beginnings of `given`, one behind the other."""
    furthest = 0
    # Every place up to the furthest can be the end of a beginning, so the next may start there.
    for at, length in enumerate(_beginnings(told, given)):
        if at > furthest:
            return False
        furthest = max(furthest, at + length)
    return furthest >= len(told)


def _beginnings(told: Sequence[Hashable], given: Sequence[Hashable]) -> list[int]:
    """For each place of `told`: how much of the start of `given` stands there (Z-function)."""
    numbers: dict[Hashable, int] = {}
    line = [numbers.setdefault(one, len(numbers)) for one in given]
    line += [-1, *(numbers.setdefault(one, len(numbers)) for one in told)]
    lengths = [0] * len(line)
    left = right = 0
    for at in range(1, len(line)):
        if at < right:
            lengths[at] = min(right - at, lengths[at - left])
        while at + lengths[at] < len(line) and line[lengths[at]] == line[at + lengths[at]]:
            lengths[at] += 1
        if at + lengths[at] > right:
            left, right = at, at + lengths[at]
    return lengths[len(given) + 1 :]
