"""One run: survey, decode, passes, encode, and the final check by the rules."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, TypeGuard

from convnorm.context import Context, Provenance
from convnorm.delivery import Link
from convnorm.dialects.dialect import Call
from convnorm.edits import (
    FRONT,
    Assumed,
    Drop,
    Edit,
    Insert,
    Loss,
    Mend,
    Move,
    SetField,
    SetTurn,
    Unrepairable,
    apply,
)
from convnorm.errors import (
    ChangeError,
    NeedsRequestError,
    UnrepairableError,
)
from convnorm.facts import Fact
from convnorm.groups import leads_of_dropped
from convnorm.intake import Work, links
from convnorm.ir import History, Turn
from convnorm.passes import ORDER, run_pass
from convnorm.passes.repair_roles import RepairRoles
from convnorm.policy import Policy
from convnorm.prefix import NoGrowthError, Plain, Search, listed
from convnorm.rules import RULES, Violation, judge

logger = logging.getLogger("convnorm")

MOST_ROUNDS = 5
ATTESTED = ("observed", "documented")
"""How certain a rule must be for a request to be refused for it; others are only reported."""
NONE = Provenance()
TAKEN = (None, Loss.COPY, Loss.EMPTY, Loss.HISTORY)
"""What it costs to drop a message because what it says is elsewhere, or nothing."""
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
class Outcome:
    """What a run leaves: the elements to send, and the record of how they came about."""

    elements: list[Any]
    fields: Mapping[str, Any]
    edits: tuple[Change, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(slots=True)
class Notes:
    """What a run writes down on its way."""

    assumed: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    gone: dict[int, Change] = field(default_factory=dict)
    """By place: the messages dropped whole because what they say is elsewhere, or nothing."""
    copies: dict[str, str] = field(default_factory=dict)
    """By rule: why something in the last request would be dropped, had it not been sent."""


def run(work: Work, *, force: bool = False) -> Outcome:
    """Repair the history, behind what was sent of it. `force` wakes every pass at once."""
    last = work.call.context.last_request
    if last is None or work.text is not None:
        return _run(work, Notes(), force=force)
    try:
        return _run_behind(work, last, force=force)
    except NoGrowthError as why:
        return _run(work, Notes([f"last_request is not kept: {why}"]), force=force)


def _run_behind(work: Work, last: Mapping[str, Any] | Sequence[Any], *, force: bool) -> Outcome:
    """Repair what is new behind the last request, which stays as it is."""
    context = work.call.context
    if context.linked:
        raise NoGrowthError("the server puts its own history before this call's")

    def decode(elements: Sequence[Any]) -> Sequence[Turn]:
        return work.dialect.decode(elements, work.request or {}, bare).turns

    bare = replace(work.call, context=_without_places(context))

    def plain(end: int, without: frozenset[str]) -> Plain:
        return _plain(work, end, without)

    search = Search(listed(last, work.dialect.KEY), work.elements, decode, plain)
    sent = search.run()
    call = replace(work.call, context=sent.facts(context), frozen=sent.frozen, places=sent.places)
    for dropped in sent.dropped:
        _announce(work.policy, dropped.by, [dropped])
    behind = replace(work, elements=sent.elements, call=call)
    notes = Notes(list(sent.assumed), list(sent.dropped))
    outcome = _run(behind, notes, force=force)
    for violation in _judged(behind, outcome) if notes.copies else ():
        if violation.rule in notes.copies:
            raise NoGrowthError(f"{notes.copies[violation.rule]} [{violation.rule}]")
    return outcome


def _plain(work: Work, end: int, without: frozenset[str]) -> Plain:
    """What is sent for the first elements when nothing is remembered; it reports nothing."""
    context = work.call.context
    context = context.model_copy(
        update={
            "last_request": None,
            "live_calls": frozenset(),
            "sources": context.sources[:end],
        }
    )
    passes = tuple(
        pass_.model_copy(update={"neighbours": "part"}) if pass_.name in without else pass_
        for pass_ in work.policy.passes
        if pass_.name not in without or isinstance(pass_, RepairRoles)
    )
    policy = work.policy.model_copy(update={"on_change": "fix", "passes": passes})
    elements = work.elements[:end]
    plain = replace(
        work, policy=policy, call=replace(work.call, context=context), elements=elements
    )
    rest = {} if work.request is None else work.request
    original = history = plain.dialect.decode(elements, rest, plain.call)
    notes = Notes()
    for pass_ in policy.passes:
        history = _run_pass(pass_, history, plain, notes)
    sent: Sequence[Any] = elements
    if history is not original:
        history, sent = _settle(history, original, plain, notes)
    return Plain(sent, history.turns, notes.gone)


def _without_places(context: Context) -> Context:
    """The facts that are not about single messages by their place."""
    return context.model_copy(update={"sources": (), "provenance": NONE})


def _run(work: Work, notes: Notes, *, force: bool) -> Outcome:
    policy, call, dialect, elements = work.policy, work.call, work.dialect, work.elements
    rest = {} if work.request is None else work.request
    if work.text is not None and not elements:
        if not work.text:
            _refuse(work, elements, rest)
        return Outcome([], rest)
    facts = dialect.survey(elements, call)
    if call.context.sources:
        facts.add(Fact.SOURCES)
    if links(call):
        facts.add(Fact.LINK)
    if call.context.ledger is not None:
        facts.add(Fact.SHAPE)  # what the server holds is for the rules to judge
    if Fact.STORE_UNKNOWN in facts and work.request is None:
        notes.assumed.append(STORED)
        _warn_store()
    awake = [pass_ for pass_ in policy.passes if force or _wakes(pass_, facts)]
    if not awake and Fact.SHAPE not in facts:
        return Outcome(list(elements), rest, tuple(notes.changes), tuple(notes.assumed))
    original = history = dialect.decode(elements, rest, call)
    for pass_ in policy.passes:
        # What one pass changed, the survey has not seen: from there on every pass looks.
        if history is not original or pass_ in awake:
            history = _run_pass(pass_, history, work, notes)
    sent = list(elements)
    if history is not original:
        history, sent = _settle(history, original, work, notes)
    if notes.changes or Fact.SHAPE in facts:
        _refuse(work, sent, history.fields)
    return Outcome(sent, history.fields, tuple(notes.changes), tuple(notes.assumed))


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
    history: History, original: History, work: Work, notes: Notes
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
            history = _run_pass(pass_, history, work, notes)
        if history is before:
            break
        sent = work.dialect.encode(history, before)
    return history, sent


def _read_again(history: History, sent: list[Any], work: Work) -> History:
    """The history behind `sent`, with what is known of each turn, and of its place before."""
    bare = replace(work.call, context=_without_places(work.call.context))
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


def _run_pass(pass_: Any, history: History, work: Work, notes: Notes) -> History:
    edits: list[Edit] = []
    if history.fields is not work.request:
        work = replace(work, call=replace(work.call, context=facts_now(work, history.fields)))
    for found in run_pass(pass_, history, work.call):
        if isinstance(found, Assumed):
            if found.what not in notes.assumed:
                notes.assumed.append(found.what)
        elif isinstance(found, Unrepairable):
            _leave(found, history, work, notes)
        else:
            edits.append(found)
    edits = _left_of(edits, work.call.frozen, notes)
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
    for edit, record in zip(edits, records, strict=True):
        if _touches(edit, work.call.frozen):
            raise NoGrowthError(f"{record.where} must change: {record.why} [{record.rule}]")
        if _takes(edit):
            at = history.turns[edit.turn].at
            if at is not None:
                notes.gone[at] = record
    _announce(work.policy, pass_.name, records)
    notes.changes.extend(records)
    return apply(history, edits)


def _announce(policy: Policy, by: str, records: Sequence[Change]) -> None:
    """Refuse or log the changes that a pass asks for, if the policy says so."""
    match policy.mode(by):
        case "raise":
            said = "; ".join(f"{one.where}: {one.why} [{one.rule}]" for one in records[:5])
            more = f" and {len(records) - 5} more" if len(records) > 5 else ""
            raise ChangeError(f"{by} would change {said}{more}")
        case "warn":
            for record in records:
                _warn_once(record.by, record.rule, record.where, record.why)


def _leave(found: Unrepairable, history: History, work: Work, notes: Notes) -> None:
    """Refuse what a pass may not repair, or leave it to the provider, as the policy says."""
    where = work.call.where(history.turns[found.turn])
    if work.policy.unrepairable == "raise":
        raise UnrepairableError(found.rule, where, found.remedy)
    said = f"{where} is left to the provider: {found.remedy} [{found.rule}]"
    if said not in notes.assumed:
        notes.assumed.append(said)


def _left_of(edits: list[Edit], frozen: int, notes: Notes) -> list[Edit]:
    """The edits without those that take copies out of what was sent: they can stay."""
    if not frozen:
        return edits
    copies = [edit for edit in edits if _takes(edit) and edit.turn < frozen]
    notes.copies.update((edit.rule, edit.why) for edit in copies)
    return [edit for edit in edits if not (_takes(edit) and edit.turn < frozen)]


def _takes(edit: Edit) -> TypeGuard[Drop]:
    """Whether the edit drops a whole message, and nothing that it says is lost."""
    whole = isinstance(edit, Drop) and edit.item is None and not edit.joined
    return whole and edit.loss in TAKEN


def _touches(edit: Edit, frozen: int) -> bool:
    """Whether the edit changes what was sent, or puts something between."""
    if isinstance(edit, Insert | Move) and edit.after < frozen - 1:
        return True
    return not isinstance(edit, Insert | SetField) and edit.turn < frozen


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
    for violation in _judged(work, Outcome(list(elements), rest)):
        if violation.repair is None and RULES[violation.rule].certainty in ATTESTED:
            remedy = f"{violation.message}: {RULES[violation.rule].remedy}"
            raise UnrepairableError(violation.rule, violation.path, remedy)


def _judged(work: Work, outcome: Outcome) -> list[Violation]:
    """What the target refuses of what would be sent."""
    return judge(
        outcome.elements,
        target=work.call.target,
        context=facts_now(work, outcome.fields),
        fields=outcome.fields or None,
    )
