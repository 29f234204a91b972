"""From a stream's updates to an answer: one file per wire format."""

from collections.abc import Sequence
from typing import Any

from convnorm.errors import DialectError
from convnorm.mergers.anthropic_messages import AnthropicMessages
from convnorm.mergers.merger import Answer, Merger, Note
from convnorm.mergers.openai_chat import OpenaiChat
from convnorm.mergers.openai_responses import OpenaiResponses
from convnorm.mergers.plain_items import PlainItems

MERGERS: tuple[type[Merger], ...] = (OpenaiChat, OpenaiResponses, AnthropicMessages, PlainItems)
"""Asked in this order; the last takes whatever looks like an item."""


def merger_for(update: Any, mergers: Sequence[type[Merger]] = MERGERS) -> Merger:
    """The merger that knows what begins like this."""
    for kind in mergers:
        if kind.takes(update):
            return kind()
    raise DialectError(
        f"the first update is a {type(update).__name__} that no merger knows "
        f"({', '.join(kind.__name__ for kind in mergers)}): give Recorder one that does, "
        "under mergers"
    )


__all__ = ["MERGERS", "Answer", "Merger", "Note", "merger_for"]
