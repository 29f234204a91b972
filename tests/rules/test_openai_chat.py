import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from convnorm import Context
from convnorm.delivery import Ledger
from convnorm.rules import Violation, judge
from convnorm.targets import find_target

CASES = Path(__file__).parent.parent / "cases" / "openai_chat"
TEXT = {"type": "text", "text": "yes"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def judged(
    messages: object,
    *,
    provider: str | None = None,
    model: str | None = None,
    disputed: bool = False,
    state: Mapping[str, Any] | None = None,
    **body: object,
) -> list[Violation]:
    return judge(
        messages,
        target=find_target("openai.chat", provider=provider, model=model),
        context=Context(ledger=None if state is None else Ledger.from_state(state)),
        fields={**body, "messages": messages},
        disputed=disputed,
    )


def paths(violations: Sequence[Violation]) -> list[tuple[str, str]]:
    return [(one.rule, one.path.removeprefix("messages")) for one in violations]


def user(content: object = "and?", **more: object) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def says(content: object = "yes", **more: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def system(content: object = "Be brief.", role: str = "system") -> dict[str, Any]:
    return {"role": role, "content": content}


def call(call_id: object = "call_1", **more: object) -> dict[str, Any]:
    body = {"name": "balance", "arguments": "{}", **more}
    return {"id": call_id, "type": "function", "function": body}


def calls(*made: Mapping[str, Any], **more: object) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(made or [call()]), **more}


def answer(call_id: object = "call_1", content: object = "10 EUR") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# Real histories.


def _cases(*kinds: str) -> Iterator[Any]:
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["kind"] in kinds:
            yield pytest.param(case, id=case["id"])


def of_case(case: Mapping[str, Any], request: str, *, disputed: bool) -> list[Violation]:
    """The violations of one of a case's requests, in the situation that the case tells of."""
    body, facts = dict(case[request]), case["context"]
    return judged(
        body.pop("messages"),
        provider=facts.get("provider"),
        model=facts.get("model"),
        state=facts.get("server_state"),
        disputed=disputed,
        **{key: value for key, value in body.items() if key != "model"},
    )


@pytest.mark.parametrize("case", [*_cases("broken")])
def test_what_was_refused_is_reported(case: Mapping[str, Any]) -> None:
    """A history that was refused breaks every rule it was refused for, and at least one."""
    found = {one.rule for one in of_case(case, "request", disputed=True)}
    assert found
    assert set(case.get("rules") or ()) <= found


@pytest.mark.parametrize("case", [*_cases("broken")])
def test_no_refusal_is_only_disputed(case: Mapping[str, Any]) -> None:
    """Nothing that users saw refused needs to be asked for, even if some release takes it today."""
    assert of_case(case, "request", disputed=False)


@pytest.mark.parametrize("case", [*_cases("well-formed", "sound")])
def test_what_was_accepted_breaks_nothing(case: Mapping[str, Any]) -> None:
    """A history that the provider accepts breaks no rule."""
    assert paths(of_case(case, "request", disputed=False)) == []


DIFFER: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "pydantic-04-live-frontier-untouched": (
        "the call still waits for an approval: it is left open, and not to be sent like that",
        [("chat-tool-calls-unanswered", "[1].tool_calls[0]")],
    ),
}
"""Answers that we judge otherwise than the case does: why, and what they break."""


@pytest.mark.parametrize("case", [*_cases("broken", "sound")])
def test_acceptable_answers_break_nothing(case: Mapping[str, Any]) -> None:
    """The answer that a case calls right breaks no rule."""
    if "one_acceptable_answer" in case:
        found = paths(of_case(case, "one_acceptable_answer", disputed=False))
        assert found == DIFFER.get(case["id"], ("", []))[1]


# Single facts, under the defaults of OpenAI.

