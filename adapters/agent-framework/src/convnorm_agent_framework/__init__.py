"""convnorm for Microsoft Agent Framework: every request is repaired where it goes out.

Importing this package does not import the framework; asking it for a name does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convnorm_agent_framework.client import normalize_client
    from convnorm_agent_framework.codec import messages_from
    from convnorm_agent_framework.handoffs import Handoffs
    from convnorm_agent_framework.history import NoHistoryProvider, NormalizingHistoryProvider
    from convnorm_agent_framework.ledger import LedgerProvider
    from convnorm_agent_framework.middleware import NormalizingMiddleware
    from convnorm_agent_framework.recording import (
        AgentUpdates,
        RecordedWorkflow,
        WorkflowEvents,
        items_from,
        streamed,
    )

__all__ = [
    "AgentUpdates",
    "Handoffs",
    "LedgerProvider",
    "NoHistoryProvider",
    "NormalizingHistoryProvider",
    "NormalizingMiddleware",
    "RecordedWorkflow",
    "WorkflowEvents",
    "items_from",
    "messages_from",
    "normalize_client",
    "streamed",
]

_HOMES = {
    "AgentUpdates": "recording",
    "Handoffs": "handoffs",
    "LedgerProvider": "ledger",
    "NoHistoryProvider": "history",
    "NormalizingHistoryProvider": "history",
    "NormalizingMiddleware": "middleware",
    "RecordedWorkflow": "recording",
    "WorkflowEvents": "recording",
    "items_from": "recording",
    "messages_from": "codec",
    "normalize_client": "client",
    "streamed": "recording",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, and with it the framework."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
