"""A workflow whose stream is left, and that another process takes up from the newest checkpoint."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import service
from framework import seen_texts

from convnorm.testing import StrictServer

SUPPORT = Path(service.__file__).parent
KINDS = pytest.mark.parametrize("kind", ["chat", "responses"])


def process(what: str, kind: str, server: StrictServer, folder: Path) -> None:
    command = [what, kind, server.base_url, str(folder)]
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "resume.py"), *command],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


class Asked:
    """The scripted model of the help desk, whatever was asked before: its turn is the user's."""

    def __init__(self) -> None:
        self.desk = service.Desk()

    def __call__(self, request: Any) -> Any:
        """What whoever asks says next."""
        last = request.seen[-1]
        if not (last.get("role") == "tool" or last.get("type") == "function_call_output"):
            users = [text for text in seen_texts(request) if text.startswith("USER-")]
            self.desk.turn = int(users[-1][5]) - 1
        return self.desk(request)


def conversation(server: StrictServer) -> list[str]:
    texts = seen_texts(server.requests[-1])
    return [text for text in texts if text.startswith(("USER", "ANSWER"))]


TALK = ["USER-1 ...", "ANSWER-1", "USER-2 ..."]


@KINDS
def test_nothing_is_lost_and_nothing_told_twice(
    strict_server: StrictServer, kind: str, tmp_path: Path
) -> None:
    """The stream of a turn is left at its first update; in the end all was told once."""
    strict_server.play(Asked())

    process("leave", kind, strict_server, tmp_path)
    process("go_on", kind, strict_server, tmp_path)

    assert {request.status for request in strict_server.requests} == {200}
    assert conversation(strict_server) == TALK


def test_streamed_or_not(tmp_path: Path) -> None:
    """Both ways leave the same history: the last requests are the same."""
    bodies = []
    for what in ("stay", "whole"):
        with StrictServer(Asked()) as server:
            process(what, "chat", server, tmp_path / what)
            bodies.append({**server.requests[-1].body, "stream": None, "stream_options": None})
            assert conversation(server) == TALK

    assert bodies[0] == bodies[1]