FACTS: dict[str, tuple[object, list[tuple[str, str]]]] = {
    "values have their types": (
        [
            user([{"type": "text"}, {"type": "image_url", "image_url": "u"}]),
            user([{"type": "image_url", "image_url": {}}, {"type": "file", "file": {}}]),
            says([{"type": "refusal", "refusal": 5}], refusal=[], audio={}, function_call="f"),
            calls(call("a") | {"type": 5}, {"id": "b", "type": "custom", "custom": {"name": "f"}}),
            answer("a"),
            answer("b"),
        ],
        [
            ("chat-malformed", "[0].content[0].text"),
            ("chat-malformed", "[0].content[1].image_url"),
            ("chat-malformed", "[1].content[0].image_url.url"),
            ("chat-malformed", "[2].content[0].refusal"),
            ("chat-malformed", "[2].audio.id"),
            ("chat-malformed", "[2].function_call"),
            ("chat-malformed", "[2].refusal"),
            ("chat-malformed", "[3].tool_calls[1].custom.input"),
            ("chat-tool-call-field-missing", "[3].tool_calls[0].type"),
        ],
    ),
    "a call has what its type says": (
        [calls(call() | {"type": "custom"}), answer()],
        [("chat-tool-call-field-missing", "[0].tool_calls[0].type")],
    ),
    "a call says of which type it is": (
        [calls({"id": "call_1", "function": {"name": "f", "arguments": "{}"}}), answer()],
        [("chat-tool-call-field-missing", "[0].tool_calls[0].type")],
    ),
    "a new word, and null for nothing, are not sure": (
        [
            calls(call() | {"type": "browser"}, name=None),
            answer(),
            {"role": "function", "name": "f"},
        ],
        [],
    ),
    "an id has up to 40 characters": ([calls(call("a" * 40)), answer("a" * 40)], []),
    "an id of 41 characters is too long, on both sides": (
        [calls(call("a" * 41)), answer("a" * 41)],
        [
            ("chat-tool-call-id-too-long", "[0].tool_calls[0].id"),
            ("chat-tool-call-id-too-long", "[1].tool_call_id"),
        ],
    ),
    "a function name has up to 64 characters": (
        [calls(call(name="a-Z_9" + "b" * 59)), answer()],
        [],
    ),
    "a function name of 65 characters is too long": (
        [calls(call(name="b" * 65)), answer()],
        [("chat-function-name-invalid", "[0].tool_calls[0].function.name")],
    ),
    "a function name ends where it ends": (
        [calls(call(name="balance\n")), answer()],
        [("chat-function-name-invalid", "[0].tool_calls[0].function.name")],
    ),
    "no function is called without a name": (
        [calls(call("a", name=""), call("b", name=None)), answer("a"), answer("b")],
        [
            ("chat-function-name-invalid", "[0].tool_calls[0].function.name"),
            ("chat-function-name-invalid", "[0].tool_calls[1].function.name"),
        ],
    ),
    "an old function call has a name and arguments too": (
        [
            says(None, function_call={"name": "a b", "arguments": {}}),
            {"role": "function", "name": "f", "content": "1"},
        ],
        [
            ("chat-arguments-not-string", "[0].function_call.arguments"),
            ("chat-function-name-invalid", "[0].function_call.name"),
        ],
    ),
    "a custom call has neither": (
        [
            calls({"id": "a", "type": "custom", "custom": {"name": "write", "input": "x"}}),
            answer("a"),
        ],
        [],
    ),
    "a call calls something": (
        [calls({"id": "a", "type": "function"}), answer("a")],
        [("chat-tool-call-field-missing", "[0].tool_calls[0]")],
    ),
    "malformed arguments are the model's own affair": (
        [calls(call(arguments='{"a": ')), answer()],
        [],
    ),
    "arguments are a string": (
        [calls(call("a", arguments={}), call("b", arguments=None)), answer("a"), answer("b")],
        [
            ("chat-arguments-not-string", "[0].tool_calls[0].function.arguments"),
            ("chat-arguments-not-string", "[0].tool_calls[1].function.arguments"),
        ],
    ),
    "speakers have plain names": ([user(name="ann"), says(name="bot-2"), user(name=None)], []),
    "no name has spaces or brackets": (
        [user(name="Ann Lee"), says(name="a|b"), system() | {"name": "a\\b"}, user(name="<a>")],
        [("chat-message-name-pattern", f"[{at}].name") for at in range(4)],
    ),
    "a function message says which function": (
        [{"role": "function", "content": "1"}, {"role": "function", "name": "", "content": "1"}],
        [
            ("chat-function-name-missing", "[0].name"),
            ("chat-function-name-missing", "[1].name"),
        ],
    ),
    "no list is no history": ("hello", [("chat-messages-required", "")]),
    "null is no history": (None, [("chat-messages-required", "")]),
    "an empty list is too little": ([], [("chat-messages-empty", "")]),
    "roles of other APIs are none": (
        [{"role": "human", "content": "hi"}],
        [("chat-role-invalid", "[0].role")],
    ),
    "a user sends all media": (
        [
            user(
                [
                    {"type": "text", "text": "see"},
                    IMAGE,
                    {"type": "input_audio", "input_audio": {"data": "A", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                ]
            )
        ],
        [],
    ),
    "an assistant sends text and refusals": (
        [says([{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}])],
        [],
    ),
    "only an assistant refuses": (
        [user([{"type": "refusal", "refusal": "no"}])],
        [("chat-content-part-type", "[0].content[0]")],
    ),
    "parts of other APIs are none": (
        [
            user([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "u"}]),
            says([{"type": "output_text", "text": "b"}]),
            answer("x", [{"type": "tool_result"}]),
        ],
        [
            ("chat-content-part-type", "[0].content[0]"),
            ("chat-content-part-type", "[0].content[1]"),
            ("chat-content-part-type", "[1].content[0]"),
            ("chat-content-part-type", "[2].content[0]"),
            ("chat-tool-message-orphan", "[2]"),
        ],
    ),
    "a part is an object with a type": (
        [user(["hi", None, {"text": "hi"}, {"type": ["text"]}])],
        [("chat-content-part-type", f"[0].content[{at}]") for at in range(4)],
    ),
    "a part of an unknown role is not judged": (
        [{"role": "model", "content": [{"type": "x"}]}],
        [("chat-role-invalid", "[0].role")],
    ),
    "images are the user's": (
        [system([IMAGE]), calls(content=[IMAGE]), answer(content=[IMAGE]), user([IMAGE])],
        [("chat-image-outside-user", f"[{at}].content[0]") for at in range(3)],
    ),
    "a developer and a system may both instruct": ([system(), system(role="developer")], []),
    "other keys are passed over": ([user(x_trace=1), says(reasoning_content="t")], []),
}


@pytest.mark.parametrize("fact", FACTS)
def test_facts(fact: str) -> None:
    """What OpenAI refuses and what it takes."""
    messages, expected = FACTS[fact]
    assert paths(judged(messages)) == expected


DISPUTED: dict[str, tuple[list[object], tuple[str, str]]] = {
    "a name that fails only the narrow pattern": (
        [user(name="ann.lee")],
        ("chat-message-name-pattern", "[0].name"),
    ),
    "a name that is too long": (
        [user(name="a" * 65)],
        ("chat-message-name-pattern", "[0].name"),
    ),
    "an empty name": ([user(name="")], ("chat-message-name-pattern", "[0].name")),
    "the name of a tool message": (
        [calls(), answer() | {"name": "get balance"}],
        ("chat-message-name-pattern", "[1].name"),
    ),
    "a call of a type that may be new": (
        [calls(call() | {"type": "browser"}), answer()],
        ("chat-tool-call-field-missing", "[0].tool_calls[0].type"),
    ),
    "more than 2048 messages": ([user()] * 2049, ("chat-messages-too-many", "")),
}


@pytest.mark.parametrize("fact", DISPUTED)
def test_disputed_facts(fact: str) -> None:
    """What sources disagree about is reported only if it is asked for."""
    messages, expected = DISPUTED[fact]
    assert judged(messages) == []
    assert paths(judged(messages, disputed=True)) == [expected]


# Servers and models: what is refused, what is only disputed (marked with ?), what is taken.

ALL = {
    *("openai", "azure", "azure-foundry", "copilot", "dashscope", "deepseek", "groq"),
    *("llama.cpp", "mistral", "moonshot", "ollama", "openrouter", "sglang", "vllm"),
    *("volcengine", "xai", "nobody-knows"),
}
OPENAI = {"openai", "azure", "azure-foundry"}
TEMPLATES = {"llama.cpp", "sglang", "vllm"}
LONG_ID = "a" * 41

SERVERS: dict[str, tuple[list[object], str, set[str], set[str]]] = {
    "ids of 41 characters": (
        [user(), calls(call(LONG_ID)), answer(LONG_ID)],
        "chat-tool-call-id-too-long",
        {*OPENAI, "copilot"},
        set(),
    ),
    "ids that are not nine letters and digits": (
        [user(), calls(), answer()],
        "mistral-tool-call-id-format",
        {"mistral"},
        set(),
    ),
    "ids of nine letters and digits": (
        [user(), calls(call("a1B2c3D4e")), answer("a1B2c3D4e")],
        "mistral-tool-call-id-format",
        set(),
        set(),
    ),
    "function names with dots": (
        [user(), calls(call("a1B2c3D4e", name="a.b")), answer("a1B2c3D4e")],
        "chat-function-name-invalid",
        OPENAI,
        ALL - OPENAI,
    ),
    "functions without a name": (
        [user(), calls(call(name="")), answer()],
        "chat-function-name-invalid",
        ALL,
        set(),
    ),
    "speakers with spaces": (
        [user(name="Ann Lee")],
        "chat-message-name-pattern",
        OPENAI,
        ALL - OPENAI,
    ),
    "arguments that are no string": (
        [user(), calls(call(arguments={})), answer()],
        "chat-arguments-not-string",
        ALL - TEMPLATES,
        TEMPLATES,
    ),
    "arguments that do not parse": (
        [user(), calls(call(arguments='{"a": ')), answer()],
        "template-arguments-json",
        TEMPLATES,
        ALL - TEMPLATES,
    ),
    "empty arguments": (
        [user(), calls(call(arguments="")), answer()],
        "template-arguments-json",
        TEMPLATES,
        set(),
    ),
    "arguments that are a list": (
        [user(), calls(call(arguments="[1]")), answer()],
        "template-arguments-json",
        TEMPLATES,
        set(),
    ),
    "arguments nested deeper than anyone parses": (
        [user(), calls(call(arguments='{"a":' * 100_000)), answer()],
        "template-arguments-json",
        TEMPLATES,
        ALL - TEMPLATES,
    ),
    "arguments that parse": (
        [user(), calls(call(arguments=' {"a": {"b": []}} ')), answer()],
        "template-arguments-json",
        set(),
        set(),
    ),
    "2049 messages": (
        [user()] * 2049,
        "chat-messages-too-many",
        {"azure", "azure-foundry"},
        {"openai"},
    ),
    "2048 messages": ([user()] * 2048, "chat-messages-too-many", set(), set()),
    "system messages": ([system(), user()], "chat-system-role-unsupported", set(), set()),
    "developer messages": (
        [system(role="developer"), user()],
        "chat-developer-role-unsupported",
        {"dashscope", "volcengine"},
        {
            *("azure", "azure-foundry", "deepseek", "groq", "mistral", "moonshot"),
            *("ollama", "sglang", "vllm", "xai"),
        },
    ),
    "parts that the types do not have": (
        [user([{"type": "video_url", "video_url": {"url": "u"}}])],
        "chat-content-part-type",
        OPENAI,
        ALL - OPENAI,
    ),
    "images in results": (
        [user(), calls(), answer(content=[IMAGE])],
        "chat-image-outside-user",
        OPENAI,
        ALL - OPENAI,
    ),
    "null beside calls, for the first": (
        [user(), calls(content=None), answer()],
        "ollama-content-nil",
        {"ollama"},
        set(),
    ),
    "null beside calls, for the second": (
        [user(), calls(content=None), answer()],
        "xai-content-required",
        {"xai"},
        set(),
    ),
    "no content key beside calls, for the first": (
        [user(), {"role": "assistant", "tool_calls": [call()]}, answer()],
        "ollama-content-nil",
        set(),
        set(),
    ),
    "no content key beside calls, for the second": (
        [user(), {"role": "assistant", "tool_calls": [call()]}, answer()],
        "xai-content-required",
        {"xai"},
        set(),
    ),
    "an empty text": ([user(), calls(), answer()], "xai-content-required", set(), set()),
    "an empty list of parts": ([user([])], "xai-content-required", {"xai"}, set()),
    **{
        f"text parts of the role {role}": (
            [user(), calls(), answer(), says(), {**answer(), "role": role, "content": [TEXT]}],
            "groq-assistant-content-string",
            {"groq"} if role == "assistant" else set(),
            {"groq"},
        )
        for role in ("system", "assistant", "tool")
    },
    "text parts of a user": (
        [user([{"type": "text", "text": "yes"}])],
        "groq-assistant-content-string",
        set(),
        set(),
    ),
    "keys beyond the schema": (
        [user(), says(reasoning_content="t"), user()],
        "groq-unknown-field",
        {"groq"},
        set(),
    ),
    "null under keys beyond the schema": (
        [user(), says(refusal=None), user()],
        "groq-unknown-field",
        {"groq"},
        set(),
    ),
    "reasoning, which one schema has": (
        [user(), says(reasoning="t"), user()],
        "groq-unknown-field",
        set(),
        {"groq"},
    ),
    "keys of the schema": (
        [user(name="a"), calls(), answer() | {"name": "balance"}],
        "groq-unknown-field",
        set(),
        set(),
    ),
    "a reply at the end": ([user(), says()], "mistral-message-order", {"mistral"}, set()),
    "a prefix at the end": (
        [user(), says(prefix=True)],
        "mistral-message-order",
        set(),
        set(),
    ),
    "instructions behind a reply": (
        [user(), says(), system(), user()],
        "mistral-message-order",
        {"mistral"},
        set(),
    ),
    "instructions behind the user": (
        [user(), system(), says(), user()],
        "mistral-message-order",
        set(),
        set(),
    ),
    "instructions at the end": ([user(), system()], "mistral-message-order", set(), {"mistral"}),
    "a user behind a result": (
        [user(), calls(), answer(), user()],
        "mistral-message-order",
        {"mistral"},
        set(),
    ),
    "a reply between result and user": (
        [user(), calls(), answer(), says(), user()],
        "mistral-message-order",
        set(),
        set(),
    ),
    "fewer results than calls": (
        [user(), calls(call("a"), call("b")), answer("a"), says(), user()],
        "mistral-message-order",
        {"mistral"},
        set(),
    ),
    "more results than calls": (
        [user(), calls(), answer(), answer()],
        "mistral-message-order",
        {"mistral"},
        set(),
    ),
    "reasoning that is missing, by unknown models": (
        [user(), calls(), answer()],
        "deepseek-reasoning-content-missing",
        set(),
        set(),
    ),
}


@pytest.mark.parametrize("fact", SERVERS)
def test_servers_differ(fact: str) -> None:
    """Each server refuses what it was seen to refuse, and no more."""
    messages, rule, refused, disputed = SERVERS[fact]

    def reporting(*, all_of_it: bool) -> set[str]:
        return {
            provider
            for provider in ALL
            if rule in {one.rule for one in judged(messages, provider=provider, disputed=all_of_it)}
        }

    assert reporting(all_of_it=False) == refused
    assert reporting(all_of_it=True) == refused | disputed


TURN = [user(), calls(), answer(), says("10 EUR."), user()]
THOUGHT = [user(), calls(reasoning_content="t"), answer(), says("10", reasoning_content="t")]
DEEPSEEK, KIMI = "deepseek-reasoning-content-missing", "moonshot-reasoning-content-missing"
ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}

