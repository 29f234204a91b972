"""What the tests of all adapters share."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The frameworks run on asyncio alone."""
    return "asyncio"
