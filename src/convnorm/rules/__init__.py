"""What each API enforces on a request, judged independently of what repairs it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from convnorm.context import Context
from convnorm.rules import openai_chat, openai_responses
from convnorm.rules.ours import HISTORY_REPLAYED, ID_UNSTORED
from convnorm.rules.read_chat import read_chat
from convnorm.rules.read_responses import read_responses
from convnorm.rules.rule import AS_THE_RULE, Rule, Violation
from convnorm.targets import Target

__all__ = ["CATALOGUE", "RULES", "Rule", "Violation", "judge"]

CATALOGUE: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        openai_chat.API: (*openai_chat.RULES, HISTORY_REPLAYED),
        openai_responses.API: (*openai_responses.RULES, ID_UNSTORED, HISTORY_REPLAYED),
    }
)
"""By target: the rules of its API."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.id: rule for rules in CATALOGUE.values() for rule in rules}
)
"""Every rule by its id."""

READERS = {openai_chat.API: read_chat, openai_responses.API: read_responses}


def judge(
    elements: Sequence[object],
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
    scan = READERS[target.name](elements, target, context, fields or {})
    found: dict[Violation, None] = {}
    for rule in CATALOGUE[target.name]:
        if not disputed and (rule.level == "advisory" or rule.certainty == "disputed"):
            continue
        for finding in rule.find(scan):
            at = finding.position
            violation = Violation(
                rule=rule.id,
                path=scan.key if at < 0 else f"{scan.key}[{at}]{finding.where}",
                message=finding.message,
                error=rule.error,
                repair=rule.repair if finding.repair == AS_THE_RULE else finding.repair,
                position=at,
            )
            found[violation] = None
    return sorted(found, key=lambda violation: (violation.position, violation.rule))
