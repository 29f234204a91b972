"""A help desk whose executor and history provider both tell the history (#5147, #4411)."""

from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import normalize_client
from framework import CLIENTS, CORE, seen_texts
from service import Desk, desk, turn

from convnorm.testing import StrictServer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]

TURNS = 4
UNANSWERED = "must be followed by tool messages responding to each 'tool_call_id'"


async def talk(
    server: StrictServer, client: Any, *, stream: bool, approval: str, resumed: bool = False
) -> list[tuple[int, int]]:
    """Four turns; of each: messages and different texts in its last request to `account`."""
    server.play(Desk())
    storage = af.InMemoryCheckpointStorage()
    workflow = desk(client, approval=approval, checkpoint_storage=storage)
    asked: list[Any] = []
    seen = []
    for number in range(1, TURNS + 1):
        if resumed and asked:
            workflow = desk(client, approval=approval, checkpoint_storage=storage)
            newest = await storage.get_latest(workflow_name=workflow.name)
            await workflow.run(checkpoint_id=newest.checkpoint_id)
        asked = await turn(workflow, asked, f"USER-{number} ...", stream=stream)
        (*_, last) = (one for one in server.requests if one.body["user"] == "account")
        seen.append((len(last.seen), len(set(seen_texts(last)))))
    return seen


@pytest.mark.parametrize("approval", ["never_require", "always_require"])
async def test_chat_without(strict_server: StrictServer, approval: str, stream: bool) -> None:
    """Alone, two releases send N, 2N, 3N messages, and with approvals a call without its result."""
    async with CLIENTS["chat"](strict_server) as client:
        if str(CORE) not in ("1.0.0rc2", "1.0.0"):
            seen = await talk(strict_server, client, stream=stream, approval=approval)
            assert seen == [(4, 3), (8, 6), (12, 9), (16, 12)]
        elif approval == "never_require":
            seen = await talk(strict_server, client, stream=stream, approval=approval)
            assert seen == [(4, 3), (12, 6), (24, 9), (40, 12)]
        else:
            with pytest.raises(Exception, match=UNANSWERED):
                await talk(strict_server, client, stream=stream, approval=approval)
            assert strict_server.requests[-1].rule == "chat-tool-calls-unanswered"


@pytest.mark.parametrize("approval", ["never_require", "always_require"])
@pytest.mark.parametrize("resumed", [False, True])
async def test_chat(
    strict_server: StrictServer, approval: str, resumed: bool, stream: bool
) -> None:
    """With convnorm the model sees every message once, also when each turn is a new workflow."""
    async with CLIENTS["chat"](strict_server) as client:
        normalize_client(client, on_error="raise")
        seen = await talk(strict_server, client, stream=stream, approval=approval, resumed=resumed)

    assert seen == [(4, 3), (8, 6), (12, 9), (16, 12)]


@pytest.mark.parametrize("approval", ["never_require", "always_require"])
@pytest.mark.parametrize("resumed", [False, True])
async def test_responses(
    strict_server: StrictServer, approval: str, resumed: bool, stream: bool
) -> None:
    """Over the Responses API, too; newer releases send the instructions beside the messages."""
    async with CLIENTS["responses"](strict_server) as client:
        normalize_client(client, on_error="raise")
        seen = await talk(strict_server, client, stream=stream, approval=approval, resumed=resumed)

    system = int(str(CORE) in ("1.0.0b260212", "1.0.0rc2", "1.0.0"))
    assert [count for count, _ in seen] == [3 + system, 7 + system, 11 + system, 15 + system]
    assert [texts for _, texts in seen] == [1 + system, 3 + system, 5 + system, 7 + system]


async def test_responses_without(strict_server: StrictServer, stream: bool) -> None:
    """Alone, 1.0.0 sends a call twice."""
    async with CLIENTS["responses"](strict_server) as client:
        if str(CORE) == "1.0.0":
            with pytest.raises(Exception, match="Duplicate"):
                await talk(strict_server, client, stream=stream, approval="never_require")
            assert strict_server.requests[-1].rule == "resp-duplicate-call-id"
        else:
            await talk(strict_server, client, stream=stream, approval="never_require")
            assert {request.status for request in strict_server.requests} == {200}
