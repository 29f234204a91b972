"""convnorm: conversation histories that the next model call accepts."""

from convnorm.api import Report, check, explain, normalize, normalize_request
from convnorm.context import Context, Provenance
from convnorm.conversation import Conversation
from convnorm.delivery import Exchange, Ledger, Link
from convnorm.errors import (
    ChangeError,
    ConflictError,
    ConvnormError,
    DialectError,
    LedgerError,
    NeedsRequestError,
    NotReadyError,
    PolicyError,
    StoreError,
    UnrepairableError,
)
from convnorm.pipeline import Change
from convnorm.policy import Policy
from convnorm.rules import Violation

__all__ = [
    "Change",
    "ChangeError",
    "ConflictError",
    "Context",
    "Conversation",
    "ConvnormError",
    "DialectError",
    "Exchange",
    "Ledger",
    "LedgerError",
    "Link",
    "NeedsRequestError",
    "NotReadyError",
    "Policy",
    "PolicyError",
    "Provenance",
    "Report",
    "StoreError",
    "UnrepairableError",
    "Violation",
    "check",
    "explain",
    "normalize",
    "normalize_request",
]
