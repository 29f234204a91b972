"""The pytest plugin: it brings the fixture `strict_server`.

It stands outside the package, since pytest loads it in every test run of everyone who has convnorm
installed, and importing the package would load pydantic there.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from convnorm.testing.strict_server import StrictServer


@pytest.fixture
def strict_server() -> Iterator["StrictServer"]:
    """A strict server that runs; give it its script with `strict_server.play(…)`."""
    from convnorm.testing.strict_server import StrictServer  # noqa: PLC0415 - not before it is used

    with StrictServer() as server:
        yield server
