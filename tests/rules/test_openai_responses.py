"""What OpenAI Responses and its compatible servers refuse, and, as important, what they take."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convnorm import Context
from convnorm.context import Provenance
from convnorm.delivery import Ledger
from convnorm.rules import CATALOGUE, Violation, judge
from convnorm.rules.openai_responses import LEFT_OUT, RULES
from convnorm.targets import find_target
from convnorm.targets.responses_items import DATA_LENGTH, HOSTED, ITEMS, TEXT_LENGTH

CASES = Path(__file__).parent.parent / "cases" / "openai_responses"
Found = list[tuple[str, str]]


def judged(
    body: Mapping[str, Any],
    *,
    disputed: bool = False,
    state: Mapping[str, Any] | None = None,
    provider: str | None = None,
    model: str | None = None,
) -> list[Violation]:
    """The violations of a body; `state` is what the server holds."""
    context = Context(ledger=None if state is None else Ledger.from_state(state))
    return judge(
        body["input"],
        target=find_target("openai.responses", provider=provider, model=model),
        context=context.with_body(body),
        fields=body,
        disputed=disputed,
    )


def found(violations: Sequence[Violation]) -> Found:
    """Each violation as its rule and path."""
    return [(one.rule, one.path) for one in violations]


def user(content: object = "and?", **more: object) -> dict[str, Any]:
    return {"role": "user", "content": content} | more


def said(content: object = "hi", **more: object) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content} | more


def thought(own: str | None = "rs_1", sealed: str | None = None, **more: object) -> dict[str, Any]:
    ids = {"id": own} if own is not None else {}
    proof = {"encrypted_content": sealed} if sealed is not None else {}
    return {"type": "reasoning", "summary": []} | ids | proof | more


def call(call_id: str = "call_1", **more: object) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"} | more


def output(call_id: str = "call_1", given: object = "10 EUR", **more: object) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": given} | more


def custom(**more: object) -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "x"} | more


def answered(kind: str, given: object) -> list[dict[str, Any]]:
    """A call of a kind, with an output."""
    whole: dict[str, dict[str, Any]] = {
        "shell": {"action": {"commands": ["ls"]}},
        "apply_patch": {"operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
        "local_shell": {
            "id": "lsh_1",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
            "status": "completed",
        },
        "computer": {"id": "cu_1", "pending_safety_checks": [], "status": "completed"},
        "custom_tool": {"name": "f", "input": "x"},
        "function": {"name": "f", "arguments": "{}"},
    }
    result = {"type": f"{kind}_call_output", "call_id": "c", "output": given}
    if kind == "apply_patch":
        result["status"] = "completed"
    return [{"type": f"{kind}_call", "call_id": "c"} | whole[kind], result]


def text(kind: str = "output_text", **more: object) -> dict[str, Any]:
    return {"type": kind, "text": "hi"} | more


def hosted(kind: str, **more: object) -> dict[str, Any]:
    """A hosted item with all that its type asks for, save the id."""
    known: dict[str, Any] = {"action": {"type": "search"}, "status": "completed"}
    known |= {key: [] for key in ("pending_safety_checks", "queries", "tools")}
    return {"type": kind} | {key: known.get(key, "x") for key in ITEMS[kind].asked} | more


def approval(asked: str = "mcpr_1") -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": asked, "approve": True}


ASKED = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "s",
    "name": "f",
    "arguments": "{}",
}
PROGRAM = {"type": "program", "id": "p_1", "call_id": "p1", "code": "x", "fingerprint": "f"}
OWNED = {"caller": {"type": "program", "caller_id": "p1"}}


def screen(**more: object) -> dict[str, Any]:
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    return {"type": "computer_call_output", "call_id": "c", "output": shot} | more


def clicked(*checks: str) -> dict[str, Any]:
    [made, _] = answered("computer", None)
    return made | {"pending_safety_checks": [{"id": one} for one in checks]}


# Real histories.


def _cases(*kinds: str) -> Iterator[Any]:
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["kind"] in kinds:
            yield pytest.param(case, id=case["id"])


def _setting(case: Mapping[str, Any]) -> dict[str, Any]:
    known = case["context"]
    return {
        "provider": known.get("provider"),
        "model": known.get("model"),
        "state": known.get("server_state"),
    }


DIFFERENCES: Mapping[str, str] = {}
"""By case: why our verdict is another. There is none so far."""


@pytest.mark.parametrize("case", [*_cases("broken")])
def test_what_was_refused_is_flagged(case: Mapping[str, Any]) -> None:
    """A history that was refused breaks every rule that it names, and at least one."""
    rules = {one.rule for one in judged(case["request"], disputed=True, **_setting(case))}
    assert rules
    assert case["id"] in DIFFERENCES or set(case.get("rules") or ()) <= rules


@pytest.mark.parametrize("case", [*_cases("sound", "well-formed")])
def test_what_was_taken_breaks_nothing(case: Mapping[str, Any]) -> None:
    """A history that the server accepted breaks no rule."""
    assert judged(case["request"], **_setting(case)) == []


@pytest.mark.parametrize("case", [*_cases("broken", "sound", "well-formed")])
def test_right_answers_break_nothing(case: Mapping[str, Any]) -> None:
    """An answer that somebody found acceptable breaks no rule."""
    answer = case.get("one_acceptable_answer")
    assert answer is None or judged(answer, **_setting(case)) == []


def test_what_is_left_out_has_a_reason() -> None:
    """No rule is both here and left out."""
    assert LEFT_OUT.keys().isdisjoint({rule.id for rule in RULES})
    assert all(LEFT_OUT.values())


# Without a ledger: the request alone.

ALONE: dict[str, tuple[dict[str, Any], Found]] = {
    # Links.
    "a request continues one thing": (
        {"previous_response_id": "resp_1", "conversation": "conv_1", "input": [user()]},
        [("resp-previous-and-conversation", "conversation")],
    ),
    "a conversation is enough": ({"conversation": {"id": "conv_1"}, "input": [user()]}, []),
    "a response is enough": ({"previous_response_id": "resp_1", "input": [user()]}, []),
    # Reasoning.
    "a summary may be empty": ({"input": [thought(None, "E"), said()]}, []),
    "a summary may not be missing": (
        {"input": [{"type": "reasoning", "id": "rs_1"}, said()]},
        [("resp-reasoning-summary-missing", "input[0].summary")],
    ),
    "a summary may not be null": (
        {"input": [thought() | {"summary": None}, said()]},
        [("resp-reasoning-summary-missing", "input[0].summary")],
    ),
    "an empty content of reasoning is fine": (
        {"input": [thought(content=[]), said(), thought("rs_2", content=None), said()]},
        [],
    ),
    "plain reasoning is refused": (
        {"input": [thought(content=[{"type": "reasoning_text", "text": "t"}]), said()]},
        [("resp-reasoning-content-not-allowed", "input[0].content")],
    ),
    "reasoning with nothing in it is taken outside conversations": (
        {"input": [thought(None), said()]},
        [],
    ),
    "reasoning with nothing in it is refused in conversations": (
        {"conversation": "conv_1", "input": [thought(None), said()]},
        [("resp-reasoning-unusable", "input[0]")],
    ),
    "reasoning may have no status": (
        {"input": [thought(status=None), said(status="completed")]},
        [("resp-unknown-field", "input[0].status")],
    ),
    # Ids.
    "64 characters are a good id": ({"input": [said(id=f"msg_{'x' * 60}")]}, []),
    "65 characters are too many": (
        {"input": [said(id=f"msg_{'x' * 61}")]},
        [("resp-id-too-long", "input[0].id")],
    ),
    "a long foreign id is both": (
        {"input": [said(id="x" * 65)]},
        [("resp-id-prefix", "input[0].id"), ("resp-id-too-long", "input[0].id")],
    ),
    "an id may have dashes": ({"input": [said(id="msg-1_a")]}, []),
    "an id may have no dots": (
        {"input": [said(id="msg.1")]},
        [("resp-id-charset", "input[0].id")],
    ),
    "an id may not be empty": ({"input": [said(id="")]}, [("resp-id-charset", "input[0].id")]),
    "an id is a text": ({"input": [said(id=7)]}, [("resp-id-charset", "input[0].id")]),
    "a null id is no id": ({"input": [said(id=None)]}, []),
    "messages, calls and reasoning have their prefix": (
        {"input": [thought("x_1"), said(id="x_2"), call(id="x_3"), output()]},
        [
            ("resp-id-prefix", "input[0].id"),
            ("resp-id-prefix", "input[1].id"),
            ("resp-id-prefix", "input[2].id"),
        ],
    ),
    "other prefixes are not sure": (
        {"input": [call(), output(id="x_1"), hosted("web_search_call", id="x_2")]},
        [],
    ),
    "a reference may name anything": ({"input": [{"type": "item_reference", "id": "x"}]}, []),
    "a local shell output has its call's id": (
        {
            "input": [
                answered("local_shell", None)[0] | {"call_id": "c:1"},
                {"type": "local_shell_call_output", "id": "c:1", "output": "ok"},
            ]
        },
        [],
    ),
    "64 characters are a good call_id": ({"input": [call("x" * 64), output("x" * 64)]}, []),
    "65 characters are too many for a call_id": (
        {"input": [call("x" * 65), output("x" * 65)]},
        [
            ("resp-call-id-too-long", "input[0].call_id"),
            ("resp-call-id-too-long", "input[1].call_id"),
        ],
    ),
    "a call_id may have any characters": ({"input": [call("a:b.c"), output("a:b.c")]}, []),
    "128 characters are a good name": ({"input": [call(name="x" * 128), output()]}, []),
    "129 characters are too many for a name": (
        {"input": [call(name="x" * 129), output()]},
        [("resp-name-invalid", "input[0].name")],
    ),
    "a name may not be empty": (
        {"input": [call(name=""), output()]},
        [("resp-name-invalid", "input[0].name")],
    ),
    "names of custom tools are not sure": (
        {"input": [custom(name="a b"), output() | {"type": "custom_tool_call_output"}]},
        [],
    ),
    # Arguments and outputs.
    "broken arguments are a text": ({"input": [call(arguments="{"), output()]}, []),
    "arguments are no object": (
        {"input": [call(arguments={}), output()]},
        [("resp-arguments-not-string", "input[0].arguments")],
    ),
    "the input of a custom call is a text": (
        {"input": [custom(input={}), output() | {"type": "custom_tool_call_output"}]},
        [("resp-arguments-not-string", "input[0].input")],
    ),
    "what a tool search asks is an object": (
        {"input": [{"type": "tool_search_call", "arguments": {"q": 1}}]},
        [],
    ),
    "arguments may not be missing": (
        {"input": [call(arguments=None), output()]},
        [("resp-required-field-missing", "input[0].arguments")],
    ),
    "an output may be parts": (
        {
            "input": [
                call(),
                output(
                    given=[
                        text("input_text"),
                        {"type": "input_image", "image_url": "data:,"},
                        {"type": "input_file", "file_id": "file-1"},
                    ]
                ),
            ]
        },
        [],
    ),
    "an output may be empty": ({"input": [call(), output(given="")]}, []),
    "an output has no chat parts": (
        {"input": [call(), output(given=[text("text"), text("input_text"), "x", None])]},
        [
            ("resp-output-type", "input[1].output[0]"),
            ("resp-output-type", "input[1].output[2]"),
            ("resp-output-type", "input[1].output[3]"),
        ],
    ),
    "a shell answers in chunks": ({"input": answered("shell", [])}, []),
    "a shell does not answer in a text": (
        {"input": answered("shell", "ok")},
        [("resp-output-type", "input[1].output")],
    ),
    "a patch may answer nothing": ({"input": answered("apply_patch", None)}, []),
    "a patch does not answer with a list": (
        {"input": answered("apply_patch", [])},
        [("resp-output-type", "input[1].output")],
    ),
    "a screenshot is no text": (
        {"input": answered("computer", "shot")},
        [("resp-output-type", "input[1].output")],
    ),
    "a screenshot is an object": ({"input": [clicked(), screen()]}, []),
    # Lengths.
    "a text may be long": ({"input": [user("x" * TEXT_LENGTH)]}, []),
    "an output may not be longer": (
        {"input": [call(), output(given="x" * (TEXT_LENGTH + 1))]},
        [("resp-string-too-long", "input[1].output")],
    ),
    "a part may not be longer": (
        {"input": [user([text("input_text", text="x" * (TEXT_LENGTH + 1))])]},
        [("resp-string-too-long", "input[0].content[0].text")],
    ),
    "a sealed text may be longer": ({"input": [thought(None, "x" * DATA_LENGTH), said()]}, []),
    "a sealed text may not be any longer": (
        {"input": [thought(None, "x" * (DATA_LENGTH + 1)), said()]},
        [("resp-string-too-long", "input[0].encrypted_content")],
    ),
    # Content.
    "an assistant has output parts": (
        {"input": [said([text(), {"type": "refusal", "refusal": "no"}])]},
        [],
    ),
    "an assistant has no input parts": (
        {"input": [said([text("input_text"), {"type": "input_image", "image_url": "data:,"}])]},
        [
            ("resp-content-part-type", "input[0].content[0]"),
            ("resp-content-part-type", "input[0].content[1]"),
        ],
    ),
    "nobody else has output parts": (
        {"input": [user([text()]), user([text("text")])]},
        [
            ("resp-content-part-type", "input[0].content[0]"),
            ("resp-content-part-type", "input[1].content[0]"),
        ],
    ),
    "a new kind of input is not sure": ({"input": [user([{"type": "input_video"}])]}, []),
    "parts are objects with a type": (
        {"input": [user(["x", None, {}, {"type": []}])]},
        [("resp-content-part-type", f"input[0].content[{index}]") for index in range(4)],
    ),
    "a content is a text or a list": (
        {"input": [user({"text": "hi"}), user(5)]},
        [
            ("resp-content-part-type", "input[0].content"),
            ("resp-content-part-type", "input[1].content"),
        ],
    ),
    "plain text was never sealed": (
        {"input": [thought(None, "Work it out."), said()]},
        [("resp-encrypted-content-invalid", "input[0].encrypted_content")],
    ),
    "both phases are known": (
        {"input": [said(phase="commentary"), said(phase="final_answer"), said(phase=None)]},
        [],
    ),
    "another phase is not": (
        {"input": [said(phase="analysis"), said(phase=[])]},
        [("resp-phase-invalid", "input[0].phase"), ("resp-phase-invalid", "input[1].phase")],
    ),
    # Items and their keys.
    "types are known": (
        {"input": [{"type": "context_compaction"}, {"type": 7}]},
        [("resp-item-type-unknown", "input[0].type"), ("resp-item-type-unknown", "input[1].type")],
    ),
    "keys of others are refused, null or not": (
        {"input": [said(provider_data={}), call(_x=1), output(created_by=None)]},
        [
            ("resp-unknown-field", "input[0].provider_data"),
            ("resp-unknown-field", "input[1]._x"),
            ("resp-unknown-field", "input[2].created_by"),
        ],
    ),
    "a message has no name": (
        {"input": [user(name="bo")]},
        [("resp-unknown-field", "input[0].name")],
    ),
    "parts have keys of their own": (
        {"input": [said([text(annotations=[], logprobs=[], parsed=None)])]},
        [("resp-unknown-field", "input[0].content[0].parsed")],
    ),
    "a namespace is not sure": ({"input": [call(namespace="n"), output()]}, []),
    "a reference has an id": (
        {"input": [{"type": "item_reference"}]},
        [("resp-required-field-missing", "input[0].id")],
    ),
    "a call has a name": (
        {"input": [call(name=None), output()]},
        [("resp-required-field-missing", "input[0].name")],
    ),
    "a screenshot is not missing": (
        {"input": answered("computer", None)},
        [("resp-required-field-missing", "input[1].output")],
    ),
    "what only the types ask for is not sure": (
        {"input": [{"type": "web_search_call", "id": "ws_1"}]},
        [],
    ),
    "a generated image may be sent by its id": (
        {"input": [{"type": "image_generation_call", "id": "ig_1"}]},
        [],
    ),
    "values have their types": (
        {
            "input": [
                user([text("input_text", text=5), {"type": "input_image", "image_url": {}}]),
                said([text(annotations="a"), {"type": "refusal"}], status=[]),
                thought(summary=[{"type": "summary_text"}, "x"]),
                call(name=7),
                output(given=[text("input_text", text=[])]),
                approval() | {"approve": "yes"},
            ],
            "conversation": "conv_1",
        },
        [
            ("resp-malformed", "input[0].content[0].text"),
            ("resp-malformed", "input[0].content[1].image_url"),
            ("resp-malformed", "input[1].status"),
            ("resp-malformed", "input[1].content[0].annotations"),
            ("resp-malformed", "input[1].content[1].refusal"),
            ("resp-malformed", "input[2].summary[0].text"),
            ("resp-malformed", "input[2].summary[1]"),
            ("resp-malformed", "input[3].name"),
            ("resp-malformed", "input[4].output[0].text"),
            ("resp-malformed", "input[5].approve"),
        ],
    ),
    "values inside of values have theirs": (
        {
            "input": [
                *answered("shell", [{"stdout": "", "stderr": "", "outcome": {"type": "exit"}}]),
                hosted("web_search_call", id="ws_1", action={"type": "open_page", "url": 1}),
                hosted("file_search_call", id="fs_1", queries=[1]),
            ]
        },
        [
            ("resp-malformed", "input[1].output[0].outcome.exit_code"),
            ("resp-malformed", "input[2].action.url"),
            ("resp-malformed", "input[3].queries[0]"),
        ],
    ),
    "an input is a text or a list": (
        {"conversation": "conv_1", "input": {"role": "user", "content": "hi"}},
        [("resp-input-required", "input")],
    ),
    "a trigger may be last": ({"input": [user(), {"type": "compaction_trigger"}]}, []),
    "a trigger is last": (
        {"input": [{"type": "compaction_trigger"}, user()]},
        [("resp-compaction-trigger-not-last", "input[0]")],
    ),
    # Groups.
    "an approval answers a request": ({"input": [ASKED, approval()]}, []),
    "an approval may answer what is referred to": (
        {"input": [{"type": "item_reference", "id": "mcpr_1"}, approval()]},
        [],
    ),
    "an approval may answer what the server holds": (
        {"previous_response_id": "resp_1", "input": [approval()]},
        [],
    ),
    "an approval does not answer another request": (
        {"input": [ASKED, approval("mcpr_2")]},
        [("resp-mcp-approval-unknown", "input[1].approval_request_id")],
    ),
    "safety checks are acknowledged": (
        {"input": [clicked("a", "b"), screen(acknowledged_safety_checks=[{"id": "b"}])]},
        [("resp-computer-safety-unacknowledged", "input[1].acknowledged_safety_checks")],
    ),
    "acknowledged checks are fine": (
        {"input": [clicked("a"), screen(acknowledged_safety_checks=[{"id": "a"}])]},
        [],
    ),
    "a program comes with its calls": ({"input": [PROGRAM, call() | OWNED, output() | OWNED]}, []),
    "a direct call has no program": ({"input": [call(caller={"type": "direct"}), output()]}, []),
    "calls of a program come with it": (
        {"input": [call() | OWNED, output() | OWNED]},
        [
            ("resp-program-caller-unknown", "input[0].caller"),
            ("resp-program-caller-unknown", "input[1].caller"),
        ],
    ),
    "the server may have the program": (
        {"previous_response_id": "resp_1", "input": [output() | OWNED]},
        [],
    ),
    "a reference to a call is not sure": (
        {"input": [{"type": "item_reference", "id": "fc_1"}, output()]},
        [],
    ),
}


@pytest.mark.parametrize("fact", ALONE)
def test_a_request_alone(fact: str) -> None:
    """What a request shows of itself."""
    body, expected = ALONE[fact]
    assert found(judged(body)) == expected


@pytest.mark.parametrize("kind", sorted(HOSTED))
def test_hosted_items_keep_their_id(kind: str) -> None:
    """Stripping the id of what the server did makes it worthless."""
    bare = hosted(kind, call_id="c") if kind == "computer_call" else hosted(kind)
    behind = [screen()] if kind == "computer_call" else []
    assert found(judged({"input": [bare, *behind]})) == [
        ("resp-hosted-item-id-missing", "input[0].id")
    ]
    named = bare | {"id": f"{ITEMS[kind].prefix}_1"}
    assert judged({"input": [named, *behind]}) == []


DISPUTED: dict[str, tuple[dict[str, Any], Found]] = {
    "a text cut inside a character": (
        {"input": [call(), output(output=[{"type": "input_text", "text": "\ud83d"}])]},
        [("text-half-character", "input[1].output[0].text")],
    ),
    "prefixes that were seen in ids only": (
        {"input": [call(), output(id="x_1")]},
        [("resp-id-prefix", "input[1].id")],
    ),
    "keys that the types have and users saw refused": (
        {"input": [call(namespace="n"), output()]},
        [("resp-unknown-field", "input[0].namespace")],
    ),
    "what only the types ask for": (
        {"input": [{"type": "web_search_call", "id": "ws_1"}]},
        [
            ("resp-required-field-missing", "input[0].action"),
            ("resp-required-field-missing", "input[0].status"),
        ],
    ),
    "a word that may be new, and null for what could be left out": (
        {
            "input": [
                call(status="paused") | {"async": None},
                output(given=[{"type": "input_image", "detail": "huge", "file_id": None}]),
            ]
        },
        [
            ("resp-malformed", "input[0].async"),
            ("resp-malformed", "input[0].status"),
            ("resp-malformed", "input[1].output[0].detail"),
        ],
    ),
    "what has to be there, if only as null": (
        {"input": [hosted("code_interpreter_call", id="ci_1")]},
        [
            ("resp-required-field-missing", "input[0].code"),
            ("resp-required-field-missing", "input[0].outputs"),
        ],
    ),
    "reasoning with nothing in it": (
        {"input": [thought(None), said()]},
        [("resp-reasoning-unusable", "input[0]")],
    ),
    "a reference to a call": (
        {"input": [{"type": "item_reference", "id": "fc_1"}, output()]},
        [("resp-item-reference-call-pairing", "input[0]")],
    ),
    "an output of a program that is not there": (
        {
            "input": [
                {"type": "program_output", "id": "p", "call_id": "p1", "result": "1"}
                | {"status": "completed"}
            ]
        },
        [("resp-program-caller-unknown", "input[0].call_id")],
    ),
}


@pytest.mark.parametrize("fact", DISPUTED)
def test_what_is_disputed(fact: str) -> None:
    """What sources disagree about is reported to those who ask for it."""
    body, expected = DISPUTED[fact]
    assert found(judged(body, disputed=True)) == expected
    assert judged(body) == []


# With a ledger: what the server would see.

TURN = [thought("rs_1"), said("done", id="msg_1", status="completed")]
WAITING = [thought("rs_1"), call("call_1", id="fc_1")]


def held(*responses: Sequence[object], **more: object) -> dict[str, Any]:
    """A server that holds responses resp_1, resp_2, …, each continuing the one before."""
    chain: dict[str, Any] = {}
    for number, made in enumerate(responses, 1):
        before = f"resp_{number - 1}" if number > 1 else None
        chain[f"resp_{number}"] = {"output": list(made), "previous_response_id": before}
    return {"responses": chain} | more


def after(*items: object, response: str = "resp_1") -> dict[str, Any]:
    return {"previous_response_id": response, "input": list(items)}


UNSTORED = {"responses": {"resp_1": {"stored": False, "output": WAITING}}}
TALK = {"conversations": {"conv_1": {"items": WAITING}}}
SEALED = held([thought("rs_1", "E1"), said(id="msg_1")])

SEEN: dict[str, tuple[dict[str, Any], dict[str, Any], Found]] = {
    # Links.
    "a stored response can be continued": (held(TURN), after(user()), []),
    "an unknown one cannot": (
        held(TURN),
        after(user(), response="resp_9"),
        [("resp-previous-response-not-found", "previous_response_id")],
    ),
    "an unstored one cannot, and its calls are gone": (
        UNSTORED,
        after(output()),
        [
            ("resp-previous-response-not-found", "previous_response_id"),
            ("resp-output-without-call", "input[0]"),
        ],
    ),
    "nothing is continued without retention": (
        held(TURN, zero_data_retention=True),
        after(user()),
        [("resp-zero-data-retention", "previous_response_id")],
    ),
    "without a link retention does not matter": (
        {"zero_data_retention": True},
        {"input": [user()]},
        [],
    ),
    "a conversation exists": (
        {"conversations": {"conv_1": []}},
        {"conversation": "conv_2", "input": [user()]},
        [("resp-conversation-not-found", "conversation")],
    ),
    "a conversation is not locked": (
        {"conversations": {"conv_1": []}, "locked": ["conv_1"]},
        {"conversation": "conv_1", "input": [user()]},
        [("resp-conversation-locked", "conversation")],
    ),
    "another conversation may be locked": (
        {"conversations": {"conv_1": []}, "locked": ["conv_2"]},
        {"conversation": "conv_1", "input": [user()]},
        [],
    ),
    # Pairing over the link.
    "a pending call is answered": (held(WAITING), after(output()), []),
    "a pending call is not answered": (
        held(WAITING),
        after(user()),
        [("resp-call-output-missing", "previous_response_id")],
    ),
    "a pending call of a conversation is not answered": (
        TALK,
        {"conversation": "conv_1", "input": [user()]},
        [("resp-call-output-missing", "conversation")],
    ),
    "a call deeper in the chain was answered there": (
        {
            "responses": {
                "resp_1": {"output": WAITING},
                "resp_2": {
                    "previous_response_id": "resp_1",
                    "input": [output()],
                    "output": [said(id="msg_2")],
                },
            }
        },
        after(user(), response="resp_2"),
        [],
    ),
    "a call after the named response is not in its chain": (
        held(TURN, [call("call_2", id="fc_2")]),
        after(output("call_2")),
        [("resp-output-without-call", "input[0]")],
    ),
    "an output is of its call's type": (
        held(WAITING),
        after(output() | {"type": "custom_tool_call_output"}),
        [
            ("resp-call-output-missing", "previous_response_id"),
            ("resp-output-without-call", "input[0]"),
        ],
    ),
    "what is before the ledger may hold the call": (
        {"responses": {"resp_2": {"previous_response_id": "resp_1", "output": [said()]}}},
        after(output(), response="resp_2"),
        [],
    ),
    "without a link the server adds nothing": (
        held(WAITING),
        {"input": [output()]},
        [("resp-output-without-call", "input[0]")],
    ),
    "a pending safety check is acknowledged over the link": (
        held([clicked("a")]),
        after(screen()),
        [("resp-computer-safety-unacknowledged", "input[0].acknowledged_safety_checks")],
    ),
    "an approval answers what the server holds": (held([ASKED]), after(approval()), []),
    "an approval does not answer what it does not hold": (
        held(TURN),
        after(approval()),
        [("resp-mcp-approval-unknown", "input[0].approval_request_id")],
    ),
    "the server has the program": (
        held([PROGRAM, call(id="fc_1") | OWNED]),
        after(output() | OWNED),
        [],
    ),
    # Ids.
    "what the server adds is not sent again": (
        held(TURN),
        after(said("done", id="msg_1"), user()),
        [("resp-duplicate-item-id", "input[0].id")],
    ),
    "nor referred to": (
        held(TURN),
        after({"type": "item_reference", "id": "msg_1"}, user()),
        [("resp-duplicate-item-id", "input[0].id")],
    ),
    "without a link it may be sent": (held(TURN), {"input": [user(), *TURN, user()]}, []),
    # Lookups.
    "stored items can be named": (
        held(TURN),
        {"input": [{"type": "item_reference", "id": "rs_1"}, {"id": "msg_1"}, user()]},
        [],
    ),
    "others cannot": (
        held(TURN),
        {"input": [{"type": "item_reference", "id": "msg_9"}, user()]},
        [("resp-item-not-persisted", "input[0]")],
    ),
    "bare reasoning is looked up": (
        held([said()]),
        {"input": [thought("rs_9"), said(), user()]},
        [("resp-item-not-persisted", "input[0]")],
    ),
    "sealed reasoning is not": ({}, {"input": [thought("rs_9", "E"), said(), user()]}, []),
    "what is stored is found, though this request is not": (
        held(TURN),
        {"store": False, "input": [user(), *TURN, user()]},
        [],
    ),
    "hosted items by their id are looked up": (
        {},
        {"input": [{"type": "image_generation_call", "id": "ig_9"}]},
        [("resp-item-not-persisted", "input[0]")],
    ),
    "single items can be stored": (
        {"items": [{"type": "image_generation_call", "id": "ig_9"}]},
        {"input": [{"type": "image_generation_call", "id": "ig_9"}]},
        [],
    ),
    "made-up ids of messages and calls are not looked up": (
        {},
        {"input": [said(id="msg_9"), call(id="fc_9"), output()]},
        [],
    ),
    "nor are those that were not stored": (
        UNSTORED,
        {"input": [call(id="fc_1"), output()]},
        [],
    ),
    "a reference to a call is the call": (
        held([call("call_1", id="fc_1")]),
        {"input": [{"type": "item_reference", "id": "fc_1"}, output()]},
        [],
    ),
    "and waits for its output": (
        held([call("call_1", id="fc_1")]),
        {"input": [{"type": "item_reference", "id": "fc_1"}, user()]},
        [("resp-call-output-missing", "input[0]")],
    ),
    # Reasoning and what it led to.
    "an id needs its reasoning": (
        held(WAITING),
        {"input": [user(), call(id="fc_1"), output()]},
        [("resp-item-without-reasoning", "input[1].id")],
    ),
    "without the id it does not": (held(WAITING), {"input": [user(), call(), output()]}, []),
    "only the first item behind reasoning needs it": (
        held([*WAITING, call("call_2", id="fc_2")]),
        {"input": [user(), call("call_2", id="fc_2"), output("call_2")]},
        [],
    ),
    "reasoning is followed by what it led to": (
        held([thought("rs_1"), hosted("web_search_call", id="ws_1"), said(id="msg_1")]),
        {"input": [user(), thought("rs_1"), said(id="msg_1"), user()]},
        [("resp-reasoning-without-following", "input[1]")],
    ),
    "typed again it is not sure": (held(TURN), {"input": [user(), TURN[0], said("done")]}, []),
    "a chain does not end in reasoning": (
        held([thought("rs_1")]),
        after(user()),
        [("resp-reasoning-without-following", "previous_response_id")],
    ),
    # Sealed content.
    "what the server sealed is good": (SEALED, {"input": [thought(None, "E1"), said()]}, []),
    "what it did not seal is not": (
        SEALED,
        {"input": [thought(None, "E2"), said()]},
        [("resp-encrypted-content-invalid", "input[0].encrypted_content")],
    ),
    "where it sealed nothing, nothing is known": (
        held(TURN),
        {"input": [thought(None, "E2"), said()]},
        [],
    ),
    "a compaction is sealed elsewhere": (
        SEALED,
        {"input": [{"type": "compaction", "encrypted_content": "E3"}, user()]},
        [],
    ),
    "another organization's seal is not good": (
        {"organization": "a", "encrypted_content": {"E": {"organization": "b"}}},
        {"input": [{"type": "compaction", "encrypted_content": "E"}, user()]},
        [("resp-encrypted-content-invalid", "input[0].encrypted_content")],
    ),
    "one's own is": (
        {"organization": "a", "encrypted_content": {"E": {"organization": "a"}}},
        {"input": [{"type": "compaction", "encrypted_content": "E"}, user()]},
        [],
    ),
    # Containers.
    "a container lives": (
        {"expired_containers": ["c1"]},
        {"input": [hosted("code_interpreter_call", id="ci_1", container_id="c2")]},
        [],
    ),
    "a container is gone": (
        {"expired_containers": ["c1"]},
        {"input": [hosted("code_interpreter_call", id="ci_1", container_id="c1")]},
        [("resp-container-expired", "input[0].container_id")],
    ),
}


@pytest.mark.parametrize("fact", SEEN)
def test_what_the_server_sees(fact: str) -> None:
    """With a ledger the request is judged behind what the server holds."""
    state, body, expected = SEEN[fact]
    assert found(judged(body, state=state)) == expected


DISPUTED_THERE: dict[str, tuple[dict[str, Any], dict[str, Any], Found]] = {
    "ids that were given out and not stored": (
        UNSTORED,
        {"input": [call(id="fc_1"), output()]},
        [("resp-item-not-persisted", "input[0].id")],
    ),
    "a turn typed again behind its reasoning": (
        held(TURN),
        {"input": [user(), TURN[0], said("done")]},
        [("resp-reasoning-without-following", "input[1]")],
    ),
    "reasoning that is not right before": (
        held(TURN),
        {"input": [TURN[0], said(), TURN[1]]},
        [
            ("resp-reasoning-without-following", "input[0]"),
            ("resp-item-without-reasoning", "input[2].id"),
        ],
    ),
    "a call by reference": (
        held([call("call_1", id="fc_1")]),
        {"input": [{"type": "item_reference", "id": "fc_1"}, output()]},
        [("resp-item-reference-call-pairing", "input[0]")],
    ),
    "a second output of what was answered on the server": (
        held([call(), output(), said()]),
        after(output()),
        [("history-replayed", "input[0]"), ("resp-duplicate-output", "input[0]")],
    ),
    "a request on the conversation that nobody answered": (
        {
            "conversations": {"conv_1": [user()]},
            "attempts": {"a": {"input": "b", "conversation": "conv_1"}},
        },
        {"conversation": "conv_1", "input": [user()]},
        [("delivery-unknown", "conversation")],
    ),
    "all that the server holds, in front of something new": (
        {"responses": {"resp_1": {"input": [user()], "output": [said()]}}},
        after(user(), said(), user()),
        [("history-replayed", "input[0]")],
    ),
}


@pytest.mark.parametrize("fact", DISPUTED_THERE)
def test_what_is_disputed_of_the_server(fact: str) -> None:
    """What nobody settled is reported to those who ask for it."""
    state, body, expected = DISPUTED_THERE[fact]
    assert found(judged(body, state=state, disputed=True)) == expected
    assert judged(body, state=state) == []


def test_what_waits_on_the_server_is_repaired_with_the_link() -> None:
    """No pass over the list can answer for the server: the link is what has to change."""
    other = {"resp_9": {"output": [call("call_9", id="fc_9")]}}
    state = {"responses": held(WAITING)["responses"] | other}
    repairs = {
        one.rule: one.repair
        for body in (after(user()), after(output("call_9"), output()), after(*WAITING, output()))
        for one in judged(body, state=state)
    }
    assert repairs == {
        "resp-call-output-missing": "settle_link",
        "resp-output-without-call": "settle_link",
        "resp-duplicate-item-id": "settle_link",
    }


def test_output_that_nobody_asked_for_is_repaired_without_the_link() -> None:
    """No response made its call, so no link leads to it."""
    (orphan,) = judged(after(output("call_9"), output()), state=held(WAITING))
    assert ("resp-output-without-call", "repair_tool_pairs") == (orphan.rule, orphan.repair)


# Servers and models.

IDS = {"input": [said(id="chatcmpl-1"), call("x" * 65, name="a b"), output("x" * 65)]}
PLAIN = {"input": [thought(content=[{"type": "reasoning_text", "text": "t"}]), said()]}
PARTS = {"input": [user(), said([text(annotations=[])])]}
BARE = {"input": [user(), said([text()], id="msg_1", status="completed")]}
INPUT_PARTS = {"input": [said([text("input_text")], id="msg_1", status="completed")]}
STATELESS = {"store": False, "input": [thought(None, "E"), said()]}
TWICE = {"input": [thought(None, "E1"), said(), user(), thought(None, "E2"), said()]}
LOOP = {"input": [thought(None, "E1"), call(), output(), thought(None, "E2"), said()]}
ODD = {"input": [said(x=1), {"type": "new_call"}]}
ID_RULES = ["resp-id-prefix", "resp-call-id-too-long", "resp-name-invalid", "resp-call-id-too-long"]
ODD_RULES = ["resp-unknown-field", "resp-item-type-unknown"]

SERVERS: list[tuple[str, str | None, dict[str, Any], list[str]]] = [
    ("openai", None, IDS, ID_RULES),
    ("azure", None, IDS, ID_RULES),
    ("codex-backend", None, IDS, ID_RULES),
    ("vllm", None, IDS, []),
    ("somewhere", None, IDS, []),
    ("openai", None, ODD, ODD_RULES),
    ("azure-foundry", None, ODD, ODD_RULES),
    ("vllm", None, ODD, []),
    ("somewhere", None, ODD, []),
    ("openai", None, PLAIN, ["resp-reasoning-content-not-allowed"]),
    ("azure", None, PLAIN, ["resp-reasoning-content-not-allowed"]),
    ("vllm", "gpt-oss-120b", PLAIN, []),
    ("somewhere", None, PLAIN, []),
    ("openai", None, INPUT_PARTS, ["resp-content-part-type"]),
    ("vllm", None, INPUT_PARTS, []),
    ("openai", None, BARE, []),
    ("vllm", None, BARE, ["compat-output-message-shape"]),
    ("vllm", None, PARTS, []),
    ("vllm", None, {"input": [user(), said()]}, []),
    ("openai", None, STATELESS, []),
    ("azure", None, STATELESS, []),
    ("azure-foundry", None, STATELESS, ["azure-foundry-reasoning-id-required"]),
    ("openai", "gpt-6-astra", TWICE, []),
    ("azure", "gpt-5.1", TWICE, []),
    ("azure", "gpt-6-astra", TWICE, ["azure-conflicting-continuation"]),
    ("azure", "gpt-6-astra", LOOP, []),
    ("azure", "gpt-6-astra", {"input": TWICE["input"][3:]}, []),
    ("openai", None, after(user()), []),
    ("vllm", None, after(user()), []),
    ("ollama", None, after(user()), ["compat-previous-response-id-unsupported"]),
    ("codex-backend", None, after(user()), ["compat-previous-response-id-unsupported"]),
    ("ollama", None, {"input": [user()]}, []),
    ("vllm", None, {"input": [call(arguments="{"), output()]}, ["template-arguments-json"]),
    ("openai", None, {"input": [call(arguments="{"), output()]}, []),
    *(
        ("openai", model, STATELESS, ["resp-reasoning-nonreasoning-model"])
        for model in ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4-turbo", "chatgpt-4o-latest")
    ),
    *(
        ("openai", model, STATELESS, [])
        for model in ("gpt-5.1", "o3", "o4-mini", "computer-use-preview", None, "my-gpt-4o-like")
    ),
]


@pytest.mark.parametrize("provider, model, body, rules", SERVERS)
def test_servers_differ(
    provider: str, model: str | None, body: dict[str, Any], rules: list[str]
) -> None:
    """What a server or model asks is in its profile; what nobody described is not assumed."""
    assert [one.rule for one in judged(body, provider=provider, model=model)] == rules


# Laws.


@pytest.mark.parametrize("kind", ITEMS)
def test_a_whole_item_has_nothing_odd(kind: str) -> None:
    """Whatever a type may have, it may have: no key of it is unknown or missing."""
    keys = ITEMS[kind].keys - {"type", "id"}
    item = {"type": kind, "id": f"{ITEMS[kind].prefix}_1"} | dict.fromkeys(keys, "x")
    rules = {one.rule for one in judged({"input": [item]})}
    assert rules.isdisjoint(
        {"resp-unknown-field", "resp-item-type-unknown", "resp-required-field-missing"}
    )


ODD_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=2)
    | st.sampled_from(["msg_1", "rs_1", "fc_1", "call_1", "resp_1", "assistant", "user", *ITEMS]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(sorted({key for item in ITEMS.values() for key in item.keys})),
            inner,
            max_size=6,
        )
    ),
    max_leaves=10,
)
ODD_ITEMS = st.lists(
    st.builds(
        lambda kind, more: {**more, "type": kind},
        st.sampled_from([*ITEMS]),
        st.dictionaries(
            st.sampled_from(sorted({key for item in ITEMS.values() for key in item.keys})),
            ODD_VALUES,
        ),
    )
    | ODD_VALUES,
    max_size=6,
)


@given(
    items=ODD_ITEMS,
    made=ODD_ITEMS,
    link=st.sampled_from([{}, {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}]),
    provider=st.sampled_from(["openai", "azure-foundry", "vllm", "ollama"]),
)
def test_nothing_raises(
    items: list[Any], made: list[Any], link: dict[str, str], provider: str
) -> None:
    """Whatever stands in the input or on the server, the judge answers."""
    state = {"responses": {"resp_1": {"output": made}}, "conversations": {"conv_1": made}}
    body = {"input": items, **link}
    everything = judged(body, state=state, disputed=True, provider=provider)
    assert everything == judged(body, state=state, disputed=True, provider=provider)
    plain = judged(body, state=state, provider=provider)
    assert [one for one in everything if one in plain] == plain


def test_the_ledger_tells_nothing_of_a_chain_that_bites_its_tail() -> None:
    """Two responses that continue each other are read once."""
    state = {
        "responses": {
            "resp_1": {"previous_response_id": "resp_2", "output": [said(id="msg_1")]},
            "resp_2": {"previous_response_id": "resp_1", "output": [said(id="msg_2")]},
        }
    }
    assert judged(after(user()), state=state) == []


def test_every_rule_is_shown_here() -> None:
    """Each rule of the API is expected by some table above, or by a case."""
    shown = {rule for _, expected in (*ALONE.values(), *DISPUTED.values()) for rule, _ in expected}
    shown |= {
        rule
        for _, _, expected in (*SEEN.values(), *DISPUTED_THERE.values())
        for rule, _ in expected
    }
    shown |= {rule for *_, rules in SERVERS for rule in rules}
    shown |= {rule for case in _cases("broken") for rule in case.values[0].get("rules") or ()}
    elsewhere = {"resp-hosted-item-id-missing", "reasoning-of-another-model"}
    basic = {"resp-input-required", "resp-item-type", "resp-role-invalid", "id-unstored"}
    known = {rule.id for rule in CATALOGUE["openai.responses"]}
    assert known - shown - elsewhere <= basic | {"history-replayed", "resp-output-id-collides"}


def test_sealed_reasoning_is_told_from_that_of_another_model() -> None:
    """Where the context knows who made it, reasoning for another model is pointed out as advice."""
    made = {0: "o3", 2: "gpt-5.1", 4: "o3"}
    thoughts = (thought(None, "A"), thought(None, "B"), thought("rs_1"))
    body = {"input": [item for each in thoughts for item in (each, said())]}

    violations = judge(
        body["input"],
        target=find_target("openai.responses", model="gpt-5.1"),
        context=Context(provenance=Provenance(models=made)),
        fields=body,
        disputed=True,
    )
    assert found(violations) == [("reasoning-of-another-model", "input[0].encrypted_content")]


def test_a_local_shell_output_has_the_id_of_its_call() -> None:
    """The older output type has no call id: its id is the call's, and no item's second."""
    ids = {"id": "lsh_1", "call_id": "lsh_1"}
    action = {"type": "exec", "command": ["ls"], "env": {}}
    ran = {"type": "local_shell_call", **ids, "status": "completed", "action": action}
    output = {"type": "local_shell_call_output", "id": "lsh_1", "output": "a b"}
    assert [] == judged({"input": [user(), ran, output]})

    named = [output | {"call_id": "lsh_1"}, {"type": "item_reference", "id": "lsh_1"}]
    doubled = found(judged({"input": [user(), ran, *named]}))
    assert ("resp-duplicate-item-id", "input[2].id") in doubled
