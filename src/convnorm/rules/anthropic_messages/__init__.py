"""What Anthropic Messages enforces on a request."""

from typing import Final

from convnorm.rules.rule import Rule

API: Final = "anthropic.messages"
RULES: tuple[Rule, ...] = ()
