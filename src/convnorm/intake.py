"""What the caller passed, taken apart: the list, whose rules apply to it, and the facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from convnorm.closing import Closing
from convnorm.context import FACTS, Context, usable_fact
from convnorm.dialects import DIALECTS
from convnorm.dialects.dialect import USUAL, Call, Dialect
from convnorm.errors import DialectError, PolicyError
from convnorm.facts import Fact
from convnorm.policy import Policy
from convnorm.rules import KEYS
from convnorm.targets import Target, find_target
from convnorm.wire import LIST, fields


@dataclass(frozen=True, slots=True)
class Work:
    """A request taken apart: what every step of a run needs to know."""

    policy: Policy
    call: Call
    dialect: Dialect
    elements: Sequence[object]
    request: Mapping[str, Any] | None
    """The whole body; None when only a list was given."""
    text: str | None = None
    """A Responses input that is a plain string: only its link can need repair."""


def take_apart(given: object, policy: Policy | str | None, context: Context | None) -> Work:
    """Find the list, the dialect and the facts in what the caller passed."""
    context = _facts(context)
    if isinstance(given, str):
        raise DialectError("a history is a list of messages or a request body, not a string")
    request = None if isinstance(given, LIST) else fields(given)
    policy = _policy(policy) or _named(_detect(given, request))
    target = _target(policy, request)
    if target.dialect not in DIALECTS:
        raise DialectError(f"{target.name} can be checked, not repaired yet: call check")
    dialect = DIALECTS[target.dialect]
    found = given if request is None else _list_in(request, dialect, policy)
    text = found if isinstance(found, str) and dialect.KEY == "input" else None
    if text is None and not isinstance(found, LIST):
        raise DialectError(
            f"{dialect.KEY} must be a list of messages, not {type(found).__name__}: "
            "turn other iterables into a list first"
        )
    if request is not None:
        context = context.with_body(request)
    elements: Sequence[object] = () if text is not None else found  # type: ignore[assignment]  # it is a list or tuple
    _one_label_each(context, elements)
    closing = next((each for each in policy.passes if isinstance(each, Closing)), USUAL)
    call = Call(target, context, dialect.KEY, dialect.decode, closing=closing)
    if text and links(call):
        elements = ({"role": "user", "content": text},)
    return Work(policy, call, dialect, elements, request, text)


def for_judging(
    given: object, policy: Policy | str | None, context: Context | None
) -> tuple[Target, object, Mapping[str, Any] | None, Context]:
    """Whose rules, the history, the body around it and the facts, whatever shape they have."""
    context = _facts(context)
    request = None if isinstance(given, LIST) else fields(given)
    policy = _policy(policy)
    if policy is None:
        try:
            policy = _named(_detect(given, request))
        except DialectError:
            policy = _named("openai.chat")
    target = _target(policy, request)
    history = given if request is None else request.get(KEYS[target.name])
    if request is not None:
        said = {key: request[key] for key in FACTS if key in request}
        context = context.with_body({key: said[key] for key in said if usable_fact(key, said[key])})
    if isinstance(history, LIST):
        _one_label_each(context, history)
    return target, history, request, context


def _facts(context: Context | None) -> Context:
    if not isinstance(context, Context | None):
        raise PolicyError(f"a context is a Context, not a {type(context).__name__}")
    return context or Context()


def _policy(policy: Policy | str | None) -> Policy | None:
    if isinstance(policy, str):
        return _named(policy)
    if not isinstance(policy, Policy | None):
        raise PolicyError(f"a policy is a Policy or a target's name, not {type(policy).__name__}")
    return policy


def _target(policy: Policy, request: Mapping[str, Any] | None) -> Target:
    """The policy's target; where the policy names no model, for the one that the body names."""
    named = None if request is None or policy.model is not None else request.get("model")
    if not isinstance(named, str) or not named:
        return policy.resolved
    return find_target(policy.target, provider=policy.provider, model=named, dialect=policy.dialect)


def _one_label_each(context: Context, elements: Sequence[object]) -> None:
    if context.sources and len(context.sources) != len(elements):
        raise PolicyError(
            f"sources has {len(context.sources)} labels for {len(elements)} messages: give one each"
        )


@lru_cache(maxsize=64)
def _named(target: str) -> Policy:
    return Policy.for_target(target)


def _list_in(request: Mapping[str, Any], dialect: Dialect, policy: Policy) -> object:
    if dialect.KEY in request:
        return request[dialect.KEY]
    other = next((name for name, one in DIALECTS.items() if one.KEY in request), None)
    if other is not None:
        raise DialectError(
            f"the policy's dialect is {policy.resolved.dialect}, and the request has the shape of "
            f"{other}: use a policy for {other}, or convert the request first"
        )
    raise DialectError(f"the request has no {dialect.KEY!r}: pass the whole body of the API call")


def _detect(given: object, request: Mapping[str, Any] | None) -> str:
    return _detect_list(given) if request is None else _detect_request(request)


ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"}
)
"""Blocks that no other API has."""


def _is_anthropic(elements: object) -> bool:
    contents = ((fields(each) or {}).get("content") for each in _listed(elements))
    blocks = (fields(block) or {} for content in contents for block in _listed(content))
    return any(isinstance(kind := block.get("type"), str) and kind in ANTHROPIC for block in blocks)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, LIST) else ()


def _detect_request(request: Mapping[str, Any]) -> str:
    if _is_anthropic(request.get("messages")):
        return "anthropic.messages"
    found = [name for name, dialect in DIALECTS.items() if dialect.KEY in request]
    if len(found) != 1:
        keys = " or ".join(repr(dialect.KEY) for dialect in DIALECTS.values())
        raise DialectError(
            f"the request needs exactly one of {keys}: name a policy, such as 'openai.chat'"
        )
    return found[0]


def _detect_list(given: object) -> str:
    if not isinstance(given, LIST):
        raise DialectError(
            f"a history is a list of messages or a request body, not {type(given).__name__}"
        )
    if _is_anthropic(given):
        return "anthropic.messages"
    for at, element in enumerate(given):
        keys = fields(element)
        found = [name for name, dialect in DIALECTS.items() if keys and dialect.detect(keys)]
        if len(found) == 1:
            return found[0]
        if found:
            raise DialectError(f"element {at} fits {' and '.join(found)}: name the policy you mean")
    # Only plain roles and strings: every dialect reads them alike, unless something is wrong. Which
    # other keys there may be is no sign: the first reading passes over most.
    for name, dialect in DIALECTS.items():
        call = Call(_named(name).resolved, Context(), dialect.KEY)
        if dialect.survey(given, call) - {Fact.STORE_UNKNOWN, Fact.FIELDS}:
            raise DialectError(
                "this list needs repair and could be of several dialects "
                f"({', '.join(DIALECTS)}): name the policy you mean, such as 'openai.chat'"
            )
    return next(iter(DIALECTS))


def links(call: Call) -> bool:
    """Whether what the request continues can need repair."""
    context = call.context
    unkept = call.target.name == "openai.responses" and not call.target.responses.keeps_responses
    twice = None not in context.link
    return context.ledger is not None or twice or (context.linked and unkept)
