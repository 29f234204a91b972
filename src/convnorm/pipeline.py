"""One run: survey, decode, passes, encode, and the final check by the rules."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from convnorm.context import FACTS, Context, Provenance, usable_fact
from convnorm.delivery import Link
from convnorm.dialects import DIALECTS
from convnorm.dialects.dialect import Call, Dialect
from convnorm.edits import FRONT, Assumed, Edit, Insert, Loss, Mend, Move, SetField, SetTurn, apply
from convnorm.errors import (
    ChangeError,
    DialectError,
    NeedsRequestError,
    PolicyError,
    UnrepairableError,
)
from convnorm.facts import Fact
from convnorm.groups import leads_of_dropped
from convnorm.ir import History
from convnorm.passes import ORDER, run_pass
from convnorm.policy import Policy
from convnorm.rules import KEYS, RULES, judge
from convnorm.targets import Target, find_target
from convnorm.wire import LIST, fields

logger = logging.getLogger("convnorm")

MOST_ROUNDS = 5
ATTESTED = ("observed", "documented")
"""How certain a rule must be for a request to be refused for it; others are only reported."""
NONE = Provenance()
STORED = "items have ids and nothing says whether the server stores them: taken for stored"


@dataclass(frozen=True, slots=True)
class Change:
    """One edit as the report shows it."""

    by: str
    """The pass that asked for it."""
    what: str
    """`drop`, `insert`, `replace`, `move behind …` or `set`."""
    where: str
    """The message it touches, by its place in what the caller passed."""
    rule: str
    """The rule it repairs."""
    why: str
    loss: Loss | None = None
    """What it costs; None when nothing is lost."""


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run leaves: the elements to send, and the record of how they came about."""

    elements: list[Any]
    fields: Mapping[str, Any]
    edits: tuple[Change, ...] = ()
    assumed: tuple[str, ...] = ()


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
    call = Call(target, context, dialect.KEY, dialect.decode)
    if text and _links(call):
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
    # Only plain roles and strings: every dialect reads them alike, unless something is wrong.
    for name, dialect in DIALECTS.items():
        call = Call(_named(name).resolved, Context(), dialect.KEY)
        if dialect.survey(given, call) - {Fact.STORE_UNKNOWN}:
            raise DialectError(
                "this list needs repair and could be of several dialects "
                f"({', '.join(DIALECTS)}): name the policy you mean, such as 'openai.chat'"
            )
    return next(iter(DIALECTS))


def run(work: Work, *, force: bool = False) -> Outcome:
    """Repair the history. `force` wakes every pass, whatever the survey says."""
    policy, call, dialect, elements = work.policy, work.call, work.dialect, work.elements
    rest = {} if work.request is None else work.request
    if work.text is not None and not elements:
        if not work.text:
            _refuse(work, elements, rest)
        return Outcome([], rest)
    facts = dialect.survey(elements, call)
    if call.context.sources:
        facts.add(Fact.SOURCES)
    if _links(call):
        facts.add(Fact.LINK)
    if call.context.ledger is not None:
        facts.add(Fact.SHAPE)  # what the server holds is for the rules to judge
    assumed: list[str] = []
    if Fact.STORE_UNKNOWN in facts and work.request is None:
        assumed.append(STORED)
        _warn_store()
    awake = [pass_ for pass_ in policy.passes if force or _wakes(pass_, facts)]
    if not awake and Fact.SHAPE not in facts:
        return Outcome(list(elements), rest, assumed=tuple(assumed))
    original = history = dialect.decode(elements, rest, call)
    changes: list[Change] = []
    for pass_ in policy.passes:
        # What one pass changed, the survey has not seen: from there on every pass looks.
        if history is not original or pass_ in awake:
            history = _run_pass(pass_, history, work, changes, assumed)
    sent = list(elements)
    if history is not original:
        history, sent = _settle(history, original, work, changes, assumed)
    if changes or Fact.SHAPE in facts:
        _refuse(work, sent, history.fields)
    return Outcome(sent, history.fields, tuple(changes), tuple(assumed))


def _links(call: Call) -> bool:
    """Whether what the request continues can need repair."""
    context = call.context
    unkept = call.target.name == "openai.responses" and not call.target.responses.keeps_responses
    twice = None not in context.link
    return context.ledger is not None or twice or (context.linked and unkept)


def facts_now(work: Work, now: Mapping[str, Any]) -> Context:
    """The facts of the call, with the link that the body names by now."""
    context, request = work.call.context, work.request
    if request is None or now is request:
        return context
    link = Link.of(now)
    said = {key: getattr(link, key) for key in LINK if key in request}
    return context.model_copy(update=said)


LINK = Link._fields
"""The fields of a body that say what it continues."""


