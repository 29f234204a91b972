"""What servers of the Responses API differ in, for the rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ResponsesProfile:
    """What one server, with one model, takes in `input`."""


PROVIDERS: Mapping[str, Mapping[str, Any]] = {}
"""By provider: the fields of the profile that are different there."""

MODELS: tuple[tuple[str, str | None, Mapping[str, Any]], ...] = ()
"""A pattern of model names, the provider it is about (None: all), and what is different."""
