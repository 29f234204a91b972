"""Arguments are the text that servers expect, and what is lost is never guessed."""

import json
from typing import Any

import pytest

from builders import result, user
from convnorm import DialectError, Policy, check, explain, normalize

CHAT, RESPONSES = "openai.chat", "openai.responses"
VLLM = Policy.for_target(CHAT, provider="vllm")
CUT = '{"path":"a.py","text":"def f('


def asked(arguments: Any, name: str = "edit") -> dict[str, Any]:
    """A message with one call that asks for `arguments`."""
    body = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "j1", "type": "function", "function": body}],
    }


def arguments_of(messages: list[Any]) -> Any:
    """What the first call of a history asks for."""
    call = next(each for each in messages if each.get("tool_calls"))
    return call["tool_calls"][0]["function"]["arguments"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"path": "naïve.txt"}, '{"path": "naïve.txt"}'),
        ([1, 2], "[1, 2]"),
        (7, "7"),
        (None, "{}"),
        (CUT, json.dumps({"unparsed_arguments": CUT})),
    ],
)
def test_every_server_gets_a_whole_text(given: Any, sent: str) -> None:
    """Data becomes its JSON, nothing an empty object, and half a text is kept as a string."""
    history = [user("go"), asked(given), result("j1", "done")]

    report = explain(history, CHAT)
    assert sent == arguments_of(report.messages)
    assert report.remaining == []
    assert [None] == [edit.loss for edit in report.edits]


@pytest.mark.parametrize("accepted", ["", "oslo", "{]}", "[]", "{}"])
def test_text_that_the_server_does_not_parse_is_left_alone(accepted: str) -> None:
    """OpenAI takes any text that is not cut off."""
    history = [user("go"), asked(accepted), result("j1", "done")]

    assert explain(history, CHAT).edits == ()


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("", "{}"),
        ("  ", "{}"),
        ("oslo", '{"unparsed_arguments": "oslo"}'),
        ("[1]", '{"unparsed_arguments": "[1]"}'),
        ([1], '{"unparsed_arguments": "[1]"}'),
        ('{"a": ]}', '{"unparsed_arguments": "{\\"a\\": ]}"}'),
    ],
)
def test_servers_that_parse_get_an_object(given: Any, sent: str) -> None:
    """A text that is no JSON object is kept whole in one."""
    history = [user("go"), asked(given), result("j1", "done")]

    done = normalize(history, VLLM)
    assert sent == arguments_of(done)
    assert check(done, VLLM) == []


def test_deeply_nested_text_is_no_object() -> None:
    """What no parser gets to the end of is wrapped, and nothing overflows."""
    deep = '{"a":' * 100_000

    done = normalize([user("go"), asked(deep), result("j1", "done")], VLLM)
    assert {"unparsed_arguments": deep} == json.loads(arguments_of(done))


def test_old_calls_and_responses_items() -> None:
    """A function_call of the old kind and an item of Responses are mended in the same way."""
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": {}}}
    answer = {"role": "function", "name": "f", "content": "ok"}
    item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": {"a": 1}}
    custom = {"type": "custom_tool_call", "call_id": "c2", "name": "g"}
    outputs = [
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "2"},
    ]

    chat = normalize([user("go"), old, answer], CHAT)
    assert {"name": "f", "arguments": "{}"} == chat[1]["function_call"]
    responses = normalize([user("go"), item, custom, *outputs], RESPONSES)
    assert [{**item, "arguments": '{"a": 1}'}, {**custom, "input": ""}] == responses[1:3]


def test_value_that_is_no_json_is_named() -> None:
    """The error says where it stands."""
    with pytest.raises(DialectError, match=r"messages\[1\]"):
        normalize([user("go"), asked({"x": object()}), result("j1")], CHAT)
