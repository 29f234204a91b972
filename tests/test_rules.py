import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import convnorm.rules
from convnorm import Context
from convnorm.context import Provenance
from convnorm.delivery import Ledger
from convnorm.rules import CATALOGUE, RULES, Rule, Violation, judge
from convnorm.targets import Target, find_target

KEYS = {"openai.chat": "messages", "openai.responses": "input"}
CASES = Path(__file__).parent / "cases"


def judged(
    body: Mapping[str, Any],
    *,
    disputed: bool,
    api: str = "any",
    state: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    **profile: str | None,
) -> list[Violation]:
    """The violations of a body, under its API: if none is named, the one whose key it has."""
    name = api if api in CATALOGUE else next(name for name, key in KEYS.items() if key in body)
    context = Context(
        ledger=None if state is None else Ledger.from_state(state),
        provenance=Provenance(**provenance or {}),
    )
    return judge(
        body[convnorm.rules.KEYS[name]],
        target=find_target(name, **profile),
        context=context.with_body(body),
        fields=body,
        disputed=disputed,
    )


def judged_example(rule: Rule, *, disputed: bool) -> list[Violation]:
    """The violations of a rule's example, in the setting that it needs."""
    return judged(rule.example, disputed=disputed, api=rule.api, **rule.setting)


def paths(violations: Sequence[Violation]) -> list[tuple[str, str]]:
    """Each violation as its rule and path."""
    return [(one.rule, one.path) for one in violations]


def call(call_id: object = "call_1", name: str = "balance") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calls(*ids: object) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(one) for one in ids]}


def answer(call_id: object = "call_1", content: object = "10 EUR") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(content: object = "and?") -> dict[str, Any]:
    return {"role": "user", "content": content}


def item(kind: str, call_id: object = "call_1", **more: object) -> dict[str, Any]:
    body = {"output": "10 EUR"} if kind.endswith("_output") else BODIES[kind]
    return {"type": kind, "call_id": call_id} | body | more


BODIES: dict[str, dict[str, Any]] = {
    "function_call": {"name": "f", "arguments": "{}"},
    "custom_tool_call": {"name": "f", "input": "x"},
    "local_shell_call": {
        "id": "lsh_1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    "computer_call": {
        "id": "cu_1",
        "status": "completed",
        "pending_safety_checks": [],
        "action": {"type": "screenshot"},
    },
    "tool_search_call": {"execution": "server", "arguments": {}},
    "program": {"id": "prog_1", "code": "x", "fingerprint": "f"},
}


# The catalogue.


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_an_example_breaks_its_rule(rule: Rule) -> None:
    """The example of a rule breaks that rule and its named companions, and no other."""
    found = {one.rule for one in judged_example(rule, disputed=True)}
    assert found == {rule.id, *rule.companions}


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_says_how_it_is_repaired(rule: Rule) -> None:
    """A rule names a pass and what it costs, or tells the user what to do."""
    assert bool(rule.repair) == bool(rule.loss)
    assert rule.remedy
    assert rule.sources


LEFT_OUT: dict[str, str] = {}
"""Rules that neither a request nor a context can show, and why: at most ten."""
OURS = {
    *("history-replayed", "id-unstored", "reasoning-of-another-model", "delivery-unknown"),
    "text-half-character",
    *("chat-malformed", "resp-malformed", "resp-item-type"),  # what the SDKs' types say
}
"""What no survey of the APIs has: our own advice, and shapes that the SDKs' types forbid."""


def test_every_known_rule_is_in_the_catalogue() -> None:
    """`rules/known.txt` lists what users and documents say of these APIs; nothing is forgotten."""
    known = set((Path(__file__).parent / "rules" / "known.txt").read_text().split())
    assert (RULES.keys() - OURS, 132) == (known - LEFT_OUT.keys(), len(known))
    assert OURS < RULES.keys()
    assert len(LEFT_OUT) <= 10


def test_targets_name_rules_that_exist() -> None:
    """Every rule by which a target forbids a fault is in its catalogue."""
    named = {name: set(find_target(name).rules.values()) for name in KEYS}
    known = {name: {rule.id for rule in rules} for name, rules in CATALOGUE.items()}
    assert {name: rules - known[name] for name, rules in named.items()} == {
        "openai.chat": set(),
        "openai.responses": set(),
    }


