"""A handoff workflow of three agents: what each release makes of it alone, and with convnorm.

The stale `previous_response_id` of microsoft/agent-framework#4053, the ids that nobody stored of
#4357, and the histories that double of #5147.
"""

from collections.abc import Callable
from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import (
    NormalizingHistoryProvider,
    NormalizingMiddleware,
    normalize_client,
)
from framework import CLIENTS, CORE, seen_texts
from handoffs import SCRIPT, TASK, ClearLinks, Crew, crew, work
from packaging.version import Version

from convnorm.testing import StrictServer, reasoning

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]

NO_OUTPUT = "No tool output found for function call"
NOT_STORED = "Items are not persisted when `store` is set to false"


async def run(
    server: StrictServer,
    kind: str,
    *,
    stream: bool,
    before: tuple[Any, ...] = (),
    prepared: Callable[[Any], Any] = lambda client: client,
    **defaults: Any,
) -> str:
    """Let the workflow run; the error it ended with."""
    server.play(Crew(*before))
    async with CLIENTS[kind](server) as client:
        try:
            await work(crew(prepared(client), **defaults), stream=stream)
        except Exception as error:  # noqa: BLE001  # each release has its own
            return str(error)
    return ""


def normalized(client: Any) -> Any:
    return normalize_client(client, on_error="raise")


def finished(server: StrictServer) -> bool:
    """All six requests were answered."""
    return [request.status for request in server.requests] == [200] * 6


@pytest.mark.parametrize("kind", ["responses", "azure"])
async def test_stored_responses_without(
    strict_server: StrictServer, kind: str, stream: bool
) -> None:
    """Alone: the oldest release sends a stale link, 1.0.0 sends a call twice, others are right."""
    error = await run(strict_server, kind, stream=stream)

    rules = {"1.0.0b260212": "resp-call-output-missing", "1.0.0": "resp-duplicate-call-id"}
    assert rules.get(str(CORE)) == strict_server.requests[-1].rule
    if str(CORE) == "1.0.0b260212":
        assert NO_OUTPUT in error
    if str(CORE) not in rules:
        assert finished(strict_server)


@pytest.mark.parametrize("kind", ["responses", "azure", "chat"])
async def test_stored_responses(strict_server: StrictServer, kind: str, stream: bool) -> None:
    """No request is refused, and each shows the task and every text, once."""
    await run(strict_server, kind, stream=stream, prepared=normalized)

    assert finished(strict_server)
    for request in strict_server.requests:
        texts = seen_texts(request)
        assert texts.count(TASK) == 1
        said = [text for reply in told_before(strict_server, request) for text in reply]
        assert [texts.count(text) for text in said] == [1] * len(said)


def told_before(server: StrictServer, request: Any) -> list[list[str]]:
    """What the agents had said, by the script, when this request was made."""
    asked: dict[str, int] = {}
    told = []
    for earlier in server.requests[: server.requests.index(request)]:
        name = earlier.body["user"]
        asked[name] = asked.get(name, 0) + 1
        parts = SCRIPT[name][asked[name] - 1]
        told.append([part for part in parts if isinstance(part, str)])
    return told


@pytest.mark.parametrize("summary", ["", "thinking"])
async def test_unstored_ids_without(
    strict_server: StrictServer, summary: str, stream: bool
) -> None:
    """Alone, under store=False: two releases send ids of reasoning that nobody stored."""
    before = (reasoning(summary),)
    error = await run(strict_server, "responses", stream=stream, before=before, store=False)

    # rc2 loses the id on the way when a summary is streamed.
    lucky = str(CORE) == "1.0.0rc2" and summary and stream
    if str(CORE) in ("1.0.0rc2", "1.0.0") and not lucky:
        assert strict_server.requests[-1].rule == "resp-item-not-persisted"
        assert NOT_STORED in error
    else:
        assert finished(strict_server)


@pytest.mark.parametrize("summary", ["", "thinking"])
async def test_unstored_ids(strict_server: StrictServer, summary: str, stream: bool) -> None:
    """Under store=False: no request is refused."""
    before = (reasoning(summary),)
    await run(
        strict_server, "responses", stream=stream, before=before, store=False, prepared=normalized
    )

    assert finished(strict_server)


@pytest.mark.parametrize("store", [None, False])
async def test_with_a_history(
    strict_server: StrictServer, store: bool | None, stream: bool
) -> None:
    """With a history provider every request shows the task, also where executors send only news."""
    defaults = {} if store is None else {"store": store}
    strict_server.play(Crew(reasoning()))
    async with CLIENTS["responses"](strict_server) as client:
        normalized(client)
        workflow = crew(client, providers=history, **defaults)
        await work(workflow, stream=stream)

    assert finished(strict_server)
    for request in strict_server.requests:
        said = [text for reply in told_before(strict_server, request) for text in reply]
        assert [seen_texts(request).count(text) for text in [TASK, *said]] == [1] * (1 + len(said))


async def test_links_that_were_cleared(strict_server: StrictServer, stream: bool) -> None:
    """Where sessions forget their responses, the client puts them back: no text is lost."""
    strict_server.play(Crew())
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise", keep_links=True)
        await work(crew(client, middleware=[ClearLinks()]), stream=stream)

    assert finished(strict_server)
    for request in strict_server.requests:
        said = [text for reply in told_before(strict_server, request) for text in reply]
        assert [seen_texts(request).count(text) for text in [TASK, *said]] == [1] * (1 + len(said))


async def test_links_that_were_cleared_without(strict_server: StrictServer, stream: bool) -> None:
    """Alone, that repair makes one release forget the task, and others send a lonely result."""
    middleware = [ClearLinks()]
    error = await run(strict_server, "responses", stream=stream, middleware=middleware)

    blind = [TASK not in seen_texts(request) for request in strict_server.requests]
    if str(CORE) == "1.0.0b260212":
        assert True in blind
    elif CORE > Version("1.0.0"):
        assert "No tool call found for function call output" in error
    else:
        assert True not in blind


def history() -> list[Any]:
    return [NormalizingHistoryProvider(af.InMemoryHistoryProvider("mine"))]


async def test_as_middleware_of_the_client(strict_server: StrictServer, stream: bool) -> None:
    """The middleware, given to the client, does the same."""
    strict_server.play(Crew())
    middleware = [NormalizingMiddleware(on_error="raise")]
    async with CLIENTS["responses"](strict_server, middleware=middleware) as client:
        await work(crew(client), stream=stream)

    assert finished(strict_server)