def _settle(
    history: History, original: History, work: Work, changes: list[Change], assumed: list[str]
) -> tuple[History, list[Any]]:
    """Look at what would be sent as if it had come in, until no pass of ours asks for anything.

    One repair can bring out another fault. The labels of sources were for the first round; what
    they copied is gone.
    """
    anything = set(Fact) - {Fact.SOURCES}
    passes = [
        pass_
        for pass_ in work.policy.passes
        if isinstance(pass_, ORDER) and _wakes(pass_, anything)
    ]
    sent = work.dialect.encode(history, original)
    for _ in range(MOST_ROUNDS):
        history = before = _read_again(history, sent, work)
        for pass_ in passes:
            history = _run_pass(pass_, history, work, changes, assumed)
        if history is before:
            break
        sent = work.dialect.encode(history, before)
    return history, sent


def _read_again(history: History, sent: list[Any], work: Work) -> History:
    """The history behind `sent`, with what is known of each turn, and of its place before."""
    bare = replace(
        work.call, context=work.call.context.model_copy(update={"sources": (), "provenance": NONE})
    )
    turns = tuple(
        replace(
            turn, at=was.at, source=was.source, model=was.model, agent=was.agent, edited=was.edited
        )
        for turn, was in zip(
            work.dialect.decode(sent, history.fields, bare).turns, history.turns, strict=True
        )
    )
    return replace(history, turns=turns)


def _wakes(pass_: Any, facts: set[Fact]) -> bool:
    wakes_on = getattr(pass_, "wakes_on", None)
    return wakes_on is None or not facts.isdisjoint(wakes_on)


def _run_pass(
    pass_: Any, history: History, work: Work, changes: list[Change], assumed: list[str]
) -> History:
    edits: list[Edit] = []
    if history.fields is not work.request:
        work = replace(work, call=replace(work.call, context=facts_now(work, history.fields)))
    for found in run_pass(pass_, history, work.call):
        if isinstance(found, Assumed):
            if found.what not in assumed:
                assumed.append(found.what)
        else:
            edits.append(found)
    edits += leads_of_dropped(history, edits)
    if not edits:
        return history
    for edit in edits:
        if isinstance(edit, SetField) and not _can_set(edit.key, work.request):
            raise NeedsRequestError(
                f"the repair changes {edit.key}, which is no part of what was passed: "
                "call normalize_request with the whole body"
            )
    records = [_record(pass_.name, edit, history, work.call) for edit in edits]
    match work.policy.mode(pass_.name):
        case "raise":
            said = "; ".join(f"{one.where}: {one.why} [{one.rule}]" for one in records[:5])
            more = f" and {len(records) - 5} more" if len(records) > 5 else ""
            raise ChangeError(f"{pass_.name} would change {said}{more}")
        case "warn":
            for record in records:
                _warn_once(record.by, record.rule, record.where, record.why)
    changes.extend(records)
    return apply(history, edits)


def _can_set(key: str, request: Mapping[str, Any] | None) -> bool:
    """Whether the field is ours to change: a link that is not in the body is sent by the caller."""
    return request is not None and (key not in LINK or key in request)


def _record(by: str, edit: Edit, history: History, call: Call) -> Change:
    match edit:
        case SetField():
            where = edit.key
        case Insert(after=after) if after != FRONT:
            where = f"behind {call.where(history.turns[after])}"
        case Insert():
            where = "in front"
        case _:
            where = call.where(history.turns[edit.turn])
    match edit:
        case SetTurn() | SetField() | Mend():
            what = "set"
        case Move(after=after) if after != FRONT:
            what = f"move behind {call.where(history.turns[after])}"
        case _:
            what = type(edit).__name__.lower()
    return Change(by, what, where, edit.rule, edit.why, edit.loss)


@lru_cache(maxsize=4096)
def _warn_once(by: str, rule: str, where: str, why: str) -> None:
    """A history is normalized before every call, and the same fault is worth one line."""
    logger.warning("%s: %s: %s [%s]", by, where, why, rule)


@cache
def _warn_store() -> None:
    logger.warning("%s: say so with Context(store=...), or use normalize_request", STORED)


def _refuse(work: Work, elements: Sequence[object], rest: Mapping[str, Any]) -> None:
    """Raise for a fault that no pass may repair silently and that is known to be refused."""
    if work.policy.unrepairable == "send":
        return
    context = facts_now(work, rest)
    found = judge(elements, target=work.call.target, context=context, fields=rest or None)
    for violation in found:
        if violation.repair is None and RULES[violation.rule].certainty in ATTESTED:
            remedy = f"{violation.message}: {RULES[violation.rule].remedy}"
            raise UnrepairableError(violation.rule, violation.path, remedy)