def test_disputed_and_advisory_rules_are_asked_for() -> None:
    """Without `disputed` no disputed and no advisory rule is reported."""
    quiet = {
        rule.id: [one for one in judged_example(rule, disputed=False) if one.rule == rule.id]
        for rule in RULES.values()
        if rule.level == "advisory" or rule.certainty == "disputed"
    }
    assert quiet.keys() >= {"resp-duplicate-output", "id-unstored", "history-replayed"}
    assert not any(quiet.values())


def test_the_rules_stand_alone() -> None:
    """Neither the rules nor anything they import knows what repairs histories."""
    source = Path(convnorm.rules.__file__).parent.parent
    todo = set((source / "rules").glob("*.py"))
    seen: set[Path] = set()
    while todo:
        seen.add(path := todo.pop())
        todo |= {found for name in _imports(path) if (found := _file(source, name))} - seen
    known = {path.relative_to(source).parts[0] for path in seen}
    assert known.isdisjoint(
        {"dialects", "passes", "ir.py", "edits.py", "groups.py", "pairing.py", "pipeline.py"}
    )


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _file(source: Path, module: str) -> Path | None:
    package, *parts = module.split(".")
    if package != "convnorm" or not parts:
        return None
    path = source.joinpath(*parts)
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.exists()), None)


# Real histories.


def _cases(kind: str) -> Iterator[Any]:
    for path in sorted(CASES.glob("openai_*/*.json")):
        case = json.loads(path.read_text())
        if case["kind"] == kind:
            yield pytest.param(case, id=case["id"])


def _profile(case: Mapping[str, Any]) -> dict[str, Any]:
    known = case["context"]
    return {
        "provider": known.get("provider"),
        "model": known.get("model"),
        "state": known.get("server_state"),
    }


@pytest.mark.parametrize("case", [*_cases("well-formed"), *_cases("sound")])
def test_sound_histories_break_nothing(case: Mapping[str, Any]) -> None:
    """A history that the provider accepts breaks no rule."""
    assert judged(case["request"], disputed=False, **_profile(case)) == []


@pytest.mark.parametrize("case", [*_cases("broken")])
def test_broken_histories_break_their_rules(case: Mapping[str, Any]) -> None:
    """A history that was refused breaks the rules it was refused for."""
    expected = set(case.get("rules", ()))
    found = {one.rule for one in judged(case["request"], disputed=True, **_profile(case))}
    assert expected - found == set()


# Single facts.


def test_a_violation_says_everything() -> None:
    """A violation has the rule, the path, the user's ids, the provider's words and the repair."""
    body = {"messages": [user("hi"), calls("call_7"), user()]}
    assert judged(body, disputed=True) == [
        Violation(
            rule="chat-tool-calls-unanswered",
            path="messages[1].tool_calls[0]",
            message="call 'call_7' (balance) has no tool message right behind its message",
            error=RULES["chat-tool-calls-unanswered"].error,
            repair="repair_tool_pairs",
            position=1,
        )
    ]


CHAT: dict[str, tuple[list[object], list[tuple[str, str]]]] = {
    "results may stand in any order": ([calls("a", "b"), answer("b"), answer("a")], []),
    "an id may come again in a later message": (
        [calls("a"), answer("a"), calls("a"), answer("a")],
        [],
    ),
    "a displaced result leaves its call open": (
        [calls("a"), user(), answer("a")],
        [
            ("chat-tool-calls-unanswered", "messages[0].tool_calls[0]"),
            ("chat-tool-message-orphan", "messages[2]"),
        ],
    ),
    "results are counted, not collected": (
        [calls("a", "a"), answer("a")],
        [
            ("chat-duplicate-tool-call-id", "messages[0].tool_calls[1].id"),
            ("chat-tool-calls-unanswered", "messages[0].tool_calls[0]"),
        ],
    ),
    "a late second result is a duplicate and an orphan": (
        [calls("a"), answer("a"), user(), answer("a")],
        [
            ("chat-duplicate-tool-result", "messages[3].tool_call_id"),
            ("chat-tool-message-orphan", "messages[3]"),
        ],
    ),
    "two results without an id answer nothing": (
        [calls("a"), answer(None), answer("")],
        [
            ("chat-tool-calls-unanswered", "messages[0].tool_calls[0]"),
            ("chat-tool-call-id-missing", "messages[1].tool_call_id"),
            ("chat-tool-message-orphan", "messages[1]"),
            ("chat-tool-call-id-missing", "messages[2].tool_call_id"),
            ("chat-tool-message-orphan", "messages[2]"),
        ],
    ),
    "null content is legal where an assistant speaks otherwise": (
        [
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "assistant", "audio": {"id": "audio_1"}},
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": None},
        ],
        [],
    ),
    "reasoning alone is no content": (
        [{"role": "assistant", "reasoning_content": "hm"}],
        [("chat-content-null", "messages[0].content")],
    ),
    "null calls are no calls": ([user() | {"tool_calls": None}], []),
    "empty calls are wrong on every role": (
        [user() | {"tool_calls": []}],
        [("chat-tool-calls-empty-array", "messages[0].tool_calls")],
    ),
    "a call that is no object is named": (
        [calls() | {"tool_calls": [call(), None, "x"]}, answer()],
        [
            ("chat-tool-calls-type", "messages[0].tool_calls[1]"),
            ("chat-tool-calls-type", "messages[0].tool_calls[2]"),
        ],
    ),
    "an id that is no string is no id": (
        [calls(["a"]), answer(["a"])],
        [
            ("chat-tool-call-field-missing", "messages[0].tool_calls[0].id"),
            ("chat-tool-call-id-missing", "messages[1].tool_call_id"),
        ],
    ),
}


