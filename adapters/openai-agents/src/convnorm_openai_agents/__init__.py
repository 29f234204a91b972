"""convnorm for the OpenAI Agents SDK: every request of a run is repaired before it is sent.

Importing this package does not import the SDK; asking it for a name does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convnorm_openai_agents.filters import handoff_filter, input_filter
    from convnorm_openai_agents.hooks import Hooks
    from convnorm_openai_agents.ledger_keeper import LedgerKeeper
    from convnorm_openai_agents.model import NormalizingModel, normalize_model
    from convnorm_openai_agents.provider import NormalizingModelProvider
    from convnorm_openai_agents.recording import RunEvents, streamed
    from convnorm_openai_agents.sessions import (
        NormalizingConversationsSession,
        NormalizingSession,
    )
    from convnorm_openai_agents.state import ledger_from_state

_HOMES = {
    "Hooks": "hooks",
    "LedgerKeeper": "ledger_keeper",
    "NormalizingConversationsSession": "sessions",
    "NormalizingModel": "model",
    "NormalizingModelProvider": "provider",
    "NormalizingSession": "sessions",
    "RunEvents": "recording",
    "handoff_filter": "filters",
    "input_filter": "filters",
    "ledger_from_state": "state",
    "normalize_model": "model",
    "streamed": "recording",
}

__all__ = [
    "Hooks",
    "LedgerKeeper",
    "NormalizingConversationsSession",
    "NormalizingModel",
    "NormalizingModelProvider",
    "NormalizingSession",
    "RunEvents",
    "handoff_filter",
    "input_filter",
    "ledger_from_state",
    "normalize_model",
    "streamed",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for, and with it the SDK."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
