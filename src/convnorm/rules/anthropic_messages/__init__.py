"""What Anthropic Messages enforces on a request, DeepSeek's endpoint of that format included."""

from collections.abc import Mapping

from convnorm.rules.anthropic_messages.common import API
from convnorm.rules.anthropic_messages.media_and_cache import MEDIA_AND_CACHE
from convnorm.rules.anthropic_messages.pairing import PAIRING
from convnorm.rules.anthropic_messages.server_tools import SERVER_TOOLS
from convnorm.rules.anthropic_messages.shapes import SHAPES
from convnorm.rules.anthropic_messages.text import TEXTS
from convnorm.rules.anthropic_messages.thinking import THINKING_RULES
from convnorm.rules.anthropic_messages.turns import TURNS
from convnorm.rules.rule import Rule

__all__ = ["API", "LEFT_OUT", "RULES"]

RULES: tuple[Rule, ...] = (
    *SHAPES,
    *TEXTS,
    *TURNS,
    *PAIRING,
    *SERVER_TOOLS,
    *THINKING_RULES,
    *MEDIA_AND_CACHE,
)
"""Every rule, by theme."""

LEFT_OUT: Mapping[str, str] = {}
"""By id: rules that no request and no context can show, and why."""
