"""`check` reports, whatever it is given."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from convnorm import (
    Context,
    ConvnormError,
    DialectError,
    Policy,
    PolicyError,
    check,
    explain,
    normalize,
    normalize_request,
)
from convnorm.context import Provenance
from convnorm.delivery import Ledger
from convnorm.dialects import DIALECTS
from convnorm.passes import BUILTIN
from convnorm.rules import CATALOGUE, Rule
from mutate import mutated

MUTATIONS = settings().max_examples * 50

for_every_api = pytest.mark.parametrize("api", CATALOGUE)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ("messages", "input", "role", "content", "type", "id", "store", "conversation")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(values, st.sampled_from([None, *CATALOGUE]))
def test_any_value_is_judged(value: Any, policy: str | None) -> None:
    """No JSON-like value makes it raise, with a policy or without."""
    for violation in check(value, policy, disputed=True):
        assert violation.message


@for_every_api
def test_mutated_requests_are_judged(api: str) -> None:
    """Real requests with random damage are judged in order, each fault once, and never raise."""
    silent = 0
    for request in mutated(api, MUTATIONS):
        found = check(request, api, disputed=True)
        silent += not found
        assert found == sorted(found, key=lambda one: (one.position, one.rule))
        assert len(found) == len(set(found))
    assert 0 < silent < MUTATIONS / 2  # the damage is seen, and is not seen everywhere


DIGEST = """
import hashlib, sys
from convnorm import check
from mutate import mutated
digest = hashlib.sha256()
for request in mutated(sys.argv[1], int(sys.argv[2])):
    digest.update(repr(check(request, sys.argv[1], disputed=True)).encode())
print(digest.hexdigest())
"""


@for_every_api
def test_the_same_in_every_process(api: str) -> None:
    """The order of hashes plays no part in what is found in any of these requests."""
    support = Path(sys.modules["mutate"].__file__ or "").parent
    started = [
        subprocess.Popen(  # noqa: S603  # our own interpreter and our own words
            [sys.executable, "-c", DIGEST, api, str(MUTATIONS)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(support)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "77")
    ]
    said = [process.communicate()[0] for process in started]
    assert [0, 0] == [process.returncode for process in started]
    assert said[0] == said[1]
    assert len(said[0].strip()) == 64


def test_only_a_wrong_policy_or_context_is_refused() -> None:
    """What is no history is reported; what is no policy cannot be used."""
    assert check(5) != []  # type: ignore[arg-type]  # that is the point
    assert check({"input": [{"role": "user", "content": "x"}], "store": "yes"}) == []
    with pytest.raises(PolicyError, match="labels"):
        check([{"role": "user", "content": "x"}], context=Context(sources=("a", "b")))
    with pytest.raises(PolicyError):
        check([], "openai.chart")


SYSTEM = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
THOUGHT = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB1"},
    {"role": "assistant", "content": "hi"},
]
PREFILLED = [{"role": "user", "content": "sun?"}, {"role": "assistant", "content": "It is"}]


@pytest.mark.parametrize(
    "api, body, model, rule",
    [
        ("openai.chat", {"messages": SYSTEM}, "o1-mini", "chat-system-role-unsupported"),
        ("openai.responses", {"input": THOUGHT}, "gpt-4o", "resp-reasoning-nonreasoning-model"),
        (
            "anthropic.messages",
            {"messages": PREFILLED},
            "claude-opus-4-8",
            "anthropic-prefill-unsupported",
        ),
    ],
)
def test_the_body_names_the_model(api: str, body: dict[str, Any], model: str, rule: str) -> None:
    """Rules about a model apply where the body names it, and the policy has the last word."""
    named = {"model": model, **body}
    assert [] == check(body, api)
    assert [rule] == [one.rule for one in check(named, api)]
    assert [rule] == [one.rule for one in check(body, Policy.for_target(api, model=model))]
    assert [] == check(named, Policy.for_target(api, model="another"))


@for_every_api
@given(values | st.text())
def test_any_model_is_judged(api: str, model: Any) -> None:
    """What no API could serve is no model that anybody knows, and no reason to raise."""
    for violation in check({"model": model, "messages": SYSTEM, "input": THOUGHT}, api):
        assert violation.message


def test_what_is_repaired_is_judged_for_the_same_model() -> None:
    """The report of a repair names what the model in the body does not take."""
    report = explain({"model": "o1-mini", "messages": SYSTEM})
    assert ["chat-system-role-unsupported"] == [one.rule for one in report.violations]


def test_what_has_rules_only_is_not_repaired() -> None:
    """An API whose passes are not built says so, instead of sending what nobody looked at."""
    with pytest.raises(DialectError, match="call check"):
        normalize([{"role": "user", "content": "x"}], "anthropic.messages")


def test_a_ledger_shows_what_the_server_would_see() -> None:
    """A call that is pending on the server is found, though no list shows it."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    state = {"responses": {"resp_1": {"input": [], "output": [call]}}}
    body = {"previous_response_id": "resp_1", "input": [{"role": "user", "content": "and?"}]}
    assert check(body) == []
    found = check(body, context=Context(ledger=Ledger.from_state(state)))
    assert ["resp-call-output-missing"] == [one.rule for one in found]
    answered = [{"type": "function_call_output", "call_id": "c1", "output": "10 EUR"}]
    assert (
        check({**body, "input": answered}, context=Context(ledger=Ledger.from_state(state))) == []
    )


