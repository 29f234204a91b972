"""What was sent and answered, and what the server holds: a plain value, JSON in and out."""

from convnorm.delivery.exchange import Exchange, Link
from convnorm.delivery.ledger import Ledger

__all__ = ["Exchange", "Ledger", "Link"]