@pytest.mark.parametrize("fact", CHAT)
def test_chat(fact: str) -> None:
    """What Chat Completions refuses and what it takes."""
    messages, expected = CHAT[fact]
    assert paths(judged({"messages": messages}, disputed=False)) == expected


RESPONSES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "text may stand between a call and its output": (
        {"input": [item("function_call"), user(), item("function_call_output")]},
        [],
    ),
    "an output before its call answers nothing": (
        {"input": [item("function_call_output"), item("function_call")]},
        [("resp-output-without-call", "input[0]"), ("resp-call-output-missing", "input[1]")],
    ),
    "an output before its call is no output of the server's call": (
        {
            "previous_response_id": "resp_1",
            "input": [item("function_call_output"), item("function_call")],
        },
        [("resp-output-without-call", "input[0]"), ("resp-call-output-missing", "input[1]")],
    ),
    "the server may hold the call": (
        {"previous_response_id": "resp_1", "input": [item("function_call_output")]},
        [],
    ),
    "a conversation may hold the call": (
        {"conversation": {"id": "conv_1"}, "input": [item("function_call_output")]},
        [],
    ),
    "a reference may be the call": (
        {"input": [{"id": "fc_1"}, item("function_call_output")]},
        [],
    ),
    "a function output answers no custom call": (
        {"input": [item("custom_tool_call"), item("function_call_output")]},
        [("resp-call-output-missing", "input[0]"), ("resp-output-without-call", "input[1]")],
    ),
    "a function output answers a local shell call": (
        {"input": [item("local_shell_call"), item("function_call_output")]},
        [],
    ),
    "a local shell output names its call by its own id": (
        {
            "input": [
                item("local_shell_call", id="lsh_1"),
                {"type": "local_shell_call_output", "id": "call_1", "output": "ok"},
            ]
        },
        [],
    ),
    "a function output may name its tool instead of a call": (
        {"input": [{"type": "function_call_output", "name": "f", "output": "ok"}]},
        [],
    ),
    "calls that the server runs need no output": (
        {
            "input": [
                item("tool_search_call"),
                {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f"}
                | {"arguments": "{}"},
                item("program"),
            ]
        },
        [],
    ),
    "an output without a call_id answers the only open call": (
        {"input": [item("function_call"), item("function_call_output", None)]},
        [("resp-required-field-missing", "input[1].call_id")],
    ),
    "a call_id is used once, whatever the type": (
        {
            "input": [
                item("function_call"),
                item("custom_tool_call"),
                item("function_call_output"),
                item("custom_tool_call_output"),
            ]
        },
        [("resp-duplicate-call-id", "input[1].call_id")],
    ),
    "empty input is enough for a prompt": ({"prompt": {"id": "pmpt_1"}, "input": []}, []),
    "empty input is enough for a stored response": (
        {"previous_response_id": "resp_1", "input": []},
        [],
    ),
    "reasoning may be followed by more reasoning": (
        {
            "input": [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "reasoning", "id": "rs_2", "summary": []},
                {"type": "web_search_call", "id": "ws_1"},
            ]
        },
        [],
    ),
    "reasoning without an id may stand alone": (
        {"input": [{"type": "reasoning", "encrypted_content": "E", "summary": []}]},
        [],
    ),
    "a reference counts as the item it names": (
        {
            "input": [
                {"type": "message", "id": "msg_1", "role": "assistant", "content": "hi"},
                {"type": "item_reference", "id": "msg_1"},
            ]
        },
        [("resp-duplicate-item-id", "input[1].id")],
    ),
}