THINKING: dict[str, tuple[str, str | None, list[Any], dict[str, Any], list[str], list[str]]] = {
    "every reply of a tool turn": (
        *("deepseek", "deepseek-v4-pro", TURN, {}),
        ["[1]", "[3]"],
        [],
    ),
    "a reply before the call, too": (
        *("deepseek", "deepseek-v4-pro", [user(), says(), *TURN[1:3]], {}),
        ["[1]", "[2]"],
        [],
    ),
    "perhaps a reply of a plain turn": (
        *("deepseek", "deepseek-v4-pro", [user(), says(), user(), *THOUGHT[1:]], {}),
        [],
        ["[1]"],
    ),
    "no reply of a plain turn, of an older model": (
        *("deepseek", "deepseek-reasoner", [user(), says(), user(), *THOUGHT[1:]], {}),
        [],
        [],
    ),
    "reasoning that nobody asks for": (
        *("deepseek", "deepseek-reasoner", [*THOUGHT, user()], {}),
        [],
        [],
    ),
    "an old turn, too": (
        *("deepseek", "deepseek-flash", [*TURN, says(), user()], {}),
        ["[1]", "[3]"],
        ["[5]"],
    ),
    "the turn at hand, of an older model": (
        *("deepseek", "deepseek-reasoner", TURN[:3], {}),
        ["[1]"],
        [],
    ),
    "perhaps an old turn, of an older model": (
        *("deepseek", "deepseek-reasoner", TURN, {}),
        [],
        ["[1]", "[3]"],
    ),
    "perhaps an empty text": (
        *("deepseek", "deepseek-v4-pro", [user(), calls(reasoning_content=""), answer()], {}),
        [],
        ["[1]"],
    ),
    "null is nothing": (
        *("deepseek", "deepseek-v4-pro", [user(), calls(reasoning_content=None), answer()], {}),
        ["[1]"],
        [],
    ),
    "a blank is enough": (
        *("deepseek", "deepseek-v4-pro", [user(), calls(reasoning_content=" "), answer()], {}),
        [],
        [],
    ),
    "nothing while thinking is off": ("deepseek", "deepseek-v4-pro", TURN, OFF, [], []),
    "nothing while it is off in the extra body": (
        *("deepseek", "deepseek-v4-pro", TURN, {"extra_body": OFF}),
        [],
        [],
    ),
    "nothing without effort": (
        *("deepseek", "deepseek-v4-pro", TURN, {"reasoning_effort": "none"}),
        [],
        [],
    ),
    "nothing from a model that does not think": ("deepseek", "deepseek-chat", TURN, {}, [], []),
    "unless it is told to": ("deepseek", "deepseek-chat", TURN[:3], ON, ["[1]"], []),
    "a model without a name may not think": ("deepseek", None, TURN, {}, [], []),
    "the same model elsewhere": ("vllm", "deepseek-v4-pro", TURN, {}, [], []),
    "messages that call tools": ("moonshot", "kimi-k2.5", TURN, {}, ["[1]"], []),
    "an empty text will do": (
        *("moonshot", "kimi-k2-thinking", [user(), calls(reasoning_content=""), answer()], {}),
        [],
        [],
    ),
    "kimi without thinking": ("moonshot", "kimi-k2-0905-preview", TURN, {}, [], []),
    "kimi told not to think": ("moonshot", "kimi-k2.6", TURN, OFF, [], []),
    "nonsense says nothing": ("moonshot", "kimi-k2.6", TURN, {"thinking": [1]}, ["[1]"], []),
}


