"""What a run makes of a sample, and how a broken law shows it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from convnorm import Context, Policy
from convnorm.intake import take_apart
from convnorm.pipeline import Change, run
from convnorm.testing.reading import dump, history_key, wire
from convnorm.testing.strategies import Sample

AnyPolicy = Policy | str | None

COPIERS = ("arbitrate_sources", "dedupe")
"""The passes that take copies out, before any other looks."""
CALL = "<tool-call"
"""How a call begins that is quoted, since it cannot be sent."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a run makes of a request."""

    request: dict[str, Any]
    messages: list[Any]
    edits: tuple[Change, ...]
    assumed: tuple[str, ...]


_latest: list[tuple[Sample, AnyPolicy, Made]] = []
"""What was made last: laws that are asked about one sample in a row share a run of it."""


def run_on(
    request: Mapping[str, Any], policy: AnyPolicy, context: Context, *, force: bool = False
) -> Made:
    """The work of `normalize_request`; `force` wakes passes that would sleep."""
    done = run(take_apart(request, policy, context), force=force)
    sent = {**done.fields, history_key(request): done.elements}
    return Made(sent, done.elements, done.edits, done.assumed)


def made_of(sample: Sample, policy: AnyPolicy) -> Made:
    """What is made of the sample, if it was the last one, without another run."""
    for known, by, made in _latest:
        if known is sample and by is policy:
            return made
    return made_anew(sample, policy)


def made_anew(sample: Sample, policy: AnyPolicy) -> Made:
    """What a run of its own makes of the sample."""
    made = run_on(sample.request, policy, sample.context)
    _latest[:] = [(sample, policy, made)]
    return made


COPIES = frozenset(
    {
        "history-replayed",
        "chat-duplicate-tool-call-id",
        "chat-duplicate-tool-result",
        "resp-duplicate-call-id",
        "resp-duplicate-item-id",
        "resp-duplicate-output",
    }
)
"""Only under these rules something may go because it is still there elsewhere."""


def again(context: Context) -> Context:
    """The facts that still hold for what was sent; labels and positions were of the input."""
    return context.model_copy(update={"sources": (), "provenance": Context().provenance})


def dropped_copies(report: Made) -> set[int]:
    """The elements that went, or lost something, because the same thing is elsewhere."""
    return places(report, lambda edit: edit.what == "drop" and edit.rule in COPIES)


def places(report: Made, wanted: Callable[[Change], bool]) -> set[int]:
    """The elements that an edit of this sort was about."""
    places = [re.search(r"\[(\d+)\]", edit.where) for edit in report.edits if wanted(edit)]
    return {int(place[1]) for place in places if place}


def passes_by(element: Mapping[str, Any]) -> bool:
    """Whether the item comes again when the server has done it, or must always stand last."""
    working = element.get("status") == "in_progress"
    return working or element.get("type") == "compaction_trigger"


def fail(why: str, sample: Sample, sent: object = None) -> NoReturn:
    """Say which law is broken, and by what."""
    lines = [why, f"applied: {', '.join(sample.applied) or 'nothing'}", _shown(sample.request)]
    facts = sample.context.model_dump(exclude_defaults=True)
    if facts:
        lines.append(f"context: {facts}")
    if sent is not None:
        lines.append(f"sent:\n{_shown(sent)}")
    raise AssertionError("\n".join(lines))


def _shown(request: object) -> str:
    if not isinstance(request, Mapping):
        return dump(request)
    lines = []
    for key, value in request.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  [{at}] {dump(wire(each))}" for at, each in enumerate(value))]
        else:
            lines.append(f"{key}: {_shown(value)}")
    return "\n".join(lines)
