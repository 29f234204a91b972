"""Hypothesis strategies: valid histories, broken ones, and histories that grow.

`conversations` are accepted as they stand. `broken` ones carry one to three faults of `MUTATORS`,
all of which the default policies repair. Elements are dicts, read-only mappings and SDK objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

from hypothesis import strategies as st

from convnorm.context import Context
from convnorm.targets import Fault, Target, find_target
from convnorm.testing import (
    openai_chat,
    openai_chat_faults,
    openai_responses,
    openai_responses_faults,
)
from convnorm.testing.draft import Draft, Pen, dressed
from convnorm.testing.faults import Mutator

_WRITERS: Mapping[str, ModuleType] = {
    "openai.chat": openai_chat,
    "openai.responses": openai_responses,
}

MUTATORS: Mapping[str, Mapping[str, Mutator]] = MappingProxyType(
    {
        "openai.chat": MappingProxyType(openai_chat_faults.MUTATORS),
        "openai.responses": MappingProxyType(openai_responses_faults.MUTATORS),
    }
)
"""By dialect and name, in the order they apply."""

COPYING = frozenset(
    {
        "same_call_in_batch",
        "reused_id_in_batch",
        "repeated_item",
        "same_id_different_item",
        "source_differs",
    }
)
"""Faults that can put a single item in twice, if only by chance, beside those that replay whole
stretches."""
PARTING = frozenset(
    {
        "missing_result",
        "missing_results",
        "pending_result",
        "early_result",
        "late_result",
        "result_id_missing",
        "result_id_empty",
        "wrong_output_type",
    }
)
"""Faults that part a call from its result: under a counter's id, an equal call may be its copy."""


ASKED = {
    "arguments_raw": Fault.ARGUMENTS_RAW,
    "arguments_missing": Fault.ARGUMENTS_MISSING,
    "arguments_cut": Fault.ARGUMENTS_UNPARSED,
    "call_id_long": Fault.CALL_ID_LONG,
    "name_odd": Fault.NAME_FORM,
    "name_empty": Fault.NAME_EMPTY,
    "call_id_odd": Fault.CALL_ID_FORM,
    "item_id_odd": Fault.ITEM_ID_PREFIX,
    "item_id_letters": Fault.ITEM_ID_LETTERS,
    "item_id_long": Fault.ITEM_ID_LONG,
    "system_refused": Fault.SYSTEM_REFUSED,
    "developer_refused": Fault.DEVELOPER_REFUSED,
    "call_unsigned": Fault.UNSIGNED_CALLS,
    "reasoning_twice": Fault.REASONING_TWICE,
    "spoken_twice": Fault.OUT_OF_TURN,
    "instructed_late": Fault.OUT_OF_TURN,
    "instructed_behind_reply": Fault.OUT_OF_ORDER,
    "spoken_first": Fault.OUT_OF_TURN,
    "spoken_behind_result": Fault.OUT_OF_ORDER,
    "spoken_last": Fault.OUT_OF_ORDER,
    "parts_of_others": Fault.PART_NAME,
    "image_elsewhere": Fault.IMAGE_ELSEWHERE,
    "media_elsewhere": Fault.MEDIA_ELSEWHERE,
    "part_unknown": Fault.MEDIA_ELSEWHERE,
    "thought_in_plain_text": Fault.REASONING_TEXT,
    "thought_id_lost": Fault.REASONING_ID_LOST,
    "thought_of_another_response": Fault.OTHER_RESPONSE,
    "speaker_odd": Fault.SPEAKER_NAME,
    "value_odd": Fault.VALUE_ODD,
    "key_not_taken": Fault.KEY_UNKNOWN,
    "content_listed": Fault.CONTENT_LISTED,
    "half_message": Fault.MESSAGE_HALF,
}
"""Faults that are none for every server."""


PENDING = "pending_result"
"""The fault of a call that is still being answered, which may not be sent while it is last."""
SEALING = ("thought_unfollowed", "thought_empty")
"""Faults that are none where reasoning is read from its text."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A request, the facts of its call, and what was done to it."""

    request: dict[str, Any]
    context: Context = Context()
    applied: tuple[str, ...] = ()
    copied: bool | None = None
    """Whether something in it was put there a second time; None when nobody knows."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Two requests of one conversation: the list of the second begins with that of the first."""

    before: Sample
    after: Sample


