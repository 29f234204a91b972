"""Any answer through the real openai client: what its own accumulators make of it is ours too."""

from collections.abc import Iterator
from typing import Any

import openai
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
def client(server: Speaker) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=20) as made:
        yield made


def merged(updates: list[Any]) -> Answer:
    merger = merger_for(updates[0])
    for update in updates:
        merger.add(update)
    return merger.answer(over=True)


MESSAGES: Any = [{"role": "user", "content": "weather?"}]


@given(stream=ANSWERS["openai.chat"])
def test_chat(server: Speaker, client: openai.OpenAI, stream: Stream) -> None:
    """Chunks, the helper's events and its final completion are one answer, and so are the dicts."""
    server.whole, server.events = stream
    chat = client.chat.completions
    whole = merged([chat.create(model="m", messages=MESSAGES)])
    with chat.create(model="m", messages=MESSAGES, stream=True) as chunks:
        streamed = merged(list(chunks))
    with chat.stream(model="m", messages=MESSAGES) as helper:
        helped = merged(list(helper))
        final = merged([helper.get_final_completion()])

    assert [repr(whole)] * 3 == [repr(one) for one in (streamed, helped, final)]
    assert streamed == merged(list(server.events))


@given(stream=ANSWERS["openai.responses"], data=st.data())
def test_responses(
    server: Speaker, client: openai.OpenAI, stream: Stream, data: st.DataObject
) -> None:
    """Events, the helper's events and its final response are one answer; cut, they are too."""
    server.whole, server.events = stream
    whole = merged([client.responses.create(model="m", input="weather?")])
    with client.responses.create(model="m", input="weather?", stream=True) as events:
        streamed = list(events)
    with client.responses.stream(model="m", input="weather?") as helper:
        helped = list(helper)
        final = merged([helper.get_final_response()])

    assert [repr(whole)] * 3 == [repr(one) for one in (merged(streamed), merged(helped), final)]
    stop = data.draw(st.integers(1, len(streamed)))
    assert merged(list(server.events[:stop])) == merged(streamed[:stop])
