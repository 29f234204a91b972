"""Any answer through the real anthropic client: what its accumulator makes of it is ours too."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_answer import ANSWERS
from convnorm.mergers import Answer, merger_for
from sse import Speaker, speaker
from streams import Stream


@pytest.fixture(scope="module")
def server() -> Iterator[Speaker]:
    with speaker() as made:
        yield made


@pytest.fixture(scope="module")
def client(server: Speaker) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=server.url, api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


def merged(updates: list[Any]) -> Answer:
    merger = merger_for(updates[0])
    for update in updates:
        merger.add(update)
    return merger.answer(over=True)


BODY: Any = {
    "model": "claude-opus-4-5",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "?"}],
}


@given(stream=ANSWERS["anthropic.messages"], data=st.data())
def test_messages(
    server: Speaker, client: anthropic.Anthropic, stream: Stream, data: st.DataObject
) -> None:
    """Events, the helper's events and its final message are one answer; cut, they are too."""
    server.whole, server.events = stream
    whole = merged([client.beta.messages.create(**BODY)])
    with client.beta.messages.create(**BODY, stream=True) as events:
        streamed = list(events)
    with client.beta.messages.stream(**BODY) as helper:
        helped = merged(list(helper))
        final = merged([helper.get_final_message()])

    assert [repr(whole)] * 3 == [repr(one) for one in (merged(streamed), helped, final)]
    told = [event for event in server.events if event["type"] != "ping"]
    stop = data.draw(st.integers(1, len(told)))
    assert merged(told[:stop]) == merged(streamed[:stop])