@pytest.mark.parametrize("fact", THINKING)
def test_reasoning_that_must_come_back(fact: str) -> None:
    """While a model thinks, some servers want its reasoning_content back."""
    provider, model, messages, body, refused, disputed = THINKING[fact]
    rule = KIMI if provider == "moonshot" else DEEPSEEK

    def found(*, all_of_it: bool) -> list[tuple[str, str]]:
        violations = judged(messages, provider=provider, model=model, disputed=all_of_it, **body)
        return [one for one in paths(violations) if one[0] in (DEEPSEEK, KIMI)]

    assert found(all_of_it=False) == [(rule, f"{at}.reasoning_content") for at in refused]
    assert found(all_of_it=True) == [
        (rule, f"{at}.reasoning_content") for at in sorted([*refused, *disputed])
    ]


DETAIL = {"type": "reasoning.encrypted", "id": "rs_1", "data": "AAAA"}
GEMMA, LLAMA2 = "google/gemma-3-27b-it", "meta-llama/Llama-2-7b-chat-hf"
MISTRAL = "mistralai/Mistral-7B-Instruct-v0.3"

MODELS: dict[str, tuple[str, str, list[Any], str, list[str]]] = {
    "o1-mini takes no system message": (
        *("openai", "o1-mini", [system(), user()], "chat-system-role-unsupported"),
        ["[0].role"],
    ),
    "o1-preview takes no developer message": (
        "azure",
        "o1-preview-2024-09-12",
        [system(role="developer"), user()],
        "chat-developer-role-unsupported",
        ["[0].role"],
    ),
    "o1 takes both": (
        *("openai", "o1", [system(), user()], "chat-system-role-unsupported"),
        [],
    ),
    "another deployment may": (
        "azure",
        "gpt-4o",
        [system(role="developer"), user()],
        "chat-developer-role-unsupported",
        [],
    ),
    "o1 takes one on Azure, too": (
        *("azure", "o1-2024-12-17", [system(role="developer")], "chat-developer-role-unsupported"),
        [],
    ),
    "users and assistants take turns": (
        *("vllm", MISTRAL, [user(), user(), says(), says(), user()], "template-roles-alternate"),
        ["[1].role", "[3].role"],
    ),
    "the user begins": (
        *("sglang", LLAMA2, [system(), says(), user()], "template-roles-alternate"),
        ["[1].role"],
    ),
    "one system message leads": (
        *("llama.cpp", GEMMA, [system(), user(), system(), says()], "template-roles-alternate"),
        ["[2].role"],
    ),
    "calls and results do not count": (
        *("vllm", MISTRAL, [user(), calls(), answer(), says(), user()], "template-roles-alternate"),
        [],
    ),
    "other templates take any order": (
        *("vllm", "meta-llama/Llama-3.2-3B", [user(), user()], "template-roles-alternate"),
        [],
    ),
    "so does the same model elsewhere": (
        *("openrouter", GEMMA, [user(), user()], "template-roles-alternate"),
        [],
    ),
    "Gemini 3 wants its signature back": (
        "openrouter",
        "google/gemini-3-pro-preview",
        [user(), calls(), answer()],
        "openrouter-gemini-thought-signature",
        ["[1].reasoning_details"],
    ),
    "and has it in the details": (
        "openrouter",
        "google/gemini-3-pro-preview",
        [user(), calls(reasoning_details=[DETAIL]), answer()],
        "openrouter-gemini-thought-signature",
        [],
    ),
    "it may not look at older turns": (
        *("openrouter", "google/gemini-3-pro-preview", TURN),
        "openrouter-gemini-thought-signature",
        [],
    ),
    "Gemini 2.5 does not ask": (
        *("openrouter", "google/gemini-2.5-pro", TURN[:3]),
        "openrouter-gemini-thought-signature",
        [],
    ),
    "OpenAI reads each reasoning once": (
        "openrouter",
        "openai/gpt-5-codex",
        [user(), says(reasoning_details=[DETAIL, DETAIL]), says(reasoning_details=[DETAIL])],
        "openrouter-duplicate-reasoning-id",
        ["[2].reasoning_details[0].id"],
    ),
    "details without an id may repeat": (
        "openrouter",
        "openai/gpt-5-codex",
        [user(), says(reasoning_details=[{"id": None}]), says(reasoning_details=[{"id": None}])],
        "openrouter-duplicate-reasoning-id",
        [],
    ),
    "others read them as often as they come": (
        "openrouter",
        "anthropic/claude-sonnet-4.5",
        [user(), says(reasoning_details=[DETAIL]), says(reasoning_details=[DETAIL])],
        "openrouter-duplicate-reasoning-id",
        [],
    ),
    "ids are short behind a router, too": (
        "openrouter",
        "openai/gpt-5.1",
        [user(), calls(call(LONG_ID)), answer(LONG_ID)],
        "chat-tool-call-id-too-long",
        ["[1].tool_calls[0].id", "[2].tool_call_id"],
    ),
}


