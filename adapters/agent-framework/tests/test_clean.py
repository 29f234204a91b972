"""What was fine goes out byte for byte as it does without us."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import agent_framework as af
import pytest
from convnorm_agent_framework import normalize_client
from framework import CLIENTS, CORE, RELEASED, said
from handoffs import Crew, crew, work
from packaging.version import Version
from service import Desk, desk, turn
from talk import Adder, add, answer, talker

from convnorm.testing import Reply, StrictServer, call

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
Run = Callable[..., Awaitable[None]]
# Before 1.0.0 the client repeats them in front of every linked request.
INSTRUCTIONS: dict[str, Any] = {"instructions": "Be brief."} if RELEASED else {}
IMAGE = "data:image/png;base64,iVBORw0KGgo="


async def talks(client: Any, *, stream: bool, **options: Any) -> None:
    """Three turns of texts."""
    one = talker(client, **INSTRUCTIONS, **options)
    session = one.create_session()
    for number in range(1, 4):
        await answer(one, f"U{number}", stream=stream, session=session)


async def shows(client: Any, *, stream: bool, **options: Any) -> None:
    """An image, and a question on it."""
    one = talker(client, **options)
    session = one.create_session()
    image = af.Content.from_uri(IMAGE, media_type="image/png")
    seen = af.Message("user", [af.Content.from_text("U1"), image])
    for message in (seen, said("U2")):
        await answer(one, message, stream=stream, session=session)


async def calls(client: Any, *, stream: bool, **options: Any) -> None:
    """Two turns with a call each."""
    one = talker(client, tools=[add], **options)
    session = one.create_session()
    for number in range(1, 3):
        await answer(one, f"U{number}", stream=stream, session=session)


async def approves(client: Any, *, stream: bool, **options: Any) -> None:
    """A call that waits for an approval, and gets it."""
    tool = af.tool(add.func, name="add", approval_mode="always_require")
    one = talker(client, tools=[tool], **options)
    session = one.create_session()
    (asked,) = (await answer(one, "U1", stream=stream, session=session)).user_input_requests
    yes = af.Message("user", [asked.to_function_approval_response(approved=True)])
    await answer(one, yes, stream=stream, session=session)


async def hands_off(client: Any, *, stream: bool, **_: Any) -> None:
    """The workflow of three agents."""
    await work(crew(client), stream=stream)


async def helps(client: Any, *, stream: bool, **_: Any) -> None:
    """The help desk, with a user who comes back."""
    workflow = desk(client)
    asked = await turn(workflow, [], "USER-1 ...", stream=stream)
    await turn(workflow, asked, "USER-2 ...", stream=stream)


SCRIPTS: dict[Run, Callable[[], Any]] = {
    talks: lambda: ["A1", "A2", "A3"],
    shows: lambda: ["A1", "A2"],
    calls: Adder,
    approves: lambda: [Reply(call("add", a=1, b=2)), "A1"],
    hands_off: Crew,
    helps: Desk,
}
CASES = [
    *[(kind, None, run) for kind in ("chat", "responses") for run in SCRIPTS],
    ("azure", None, calls),
    ("responses", False, talks),  # calls have ids that the server did not store
    ("responses", False, shows),
]


@pytest.mark.parametrize("kind, store, run", CASES)
async def test_clean_requests(kind: str, store: bool | None, run: Run, stream: bool) -> None:
    """Bodies are the same with and without convnorm, to the last byte and in the order of keys."""
    sent = []
    for prepared in (unprepared, normalized):
        with StrictServer(SCRIPTS[run]()) as server:
            async with CLIENTS[kind](server) as client:
                with suppress(*([Exception] if prepared is unprepared else [])):
                    await run(prepared(client), stream=stream, store=store)
            sent.append([bytes_of(request) for request in server.requests])

    alone, with_convnorm = sent
    if run in (hands_off, helps) and Version("1.0.0") >= CORE:
        alone, with_convnorm = alone[:2], with_convnorm[:2]  # the rest is no clean history there
    assert alone
    assert alone == with_convnorm


def bytes_of(request: Any) -> tuple[str, str]:
    """The body as it was sent, but for blanks, and how long it was."""
    return json.dumps(request.body), request.headers["content-length"]


def unprepared(client: Any) -> Any:
    return client


def normalized(client: Any) -> Any:
    return normalize_client(client, on_error="raise")
