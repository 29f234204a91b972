"""For users' own tests: made-up histories (`strategies`), the laws (`laws`), a strict server.

Strategies and laws need the extra `testing`; importing convnorm never imports any of this.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convnorm.testing.strict_server import (
        Failure,
        Reply,
        StrictServer,
        call,
        delay,
        reasoning,
        text,
    )

__all__ = ["Failure", "Reply", "StrictServer", "call", "delay", "reasoning", "text"]


def __getattr__(name: str) -> Any:
    """Load the server when it is asked for: histories and laws do not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("convnorm.testing.strict_server"), name)
