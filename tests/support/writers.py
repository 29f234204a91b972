"""Processes that write to a store until somebody kills them, and say what was acknowledged."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import anyio

from convnorm import ConflictError
from convnorm.recorder import Recorder
from convnorm.stores import BlockingStore, Commit, SqliteStore, blocking


class Writer:
    """A process that does one of the things below."""

    def __init__(self, what: str, *arguments: object) -> None:
        words = [sys.executable, __file__, what, *map(str, arguments)]
        self._child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._child:
            self._child.kill()

    @property
    def runs(self) -> bool:
        """Whether it is still at work."""
        return self._child.poll() is None

    def says(self) -> str:
        """Its next acknowledgement."""
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()

    def killed(self) -> list[str]:
        """Kill it, wherever it is: what it had still acknowledged."""
        self._child.kill()
        assert self._child.stdout is not None
        return self._child.stdout.read().split()


def acknowledge(word: object) -> None:
    print(word, flush=True)  # noqa: T201  # the pipe to the test


def commits(store: BlockingStore, name: str, number: int) -> None:
    """One commit of two items that belong together, tried until nobody comes between."""
    items = [{"role": role, "content": f"{name} {number}"} for role in ("user", "assistant")]
    while True:
        found = store.load("s")
        change = Commit(items=items, turn=found.turn, checkpoint={name: number})
        try:
            store.commit("s", change, expected_version=found.version)
        except ConflictError:
            continue
        return


def until_killed(path: str, name: str) -> None:
    """Commit, acknowledge, and so on."""
    with blocking(SqliteStore(path)) as store:
        number = 0
        while True:
            commits(store, name, number)
            acknowledge(number)
            number += 1


def for_seconds(path: str, name: str, seconds: str) -> None:
    """The same until the time is over, and once at least; all acknowledgements at the end."""
    with blocking(store := SqliteStore(path)) as mine:
        end = time.monotonic() + float(seconds)
        number = 0
        while not number or time.monotonic() < end:
            commits(mine, name, number)
            number += 1
    store.close()
    acknowledge(number)


def streams(path: str) -> None:
    """Begin a turn, acknowledge its first update, and never come to its end."""
    store = SqliteStore(path)

    async def turn() -> None:
        async def updates() -> AsyncIterator[Any]:
            yield {"role": "assistant", "content": "half"}
            await anyio.sleep_forever()

        snapshot = await store.load("s")
        asked = [{"role": "user", "content": "?"}]
        async with Recorder(store)(updates(), snapshot, input=asked) as read:
            async for update in read:
                acknowledge(json.dumps(update))

    anyio.run(turn)


WHAT: dict[str, Callable[..., None]] = {
    "until_killed": until_killed,
    "for_seconds": for_seconds,
    "streams": streams,
}

if __name__ == "__main__":
    WHAT[sys.argv[1]](*sys.argv[2:])
