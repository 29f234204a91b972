"""The recorder and the real anthropic client: streamed or not, the histories are the same bytes."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import pytest

from convnorm import check
from convnorm.recorder import Recorder
from convnorm.stores import MemoryStore, Snapshot
from convnorm.testing import Reply, StrictServer, call, delay, reasoning

pytestmark = pytest.mark.anyio

MODEL = "claude-opus-4-5"  # the SDK warns of older ones, and of newer ones with manual thinking
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
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 4096,
    "tools": [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}
Way = Callable[[anthropic.AsyncAnthropic, list[Any]], Any]
WAYS: dict[str, Way] = {
    "at once": lambda client, messages: client.messages.create(messages=messages, **BODY),
    "streamed": lambda client, messages: client.messages.create(
        messages=messages, stream=True, **BODY
    ),
    "by the helper": lambda client, messages: client.messages.stream(messages=messages, **BODY),
}
QUESTION = {"role": "user", "content": "weather?"}


@pytest.fixture
def anyio_backend() -> str:
    """The lane has no other event loop."""
    return "asyncio"


@pytest.fixture
async def client(strict_server: StrictServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        base_url=strict_server.url, api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


async def agent(client: anthropic.AsyncAnthropic, way: Way) -> Snapshot:
    """Ask, answer the calls, and go on until the model calls no more."""
    store = MemoryStore()
    recorder, new = Recorder(store), list[Any]([QUESTION])
    while True:
        snapshot = await store.load("s")
        messages = [*snapshot.items, *new]
        async with recorder(lambda: way(client, messages), snapshot, input=new) as updates:  # noqa: B023  # called at once
            async for _ in updates:
                pass
        assert updates.report is not None
        assert "complete" == updates.report.ended
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "rain"}
            for block in updates.report.answer.items[0]["content"]
            if block["type"] == "tool_use"
        ]
        if not results:
            return await store.load("s")
        new = [{"role": "user", "content": results}]


async def test_streamed_and_not_streamed() -> None:
    """Three turns with thinking and parallel calls, in every way the client has: the same bytes."""
    histories = {}
    for name, way in WAYS.items():
        with StrictServer(SCRIPT) as server:  # its ids begin anew
            async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none") as client:
                histories[name] = json.dumps((await agent(client, way)).items)
            assert [200, 200, 200] == [request.status for request in server.requests]
    first, *others = histories.values()

    assert [first] * len(others) == others
    assert '"It rains, except\\u00e9e \\u00e0 Rome.' in first
    assert '"signature": "sig_1"' in first


ENDINGS = {
    "it is left": Reply(reasoning("Hm."), "Let me look.", call("weather", city="Oslo"), delay(5)),
    "the server cuts it": Reply(
        reasoning("Hm."), "Let me look.", call("weather", city="Oslo"), abort_after=9
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_stream_that_ends_early(
    client: anthropic.AsyncAnthropic, strict_server: StrictServer, ending: str
) -> None:
    """What came is kept with its thinking, and the server takes the next request."""
    strict_server.play(ENDINGS[ending], "It rains.")
    store, count = MemoryStore(), 0
    recorder = Recorder(store)
    try:
        async with recorder(
            WAYS["streamed"](client, [QUESTION]), await store.load("s"), input=[QUESTION]
        ) as updates:
            async for _ in updates:
                count += 1
                if ending == "it is left" and count == 8:
                    break
    except Exception:  # noqa: BLE001  # the client lets its HTTP library's error through
        assert "the server cuts it" == ending
    cut = await store.load("s")
    again = {"role": "user", "content": "and now?"}
    messages = [*cut.items, again]
    assert [] == check({**BODY, "messages": messages}, "anthropic.messages")
    async with recorder(WAYS["streamed"](client, messages), cut, input=[again]) as updates:
        async for _ in updates:
            pass

    assert ["thinking", "text"] == [block["type"] for block in cut.items[1]["content"]]
    assert (None, frozenset({1})) == (cut.turn, cut.incomplete)
    assert [200, 200] == [request.status for request in strict_server.requests]


@pytest.mark.parametrize("stream", [False, True])
def test_without_async(strict_server: StrictServer, stream: bool) -> None:
    """The other client, and `with`: the same."""
    strict_server.play("It rains.")
    with anthropic.Anthropic(base_url=strict_server.url, api_key="none") as client:
        create: Any = client.messages.create
        source = lambda: create(messages=[QUESTION], stream=stream, **BODY)  # noqa: E731  # a call, not made yet
        with Recorder(MemoryStore())(source, Snapshot(session="s"), input=[QUESTION]) as updates:
            list(updates)

    answer = {"role": "assistant", "content": [{"type": "text", "text": "It rains."}]}
    assert (QUESTION, answer) == updates.snapshot.items
