"""What the server remembers of every request, accepted or not."""

from dataclasses import dataclass, field
from typing import Any

from convnorm.rules import Violation

KEPT = ("accept", "content-length", "content-type", "user-agent")
KEPT_PREFIXES = ("anthropic-", "openai-", "x-stainless-", "x-client-")
"""Headers that are recorded; keys and tokens are not among them."""


@dataclass(slots=True, eq=False)
class Request:
    """One request, and how it was answered."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """The JSON that came; None when there was none."""
    api: str | None = None
    """The target that judged it; None for a request that no model answers."""
    seen: tuple[Any, ...] = ()
    """What the model sees: what the server holds for it, and then the input."""
    violations: tuple[Violation, ...] = ()
    """Everything the rules refuse in it."""
    status: int | None = None
    """How it was answered; None while it is not, or when the connection was cut instead."""
    error: str | None = None
    """What its error body says; None when it was answered."""
    answer: str | None = None
    """The id of the response, completion or message that it got."""

    @property
    def rule(self) -> str | None:
        """The rule it was refused with."""
        return self.violations[0].rule if self.violations else None


def kept_headers(headers: Any) -> dict[str, str]:
    """The recorded ones, in lower case."""
    lowered = ((str(name).lower(), str(value)) for name, value in headers.items())
    return {
        name: value for name, value in lowered if name in KEPT or name.startswith(KEPT_PREFIXES)
    }
