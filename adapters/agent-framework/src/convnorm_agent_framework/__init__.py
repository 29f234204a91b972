"""convnorm for Microsoft Agent Framework: every request is repaired where it goes out.

Importing this package does not import the framework; asking it for a name does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convnorm_agent_framework.client import normalize_client
    from convnorm_agent_framework.history import NoHistoryProvider, NormalizingHistoryProvider
    from convnorm_agent_framework.ledger import LedgerProvider
    from convnorm_agent_framework.middleware import NormalizingMiddleware

__all__ = [
    "LedgerProvider",
    "NoHistoryProvider",
    "NormalizingHistoryProvider",
    "NormalizingMiddleware",
    "normalize_client",
]

_HOMES = {
    "LedgerProvider": "ledger",
    "NoHistoryProvider": "history",
    "NormalizingHistoryProvider": "history",
    "NormalizingMiddleware": "middleware",
    "normalize_client": "client",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, and with it the framework."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
