"""Processes are killed while they commit, or commit at once; `thorough` does it for longer."""

import json
import random
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import anyio
from hypothesis import settings

from convnorm.stores import Commit, Snapshot, SqliteStore, blocking
from writers import Writer

DEPTH = 20 if settings.get_current_profile_name() == "thorough" else 1
"""How many times as much is done as in `make test`."""
COMMITS, SECONDS = 10 * DEPTH, 1.5 * DEPTH


def opened(path: Path) -> Snapshot:
    with closing(SqliteStore(path)) as store:
        found = anyio.run(store.load, "s")
        delivered = anyio.run(store.deliver_since, "s", 0)
    assert (found.items, found.bookmark) == (delivered.items, delivered.bookmark)
    assert len(found.items) == found.bookmark == 2 * found.version
    return found


def pairs(found: Snapshot) -> list[str]:
    """What was committed, in order; both items of each commit are there."""
    said = [item["content"] for item in found.items]
    assert said[::2] == said[1::2]
    return said[::2]


def test_killed_while_it_commits(tmp_path: Path) -> None:
    """Whenever a process is killed: each acknowledged commit is there, whole and once."""
    path, chance = tmp_path / "h.db", random.Random(7)  # noqa: S311  # nobody's secret
    acknowledged: list[str] = []
    life = 0
    while len(acknowledged) < COMMITS:
        with Writer("until_killed", path, f"life{life}") as child:
            numbers = [child.says() for _ in range(chance.randint(1, 10))]
            time.sleep(chance.random() * 0.01)  # into the middle of the next commit
            numbers += child.killed()
        acknowledged += [f"life{life} {number}" for number in numbers]
        found = pairs(opened(path))
        # What was stored and not acknowledged is at most the commit it was killed in.
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) - len(acknowledged) <= 1
        acknowledged = found
        life += 1


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Nothing is lost or there twice, in each one's order; a reader gets each item once."""
    path = tmp_path / "h.db"
    bookmark, delivered = 0, list[Any]()
    with ExitStack() as stack:
        children = {
            name: stack.enter_context(Writer("for_seconds", path, name, SECONDS)) for name in "ab"
        }
        store = stack.enter_context(closing(SqliteStore(path)))
        reader = stack.enter_context(blocking(store))
        at_work = True
        while at_work:
            at_work = any(child.runs for child in children.values())
            new = reader.deliver_since("s", bookmark)
            bookmark, delivered = new.bookmark, [*delivered, *new.items]
            time.sleep(0.01)  # the writers need the processor too
        counts = {name: int(child.says()) for name, child in children.items()}
    found = opened(path)

    assert all(counts.values())
    for name, count in counts.items():
        mine = [said for said in pairs(found) if said.startswith(name)]
        assert [f"{name} {number}" for number in range(count)] == mine
    assert (sum(counts.values()), delivered) == (found.version, list(found.items))


def test_killed_between_begin_and_finish(tmp_path: Path) -> None:
    """The input holds, the turn is open, and the next turn closes it."""
    path = tmp_path / "h.db"
    with Writer("streams", path) as child:
        assert {"role": "assistant", "content": "half"} == json.loads(child.says())
    with closing(SqliteStore(path)) as store:
        found: Any = anyio.run(store.load, "s")
        assert [{"role": "user", "content": "?"}] == list(found.items)
        assert (1, 0) == (found.bookmark, found.turn.at)
        assert found.items == anyio.run(store.deliver_since, "s", 0).items
        anyio.run(lambda: store.commit("s", Commit(), expected_version=found.version))
        assert None is anyio.run(store.load, "s").turn
