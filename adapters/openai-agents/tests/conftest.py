import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The SDK runs on asyncio alone."""
    return "asyncio"
