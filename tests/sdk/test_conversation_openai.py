"""`Conversation` with the real client: its responses, streams and errors are taken as they are."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from convnorm import Conversation, Link
from convnorm.testing import Reply, StrictServer, call, delay, reasoning

MODEL = "gpt-5.1"


@pytest.fixture
def client(strict_server: StrictServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=strict_server.base_url, api_key="sk-none", max_retries=0, timeout=20
    ) as made:
        yield made


def ask(client: openai.OpenAI, talk: Conversation, items: Any, *, stream: bool = False) -> None:
    """One request, and its answer."""
    request = talk.prepare(items)
    talk.record(client.responses.create(**request, stream=stream))


def outputs(talk: Conversation, said: str = "rain") -> list[Any]:
    """What the tools return."""
    return [
        {"type": "function_call_output", "call_id": one["call_id"], "output": said}
        for one in talk.pending
    ]


def texts(items: Any) -> list[str]:
    """All that users and the model said."""
    parts = [
        [{"text": item["content"]}] if isinstance(item["content"], str) else item["content"]
        for item in items
        if "content" in item
    ]
    return [part["text"] for each in parts for part in each]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("store", [True, False])
def test_a_tool_loop(
    client: openai.OpenAI, strict_server: StrictServer, stream: bool, store: bool
) -> None:
    """Calls, an approval in another process, and a new question: all accepted, all seen once."""
    strict_server.play(
        Reply(reasoning("Both."), call("weather", city="Oslo"), call("weather", city="Rome")),
        "It rains.",
        "Sun.",
    )
    body: dict[str, Any] = {"model": MODEL, "store": store}
    if not store:
        body["include"] = ["reasoning.encrypted_content"]
    talk = Conversation(body=body)
    ask(client, talk, "weather?", stream=stream)
    talk = Conversation.from_json(talk.to_json())
    ask(client, talk, outputs(talk), stream=stream)
    ask(client, talk, "and tomorrow?", stream=stream)

    assert [200, 200, 200] == [request.status for request in strict_server.requests]
    assert ["weather?", "It rains.", "and tomorrow?"] == texts(strict_server.requests[-1].seen)
    assert ["weather?", "It rains.", "and tomorrow?", "Sun."] == texts(talk.history)


def test_a_stored_conversation(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """The server's conversation is continued, and holds everything once."""
    strict_server.play(Reply(call("weather", city="Oslo")), "It rains.")
    name = client.conversations.create().id
    talk = Conversation(body={"model": MODEL}, link=Link(conversation=name))
    talk.ledger = talk.ledger.observed_conversation(name)
    ask(client, talk, "weather?")
    ask(client, talk, outputs(talk))

    held = [item.model_dump() for item in client.conversations.items.list(name, order="asc")]
    assert [200, 200] == [
        request.status for request in strict_server.requests if "responses" in request.path
    ]
    assert ["weather?", "It rains."] == texts(held)


def test_a_stream_that_is_left(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """The chain did not move; the question is asked again, and seen once."""
    strict_server.play(Reply("half of ", delay(30)), "All of it.")
    talk = Conversation(body={"model": MODEL})
    with client.responses.create(**talk.prepare("tell me"), stream=True) as events:
        for event in events:
            talk.record(event)
            if event.type == "response.output_text.delta":
                break
    talk.failed()
    ask(client, talk, ())

    assert ["tell me", "All of it."] == texts(talk.history)
    assert ["tell me"] == texts(strict_server.requests[-1].seen)


def test_a_response_that_is_deleted(client: openai.OpenAI, strict_server: StrictServer) -> None:
    """The client's own error says that the link is gone; all goes by value then."""
    strict_server.play("hi", "yes")
    talk = Conversation(body={"model": MODEL})
    ask(client, talk, "hello")
    client.responses.delete(str(talk.link.previous_response_id))
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, talk, "still there?")
    talk.failed(refused.value)
    ask(client, talk, ())

    assert ["hello", "hi", "still there?"] == texts(strict_server.requests[-1].seen)
