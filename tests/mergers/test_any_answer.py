"""Answers of every kind, in pieces of every size, whole and cut at every event."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_answer import ANSWERS
from convnorm.mergers import Answer, merger_for
from next_request import next_violations


def merged(events: list[Any]) -> Answer:
    merger = merger_for(next(event for event in events if event.get("type") != "ping"))
    for event in events:
        merger.add(event)
    return merger.answer(over=True)


@pytest.mark.parametrize("target", ANSWERS)
@given(data=st.data())
def test_streamed_and_not_streamed(target: str, data: st.DataObject) -> None:
    """The same answer, byte for byte, and the events stay as they were."""
    whole, events = data.draw(ANSWERS[target])
    before = deepcopy((whole, events))

    assert repr(merged([whole])) == repr(merged(events))
    assert before == (whole, events)


@given(stream=ANSWERS["openai.responses"])
def test_what_was_streamed_is_all(stream: Any) -> None:
    """Where the last event leaves the items out, those that were streamed are the answer."""
    whole, events = stream
    last = {**events[-1], "response": {**whole, "output": []}}

    assert merged([whole]) == merged([*events[:-1], last])


def calls(target: str, items: Any) -> list[Any]:
    """The client's calls, each as it stands, without what the server calls it."""
    if target == "openai.chat":
        return [call for item in items for call in item.get("tool_calls", ())]
    if target == "openai.responses":
        kinds = ("function_call", "custom_tool_call")
        found = [item for item in items if item.get("type") in kinds]
        return [{key: item[key] for key in item if key != "id"} for item in found]
    return [one for item in items for one in item["content"] if one["type"] == "tool_use"]


@pytest.mark.parametrize("target", ANSWERS)
@settings(max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 2)
@given(data=st.data())
def test_cut_at_every_event(target: str, data: st.DataObject) -> None:
    """No call is a half, nothing is told twice or out of order, and the next request is right."""
    whole, events = data.draw(ANSWERS[target])
    every = calls(target, merged([whole]).items)
    first = next(at for at, event in enumerate(events) if event.get("type") != "ping")
    for stop in range(first + 1, len(events)):
        items = merged(events[:stop]).items
        kept = iter(every)
        assert all(call in kept for call in calls(target, items))
        assert [] == next_violations(target, items)
