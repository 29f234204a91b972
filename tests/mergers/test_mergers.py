"""What every merger does, whatever it is given."""

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import settings

from convnorm import DialectError
from convnorm.mergers import MERGERS, merger_for
from convnorm.testing.strict_server import Reply, call, reasoning
from mutate import damaged
from streams import STREAMS

REPLY = Reply(reasoning("Hm."), "It rains.", call("weather", city="Oslo"))
COUNT = 10 * settings.get_profile(settings.get_current_profile_name()).max_examples


@pytest.mark.parametrize("target", STREAMS)
def test_a_damaged_stream_still_has_an_answer(target: str) -> None:
    """A merger may refuse an update; what it took in always makes an answer, which is JSON."""
    answers = 0
    for events in damaged(target, [STREAMS[target](REPLY)[1]], COUNT):
        if not isinstance(events, list) or not events or not known(events[0]):
            continue
        merger = merger_for(events[0])
        for event in events:
            # What a merger raises, the recorder makes a note of.
            with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):
                merger.add(event)
        answer = merger.answer(over=True)
        assert json.loads(json.dumps(answer.items)) == list(answer.items)
        answers += 1
    assert answers > COUNT // 2


@pytest.mark.parametrize("target", STREAMS)
def test_the_updates_stay_as_they_came(target: str) -> None:
    """A consumer may keep them: what comes later changes none."""
    events = STREAMS[target](REPLY)[1]
    before = deepcopy(events)
    merger = merger_for(events[0])
    for event in events:
        merger.add(event)
    merger.answer(over=True)

    assert before == events


def known(update: Any) -> bool:
    """Whether what was damaged is not the very beginning."""
    return any(kind.takes(update) for kind in MERGERS)


@pytest.mark.parametrize(
    "update",
    [
        *(None, 7, "text", {}, [{}], {"type": "session.created"}, {"choices": 7}, object()),
        [{"type": "message_start", "message": {}}, {"type": "message_stop"}],
    ],
)
def test_what_is_no_update(update: Any) -> None:
    """It is refused, with the mergers that were asked."""
    with pytest.raises(DialectError, match="OpenaiChat, OpenaiResponses, AnthropicMessages, Plain"):
        merger_for(update)


def test_plain_items() -> None:
    """Each is kept whole; what is none is a note."""
    merger = merger_for(one := {"role": "user", "content": "one"})
    two = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    for update in (one, [two, one], 7):
        merger.add(update)
    answer = merger.answer(over=False)

    assert ((one, two, one), False) == (answer.items, answer.complete)
    assert [("update", 3)] == [(note.kind, note.at) for note in answer.notes]
