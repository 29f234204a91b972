"""What each API enforces on a request, judged independently of what repairs it."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from convnorm.context import Context
from convnorm.rules import anthropic_messages, openai_chat, openai_responses
from convnorm.rules.ours import (
    DELIVERY_UNKNOWN,
    HISTORY_REPLAYED,
    ID_UNSTORED,
    REASONING_OF_ANOTHER_MODEL,
    TEXT_HALF_CHARACTER,
)
from convnorm.rules.read_anthropic import read_anthropic
from convnorm.rules.read_chat import read_chat
from convnorm.rules.read_responses import read_responses
from convnorm.rules.rule import AS_THE_RULE, Rule, Violation
from convnorm.rules.scan import Scan
from convnorm.targets import Target
from convnorm.wire import LIST

__all__ = ["CATALOGUE", "KEYS", "RULES", "Rule", "Violation", "judge"]

CATALOGUE: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        openai_chat.API: (*openai_chat.RULES, HISTORY_REPLAYED, TEXT_HALF_CHARACTER),
        openai_responses.API: (
            *openai_responses.RULES,
            ID_UNSTORED,
            DELIVERY_UNKNOWN,
            REASONING_OF_ANOTHER_MODEL,
            HISTORY_REPLAYED,
            TEXT_HALF_CHARACTER,
        ),
        anthropic_messages.API: anthropic_messages.RULES,
    }
)
"""By target: the rules of its API."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.id: rule for rules in CATALOGUE.values() for rule in rules}
)
"""Every rule by its id."""

READERS: Mapping[str, Callable[[Sequence[object], Target, Context, Mapping[str, Any]], Scan]] = {
    openai_chat.API: read_chat,
    openai_responses.API: read_responses,
    anthropic_messages.API: read_anthropic,
}
KEYS = {
    openai_chat.API: "messages",
    openai_responses.API: "input",
    anthropic_messages.API: "messages",
}
"""By target: the request key that holds the history."""


def judge(
    elements: object,
    *,
    target: Target,
    context: Context,
    fields: Mapping[str, Any] | None,
    disputed: bool = False,
) -> list[Violation]:
    """Every place where the history breaks a rule of `target`, by position and rule.

    `context` already holds what the body says; `fields` are the request's other keys, None for a
    bare list. `disputed` adds rules that sources disagree about, and advisory ones.
    """
    listed = elements if isinstance(elements, LIST) else ()
    scan = READERS[target.name](listed, target, context, fields or {})
    scan.no_list = not isinstance(elements, LIST)
    found: dict[Violation, None] = {}
    for rule in CATALOGUE[target.name]:
        if not disputed and (rule.level == "advisory" or rule.certainty == "disputed"):
            continue  # a legacy rule finds nothing unless the profile is an old one's
        for finding in rule.find(scan):
            if finding.disputed and not disputed:
                continue
            at = finding.position
            violation = Violation(
                rule=rule.id,
                path=f"{scan.key}[{at}]{finding.where}" if at >= 0 else finding.where or scan.key,
                message=finding.message,
                error=rule.error,
                repair=rule.repair if finding.repair == AS_THE_RULE else finding.repair,
                position=at,
            )
            found[violation] = None
    return sorted(found, key=lambda violation: (violation.position, violation.rule))
