"""What a rule is, and what it is called when a request breaks one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

AS_THE_RULE: Final = "as the rule says"


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that breaks a rule, as the rule's function reports it."""

    position: int
    """The index of the message or item; -1 for the list as a whole."""
    where: str
    """The rest of the path behind the message, such as `.tool_calls[0].id`."""
    message: str
    """What is wrong here, in the user's terms."""
    repair: str | None = AS_THE_RULE
    """The pass that repairs this place, where it is not the rule's own."""
    disputed: bool = False
    """Sources disagree about this place, though not about the rule."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a request breaks a rule."""

    rule: str
    path: str
    """Where, as the provider would write it: `messages[3].tool_calls[0].id`, `input[2].call_id`."""
    message: str
    """What is wrong in this history."""
    error: str
    """The provider's own wording."""
    repair: str | None
    """The pass that repairs it; None when nothing may repair it silently."""
    position: int
    """The index of the message or item; -1 for the list as a whole."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rule:
    """One thing an API enforces, with its evidence, its repair and a request that breaks it."""

    id: str
    api: str
    """The target whose API has it, or `any`."""
    statement: str
    """The rule in one sentence."""
    error: str
    """What users see when they break it."""
    level: Literal["error", "model", "legacy", "advisory"] = "error"
    """Refused; refused by some models or servers; refused by old ones; accepted, and still worth
    repairing."""
    certainty: Literal["observed", "documented", "reported", "reasoned", "disputed", "ours"]
    """The error was read in public threads; follows from types or documents; comes from one report
    or one library; is reasoned; is contradicted somewhere; or is convnorm's own advice."""
    sources: tuple[str, ...]
    """Public threads and documents that show it."""
    repair: str | None
    """The pass that repairs it; None when nothing may repair it silently."""
    loss: str
    """What the repair costs."""
    remedy: str
    """What the user can do about it."""
    retroactive: bool = False
    """Growth of the history can make an old message break it."""
    example: Mapping[str, Any]
    """A small request that breaks it."""
    setting: Mapping[str, Any] = field(default_factory=dict)
    """What the example needs to be known: `provider`, `model`, `state`, what the server
    holds, and `provenance`."""
    status: int = 400
    """The HTTP status of the refusal."""
    status_elsewhere: Mapping[str, int] = field(default_factory=dict)
    """By provider: the status, where it is another one."""
    code: str | None = None
    """The machine-readable code in the error's body, where one was seen."""
    companions: tuple[str, ...] = ()
    """Other rules that no example can help breaking as well."""
    find: Callable[[Any], Iterator[Finding]]
    """Every place of a request that breaks it."""
