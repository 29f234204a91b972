"""The laws, over every dialect, over what providers differ in, and over every fault."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convnorm import Policy, check, explain
from convnorm.targets import Fault, Target, openai_chat, openai_responses
from convnorm.testing import laws
from convnorm.testing.reading import dump
from convnorm.testing.strategies import (
    PENDING,
    Growth,
    Sample,
    broken,
    conversations,
    growing,
    mutators,
)

TARGETS = (
    ("openai.chat", None, None),
    ("openai.chat", "groq", None),
    ("openai.chat", "ollama", None),
    ("openai.chat", "xai", None),
    ("openai.chat", None, "o1-mini"),
    ("openai.chat", "dashscope", None),
    ("openai.chat", "mistral", None),
    ("openai.chat", "vllm", "mistralai/Mistral-7B-Instruct-v0.3"),
    ("openai.responses", None, None),
    ("openai.responses", "azure-foundry", None),
    ("openai.responses", "vllm", None),
    ("openai.chat", "openrouter", "openai/gpt-5"),
    ("openai.chat", "moonshot", "kimi-k2-thinking"),
    ("openai.responses", None, "gpt-4.1"),
)
PARTED = TARGETS[7]
LAWS: tuple[Callable[[Sample, Policy], object], ...] = (
    laws.pure,  # first: the others would not notice what an earlier run changed for good
    laws.sound,
    laws.untouched,
    laws.conserving,
    laws.idempotent,
    laws.deterministic,
    laws.honest,
    laws.surveyed,
)
EXAMPLES = settings().max_examples * 20
EACH = settings().max_examples // 2
"""How often each fault is put into a history, beside others."""
ENOUGH = settings().max_examples // 2
"""How often each premise must be met in a run, so that a law is never kept by having no cases."""

VARIANTS = (
    ("openai.chat", "anthropic", None),  # of which nothing is known beside that it speaks this API
    ("openai.chat", "azure", None),
    ("openai.chat", "azure", "gpt-5"),
    ("openai.chat", "azure-foundry", "o1-mini"),
    ("openai.chat", "copilot", None),
    ("openai.chat", "deepseek", None),
    ("openai.chat", "deepseek", "deepseek-reasoner"),
    ("openai.chat", "deepseek", "deepseek-v4"),
    ("openai.chat", "llama.cpp", None),
    ("openai.chat", "llama.cpp", "mistralai/Mistral-7B-Instruct-v0.3"),
    ("openai.chat", "llama.cpp", "google/gemma-2-9b"),
    ("openai.chat", "moonshot", None),
    ("openai.chat", "openrouter", "google/gemini-3-pro"),
    ("openai.chat", "openrouter", "mistralai/mistral-large"),
    ("openai.chat", "sglang", None),
    ("openai.chat", "sglang", "google/gemma-2-9b"),
    ("openai.responses", "anthropic", None),
    ("openai.responses", "anthropic", "gpt-4.1"),
    ("openai.responses", "azure", "gpt-6"),
    ("openai.responses", "azure-foundry", "gpt-4.1"),
    ("openai.responses", "codex-backend", None),
    ("openai.responses", "ollama", None),
)
"""What else servers and models are known to differ in: other sums of the same differences mostly,
so that they are looked at less."""

for_every_target = pytest.mark.parametrize("dialect, provider, model", TARGETS)


@st.composite
def samples(draw: st.DrawFn, dialect: str, provider: str | None, model: str | None) -> Sample:
    """Broken histories, and a valid one now and then."""
    valid = draw(st.integers(0, 9)) == 9
    return draw((conversations if valid else broken)(dialect, provider=provider, model=model))


BEYOND = (
    Fault.LEAD_MISSING,
    Fault.REASONING_OF_ANOTHER,
    Fault.LINK_UNKNOWN,
    Fault.LINK_FORBIDDEN,
    Fault.LINK_UNSUPPORTED,
    Fault.TWO_LINKS,
    Fault.CONVERSATION_UNKNOWN,
    Fault.DELIVERY_UNKNOWN,
    Fault.CALL_BY_REFERENCE,
    Fault.REFERENCE_LOST,
    Fault.CONTAINER_GONE,
    Fault.FUNCTION_UNNAMED,
)
"""What only a ledger, a link or a provenance shows, and a message of the old role function:
`test_linked.py`, `tests/passes/test_repair_reasoning.py` and `test_legalise_ids.py` have it."""
SEALED = (
    Fault.UNFOLLOWED,
    Fault.REASONING_UNUSABLE,
    Fault.REASONING_EMPTY,
    Fault.SEALED_ELSEWHERE,
)


def repairable(target: Target) -> set[str]:
    """The rules that the passes repair for this target."""
    rules = {fault: rule for fault, rule in target.rules.items() if fault not in BEYOND}
    if target.unstored_ids == "keep":
        del rules[Fault.UNSTORED_ID]
    if target.reasoning_by_value:
        for fault in (Fault.UNSTORED_REASONING, *SEALED):
            del rules[fault]
    return set(rules.values())


def own_rules(target: Target) -> set[str]:
    """The rules that the passes repair for this target and for none of `TARGETS`."""
    others = [Policy.for_target(name, provider=one, model=model) for name, one, model in TARGETS]
    return repairable(target).difference(*(repairable(policy.resolved) for policy in others))


def premises(sample: Sample, policy: Policy) -> set[str]:
    """The rules that this sample breaks, or that nothing is wrong with it."""
    found = check(sample.request, policy, context=sample.context, disputed=True)
    return {violation.rule for violation in found} or {"nothing wrong"}


def share(provider: str | None, model: str | None) -> int:
    """Of a provider or a model, what it has in common with the first party gets a fifth."""
    return 1 if provider is None and model is None else 5


def times(dialect: str, provider: str | None, model: str | None) -> dict[str, int]:
    """How often each fault is put into a history."""
    common, part = mutators(dialect).keys(), share(provider, model)
    faults = mutators(dialect, provider=provider, model=model)
    return {fault: EACH // part if fault in common else EACH for fault in faults}


def assert_enough(
    seen: Mapping[str, int], wanted: Iterable[str], policy: Policy, *others: str
) -> None:
    """Every premise was met often enough."""
    common = {*repairable(Policy.for_target(policy.target).resolved), *others}
    fewer = ENOUGH if share(policy.provider, policy.model) == 1 else ENOUGH // 10
    scarce = {
        premise: count
        for premise in {*wanted, *others}
        if (count := seen.get(premise, 0)) < (fewer if premise in common else ENOUGH)
    }
    assert not scarce


def obeyed(sample: Sample, policy: Policy) -> bool:
    """Every law of single requests holds; whether anything was invented."""
    invented = False
    for law in LAWS:
        try:
            met = law(sample, policy)
        except AssertionError as broken_law:
            raise AssertionError(f"{law.__name__}: {broken_law}") from None
        invented |= law is laws.honest and bool(met)
    return invented


@for_every_target
def test_laws(dialect: str, provider: str | None, model: str | None) -> None:
    """Every law holds for valid histories and for broken ones, whichever rule they break."""
    policy = Policy.for_target(dialect, provider=provider, model=model)
    seen: Counter[str] = Counter()

    def holds(sample: Sample) -> None:
        seen.update(premises(sample, policy))
        seen["something invented"] += obeyed(sample, policy)

    served: dict[str, Any] = {"provider": provider, "model": model}
    sound = settings(max_examples=EACH * 2 // share(provider, model))
    sound(given(conversations(dialect, **served))(holds))()
    for fault, often in times(dialect, provider, model).items():
        settings(max_examples=often)(given(broken(dialect, **served, fault=fault))(holds))()
    wanted = repairable(policy.resolved)
    assert_enough(seen, wanted, policy, "nothing wrong", "something invented")


@pytest.mark.parametrize("dialect, provider, model", VARIANTS)
def test_laws_of_variants(dialect: str, provider: str | None, model: str | None) -> None:
    """Every law holds for what else is known of servers; what only some of them ask comes up."""
    policy = Policy.for_target(dialect, provider=provider, model=model)
    served: dict[str, Any] = {"provider": provider, "model": model}
    seen: Counter[str] = Counter()

    def holds(sample: Sample) -> None:
        seen.update(premises(sample, policy))
        obeyed(sample, policy)

    def grows(growth: Growth) -> None:
        laws.stable_prefix(growth, policy)

    def stays(growth: Growth, returned: bool) -> None:  # drawn
        laws.frozen_prefix(growth, policy, returned=returned)

    settings(max_examples=EACH // 2)(given(broken(dialect, **served))(holds))()
    settings(max_examples=EACH // 5)(given(growing(dialect, **served))(grows))()
    pieces = growing(dialect, **served, in_pieces=True)
    settings(max_examples=EACH // 10)(given(pieces, st.booleans())(stays))()
    for fault in mutators(dialect, **served).keys() - mutators(dialect).keys():
        settings(max_examples=EACH // 5)(given(broken(dialect, **served, fault=fault))(holds))()
    scarce = {rule for rule in own_rules(policy.resolved) if seen[rule] < EACH // 10}
    assert scarce == set()


@pytest.mark.parametrize("records", [openai_chat, openai_responses], ids=["chat", "responses"])
def test_every_record_is_looked_at(records: ModuleType) -> None:
    """Whatever is known of a server or a model is among the targets above."""
    named = {"openai.chat": openai_chat, "openai.responses": openai_responses}
    served = [
        (provider or "openai", model)
        for name, provider, model in (*TARGETS, *VARIANTS)
        if named[name] is records
    ]
    profiles = [records.PROVIDERS.get(provider, {}) for provider, _ in served]
    assert [name for name, differs in records.PROVIDERS.items() if differs not in profiles] == []
    of_models = [
        differs
        for provider, model in served
        for pattern, only, differs in records.MODELS
        if model and only in (None, provider) and re.search(pattern, model)
    ]
    assert [record for record in records.MODELS if record[2] not in of_models] == []


@for_every_target
def test_stable_prefix(dialect: str, provider: str | None, model: str | None) -> None:
    """What was sent stays what it was while the history grows, whichever rule it breaks."""
    policy = Policy.for_target(dialect, provider=provider, model=model)
    seen: Counter[str] = Counter()

    def holds(growth: Growth) -> None:
        frontier = laws.stable_prefix(growth, policy)
        if frontier > 1:
            seen.update(premises(growth.after, policy))

    served: dict[str, Any] = {"provider": provider, "model": model}
    for fault, often in times(dialect, provider, model).items():
        if fault != PENDING:
            grown = growing(dialect, **served, fault=fault)
            settings(max_examples=often * 2)(given(grown)(holds))()
    assert_enough(seen, repairable(policy.resolved), policy)


@for_every_target
def test_frozen_prefix(dialect: str, provider: str | None, model: str | None) -> None:
    """With the last request known, all of it is sent again, and late results come behind it."""
    policy = Policy.for_target(dialect, provider=provider, model=model)
    seen: Counter[str] = Counter()

    served: dict[str, Any] = {"provider": provider, "model": model, "in_pieces": True}
    chat = policy.resolved.chat

    def holds(growth: Growth, returned: bool) -> None:  # drawn
        late = laws.frozen_prefix(growth, policy, returned=returned)
        seen["late, returned" if returned else "late, own"] += late

    for returned in map(st.just, (True, False)):
        often = EXAMPLES // 3 // share(provider, model)
        settings(max_examples=often)(given(growing(dialect, **served), returned)(holds))()
        if chat.alternating or chat.strict_order:  # such histories are shorter, less comes late
            late = growing(dialect, **served, fault="late_result")
            settings(max_examples=EACH * 2)(given(late, returned)(holds))()
    assert_enough(seen, (), policy, "late, returned", "late, own")


def test_frozen_prefix_of_parted_neighbours() -> None:
    """Where nothing is joined, what was sent is found in the caller's own history, too."""
    *_, server, model = PARTED
    options: dict[str, Any] = {"repair_roles": {"neighbours": "part"}}
    policy = Policy.for_target("openai.chat", provider=server, model=model, **options)

    @settings(max_examples=EXAMPLES // 4)
    @given(growing("openai.chat", provider=server, model=model, in_pieces=True))
    def holds(growth: Growth) -> None:
        laws.frozen_prefix(growth, policy, returned=False)

    holds()


@for_every_target
def test_valid_histories(dialect: str, provider: str | None, model: str | None) -> None:
    """Nothing is wrong with what `conversations` makes, not even by a disputed rule."""
    policy = Policy.for_target(dialect, provider=provider, model=model)

    @settings(max_examples=EXAMPLES // share(provider, model))
    @given(conversations(dialect, provider=provider, model=model))
    def holds(sample: Sample) -> None:
        assert premises(sample, policy) == {"nothing wrong"}

    holds()


def harmless(target: Target) -> set[str]:
    """What must be left alone rather than repaired."""
    return {"source_differs"} | (
        {"vendor_keys"} if Fault.KEY_UNKNOWN not in target.rules else set()
    )


@for_every_target
def test_every_fault_shows(dialect: str, provider: str | None, model: str | None) -> None:
    """Whatever history a fault is put into, `check` sees it before and not after."""
    policy = Policy.for_target(dialect, provider=provider, model=model)
    for fault, often in times(dialect, provider, model).items():
        if fault in harmless(policy.resolved):
            continue

        @settings(max_examples=often)
        @given(broken(dialect, provider=provider, model=model, fault=fault, alone=True))
        def shows(sample: Sample) -> None:
            report = explain(sample.request, policy, context=sample.context)
            assert report.violations, sample.applied
            assert report.remaining == [], sample.applied

        shows()


class FrozenDict(dict[str, Any]):
    """A dict that says so when somebody changes it."""

    def _refuse(self, *_: object, **__: object) -> Never:
        raise TypeError("the caller's data was changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list that says so when somebody changes it."""

    def _refuse(self, *_: object, **__: object) -> Never:
        raise TypeError("the caller's data was changed")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def frozen(value: Any) -> Any:
    """The same data, down to its leaves, in containers that refuse to change."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(each) for key, each in value.items()})
    if isinstance(value, list):
        return FrozenList([frozen(each) for each in value])
    return value


@for_every_target
def test_frozen_input(dialect: str, provider: str | None, model: str | None) -> None:
    """Nothing in the caller's data is written to, however deep it lies."""
    policy = Policy.for_target(dialect, provider=provider, model=model)

    @settings(max_examples=EXAMPLES // share(provider, model))
    @given(samples(dialect, provider, model))
    def holds(sample: Sample) -> None:
        plain = json.loads(dump(sample.request))
        expected = explain(plain, policy, context=sample.context)
        actual = explain(frozen(plain), policy, context=sample.context)
        assert actual == expected

    holds()


IN_ANOTHER_PROCESS = """
import json, sys
from convnorm import Context, Policy, normalize_request
for line in sys.stdin:
    dialect, provider, model, request, facts = json.loads(line)
    policy = Policy.for_target(dialect, provider=provider, model=model)
    print(json.dumps(normalize_request(request, policy, context=Context(**facts))))
"""


def collected(dialect: str, provider: str | None, model: str | None) -> list[tuple[str, str]]:
    """Made-up requests as another process can read them, and what this one sends for each."""
    policy = Policy.for_target(dialect, provider=provider, model=model)
    found: list[tuple[str, str]] = []

    @settings(max_examples=EXAMPLES // 4 // share(provider, model))
    @given(broken(dialect, provider=provider, model=model))
    def collect(sample: Sample) -> None:
        request = json.loads(dump(sample.request))
        facts = sample.context.model_dump(mode="json", exclude_defaults=True)
        sent = explain(request, policy, context=sample.context).request
        found.append((json.dumps([dialect, provider, model, request, facts]), json.dumps(sent)))

    collect()
    return found


def test_same_bytes_in_every_process() -> None:
    """Processes with other hash seeds send the same bytes."""
    found = [each for target in TARGETS for each in collected(*target)]
    for seed in ("0", "1", "4711"):
        done = subprocess.run(  # noqa: S603  # our own code in a fresh interpreter
            [sys.executable, "-c", IN_ANOTHER_PROCESS],
            input="\n".join(given for given, _ in found),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.stdout.splitlines() == [sent for _, sent in found]
