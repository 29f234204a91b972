"""The laws, each a function that raises AssertionError with what broke it.

They hold for every history and every default policy; call them on your own policy and samples.
"""

import re
from copy import deepcopy
from typing import Any

from convnorm import UnrepairableError, check, normalize_request
from convnorm.intake import take_apart
from convnorm.pipeline import Change
from convnorm.rules import RULES
from convnorm.testing.conserved import conserve
from convnorm.testing.frontier import frontier, may_go_on
from convnorm.testing.made import (
    COPIERS,
    AnyPolicy,
    again,
    dropped_copies,
    fail,
    made_anew,
    made_of,
    passes_by,
    run_on,
)
from convnorm.testing.reading import FOREIGN, dump, history_key, read, wire
from convnorm.testing.strategies import Growth, Sample


def sound(sample: Sample, policy: AnyPolicy = None) -> None:
    """What comes out is accepted; only a fault that no pass may repair is refused instead.

    A rule whose pass is not in the policy, or not built yet, is reported and not repaired.
    """
    try:
        sent = normalize_request(sample.request, policy, context=sample.context)
    except UnrepairableError as error:
        if error.rule not in _rules(sample, policy, disputed=False):
            fail(f"refused for {error.rule}, which check does not report", sample)
        return
    whole = take_apart(sample.request, policy, sample.context).policy
    names = {None, *(each.name for each in whole.passes)}
    found = check(sent, policy, context=again(sample.context))
    left = [each for each in found if each.repair in names]
    if left:
        fail(f"the output still breaks {[(each.rule, each.path) for each in left]}", sample, sent)


def untouched(sample: Sample, policy: AnyPolicy = None) -> None:
    """Every edit repairs a rule that check reports; without one the same objects come back.

    A replayed copy can hide a fault: what it hid is reported once the copy is gone. One repair can
    also bring out another fault: then the request, with those who speak called by their usual
    names, is refused for it if the pass is left out that repairs it.
    """
    report = made_of(sample, policy)
    reported = _rules(sample, policy, disputed=True)
    surprises = [edit for edit in report.edits if edit.rule not in reported]
    if surprises and any(edit.by in COPIERS for edit in report.edits):
        reported |= _rules_without_copies(sample, policy)
        surprises = [edit for edit in report.edits if edit.rule not in reported]
    for name in {edit.by for edit in surprises}:
        brought_out = _rules_without(name, _plainly(sample), policy)
        surprises = [e for e in surprises if e.by != name or e.rule not in brought_out]
    if surprises:
        fail(f"edits for rules that check does not report: {surprises}", sample)
    if reported:
        return
    given = sample.request[history_key(sample.request)]
    if report.messages is given:
        fail("the caller's own list came back", sample)
    if [*map(id, report.messages)] != [*map(id, given)]:
        fail("nothing was wrong, and other objects came back", sample, report.request)


def conserving(sample: Sample, policy: AnyPolicy = None) -> None:
    """No text and no real result is lost, nor the order of what was said."""
    conserve(sample, made_of(sample, policy))


def idempotent(sample: Sample, policy: AnyPolicy = None) -> None:
    """A second run makes no edit."""
    once = made_of(sample, policy).request
    twice = run_on(once, policy, again(sample.context))
    if twice.edits:
        fail(f"a second run makes {twice.edits}", sample, once)


def stable_prefix(growth: Growth, policy: AnyPolicy = None) -> int:
    """When a history grows, what was sent stays, up to the frontier; returns how much that is.

    The frontier is the first call unanswered before, by the client or by the server, or the first
    result that no call stands before: both may still find their other half. It is also the first
    message that turns out to be part of a replay once the rest of the replay has come; a turn that
    was invented because nothing followed yet; and where the speakers must take turns, the message
    before what may change, since the next one of the same speaker is joined to it.
    """
    before = made_anew(growth.before, policy)
    after = made_anew(growth.after, policy)
    end = frontier(growth.before, policy)
    given = growth.after.request[history_key(growth.after.request)]
    replayed = {id(given[at]) for at in dropped_copies(after)}
    end = min([end, *(at for at, each in enumerate(before.messages) if id(each) in replayed)])
    end -= may_go_on(before.request, end, policy, growth.before)
    for at in range(end):
        was = dump(wire(before.messages[at]))
        now = dump(wire(after.messages[at])) if at < len(after.messages) else "nothing"
        if was != now:
            fail(
                f"element {at} was {was} and became {now} (frontier {end})",
                growth.after,
                {"before": before.request, "after": after.request},
            )
    return end


