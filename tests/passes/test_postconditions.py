"""What each pass promises by itself, whatever the other passes would have done."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convnorm import Context, Policy, check, explain, normalize
from convnorm.dialects import DIALECTS
from convnorm.passes import DEFAULT
from convnorm.testing.reading import FOREIGN, history_key, wire
from convnorm.testing.strategies import Sample, broken, conversations

REPAIRS = {
    "dedupe": {"resp-duplicate-item-id"},
    "strip_ids": {"resp-item-not-persisted"},
    "settle_link": {
        "resp-previous-response-not-found",
        "resp-zero-data-retention",
        "resp-previous-and-conversation",
        "resp-conversation-not-found",
        "resp-item-reference-call-pairing",
        "resp-container-expired",
        "compat-previous-response-id-unsupported",
    },
    "repair_tool_pairs": {
        "chat-tool-calls-unanswered",
        "chat-tool-message-orphan",
        "chat-duplicate-tool-result",
        "chat-duplicate-tool-call-id",
        "chat-tool-call-field-missing",
        "chat-tool-call-id-missing",
        "resp-call-output-missing",
        "resp-output-without-call",
        "resp-duplicate-output",
        "resp-duplicate-call-id",
        "resp-call-id-empty",
    },
    "repair_reasoning": {
        "resp-reasoning-without-following",
        "resp-reasoning-summary-missing",
        "resp-reasoning-content-not-allowed",
        "resp-encrypted-content-invalid",
    },
    "repair_arguments": {
        "chat-arguments-not-string",
        "template-arguments-json",
        "resp-arguments-not-string",
    },
    "legalise_ids": {
        "chat-tool-call-id-too-long",
        "chat-function-name-invalid",
        "resp-call-id-too-long",
        "resp-name-invalid",
        "resp-id-prefix",
        "resp-id-charset",
        "resp-id-too-long",
        "resp-hosted-item-id-missing",
    },
    "repair_roles": {
        "chat-role-invalid",
        "chat-tool-calls-role",
        "chat-system-role-unsupported",
        "chat-developer-role-unsupported",
        "template-roles-alternate",
        "resp-role-invalid",
    },
    "fit_media": {
        "chat-content-part-type",
        "chat-image-outside-user",
        "resp-content-part-type",
    },
    "drop_empty": {
        "chat-content-null",
        "chat-content-empty-array",
        "chat-tool-calls-empty-array",
    },
    "scrub_fields": {
        "text-half-character",
        "chat-message-name-pattern",
        "chat-malformed",
        "chat-content-type",
        "chat-tool-calls-type",
        "resp-unknown-field",
        "resp-malformed",
        "resp-item-type-unknown",
        "resp-phase-invalid",
        "resp-output-type",
        "resp-program-caller-unknown",
        "resp-compaction-trigger-not-last",
    },
}
"""By pass: the rules that nothing it leaves behind can break."""
LEFT_TO = {
    "repair_tool_pairs": ("legalise_ids", "scrub_fields"),
    "scrub_fields": ("repair_roles",),
}
"""By pass: those that are there for some places of these rules, as `check` says: ids that are
numbers, calls without a type, and the keys of a chat message among items."""
UNSURE = {"resp-id-prefix"}
"""Rules that are disputed for some kinds of items, where no pass acts: it would cost an id."""
FOR_OTHERS = {"repair_tool_pairs": {"calls_misplaced", "tool_message"}}
"""By pass: faults under which it cannot keep its promise alone, since nobody but the assistant can
call a tool, and a message of Chat Completions is none of the other API before it has its role."""


def by_usual_names(sample: Sample) -> Sample:
    """The same, with those whom other libraries call otherwise called what the API calls them."""
    key = history_key(sample.request)
    elements = list(sample.request[key])
    for at, role in enumerate(wire(each).get("role") for each in elements):
        usual = FOREIGN.get(role.casefold(), role) if isinstance(role, str) else role
        if usual != role:
            elements[at] = {**wire(elements[at]), "role": usual}
    return replace(sample, request={**sample.request, key: elements})


def assert_broken(rule: str, sample: Sample, policy: Policy) -> None:
    """The sample breaks the rule, as somebody who repairs nothing sees it."""
    found = check(sample.request, policy, context=sample.context)
    assert rule in {one.rule for one in found}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", REPAIRS)
def test_pass_alone_leaves_none_of_its_faults(name: str, dialect: str) -> None:
    """After the pass no rule is broken that it is there for; and it is done after one run."""
    policy = Policy(target=dialect, passes=[name], unrepairable="send")

    elsewhere = FOR_OTHERS.get(name, set())

    @given(broken(dialect).filter(lambda sample: elsewhere.isdisjoint(sample.applied)))
    def holds(sample: Sample) -> None:
        if name == "repair_tool_pairs":  # whether somebody's calls are calls, his role decides
            sample = by_usual_names(sample)
        report = explain(sample.request, policy, context=sample.context)
        facts = sample.context.model_copy(update={"sources": ()})
        asked = [one for one in report.assumed if "is left to the provider" in one]
        for one in asked:  # a screenshot that only another pass could do without
            assert_broken(one.rpartition("[")[2].rstrip("]"), sample, policy)
        if asked:
            return
        sure = check(report.request or {}, policy, context=facts)
        left = check(report.request or {}, policy, context=facts, disputed=True)
        left = [one for one in left if one.rule not in UNSURE or one in sure]
        mine = [one for one in left if one.rule in REPAIRS[name]]
        assert [one for one in mine if one.repair not in LEFT_TO.get(name, ())] == []
        assert explain(report.request or {}, policy, context=facts).edits == ()

    holds()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_arbitrate_sources_restores_what_was_replayed(dialect: str) -> None:
    """Any beginning of a history, replayed before the whole of it, is told once."""
    key = DIALECTS[dialect].KEY
    policy = Policy(target=dialect, passes=["arbitrate_sources"], unrepairable="send")

    @given(conversations(dialect), st.data())
    def holds(sample: Sample, data: st.DataObject) -> None:
        whole = sample.request[key]
        start = data.draw(st.integers(1, len(whole)))
        labels = ("store",) * start + ("input",) * len(whole)
        done = normalize([*whole[:start], *whole], policy, context=Context(sources=labels))
        assert list(map(id, whole)) == list(map(id, done))

    holds()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_keep_prefix_keeps_any_beginning(dialect: str) -> None:
    """Whatever beginning was sent is sent again as it was."""
    key = DIALECTS[dialect].KEY
    policy = Policy(target=dialect, passes=["keep_prefix"], unrepairable="send")

    @given(broken(dialect), st.data())
    def holds(sample: Sample, data: st.DataObject) -> None:
        history = sample.request[key]
        sent = history[: data.draw(st.integers(1, len(history)))]
        facts = sample.context.model_copy(update={"last_request": sent})
        report = explain(sample.request, policy, context=facts)
        assert list(map(id, sent)) == list(map(id, report.messages[: len(sent)]))
        assert report.assumed == ()

    holds()


def test_every_pass_promises_something() -> None:
    """No pass is without a postcondition; those that are opt-in have it in their own tests."""
    assert {*REPAIRS, "arbitrate_sources", "keep_prefix"} == {*DEFAULT}
