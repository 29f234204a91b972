"""The functions people call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convnorm.context import Context
from convnorm.errors import DialectError
from convnorm.intake import Work, for_judging, take_apart
from convnorm.pipeline import Change, Outcome, facts_now, run
from convnorm.policy import Policy
from convnorm.rules import Violation, judge


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did, and what was wrong before and after."""

    messages: list[Any]
    """The repaired list, ready to send."""
    request: dict[str, Any] | None
    """The repaired request body; None when only a list was given."""
    edits: tuple[Change, ...]
    """Every change, with the rule it repairs and what it costs."""
    violations: list[Violation]
    """What was wrong with the input, disputed and advisory rules included."""
    remaining: list[Violation]
    """What is still wrong with the output."""
    assumed: tuple[str, ...]
    """What had to be taken for granted."""


def normalize(
    messages: Sequence[Any], policy: Policy | str | None = None, *, context: Context | None = None
) -> list[Any]:
    """The same messages, repaired so that the next model call is accepted.

    A new list; the caller's own elements are in it wherever nothing had to change. Without a policy
    the dialect is detected and its first party's rules apply.
    """
    if isinstance(messages, Mapping):
        raise DialectError("normalize takes a list of messages: for a body use normalize_request")
    return run(take_apart(messages, policy, context)).elements


def normalize_request(
    request: Mapping[str, Any],
    policy: Policy | str | None = None,
    *,
    context: Context | None = None,
) -> dict[str, Any]:
    """The same request body, repaired: its list of messages, and what belongs to it."""
    work = take_apart(request, policy, context)
    if work.request is None:
        raise DialectError("normalize_request takes a request body: for a list use normalize")
    return _body(work, run(work))


def explain(
    given: Sequence[Any] | Mapping[str, Any],
    policy: Policy | str | None = None,
    *,
    context: Context | None = None,
) -> Report:
    """The same work as `normalize` or `normalize_request`, with the report of it."""
    work = take_apart(given, policy, context)
    outcome = run(work)
    return Report(
        messages=outcome.elements,
        request=None if work.request is None else _body(work, outcome),
        edits=outcome.edits,
        violations=_judge(work, work.elements, work.request, disputed=True),
        remaining=_judge(work, outcome.elements, outcome.fields, disputed=False),
        assumed=outcome.assumed,
    )


def check(
    given: Sequence[Any] | Mapping[str, Any],
    policy: Policy | str | None = None,
    *,
    context: Context | None = None,
    disputed: bool = False,
) -> list[Violation]:
    """What the target would refuse, by position; empty when nothing is wrong that can be seen here.

    It reports whatever it is given and raises only for a policy or a context that cannot be used.
    Without a policy, what could be of several dialects is judged as `openai.chat`; where the policy
    names no model, the rules are those for the model that the body names. With a ledger in the
    context it judges what the server would see: what it holds, and then the input. `disputed` adds
    rules that sources disagree about, and advisory ones.
    """
    target, history, request, facts = for_judging(given, policy, context)
    if target.name == "openai.responses" and isinstance(history, str) and history:
        history = [{"role": "user", "content": history}]
    return judge(history, target=target, context=facts, fields=request, disputed=disputed)


def _judge(
    work: Work, elements: Sequence[Any], request: Mapping[str, Any] | None, *, disputed: bool
) -> list[Violation]:
    if work.text and not work.elements:
        return []
    return judge(
        elements,
        target=work.call.target,
        context=facts_now(work, request or {}),
        fields=request,
        disputed=disputed,
    )


def _body(work: Work, outcome: Outcome) -> dict[str, Any]:
    body = dict(outcome.fields)
    if work.text is None or outcome.edits:
        body[work.dialect.KEY] = outcome.elements
    return body
