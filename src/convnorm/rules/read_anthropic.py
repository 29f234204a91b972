"""The walk over Anthropic's `messages`."""

from collections.abc import Mapping, Sequence
from typing import Any

from convnorm.context import Context
from convnorm.rules.scan import Scan
from convnorm.targets import Target


def read_anthropic(
    elements: Sequence[object],  # noqa: ARG001
    target: Target,
    context: Context,
    other: Mapping[str, Any],
) -> Scan:
    """Scan a list of messages."""
    return Scan("messages", target, context, other)
