"""A help desk in a process of its own: it leaves a turn early, or goes on from there.

    resume.py leave|go_on|stay|whole KIND BASE_URL FOLDER

`leave` leaves the first turn at its first update, `go_on` ends that turn and has a second one.
`stay`
and `whole` leave nothing, streamed and not.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import agent_framework as af
from convnorm_agent_framework import (
    LedgerProvider,
    NormalizingHistoryProvider,
    RecordedWorkflow,
    normalize_client,
)
from framework import CLIENTS, said
from service import desk, words

from convnorm.stores import SqliteStore

SESSION = "session 1"


class Address:
    """A server in another process."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


def providers() -> list[Any]:
    """A history that loses no turn, and the ledger of what the server holds."""
    return [NormalizingHistoryProvider(af.InMemoryHistoryProvider("mine")), LedgerProvider()]


async def spoken(turn: Any, *, leave: int = 0) -> list[Any]:
    """The events of a turn, up to so many outputs; what the workflow asks in the end."""
    asked: list[Any] = []
    outputs = 0
    async with turn as events:
        async for event in events:
            outputs += not isinstance(event, list) and event.type == "output"
            if outputs == leave > 0:
                break
            for one in event if isinstance(event, list) else [event]:
                asked += [one] if one.type == "request_info" else []
    return asked


async def main(what: str, kind: str, base_url: str, folder: str) -> None:
    """Do what is asked for, with checkpoints and a history in files."""
    storage, store = af.FileCheckpointStorage(Path(folder)), SqliteStore(Path(folder, "history.db"))
    async with CLIENTS[kind](Address(base_url)) as client:  # type: ignore[arg-type]  # an address is all it asks
        normalize_client(client, on_error="raise")
        workflow = desk(client, providers=providers, checkpoint_storage=storage)
        recorded = RecordedWorkflow(workflow, storage, store, SESSION)
        stream = what != "whole"
        if what == "go_on":
            asked = await spoken(await recorded.go_on())
        else:
            first = await recorded.run(said("USER-1 ..."), stream=stream)
            asked = await spoken(first, leave=int(what == "leave"))
        if what != "leave":
            answers = words(asked, "USER-2 ...")["responses"]
            await spoken(await recorded.run(responses=answers, stream=stream))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
