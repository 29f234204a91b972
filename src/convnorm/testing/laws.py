"""The laws, each a function that raises AssertionError with what broke it.

They hold for every history and every default policy; call them on your own policy and samples.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from convnorm import Context, Policy, UnrepairableError, check, normalize_request
from convnorm.edits import Loss
from convnorm.envelope import is_turn
from convnorm.intake import take_apart
from convnorm.pipeline import Change, run
from convnorm.rules import RULES
from convnorm.testing.reading import (
    FOREIGN,
    SPEAKERS,
    Reading,
    Returned,
    Said,
    dump,
    history_key,
    read,
    wire,
    words_in,
)
from convnorm.testing.strategies import Growth, Sample

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

COPIERS = ("arbitrate_sources", "dedupe")
"""The passes that take copies out, before any other looks."""

CALL = "<tool-call"
"""How a call begins that is quoted, since it cannot be sent."""

AnyPolicy = Policy | str | None


@dataclass(frozen=True, slots=True)
class Made:
    """What a run makes of a request."""

    request: dict[str, Any]
    messages: list[Any]
    edits: tuple[Change, ...]
    assumed: tuple[str, ...]


_latest: list[tuple[Sample, AnyPolicy, Made]] = []
"""What was made last: laws that are asked about one sample in a row share a run of it."""


def _run(
    request: Mapping[str, Any], policy: AnyPolicy, context: Context, *, force: bool = False
) -> Made:
    """The work of `normalize_request`; `force` wakes passes that would sleep."""
    done = run(take_apart(request, policy, context), force=force)
    sent = {**done.fields, history_key(request): done.elements}
    return Made(sent, done.elements, done.edits, done.assumed)


def _made(sample: Sample, policy: AnyPolicy) -> Made:
    for known, by, made in _latest:
        if known is sample and by is policy:
            return made
    return _made_anew(sample, policy)


def _made_anew(sample: Sample, policy: AnyPolicy) -> Made:
    made = _run(sample.request, policy, sample.context)
    _latest[:] = [(sample, policy, made)]
    return made


def sound(sample: Sample, policy: AnyPolicy = None) -> None:
    """What comes out is accepted; only a fault that no pass may repair is refused instead.

    A rule whose pass is not in the policy, or not built yet, is reported and not repaired.
    """
    try:
        sent = normalize_request(sample.request, policy, context=sample.context)
    except UnrepairableError as error:
        if error.rule not in _rules(sample, policy, disputed=False):
            _fail(f"refused for {error.rule}, which check does not report", sample)
        return
    whole = take_apart(sample.request, policy, sample.context).policy
    names = {None, *(each.name for each in whole.passes)}
    found = check(sent, policy, context=_again(sample.context))
    left = [each for each in found if each.repair in names]
    if left:
        _fail(f"the output still breaks {[(each.rule, each.path) for each in left]}", sample, sent)


def untouched(sample: Sample, policy: AnyPolicy = None) -> None:
    """Every edit repairs a rule that check reports; without one the same objects come back.

    A replayed copy can hide a fault: what it hid is reported once the copy is gone. One repair can
    also bring out another fault: then the request, with those who speak called by their usual
    names, is refused for it if the pass is left out that repairs it.
    """
    report = _made(sample, policy)
    reported = _rules(sample, policy, disputed=True)
    surprises = [edit for edit in report.edits if edit.rule not in reported]
    if surprises and any(edit.by in COPIERS for edit in report.edits):
        reported |= _rules_without_copies(sample, policy)
        surprises = [edit for edit in report.edits if edit.rule not in reported]
    for name in {edit.by for edit in surprises}:
        brought_out = _rules_without(name, _plainly(sample), policy)
        surprises = [e for e in surprises if e.by != name or e.rule not in brought_out]
    if surprises:
        _fail(f"edits for rules that check does not report: {surprises}", sample)
    if reported:
        return
    given = sample.request[history_key(sample.request)]
    if report.messages is given:
        _fail("the caller's own list came back", sample)
    if [*map(id, report.messages)] != [*map(id, given)]:
        _fail("nothing was wrong, and other objects came back", sample, report.request)


def conserving(sample: Sample, policy: AnyPolicy = None) -> None:
    """No text and no real result is lost, nor the order of what was said."""
    _conserve(sample, _made(sample, policy))


def _conserve(sample: Sample, report: Made, earlier: tuple[Change, ...] = ()) -> None:
    """`earlier`: what was changed before in what is kept of the last request."""
    report = replace(report, edits=(*earlier, *report.edits))
    before, after = read(sample.request), read(report.request)
    if sample.copied is False:
        taken = [each for each in report.edits if each.by in COPIERS and each.what == "drop"]
        if taken:
            _fail(f"nothing was there twice, and copies were dropped: {taken}", sample)
    copies = _dropped_copies(report)
    _conserve_said(before, after, copies, sample, report)
    _conserve_media(before, after, copies, sample, report)
    _conserve_calls(before, after, copies, sample, report)
    _conserve_results(before, after, copies, sample, report)


def idempotent(sample: Sample, policy: AnyPolicy = None) -> None:
    """A second run makes no edit."""
    once = _made(sample, policy).request
    twice = _run(once, policy, _again(sample.context))
    if twice.edits:
        _fail(f"a second run makes {twice.edits}", sample, once)


def stable_prefix(growth: Growth, policy: AnyPolicy = None) -> int:
    """When a history grows, what was sent stays, up to the frontier; returns how much that is.

    The frontier is the first call unanswered before, by the client or by the server, or the first
    result that no call stands before: both may still find their other half. It is also the first
    message that turns out to be part of a replay once the rest of the replay has come; a turn that
    was invented because nothing followed yet; and where the speakers must take turns, the message
    before what may change, since the next one of the same speaker is joined to it.
    """
    before = _made_anew(growth.before, policy)
    after = _made_anew(growth.after, policy)
    end = _frontier(growth.before, policy)
    given = growth.after.request[history_key(growth.after.request)]
    replayed = {id(given[at]) for at in _dropped_copies(after)}
    end = min([end, *(at for at, each in enumerate(before.messages) if id(each) in replayed)])
    end -= _may_go_on(before.request, end, policy, growth.before)
    for at in range(end):
        was = dump(wire(before.messages[at]))
        now = dump(wire(after.messages[at])) if at < len(after.messages) else "nothing"
        if was != now:
            _fail(
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
    itself, since what was sent in the middle of a replay is a copy now; one of which messages were
    joined, since it does not show how many came at a time; and items that stand last only while the
    server has not done with them.
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
            report = _made(sample, policy)
        except UnrepairableError:
            return False  # cut off before a screenshot came
        if any(_passes_by(wire(each)) for each in sent):
            return False
        hidden = not returned and (
            any(edit.by in COPIERS for edit in report.edits)
            or any(edit.by == "repair_roles" and edit.what == "drop" for edit in edits)
            or any(edit.by == "repair_roles" and edit.what == "drop" for edit in report.edits)
        )
        if any(NOT_KEPT in one for one in report.assumed):
            if hidden or any(RULES[rule].retroactive for rule in _named_in(report.assumed)):
                return late  # what was sent in pieces is a copy or joined, and its end is lost
            _fail(f"given up: {report.assumed}", sample, sent)
        if dump(list(map(wire, report.messages[: len(sent)]))) != dump(list(map(wire, sent))):
            _fail("what was sent is not what is sent now", sample, report.request)
        sound(sample, policy)
        _conserve(sample, report, () if returned else edits)
        idempotent(sample, policy)
        late = late or any(
            edit.by == "keep_prefix" and edit.what == "replace" for edit in report.edits
        )
        edits = (*edits, *report.edits)
        sent, start = report.messages, end
    return late


def _named_in(assumed: tuple[str, ...]) -> list[str]:
    """The rules that what is assumed names."""
    return [one for one in re.findall(r"\[([a-z0-9-]+)\]", " ".join(assumed)) if one in RULES]


def _passes_by(element: Mapping[str, Any]) -> bool:
    """Whether the item comes again when the server has done it, or must always stand last."""
    working = element.get("status") == "in_progress"
    return working or element.get("type") == "compaction_trigger"


NOT_KEPT = "last_request is not kept"


def deterministic(sample: Sample, policy: AnyPolicy = None) -> None:
    """Two runs give the same bytes and the same report."""
    one, two = _made(sample, policy), _run(sample.request, policy, sample.context)
    if dump(one.request) != dump(two.request):
        _fail("two runs differ", sample, {"one": one.request, "two": two.request})
    if one.edits != two.edits:
        _fail(f"two runs report {one.edits} and {two.edits}", sample)


def pure(sample: Sample, policy: AnyPolicy = None) -> None:
    """The input is as it was: the same objects with the same content."""
    key = history_key(sample.request)
    held = list(sample.request[key])
    shown = deepcopy([wire(element) for element in held])
    rest = deepcopy({name: value for name, value in sample.request.items() if name != key})
    _made_anew(sample, policy)
    now = sample.request[key]
    if [*map(id, now)] != [*map(id, held)] or [wire(element) for element in now] != shown:
        _fail(f"the caller's list was changed; it was {shown}", sample)
    if {name: value for name, value in sample.request.items() if name != key} != rest:
        _fail(f"the caller's request was changed; it was {rest}", sample)


def honest(sample: Sample, policy: AnyPolicy = None) -> int:
    """Invented results are marked, and give way to the real ones; returns how many there were."""
    context = _again(sample.context)
    once = _made(sample, policy).request
    key = history_key(once)
    real_before = {result.output for result in read(sample.request).results}
    closed = [
        result
        for result in read(once).results
        if result.output not in real_before and result.texts != ("",)
    ]
    for result in closed:
        if not result.invented:
            _fail(f"an invented result is not marked: {result.output}", sample, once)
    for result in closed[:1]:
        late = _real(once[key][result.at], key)
        twice = _run({**once, key: [*once[key], late]}, policy, context).request
        now = read(twice).results
        real = [each.id for each in now if each.call and "the real result" in each.texts]
        invented = [each for each in now if each.invented]
        if real != [result.id] or len(invented) != len(closed) - 1:
            _fail(f"the real result of {result.id} did not replace the invented one", sample, twice)
    return len(closed)


def surveyed(sample: Sample, policy: AnyPolicy = None) -> None:
    """The survey never misses: waking every pass makes no edit more."""
    woken = _made(sample, policy)
    forced = _run(sample.request, policy, sample.context, force=True)
    if woken.edits != forced.edits:
        _fail(f"passes that slept would have made {forced.edits} of {woken.edits}", sample)


def _fail(why: str, sample: Sample, sent: object = None) -> NoReturn:
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


def _again(context: Context) -> Context:
    """The facts that still hold for what was sent; labels and positions were of the input."""
    return context.model_copy(update={"sources": (), "provenance": Context().provenance})


def _rules(sample: Sample, policy: AnyPolicy, *, disputed: bool) -> set[str]:
    found = check(sample.request, policy, context=sample.context, disputed=disputed)
    return {violation.rule for violation in found}


def _rules_without_copies(sample: Sample, policy: AnyPolicy) -> set[str]:
    whole = take_apart(sample.request, policy, sample.context).policy
    passes = tuple(each for each in whole.passes if each.name in COPIERS)
    once = _run(sample.request, whole.model_copy(update={"passes": passes}), sample.context)
    return _rules(Sample(once.request, _again(sample.context)), policy, disputed=True)


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
    facts = _again(sample.context).model_copy(update={"sources": tuple(sources)})
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
    left = _run(sample.request, others, sample.context)
    return _rules(Sample(left.request, _again(sample.context)), policy, disputed=True)


def _dropped_copies(report: Made) -> set[int]:
    """The elements that went, or lost something, because the same thing is elsewhere."""
    return _places(report, lambda edit: edit.what == "drop" and edit.rule in COPIES)


def _loses_reasoning(edit: Change) -> bool:
    """Whether reasoning goes whole; of an item that stays, only its plain text may go."""
    whole = edit.what == "drop" or edit.where.startswith("messages")
    return whole and edit.loss == Loss.REASONING


def _places(report: Made, wanted: Callable[[Change], bool]) -> set[int]:
    """The elements that an edit of this sort was about."""
    places = [re.search(r"\[(\d+)\]", edit.where) for edit in report.edits if wanted(edit)]
    return {int(place[1]) for place in places if place}


def _conserve_said(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    ids = {said.id for said in after.said if said.id}
    unusable = {
        "reasoning": _places(report, _loses_reasoning),
        "item": _places(report, lambda edit: edit.what == "drop" and edit.loss == Loss.EMPTY),
        # A sound is named by an id under a key of its own, which not every server takes.
        "audio": _places(report, lambda edit: edit.loss == Loss.FIELD),
    }
    dropped = {said.what for said in before.said if said.at in unusable.get(said.role, ())}
    rules = {edit.rule for edit in report.edits}
    for said in before.said:
        if said.at not in copies or said.id in ids:
            continue
        if said.what not in dropped and not Told(after.said, rules).goes_on_with(said):
            _fail(f"dropped as a copy, and no other is left: {said}", sample, report.request)
    told = Told(after.said, rules)
    for said in before.said:
        if said.at in unusable.get(said.role, ()):
            continue
        if said.at not in copies and not told.goes_on_with(said):
            _fail(f"lost or out of order: {said}", sample, report.request)


def _conserve_media(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    """Every medium is still there, if only quoted; those in messages in their order."""
    there = Counter(medium.text for medium in after.media)
    words = "\n".join(said.text for said in after.said)
    results = {result.at for result in before.results}
    told = iter([medium.text for medium in after.media])
    for medium in before.media:
        if medium.at in copies or medium.text in words:
            continue
        there[medium.text] -= 1
        if there[medium.text] < 0:
            _fail(f"lost: {medium}", sample, report.request)
        if medium.at not in results and medium.text not in told:
            _fail(f"out of order: {medium}", sample, report.request)


JOINED = "template-roles-alternate"
"""Under this rule several messages may be told as one, each on lines of its own."""
RANKED = (JOINED, "chat-system-role-unsupported", "chat-developer-role-unsupported")
"""Under these rules instructions may be told under their other name, or under a lower rank."""
LOWER = {"developer": ("system", "user"), "system": ("developer", "user")}


class Told:
    """What was said afterwards, read once from its beginning to its end."""

    def __init__(self, said: list[Said], rules: set[str]) -> None:
        self.said, self.joined = said, JOINED in rules
        self.lower = LOWER if not rules.isdisjoint(RANKED) else {}
        self.at, self.start = 0, 0

    def goes_on_with(self, one: Said) -> bool:
        """Whether `one` is told somewhere from here on; then the reading goes on behind it."""
        while self.at < len(self.said):
            end = self._end_of(one, self.said[self.at])
            if end is not None:
                self.start = end
                return True
            self.at, self.start = self.at + 1, 0
        return False

    def _end_of(self, one: Said, other: Said) -> int | None:
        """Where in the text of `other` it ends, if it is told there."""
        whole = len(other.text) + 1
        if one.role == "item":
            # A server knows its item by the id; one that cannot be sent is quoted whole.
            same = other.role == "item" and one.id is not None and one.id == other.id
            quoted = other.role == "user" and one.text in words_in(other)
            return whole if same or quoted or one.what == other.what else None
        if other.role not in (one.role, *self.lower.get(one.role, ())):
            return None
        if not self.joined or one.role not in SPEAKERS:
            # Who speaks under a name that cannot be sent is told in the text.
            told = (one.text, one.text if one.name is None else f"{one.name}: {one.text}")
            return whole if other.text in told and not self.start else None
        lines, start = f"\n{other.text}\n", self.start
        found = lines.find(f"\n{one.text}\n", start)
        return None if found < 0 else found + len(one.text) + 1


def _conserve_calls(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    late = sample.context.last_request is not None
    quotes = [words_in(said) for said in after.said] if late else _new_quotes(before, after)
    for group in {call.what for call in before.calls}:
        asked = [call for call in before.calls if call.what == group]
        needed = [call.at for call in asked if call.at not in copies]
        found = sum(call.what == group for call in after.calls)
        # A call that cannot be sent is quoted whole.
        found += sum(CALL in quote and group[1] in quote for quote in quotes)
        if found < max(len(needed), 1):
            _fail(f"a call is lost: {group}", sample, report.request)


def _conserve_results(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    """Each real result answers its own call, or is quoted in a turn that was not there before."""
    answers = [result for result in after.results if not result.invented]
    late = sample.context.last_request is not None  # it may have come when its call was sent
    unclaimed = list(answers)
    # With a last request a quotation may repeat one that was sent.
    quotes = [words_in(said) for said in after.said] if late else _new_quotes(before, after)
    answered = {result.call.what for result in answers if result.call}
    # Those that answer a call come first, and of these whoever can answer the fewest: a second
    # result must not take their place.
    for result in sorted(before.results, key=lambda each: (each.call is None, len(each.could))):
        if result.invented:
            continue
        copied = result.at in copies
        candidates = answers if copied else unclaimed
        found = next((each for each in candidates if _answers(each, result, copied=copied)), None)
        if found is not None:
            if not copied:
                unclaimed.remove(found)
        elif any(CALL in quote and _quotes(quote, result) for quote in quotes):
            continue  # together with its call, which cannot be sent
        elif result.call and not (copied or late or result.could & answered):
            _fail(f"no longer answers its call: {result}", sample, report.request)
        elif any(result.texts) and not any(_quotes(quote, result) for quote in quotes):
            _fail(f"a real result is lost: {result}", sample, report.request)


def _new_quotes(before: Reading, after: Reading) -> list[str]:
    """What user turns say that were not there before."""
    old = {said.what for said in before.said}
    return [words_in(said) for said in after.said if said.what not in old and said.role == "user"]


def _quotes(quote: str, result: Returned) -> bool:
    """Whether the words stand there, as they are or as JSON."""
    return all(word in quote or dump(word)[1:-1] in quote for word in result.texts)


def _answers(found: Returned, result: Returned, *, copied: bool) -> bool:
    if found.output != result.output:
        return False
    if found.call is None:  # the server has the call; a copy may stand behind one by chance
        return (copied or result.call is None) and found.id == result.id
    return found.call.what in result.could


def _frontier(sample: Sample, policy: AnyPolicy) -> int:
    """How much of what is sent for `sample` can no longer change."""
    given = read(sample.request)
    key, facts = history_key(sample.request), sample.context
    ahead = [
        result.at
        for result in given.results
        if not any(call.at < result.at and call.id == result.id for call in given.calls if call.id)
    ]
    if ahead:
        start = {**sample.request, key: sample.request[key][: ahead[0]]}
        facts = facts.model_copy(update={"sources": facts.sources[: ahead[0]]})
        return _frontier(Sample(start, facts), policy) if ahead[0] else 0
    try:
        report = _run(sample.request, policy, facts)
    except UnrepairableError:  # cut off before a screenshot came
        return 0
    sent = read(report.request)
    closed = [result.call.at for result in sent.results if result.invented and result.call]
    # A copy of a call may have gone because it was unanswered.
    waiting = list(given.unanswered)
    # A result with nothing in it gives way to one that says something.
    waiting += [each.call for each in given.results if each.null and each.call]
    kept = {call.id for call in sent.calls}
    asked = {(call.id if call.id in kept else None, call.what) for call in waiting}
    closed += [
        call.at
        for call in sent.calls
        if not asked.isdisjoint({(call.id, call.what), (None, call.what)})
    ]
    made = {call.what for call in sent.calls}
    if any(call.what not in made for call in waiting):  # it is quoted, and its result will be
        closed += [said.at for said in sent.said if said.text.startswith(CALL)]
    elements = [wire(each) for each in report.messages]
    working = [_led_at(elements, at) for at, each in enumerate(elements) if _passes_by(each)]
    return min([*closed, *working, *_open_turn(sample, policy, report), len(elements)])


def _led_at(elements: Sequence[Mapping[str, Any]], at: int) -> int:
    """Where the reasoning begins that leads to this item: when the item moves, it leads nowhere."""
    while at and elements[at - 1].get("type") == "reasoning":
        at -= 1
    return at


def _open_turn(sample: Sample, policy: AnyPolicy, report: Made) -> list[int]:
    """What a later turn can ask for: reasoning of all replies since the user spoke, where a call
    comes among them, or that sealed reasoning goes once there is newer one.
    """
    target = take_apart(sample.request, policy, None).call.target
    sent = [wire(each) for each in report.messages]
    if target.responses.one_sealed_response:
        return [at for at, one in enumerate(sent) if one.get("type") == "reasoning"]
    if not target.chat.turns_think:
        return []
    start = max((at for at, one in enumerate(sent) if one.get("role") == "user"), default=-1)
    return [at for at, one in enumerate(sent) if at > start and one.get("role") == "assistant"]


def _may_go_on(sent: Mapping[str, Any], end: int, policy: AnyPolicy, sample: Sample) -> bool:
    """Whether what comes at `end` can be joined to the message before it, or take its place."""
    elements = sent[history_key(sent)]
    last = wire(elements[end - 1]) if end else {}
    if last.get("role") not in SPEAKERS or last.get("tool_calls"):
        return False
    chat = take_apart(sample.request, policy, sample.context).call.target.chat
    text = last.get("content")
    return chat.alternating or (end == len(elements) and isinstance(text, str) and is_turn(text))


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