def mutators(
    dialect: str, *, provider: str | None = None, model: str | None = None
) -> Mapping[str, Mutator]:
    """The faults that this provider's endpoint can show and convnorm repairs there."""
    target = find_target(dialect, provider=provider, model=model)
    return {name: mutate for name, mutate in MUTATORS[dialect].items() if _applies(name, target)}


def _applies(name: str, target: Target) -> bool:
    if name in ASKED:
        return ASKED[name] in target.rules
    if name == "content_of_calls_null":
        return not {Fault.CONTENT_NULL, Fault.CONTENT_MISSING}.isdisjoint(target.rules)
    if name == "reasoning_lost":
        return not {Fault.REASONING_OF_CALLS, Fault.REASONING_OF_TURNS}.isdisjoint(target.rules)
    if name == "thought_unsealed":
        return target.responses.strict and not target.reasoning_by_value
    if name == "arguments_unparsed":
        return target.profile.parsed_arguments == "refused"
    if name.startswith("bare_reasoning") or name in SEALING:
        return not target.reasoning_by_value
    return name not in openai_responses_faults.STRIPPING or target.unstored_ids == "strip"


@st.composite
def conversations(
    draw: st.DrawFn, dialect: str, *, provider: str | None = None, model: str | None = None
) -> Sample:
    """Histories that this provider accepts as they stand."""
    pen = Pen(draw, find_target(dialect, provider=provider, model=model))
    draft: Draft = _WRITERS[dialect].written(pen, linked=True)
    return Sample(draft.request(dressed(pen, draft.elements)), draft.context(), copied=False)


@st.composite
def broken(
    draw: st.DrawFn,
    dialect: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    fault: str | None = None,
    alone: bool = False,
) -> Sample:
    """Histories with one to three faults: this one among them, or it alone."""
    pen = Pen(draw, find_target(dialect, provider=provider, model=model))
    faults = mutators(dialect, provider=provider, model=model)
    draft, applied = _broken(pen, faults, fault, 1 if alone else 3)
    elements = dressed(pen, draft.elements)
    copied: bool | None = bool(draft.copies) or not COPYING.isdisjoint(applied)
    if pen.counters and not PARTING.isdisjoint(applied):
        copied = copied or None
    return Sample(draft.request(elements), draft.context(), applied, copied)


@st.composite
def growing(
    draw: st.DrawFn,
    dialect: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    fault: str | None = None,
    in_pieces: bool = False,
) -> Growth:
    """A history as `broken` makes it, and the same one before its last elements came.

    With `in_pieces` the first may end in the middle of what is replayed.
    """
    pen = Pen(draw, find_target(dialect, provider=provider, model=model))
    faults = mutators(dialect, provider=provider, model=model)
    # What is still pending may not be sent while it is last.
    faults = {name: faults[name] for name in faults if name != PENDING}
    draft, applied = _broken(pen, faults, fault, 3)
    elements = dressed(pen, draft.elements)
    # Mostly, what repeats the history comes at once: no request is sent in the middle of it.
    ends = [
        end
        for end in _WRITERS[dialect].ends(draft.elements)
        if in_pieces or not any(copy.start < end < copy.stop for copy in draft.copies)
    ]
    end = pen.pick(ends[::-1] or [len(elements)])
    labels = draft.facts.get("sources")
    facts = draft.context()
    early = facts.model_copy(update={"sources": labels[:end]}) if labels else facts
    return Growth(
        Sample(draft.request(elements[:end]), early, applied),
        Sample(draft.request(elements), facts, applied),
    )


def _broken(
    pen: Pen, faults: Mapping[str, Mutator], wanted: str | None, most: int
) -> tuple[Draft, tuple[str, ...]]:
    draft: Draft = _WRITERS[pen.target.name].written(pen)
    names = list(faults)
    drawn = set() if wanted is None else {names.index(wanted)}
    more = pen.pick(range(most, 0, -1)) - len(drawn)
    drawn |= {pen.below(len(names)) for _ in range(more)}  # the same one counts once
    applied = tuple(names[at] for at in sorted(drawn))
    for name in applied:
        faults[name](pen, draft)
    return draft, applied
