"""A help desk in a process of its own: it leaves its first turn early, or goes on from there.

    resume.py leave|go_on|stay|whole KIND BASE_URL FOLDER

`stay` and `whole` leave nothing, streamed and not.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import agent_framework as af
from convnorm_agent_framework import LedgerProvider, NormalizingHistoryProvider, normalize_client
from framework import CLIENTS
from service import desk, settled, words


class Address:
    """A server in another process."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


def providers() -> list[Any]:
    """A history that loses no turn, and the ledger of what the server holds."""
    return [NormalizingHistoryProvider(af.InMemoryHistoryProvider("mine")), LedgerProvider()]


async def main(what: str, kind: str, base_url: str, folder: str) -> None:
    """Talk for two turns; `leave` the first at its first update, or `go_on` behind that."""
    storage = af.FileCheckpointStorage(Path(folder))
    async with CLIENTS[kind](Address(base_url)) as client:  # type: ignore[arg-type]  # an address is all it asks
        normalize_client(client, on_error="raise")
        workflow = desk(client, providers=providers, checkpoint_storage=storage)
        given = words([], "USER-1 ...")
        if what == "leave":
            async for event in workflow.run(**given, stream=True):
                if event.type == "output":
                    return
        newest = await storage.get_latest(workflow_name=workflow.name)
        if what == "go_on" and newest is not None:
            # Older releases have no checkpoint yet: there the user begins again.
            given = {"checkpoint_id": newest.checkpoint_id}
        asked = await settled(workflow, given, stream=what != "whole")
        await settled(workflow, words(asked, "USER-2 ..."), stream=what != "whole")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
