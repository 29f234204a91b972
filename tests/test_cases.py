"""Real histories that broke, and some that must be left alone: `tests/cases/`.

A case is open when it names a rule that is not in the catalogue, when the pass that repairs its
rule is not built, or when `OPEN` says why. Every other case must be answered rightly.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convnorm import (
    ChangeError,
    Context,
    ConvnormError,
    NotReadyError,
    Policy,
    UnrepairableError,
    check,
    explain,
)
from convnorm.context import Provenance
from convnorm.delivery import Ledger, Link
from convnorm.dialects import DIALECTS
from convnorm.passes import BUILTIN
from convnorm.rules import RULES

CASES = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for dialect in DIALECTS
    for file in sorted((Path(__file__).parent / "cases" / dialect.replace(".", "_")).glob("*.json"))
}

NEEDS = {
    "not ours": "it asks for filtering by trust or visibility, which is not repair",
}
OPEN = {
    "goose-08-hidden-messages-stay-put": "not ours",
    "pydantic-16-untrusted-client-history": "not ours",
}
ARGUED = {
    # "One call, one output, the value is 'new'": but nothing proves that the tool was not asked
    # twice, and 'old' is a real result. Both exchanges stay, the second under its own id.
    "openaiagents-02-latest-value-earliest-call",
}


def is_open(case: dict[str, Any]) -> bool:
    """Whether convnorm does not claim to answer the case yet."""
    rules = case.get("rules", [])
    return case["id"] in OPEN or any(
        rule not in RULES or RULES[rule].repair not in {*BUILTIN, None} for rule in rules
    )


SOLVED = [name for name, case in CASES.items() if not is_open(case)]
UNSOLVED = [name for name, case in CASES.items() if is_open(case)]


def setting(case: dict[str, Any]) -> tuple[Policy, Context]:
    """The policy and the facts that a case describes."""
    facts = case["context"]
    hints = facts.get("target", {})
    options: dict[str, Any] = {}
    if hints.get("mode") == "strict":
        options["on_change"] = "raise"
    if "side_effecting_tools" in hints:
        options["repair_tool_pairs"] = {"side_effecting": hints["side_effecting_tools"]}
    if hints.get("handoff") == "strip_tools":
        options["relabel_handoffs"] = {"unnamed": "relabel"}
    if hints.get("prune_tool_calls") == "before-last-2-messages":
        few = len(case["request"]["messages"]) - 2
        options["fit_budget"] = {"max_messages": few, "keep_last": 2, "first": "tools"}
    if "chat-messages-too-many" in case.get("rules", []):
        options["fit_budget"] = {}
    live = set(hints.get("pending_call_ids", []))
    if hints.get("unanswered") == "pending":
        live |= {
            call["id"] for m in case["request"]["messages"] for call in m.get("tool_calls", [])
        }
    policy = Policy.for_target(
        case["dialect"], provider=facts.get("provider"), model=facts.get("model"), **options
    )
    state = facts.get("server_state")
    end = hints.get("model_switched_after_index", -1)
    context = Context(
        live_calls=frozenset(live),
        last_request=hints.get("prior_output"),
        sources=tuple(hints.get("sources", ())),
        ledger=None if state is None else Ledger.from_state(state),
        provenance=Provenance(models=dict.fromkeys(range(end + 1), "another model")),
    )
    return policy, context


def texts(request: dict[str, Any]) -> Iterator[str]:
    """Everything said, and every result, that a request holds."""
    for element in request["messages" if "messages" in request else "input"]:
        for key in ("content", "output"):
            value = element.get(key)
            for part in value if isinstance(value, list) else [{"text": value}]:
                if isinstance(text := part.get("text"), str):
                    yield text.replace("\ud83d", "\ufffd")  # half of a character


@pytest.mark.parametrize("name", SOLVED)
def test_solved_case(name: str) -> None:
    """The answer is accepted by the rules, keeps all that was said and returned, and is final."""
    case = CASES[name]
    policy, context = setting(case)
    request = copy.deepcopy(case["request"])
    try:
        report = explain(request, policy, context=context)
    except NotReadyError:
        assert context.live_calls
        return
    except (ChangeError, UnrepairableError):
        assert case["may_refuse"] in ("ok", "only")
        return
    answer = report.request
    assert case["request"] == request, "the input was changed"
    afterwards = Context(ledger=context.ledger)
    assert check(answer or {}, policy, context=afterwards) == []
    assert explain(answer or {}, policy, context=afterwards).edits == ()
    wire = json.dumps(answer, ensure_ascii=False)
    held = context.ledger.holds(Link.of(answer)) if context.ledger else ()
    seen = wire + json.dumps(held, ensure_ascii=False)
    kept = [
        text
        for text in texts(case["request"])
        if json.dumps(text, ensure_ascii=False)[1:-1] not in seen
    ]
    assert kept == []
    assert [text for text in case.get("keep", []) if text not in wire] == []
    assert [text for text in case.get("gone", []) if text in wire] == []
    if case["kind"] == "well-formed":
        assert (request, ()) == (answer, report.edits)


@pytest.mark.parametrize("name", UNSOLVED)
def test_open_case_does_not_get_worse(name: str) -> None:
    """A case that is not answered yet loses nothing, and breaks no rule that it did not break."""
    case = CASES[name]
    policy, context = setting(case)
    before = {violation.rule for violation in check(case["request"], policy, context=context)}
    try:
        report = explain(case["request"], policy, context=context)
    except ConvnormError:
        return
    after = {violation.rule for violation in report.remaining}
    wire = json.dumps(report.request, ensure_ascii=False)
    assert after <= before
    assert all(
        json.dumps(text, ensure_ascii=False)[1:-1] in wire for text in texts(case["request"])
    )


@pytest.mark.parametrize("name", [name for name in SOLVED if CASES[name]["kind"] == "broken"])
def test_broken_case_is_reported(name: str) -> None:
    """What the provider refused is found, under the rule that the case names."""
    case = CASES[name]
    policy, context = setting(case)

    found = {one.rule for one in check(case["request"], policy, context=context, disputed=True)}
    assert found
    assert set(case.get("rules", [])) - found == set()


def test_lists_are_honest() -> None:
    """Every case that is listed exists, and every reason is a real one."""
    assert {*OPEN, *ARGUED} - CASES.keys() == set()
    assert {*OPEN.values()} == NEEDS.keys()
    assert not {*OPEN} & {*ARGUED}


def test_case_argued_about() -> None:
    """Two different results of equal calls are both kept, whatever the case asks."""
    (name,) = ARGUED
    policy, _ = setting(CASES[name])

    answer = explain(CASES[name]["request"], policy).messages
    assert ["old", "new"] == [item["output"] for item in answer if "output" in item]