@pytest.mark.parametrize("fact", RESPONSES)
def test_responses(fact: str) -> None:
    """What Responses refuses and what it takes."""
    body, expected = RESPONSES[fact]
    assert paths(judged(body, disputed=False)) == expected


def test_a_screenshot_is_never_invented() -> None:
    """A computer call without its output is the one open call that no pass repairs."""
    body = {"input": [item("computer_call"), item("function_call", "call_2")]}
    assert {one.path: one.repair for one in judged(body, disputed=False)} == {
        "input[0]": None,
        "input[1]": "repair_tool_pairs",
    }


def test_live_calls_are_refused_too() -> None:
    """The provider knows nothing of calls that are still being answered."""
    found = judge(
        [calls("call_1")],
        target=find_target("openai.chat"),
        context=Context(live_calls=frozenset({"call_1"})),
        fields=None,
    )
    assert [one.rule for one in found] == ["chat-tool-calls-unanswered"]


@pytest.mark.parametrize(
    "provider, rules",
    [
        ("openai", ["id-unstored", "resp-item-not-persisted", "id-unstored"]),
        ("azure-foundry", ["resp-item-not-persisted"]),
        ("vllm", []),
    ],
)
def test_providers_differ_in_what_they_look_up(provider: str, rules: list[str]) -> None:
    """Whether unstored ids and bare reasoning matter is the target's to say."""
    body = {
        "store": False,
        "input": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": "hi"},
            {"type": "image_generation_call", "id": "ig_1"},
        ],
    }
    assert [one.rule for one in judged(body, disputed=True, provider=provider)] == rules


@pytest.mark.parametrize(
    "call_id, second, replayed",
    [
        ("call_Zx81kQ", [answer("call_Zx81kQ")], True),
        ("call_0", [answer("call_0")], False),
        ("call_0", [], True),
    ],
)
def test_a_repeated_call_is_a_replay_by_its_id(
    call_id: str, second: list[object], replayed: bool
) -> None:
    """A call made again is a replay if its id cannot be minted again, or one copy has no result."""
    body = {"messages": [calls(call_id), answer(call_id), calls(call_id), *second]}
    found = [one.path for one in judged(body, disputed=True) if one.rule == "history-replayed"]
    assert found == (["messages[2].tool_calls[0]"] if replayed else [])


@pytest.mark.parametrize(
    "sources, found", [(("a", "a"), []), (("a", "b"), ["messages[1]"]), ((), [])]
)
def test_labels_make_equal_messages_a_replay(sources: tuple[str, ...], found: list[str]) -> None:
    """Equal text is a replay only if two sources say it, however it is written."""
    violations = judge(
        [user("yes"), user([{"type": "text", "text": "yes"}])],
        target=find_target("openai.chat"),
        context=Context(sources=sources),
        fields=None,
        disputed=True,
    )
    assert [one.path for one in violations] == found


# What people and machines put into lists.

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
WORDS = st.sampled_from(
    [
        *("user", "assistant", "tool", "message", "reasoning", "item_reference", "a", "b", ""),
        *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
        *("local_shell_call", "local_shell_call_output", "computer_call", "computer_call_output"),
    ]
)
NAMES = st.sampled_from(
    ["role", "type", "id", "call_id", "tool_call_id", "content", "output", "tool_calls", "name"]
) | st.sampled_from(["function", "custom", "arguments", "input", "refusal", "encrypted_content"])
GARBAGE = st.recursive(
    SCALARS | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(NAMES, inner | WORDS, max_size=6)
    ),
    max_leaves=12,
)


class Function(BaseModel):
    """As the SDKs shape a called function."""

    name: str
    arguments: str


class ToolCall(BaseModel):
    """As the SDKs shape a call."""

    id: str
    function: Function
    type: str = "function"


class Message(BaseModel):
    """As the SDKs shape a reply: what was not sent is not set."""

    role: str
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


