"""A strict test server: real HTTP on loopback, the provider's refusals, and a scripted model."""

from convnorm.testing.strict_server.record import Request
from convnorm.testing.strict_server.script import (
    Call,
    Delay,
    Failure,
    Reasoning,
    Reply,
    Text,
    call,
    delay,
    reasoning,
    text,
)
from convnorm.testing.strict_server.server import StrictServer

__all__ = [
    "Call",
    "Delay",
    "Failure",
    "Reasoning",
    "Reply",
    "Request",
    "StrictServer",
    "Text",
    "call",
    "delay",
    "reasoning",
    "text",
]
