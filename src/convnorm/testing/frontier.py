"""How much of what is sent can no longer change when the history grows."""

from collections.abc import Mapping, Sequence
from typing import Any

from convnorm import UnrepairableError
from convnorm.envelope import is_turn
from convnorm.intake import take_apart
from convnorm.testing.made import CALL, AnyPolicy, Made, passes_by, run_on
from convnorm.testing.reading import SPEAKERS, history_key, read, wire
from convnorm.testing.strategies import Sample


def frontier(sample: Sample, policy: AnyPolicy) -> int:
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
        end = frontier(Sample(start, facts), policy) if ahead[0] else 0
        # A turn that was invented behind so little has no place in the whole.
        return end - (end > 0 and _invented(run_on(start, policy, facts).messages[end - 1]))
    try:
        report = run_on(sample.request, policy, facts)
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
    working = [_led_at(elements, at) for at, each in enumerate(elements) if passes_by(each)]
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


def may_go_on(sent: Mapping[str, Any], end: int, policy: AnyPolicy, sample: Sample) -> bool:
    """Whether what comes at `end` can be joined to the message before it, or take its place."""
    elements = sent[history_key(sent)]
    last = wire(elements[end - 1]) if end else {}
    if last.get("role") not in SPEAKERS or last.get("tool_calls"):
        return False
    chat = take_apart(sample.request, policy, sample.context).call.target.chat
    return chat.alternating or (end == len(elements) and _invented(last))


def _invented(element: object) -> bool:
    text = wire(element).get("content")
    return isinstance(text, str) and is_turn(text)
