"""A workflow whose stream is left, and that another process takes up from the newest checkpoint."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import resume
from framework import seen_texts
from service import Asked

from convnorm.stores import SqliteStore
from convnorm.testing import StrictServer


def process(what: str, kind: str, server: StrictServer, folder: Path) -> None:
    command = [sys.executable, resume.__file__, what, kind, server.base_url, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(resume.__file__).parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def conversation(server: StrictServer) -> list[str]:
    texts = seen_texts(server.requests[-1])
    return [text for text in texts if text.startswith(("USER", "ANSWER"))]


def history(folder: Path) -> list[Any]:
    return list(anyio.run(SqliteStore(folder / "history.db").load, "session 1").items)


def texts(items: list[Any]) -> list[str]:
    return [part["text"] for item in items for part in item.get("content", ())]


TALK = ["USER-1 ...", "ANSWER-1", "USER-2 ..."]


@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_nothing_is_lost_and_nothing_told_twice(kind: str, tmp_path: Path) -> None:
    """A turn is left at its first update, another process goes on, and all was told once.

    The history is that of turns that nobody left, streamed or not, but for names that are counted.
    """
    stored = []
    for run in (["leave", "go_on"], ["stay"], ["whole"]):
        folder = tmp_path / run[0]
        folder.mkdir()
        with StrictServer(Asked()) as server:
            asyncio.run(resume.main(run[0], kind, server.base_url, str(folder)))
            for what in run[1:]:
                process(what, kind, server, folder)
            assert {request.rule for request in server.requests} == {None}
            assert conversation(server) == TALK
        stored.append([{**item, "call_id": None, "id": None} for item in history(folder)])

    assert texts(stored[0]) == [*TALK, "ANSWER-2"]
    assert stored[0] == stored[1] == stored[2]
