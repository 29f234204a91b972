"""What goes back over the wire: a JSON body, or a stream of events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from convnorm.testing.strict_server.json_text import written


@dataclass(slots=True)
class Answer:
    """One answer, ready to be sent."""

    status: int
    body: Any = None
    """The JSON to send; not used when there are events."""
    headers: Mapping[str, str] = field(default_factory=dict)
    events: list[bytes | float] | None = None
    """A stream: what is sent, and seconds of silence between."""
    delay: float = 0
    """Seconds before a body."""
    abort_after: int | None = None
    """The connection is cut after this many events, or at once where there is no stream."""
    done: Callable[[], None] | None = None
    """Called before the last event, or the body: from then on the server knows the answer."""


def event(data: Mapping[str, Any], *, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = b"" if name is None else b"event: " + name.encode("ascii") + b"\n"
    return head + b"data: " + written(data) + b"\n\n"