def frozen_prefix(growth: Growth, policy: AnyPolicy = None, *, returned: bool) -> bool:
    """With the last request in the context all of it stays; returns whether a result came late.

    The caller's history grows as it came, or, with `returned`, as the list that was sent before.
    What is sent is still sound, nothing is lost, and a second run makes no edit. Four things are
    let off: a rule that judges old messages by new ones; a caller's own history that replays
    itself, since what was sent in the middle of a replay is a copy now; items that stand last only
    while the server has not done with them; and a result that was sent because a reference could
    have been its call, when the call comes by value.
    """
    key = history_key(growth.after.request)
    given = growth.after.request[key]
    sources = growth.after.context.sources
    cuts = [len(growth.before.request[key]), len(given), len(given) + 1]
    given = [*given, {"role": "user", "content": "and now?"}]
    sources = (*sources, None) if sources else ()
    sent: list[Any] = []
    edits: tuple[Change, ...] = ()
    start, late = 0, False
    for end in cuts:
        known = len(sent) if returned else start
        new, labels = given[start:end], sources[start:end]
        known_labels = (None,) * known if returned else sources[:start]
        facts: dict[str, Any] = {"sources": (*known_labels, *labels) if sources else ()}
        if sent:
            facts["last_request"] = {**growth.after.request, key: sent}
        sample = Sample(
            {**growth.after.request, key: [*(sent if returned else given[:start]), *new]},
            growth.after.context.model_copy(update=facts),
            growth.after.applied,
        )
        try:
            report = made_of(sample, policy)
        except UnrepairableError:
            return False  # cut off before a screenshot came
        if any(passes_by(wire(each)) for each in sent):
            return False
        hidden = not returned and any(edit.by in COPIERS for edit in report.edits)
        if any(NOT_KEPT in one for one in report.assumed):
            if hidden or any(RULES[rule].retroactive for rule in _named_in(report.assumed)):
                return late  # what was sent in pieces is a copy, and its end is lost
            if _called_by_value({key: sent}, {key: new}):
                return late
            fail(f"given up: {report.assumed}", sample, sent)
        if dump(list(map(wire, report.messages[: len(sent)]))) != dump(list(map(wire, sent))):
            fail("what was sent is not what is sent now", sample, report.request)
        sound(sample, policy)
        conserve(sample, report, () if returned else edits)
        idempotent(sample, policy)
        late = late or any(
            edit.by == "keep_prefix" and edit.what == "replace" for edit in report.edits
        )
        edits = (*edits, *report.edits)
        sent, start = report.messages, end
    return late