def test_sdk_objects_are_read_at_every_level() -> None:
    """Objects, mappings and dicts are judged alike, as messages and inside of them."""
    function = Function(name="balance", arguments="{}")
    one = ToolCall(id="call_1", type="function", function=function)
    body = {
        "messages": [
            Message(role="assistant", content=None, tool_calls=[one]),
            MappingProxyType(answer("call_1")),
            {"role": "assistant", "content": None, "tool_calls": (one, MappingProxyType(call()))},
            Message(role="user"),
        ]
    }
    assert paths(judged(body, disputed=False)) == [
        ("chat-duplicate-tool-call-id", "messages[2].tool_calls[1].id"),
        ("chat-tool-calls-unanswered", "messages[2].tool_calls[0]"),
        ("chat-tool-calls-unanswered", "messages[2].tool_calls[1]"),
        ("chat-content-null", "messages[3].content"),
    ]


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data())
def test_garbage_is_judged(name: str, data: st.DataObject) -> None:
    """Whatever stands in a list, the judge names what is wrong with it and never fails."""
    elements = data.draw(st.lists(GARBAGE | st.dictionaries(NAMES, GARBAGE | WORDS), max_size=8))
    labels = data.draw(st.lists(st.none() | st.sampled_from("ab"), max_size=8).map(tuple))
    context = Context(store=data.draw(st.none() | st.booleans()), sources=labels)
    target = find_target(name)
    all_of_it = judge(elements, target=target, context=context, fields=None, disputed=True)
    plain = judge(elements, target=target, context=context, fields=None)
    assert all_of_it == sorted(set(all_of_it), key=all_of_it.index)
    assert [(one.position, one.rule) for one in all_of_it] == sorted(
        (one.position, one.rule) for one in all_of_it
    )
    assert [one for one in all_of_it if one in plain] == plain


def test_depth_is_no_danger() -> None:
    """Data nested deeper than Python can recurse is not walked into."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    body = {
        "messages": [calls(deep), answer(deep, deep), {"role": deep, "content": {"a": deep}}],
    }
    assert [one.rule for one in judged(body, disputed=True)] == [
        "chat-tool-call-field-missing",
        "chat-content-part-type",
        "chat-tool-call-id-missing",
        "chat-content-type",
        "chat-role-invalid",
    ]


# Cost.


class Counted(dict[str, Any]):
    """A message that counts how often it is asked for a key."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict does it."""
        Counted.reads += 1
        return super().get(key, default)


def _chat_shapes(size: int) -> dict[str, list[dict[str, Any]]]:
    return {
        "one message with many calls": [calls(*map(str, range(size))), *_answers(size)],
        "one message, one id": [calls(*["a"] * size), *[answer("a")] * size],
        "one call answered many times": [calls("a"), *[answer("a")] * size],
        "only orphans": [answer("a")] * size,
        "results without an id": [calls(*map(str, range(size))), *[answer(None)] * size],
        "calls that wait, results elsewhere": [
            *[each for _ in range(size) for each in (calls("a"), user())],
            *[answer("a")] * size,
        ],
        "one id in every message": [calls("a"), answer("a")] * size,
    }


def _answers(size: int) -> list[dict[str, Any]]:
    return [answer(str(number)) for number in range(size)]


def _responses_shapes(size: int) -> dict[str, list[dict[str, Any]]]:
    one, output = item("function_call", "a"), item("function_call_output", "a")
    return {
        "all calls, then all outputs": [*[one] * size, *[output] * size],
        "all outputs, then all calls": [*[output] * size, *[one] * size],
        "one call answered many times": [one, *[output] * size],
        "outputs without a call_id": [one, *[item("function_call_output", None)] * size],
        "one id on everything": [one | {"id": "x"}, output | {"id": "x"}] * size,
    }


@pytest.mark.parametrize(
    "name, shape",
    [("openai.chat", shape) for shape in _chat_shapes(1)]
    + [("openai.responses", shape) for shape in _responses_shapes(1)],
)
def test_cost_is_linear(name: str, shape: str) -> None:
    """Four times the history is read at most a little more than four times as often."""
    shapes = _chat_shapes if name == "openai.chat" else _responses_shapes
    few, many = (_steps(name, shapes(size)[shape]) for size in (100, 400))
    assert many <= 4.4 * few


def _steps(name: str, elements: list[dict[str, Any]]) -> int:
    """The lines of Python that judging takes, and the keys it reads."""
    target: Target = find_target(name)
    steps = 0

    def count(frame: Any, event: str, _: object) -> Any:
        nonlocal steps
        if "rules" not in frame.f_code.co_filename:
            return None
        steps += event == "line"
        return count

    Counted.reads = 0
    counted = [Counted(element) for element in elements]
    before = sys.gettrace()
    sys.settrace(count)
    try:
        judge(counted, target=target, context=Context(store=False), fields=None, disputed=True)
    finally:
        sys.settrace(before)
    return steps + Counted.reads