@pytest.mark.parametrize("fact", MODELS)
def test_models_differ(fact: str) -> None:
    """What a server refuses can depend on the model."""
    provider, model, messages, rule, expected = MODELS[fact]
    found = paths(judged(messages, provider=provider, model=model))
    assert [path for name, path in found if name == rule] == expected


@pytest.mark.parametrize("model", ["gpt-5-mini", "o1-2024-12-17", "o3-mini", "o4-mini"])
def test_azure_models_that_take_a_developer(model: str) -> None:
    """Those that Microsoft documents; of all others nobody knows."""
    one = [system(role="developer"), user()]
    assert [] == judged(one, provider="azure", model=model, disputed=True)
    for other in ("gpt-4o", "gpt-5-chat", "gpt-6-astra", f"my-{model}"):
        assert [] == judged(one, provider="azure", model=other)
        assert [] != judged(one, provider="azure", model=other, disputed=True)


@pytest.mark.parametrize("role, repair", [("human", "repair_roles"), ("critic", None), (7, None)])
def test_a_speaker_is_never_guessed(role: object, repair: str | None) -> None:
    """A role of another API can be translated; any other role is only known to the user."""
    [found] = judged([{"role": role, "content": "hi"}])
    assert (found.rule, found.repair) == ("chat-role-invalid", repair)