def _called_by_value(sent: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether the call of a result that was sent without it comes behind what was sent."""
    if not any(wire(each).get("type") == "item_reference" for each in sent.get("input", ())):
        return False
    alone = {result.id for result in read(sent).results if result.call is None}
    return any(call.id in alone for call in read(new).calls)


def _named_in(assumed: tuple[str, ...]) -> list[str]:
    """The rules that what is assumed names."""
    return [one for one in re.findall(r"\[([a-z0-9-]+)\]", " ".join(assumed)) if one in RULES]


NOT_KEPT = "last_request is not kept"


def deterministic(sample: Sample, policy: AnyPolicy = None) -> None:
    """Two runs give the same bytes and the same report."""
    one, two = made_of(sample, policy), run_on(sample.request, policy, sample.context)
    if dump(one.request) != dump(two.request):
        fail("two runs differ", sample, {"one": one.request, "two": two.request})
    if one.edits != two.edits:
        fail(f"two runs report {one.edits} and {two.edits}", sample)


def pure(sample: Sample, policy: AnyPolicy = None) -> None:
    """The input is as it was: the same objects with the same content."""
    key = history_key(sample.request)
    held = list(sample.request[key])
    shown = deepcopy([wire(element) for element in held])
    rest = deepcopy({name: value for name, value in sample.request.items() if name != key})
    made_anew(sample, policy)
    now = sample.request[key]
    if [*map(id, now)] != [*map(id, held)] or [wire(element) for element in now] != shown:
        fail(f"the caller's list was changed; it was {shown}", sample)
    if {name: value for name, value in sample.request.items() if name != key} != rest:
        fail(f"the caller's request was changed; it was {rest}", sample)


def honest(sample: Sample, policy: AnyPolicy = None) -> int:
    """Invented results are marked, and give way to the real ones; returns how many there were."""
    context = again(sample.context)
    once = made_of(sample, policy).request
    key = history_key(once)
    real_before = {result.output for result in read(sample.request).results}
    closed = [
        result
        for result in read(once).results
        if result.output not in real_before and result.texts != ("",)
    ]
    for result in closed:
        if not result.invented:
            fail(f"an invented result is not marked: {result.output}", sample, once)
    for result in closed[:1]:
        late = _real(once[key][result.at], key)
        twice = run_on({**once, key: [*once[key], late]}, policy, context).request
        now = read(twice).results
        real = [each.id for each in now if each.call and "the real result" in each.texts]
        invented = [each for each in now if each.invented]
        if real != [result.id] or len(invented) != len(closed) - 1:
            fail(f"the real result of {result.id} did not replace the invented one", sample, twice)
    return len(closed)


def surveyed(sample: Sample, policy: AnyPolicy = None) -> None:
    """The survey never misses: waking every pass makes no edit more."""
    woken = made_of(sample, policy)
    forced = run_on(sample.request, policy, sample.context, force=True)
    if woken.edits != forced.edits:
        fail(f"passes that slept would have made {forced.edits} of {woken.edits}", sample)


def _rules(sample: Sample, policy: AnyPolicy, *, disputed: bool) -> set[str]:
    found = check(sample.request, policy, context=sample.context, disputed=disputed)
    return {violation.rule for violation in found}


def _rules_without_copies(sample: Sample, policy: AnyPolicy) -> set[str]:
    whole = take_apart(sample.request, policy, sample.context).policy
    passes = tuple(each for each in whole.passes if each.name in COPIERS)
    once = run_on(sample.request, whole.model_copy(update={"passes": passes}), sample.context)
    return _rules(Sample(once.request, again(sample.context)), policy, disputed=True)


def _plainly(sample: Sample) -> Sample:
    """The same, with everybody called what the API calls him, and calls made by the assistant."""
    key, labels = history_key(sample.request), sample.context.sources
    elements: list[Any] = []
    sources: list[str | None] = []
    for at, element in enumerate(map(wire, sample.request[key])):
        parts = [element]
        if isinstance(role := element.get("role"), str):
            element["role"] = FOREIGN.get(role.casefold(), role)
        if element.get("tool_calls") and element.get("role") in ("user", "system", "developer"):
            parts.append({"role": "assistant", "tool_calls": element.pop("tool_calls")})
        elements += parts
        sources += [labels[at]] * len(parts) if labels else []
    facts = again(sample.context).model_copy(update={"sources": tuple(sources)})
    return Sample({**sample.request, key: elements}, facts)


def _rules_without(name: str, sample: Sample, policy: AnyPolicy) -> set[str]:
    """What is wrong with what all other passes leave."""
    whole = take_apart(sample.request, policy, sample.context).policy
    others = whole.model_copy(
        update={
            "passes": tuple(each for each in whole.passes if each.name != name),
            "unrepairable": "send",
        }
    )
    left = run_on(sample.request, others, sample.context)
    return _rules(Sample(left.request, again(sample.context)), policy, disputed=True)


def _real(invented: object, key: str) -> dict[str, Any]:
    """The result that came late, in the shape of the one that was made up for it."""
    element: dict[str, Any] = wire(invented)
    if key == "messages":
        return {**element, "content": "the real result"}
    if element["type"] == "shell_call_output":
        done = {"type": "exit", "exit_code": 0}
        return {**element, "output": [{"stdout": "the real result", "stderr": "", "outcome": done}]}
    if element["type"] == "apply_patch_call_output":
        return {**element, "status": "completed", "output": "the real result"}
    return {**element, "output": "the real result"}