def test_a_ledger_is_plain_data() -> None:
    """It goes to JSON and back, and a state in the wrong shape is refused in plain words."""
    ledger = Ledger.from_state({"conversations": {"conv_1": {"items": [{"id": "msg_1"}]}}})
    assert Ledger.from_state(json.loads(ledger.model_dump_json())) == ledger
    wrong: tuple[Any, ...] = ([], {"responses": 5}, {"reponses": {}})
    for state in wrong:
        with pytest.raises(PolicyError):
            Ledger.from_state(state)


@pytest.mark.parametrize(
    "rule",
    [rule for api in DIALECTS for rule in CATALOGUE[api] if rule.repair is None],
    ids=lambda rule: rule.id,
)
def test_what_nothing_may_repair_is_refused(rule: Rule) -> None:
    """The example of a rule without a repair is never sent, however clean it looks."""
    state, api = rule.setting.get("state"), rule.api
    policy = Policy.for_target(
        api, provider=rule.setting.get("provider"), model=rule.setting.get("model")
    )
    context = Context(ledger=None if state is None else Ledger.from_state(state))
    with pytest.raises(ConvnormError):
        normalize_request(dict(rule.example), policy, context=context)


@pytest.mark.parametrize(
    "rule",
    [
        rule
        for api in DIALECTS
        for rule in CATALOGUE[api]
        if rule.api == api and rule.repair in BUILTIN and rule.certainty != "disputed"
    ],
    ids=lambda rule: rule.id,
)
def test_what_a_pass_is_said_to_repair_it_repairs(rule: Rule) -> None:
    """The example of a rule is in order after its pass, as far as `check` names a default pass."""
    state, model = rule.setting.get("state"), rule.setting.get("model")
    policy = Policy.for_target(
        rule.api, provider=rule.setting.get("provider"), model=model, unrepairable="send"
    )
    context = Context(
        ledger=None if state is None else Ledger.from_state(state),
        provenance=Provenance(**rule.setting.get("provenance", {})),
    )
    report = explain(dict(rule.example), policy, context=context)
    left = check(report.request or {}, policy, context=context, disputed=True)
    passes = {pass_.name for pass_ in policy.passes}
    assert [one for one in left if one.rule == rule.id and one.repair in passes] == []


def test_anthropic_shapes_are_judged_as_such() -> None:
    """Blocks that only Anthropic has say whose rules apply; nothing repairs them yet."""
    use = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
    }
    asked = {"role": "user", "content": "hi"}

    for shape in ([asked, use, asked], {"messages": [asked, use, asked], "max_tokens": 9}):
        assert "anthropic-tool-use-without-result" in {one.rule for one in check(shape)}
    with pytest.raises(DialectError, match="anthropic"):
        normalize([asked, use, asked])


@pytest.mark.parametrize("provider", ["openai", "groq"])
@pytest.mark.parametrize("target", ["openai.chat", "openai.responses", "anthropic.messages"])
def test_keys_and_objects_that_no_json_has(target: str, provider: str) -> None:
    """Whatever a list holds is reported, not raised."""

    class Stubborn:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    class Message(BaseModel):
        role: str
        content: object

    odd = [
        {"role": "user", "content": "x", 10**5000: 1},
        Stubborn(),
        Message(role="user", content=object()),
        Message(role="user", content=b"\xff"),
    ]
    found = check(odd, Policy.for_target(target, provider=provider), disputed=True)
    assert {1, 2, 3} <= {one.position for one in found}


def test_reference_to_reasoning_is_reasoning() -> None:
    """What the server holds is judged as if it were sent."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    reply = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    context = Context(
        ledger=Ledger.from_state(
            {"responses": {"resp_1": {"input": "hi", "output": [thought, reply]}}}
        )
    )
    sent = {"input": [{"role": "user", "content": "a"}, {"type": "item_reference", "id": "rs_1"}]}

    rules = {one.rule for one in check(sent, "openai.responses", context=context)}
    assert {"resp-reasoning-without-following"} == rules
    rules = {
        one.rule
        for one in check({**sent, "model": "ft:gpt-4o:acme"}, "openai.responses", context=context)
    }
    assert "resp-reasoning-nonreasoning-model" in rules


def test_call_that_runs_by_itself_may_be_answered_later() -> None:
    """Nobody saw such a call refused: it is disputed."""
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "async": True}
    sent = [{"role": "user", "content": "a"}, call, {"role": "user", "content": "b"}]

    assert check(sent, "openai.responses") == []
    assert check(sent, "openai.responses", disputed=True) != []
