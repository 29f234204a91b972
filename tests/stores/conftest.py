from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from convnorm.stores import HistoryStore, MemoryStore, SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HistoryStore]:
    """Each of the two stores, empty."""
    if request.param == "memory":
        yield MemoryStore()
    else:
        with closing(SqliteStore(tmp_path / "history.db")) as made:
            yield made
