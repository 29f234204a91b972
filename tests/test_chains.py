"""Whatever chains a ledger knows, and whichever of them a request names or answers."""

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import call, message, output, reasoning, user
from convnorm import Context, Ledger, Link, UnrepairableError, explain
from convnorm.testing import laws
from convnorm.testing.strategies import Sample

Item = dict[str, Any]
EXAMPLES = settings().max_examples * 3
ENOUGH = settings().max_examples // 4


@st.composite
def forests(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Responses that continue each other or none, as data, and the calls that each waits for."""
    responses: dict[str, Any] = {}
    waiting: dict[str, list[str]] = {}
    for at in range(draw(st.integers(1, 4))):
        kept = [name for name, one in responses.items() if one["stored"]]
        before = draw(st.sampled_from([None, *kept]))
        asked = waiting.get(before or "", [])
        sent = [output(made, f"result of {made} for resp_{at}") for made in asked]
        if not sent or draw(st.booleans()):
            sent.append(user(f"question {at}"))
        told: list[Item] = []
        if draw(st.booleans()):
            told.append(reasoning(f"rs_{at}", draw(st.sampled_from([None, f"seal{at}"]))))
        calls = [f"call_{at}{letter}9f8e7d" for letter in "ab"[: draw(st.integers(0, 2))]]
        if not calls or draw(st.booleans()):
            told.append(message(f"msg_{at}", f"answer {at}"))
        told += [call(made, id=f"fc_{made[5:]}") for made in calls]
        waiting[f"resp_{at}"] = calls
        responses[f"resp_{at}"] = {
            "input": sent,
            "output": told,
            "previous_response_id": before,
            "stored": draw(st.integers(0, 4)) > 0,
        }
    return responses, waiting


@st.composite
def requests(draw: st.DrawFn) -> tuple[Sample, list[str]]:
    """A request that brings something new, and what is new in it."""
    responses, waiting = draw(forests())
    told = [item for one in responses.values() for item in (*one["input"], *one["output"])]
    old = told[draw(st.integers(0, len(told))) :] if draw(st.booleans()) else []
    calls = [made for name in waiting for made in waiting[name]]
    answered = [made for made in calls if draw(st.booleans())]
    new = [output(made, f"new result of {made}") for made in answered]
    if not new or draw(st.booleans()):
        new.insert(draw(st.integers(0, len(new))), user("new question"))
    state: dict[str, Any] = {"responses": responses}
    body: dict[str, Any] = {"model": "gpt-5.1", "input": [*old, *new]}
    named = draw(st.sampled_from([None, "resp_unheard_of", *responses]))
    if named is not None:
        body["previous_response_id"] = named
    if draw(st.integers(0, 3)) == 0:
        parts = [one for one in responses.values() if draw(st.booleans())]
        held = [item for one in parts for item in (*one["input"], *one["output"])]
        state["conversations"] = {"conv_1": {"items": held}}
        body["conversation"] = "conv_1"
    store = draw(st.sampled_from([None, True, False]))
    sample = Sample(
        body if store is None else {**body, "store": store},
        Context(ledger=Ledger.from_state(state)),
    )
    return sample, [one.get("content") or one["output"] for one in new]


def test_what_is_new_is_seen_once_behind_any_chain() -> None:
    """A request has one beginning, and may answer calls of several chains."""
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES)
    @given(requests())
    def holds(made: tuple[Sample, list[str]]) -> None:
        sample, new = made
        laws.sound(sample)
        try:
            report = explain(sample.request, context=sample.context)
        except UnrepairableError:
            return
        for law in (laws.pure, laws.deterministic, laws.surveyed, laws.idempotent):
            law(sample)
        sent = report.request or {}
        told = json.dumps(sent["input"])
        assert [1] * len(new) == [told.count(text) for text in new], (sample, sent)
        before, after = Link.of(sample.request), Link.of(sent)
        seen["link kept"] += before == after != Link()
        seen["link given up"] += before != after == Link()
        seen["link moved"] += Link() not in (before, after) and before != after
        whys = {edit.why.partition(" made the call")[2] for edit in report.edits}
        seen["other chain"] += whys != {""}

    holds()
    assert min(seen[name] for name in ("link kept", "link given up", "link moved")) >= ENOUGH, seen
    assert seen["other chain"] >= ENOUGH, seen
