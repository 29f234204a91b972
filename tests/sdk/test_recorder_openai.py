"""The recorder and the real openai client: streamed or not, the histories are the same bytes."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest

from convnorm import Context, Ledger, normalize_request
from convnorm.recorder import Recorder
from convnorm.stores import MemoryStore, Snapshot
from convnorm.testing import Failure, Reply, StrictServer, call, delay, reasoning

pytestmark = pytest.mark.anyio

MODEL = "gpt-5.1"
NOTHING = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
TOOL = {"name": "weather", "parameters": NOTHING, "strict": True}  # the stream helper insists on it
SCRIPT = (
    Reply(
        reasoning("Both cities."),
        "Let me look.",
        call("weather", city="Oslo", days=[1, 2]),
        call("weather", city="Bergen"),
    ),
    Reply(reasoning("One more."), call("weather", {})),
    "It rains, exceptée à Rome. 🌧",
)


@pytest.fixture
def anyio_backend() -> str:
    """The clients run on asyncio."""
    return "asyncio"


@pytest.fixture
async def client(strict_server: StrictServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=strict_server.base_url, api_key="sk-none", max_retries=0, timeout=20
    ) as made:
        yield made


Way = Callable[[openai.AsyncOpenAI, list[Any]], Any]
"""One call, with a history."""

CHAT: Any = [{"type": "function", "function": TOOL}]
RESPONSES: dict[str, Any] = {
    "model": MODEL,
    "tools": [{"type": "function", **TOOL}],
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
WAYS: dict[str, dict[str, Way]] = {
    "messages": {
        "at once": lambda client, messages: client.chat.completions.create(
            model=MODEL, messages=messages, tools=CHAT
        ),
        "streamed": lambda client, messages: client.chat.completions.create(
            model=MODEL, messages=messages, tools=CHAT, stream=True
        ),
        "with usage": lambda client, messages: client.chat.completions.create(
            model=MODEL,
            messages=messages,
            tools=CHAT,
            stream=True,
            stream_options={"include_usage": True},
        ),
        "by the helper": lambda client, messages: client.chat.completions.stream(
            model=MODEL, messages=messages, tools=CHAT
        ),
    },
    "input": {
        "at once": lambda client, items: client.responses.create(input=items, **RESPONSES),
        "streamed": lambda client, items: client.responses.create(
            input=items, stream=True, **RESPONSES
        ),
        "by the helper": lambda client, items: client.responses.stream(input=items, **RESPONSES),
    },
}
TARGETS = {"messages": "openai.chat", "input": "openai.responses"}


def results(key: str, items: tuple[Any, ...]) -> list[Any]:
    """An answer to every call of the last turn."""
    if key == "messages":
        calls = items[-1].get("tool_calls", ())
        return [{"role": "tool", "tool_call_id": one["id"], "content": "rain"} for one in calls]
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "rain"}
        for item in items
        if item.get("type") == "function_call"
    ]


def request(key: str, items: list[Any]) -> list[Any]:
    """What is sent."""
    body = {"model": MODEL, key: items} | ({} if key == "messages" else RESPONSES)
    return normalize_request(body, TARGETS[key])[key]  # type: ignore[no-any-return]  # a list


async def agent(client: openai.AsyncOpenAI, key: str, way: Way) -> Snapshot:
    """Ask, answer the calls, and go on until the model calls no more."""
    store = MemoryStore()
    recorder, new = Recorder(store), [{"role": "user", "content": "weather?"}]
    while True:
        snapshot = await store.load("s")
        messages = request(key, [*snapshot.items, *new])
        async with recorder(lambda: way(client, messages), snapshot, input=new) as updates:  # noqa: B023  # called at once
            async for _ in updates:
                pass
        assert updates.report is not None
        assert "complete" == updates.report.ended
        if not (new := results(key, updates.report.answer.items)):
            return await store.load("s")


@pytest.mark.parametrize("key", WAYS)
async def test_streamed_and_not_streamed(key: str) -> None:
    """Three turns with reasoning and parallel calls, in every way of the client: the same bytes."""
    histories = {}
    for name, way in WAYS[key].items():
        with StrictServer(SCRIPT) as server:  # its ids begin anew
            async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
                histories[name] = json.dumps((await agent(client, key, way)).items)
            assert [200, 200, 200] == [request.status for request in server.requests]
    first, *others = histories.values()

    assert [first] * len(others) == others
    assert '"It rains, except\\u00e9e \\u00e0 Rome.' in first
    assert first.count("call_2") == 2


ENDINGS = {
    "it is left": Reply(reasoning("Hm."), "Let me look.", call("weather", city="Oslo"), delay(5)),
    "the server cuts it": Reply(
        reasoning("Hm."), "Let me look.", call("weather", city="Oslo"), abort_after=5
    ),
}


@pytest.mark.parametrize("key", WAYS)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_stream_that_ends_early(
    client: openai.AsyncOpenAI, strict_server: StrictServer, key: str, ending: str
) -> None:
    """What came is kept, and the server takes the next request."""
    strict_server.play(ENDINGS[ending], "It rains.")
    store, question = MemoryStore(), {"role": "user", "content": "weather?"}
    recorder = Recorder(store)
    count = 0
    try:
        async with recorder(
            WAYS[key]["streamed"](client, [question]), await store.load("s"), input=[question]
        ) as updates:
            async for _ in updates:
                count += 1
                if ending == "it is left" and count == 6:
                    break
    except Exception:  # noqa: BLE001  # the client lets its HTTP library's error through
        assert "the server cuts it" == ending
    cut = await store.load("s")
    again = {"role": "user", "content": "and now?"}
    messages = request(key, [*cut.items, again])
    async with recorder(WAYS[key]["streamed"](client, messages), cut, input=[again]) as updates:
        async for _ in updates:
            pass
    last = await store.load("s")

    assert question == cut.items[0]
    assert (None, ["turn"]) == (cut.turn, [n.kind for n in cut.notes if n.kind == "turn"])
    assert [200, 200] == [request.status for request in strict_server.requests]
    assert "It rains." in json.dumps(last.items[-1])


async def test_a_link_and_a_stream_that_is_left(
    client: openai.AsyncOpenAI, strict_server: StrictServer
) -> None:
    """The ledger knows which response can be continued, and what the server lacks behind it."""
    strict_server.play("Hello.", Reply("Let me look.", delay(5)), "It rains.")
    store = MemoryStore()
    recorder = Recorder(store)

    async def turn(said: str, link: str | None, leave_after: int | None = None) -> str | None:
        snapshot, new = await store.load("s"), [{"role": "user", "content": said}]
        body: Any = {"model": MODEL, "input": [*snapshot.items, *new]}
        if link is not None:
            body["previous_response_id"] = link
        body = normalize_request(body, context=Context(ledger=snapshot.ledger or Ledger()))
        source = client.responses.create(stream=True, **body)
        async with recorder(source, snapshot, input=new, request=body) as updates:
            count = 0
            async for _ in updates:
                count += 1
                if count == leave_after:
                    break
        assert updates.report is not None
        return updates.report.answer.response_id

    first = await turn("hello", None)
    await turn("weather?", first, leave_after=6)
    held = strict_server.ledger.responses.items()
    assert [first] == [name for name, response in held if response.stored]
    await turn("and now?", first)

    assert [200, 200, 200] == [request.status for request in strict_server.requests]
    last = strict_server.requests[-1]
    assert (first, 3) == (last.body["previous_response_id"], len(last.body["input"]))
    said = [item["content"] for item in last.seen]
    assert ["hello", "weather?", "and now?"] == [one for one in said if isinstance(one, str)]
    assert ["Hello.", "Let me"] == [one[0]["text"] for one in said if not isinstance(one, str)]


async def test_a_refused_request(client: openai.AsyncOpenAI, strict_server: StrictServer) -> None:
    """The client's own error comes through; the question is kept."""
    strict_server.play(Failure(429, "slow down"))
    store, question = MemoryStore(), {"role": "user", "content": "weather?"}
    with pytest.raises(openai.RateLimitError, match="slow down"):
        async with Recorder(store)(
            WAYS["input"]["streamed"](client, [question]), await store.load("s"), input=[question]
        ):
            pass

    assert ((question,), None) == ((found := await store.load("s")).items, found.turn)


@pytest.mark.parametrize("stream", [False, True])
def test_without_async(strict_server: StrictServer, stream: bool) -> None:
    """The other client, and `with`: the same."""
    strict_server.play("It rains.", "It rains.")
    store = MemoryStore()
    question: Any = {"role": "user", "content": "weather?"}
    with openai.OpenAI(base_url=strict_server.base_url, api_key="none") as client:
        for source in (
            lambda: client.chat.completions.create(model=MODEL, messages=[question], stream=stream),
            lambda: client.responses.create(model=MODEL, input=[question], stream=stream),
        ):
            with Recorder(store)(
                source, Snapshot(session=str(id(source))), input=[question]
            ) as all_:
                list(all_)
            assert all_.report is not None
            assert "complete" == all_.report.ended
            assert "It rains." in json.dumps(all_.snapshot.items[-1])