def test_the_parts_of_an_order_are_repaired_apart() -> None:
    """Counts are repaired with the pairs, the order of speakers with the roles."""
    found = judged([user(), calls(), user(), answer(), user(), says()], provider="mistral")
    assert {one.path: one.repair for one in found if one.rule == "mistral-message-order"} == {
        "messages[4].role": "repair_roles",
        "messages[5].role": "repair_roles",
    }
    found = judged([user(), calls(), says(), user()], provider="mistral")
    assert {one.path: one.repair for one in found if one.rule == "mistral-message-order"} == {
        "messages[1]": "repair_tool_pairs",
    }


NONSENSE: list[Any] = [
    *(None, 7, "x", [], {}, {"role": "user"}, {"role": "assistant", "tool_calls": {"a": 1}}),
    {"role": "assistant", "content": [], "tool_calls": [{}, {"function": 1}, {"function": {}}]},
    {"role": "assistant", "content": None, "function_call": 3, "reasoning_details": {"id": 1}},
    {"role": "assistant", "reasoning_details": [None, {"id": []}, 3], "reasoning_content": 3},
    {"role": ["user"], "name": {}, "content": [[], {"type": {}}]},
    {"role": "tool", "name": 4, "tool_call_id": {}, 5: 6},
    {"role": "function", "name": [], "content": ["x"]},
]


@pytest.mark.parametrize("provider", sorted(ALL))
@pytest.mark.parametrize(
    "model",
    [None, "o1-mini", "deepseek-v4-pro", "kimi-k2.5", "openai/x", "google/gemini-3-pro", MISTRAL],
)
def test_nonsense_is_judged(provider: str, model: str | None) -> None:
    """No server's rule fails on what makes no sense."""
    for body in ({}, ON, {"thinking": 3, "extra_body": [], "reasoning_effort": {}}):
        for messages in (NONSENSE, NONSENSE[::-1], NONSENSE[4:5]):
            assert judged(messages, provider=provider, model=model, disputed=True, **body)


def test_long_values_are_not_quoted() -> None:
    """A message quotes no more than the beginning of what is wrong."""
    long = "x y" * 10_000
    found = judged(
        [user(name=long), calls(call(long, name=long)), answer(long), user([{"type": long}])],
        provider="groq",
        disputed=True,
    )
    found += judged([{"role": "user", "content": "x", long: 1}], provider="groq")
    assert found
    assert all(len(one.message) < 300 and len(one.path) < 200 for one in found)
