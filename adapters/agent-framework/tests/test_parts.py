"""What is kept of an answer that did not come to its end."""

from typing import Any

import pytest
from agent_framework import Content
from convnorm_agent_framework.parts import items, take


def text(said: str, **update: Any) -> Any:
    return updated(Content.from_text(said), **update)


def call(call_id: str, arguments: str, index: int | None = None, **update: Any) -> Any:
    extra = None if index is None else {"tool_call_index": index}
    made = Content.from_function_call(
        call_id, "look", arguments=arguments, additional_properties=extra
    )
    return updated(made, **update)


def thought(said: str, sealed: str | None = None) -> Any:
    made = Content.from_text_reasoning(text=said, protected_data=sealed)
    made.id = "rs_1"
    return made


def updated(content: Any, **update: Any) -> Any:
    """Newer releases say how an update is merged; older ones only add to what came."""
    for key, value in update.items():
        setattr(content, key, value)
    return content


def result(call_id: str) -> Any:
    return Content.from_function_result(call_id, result="found")


def kept(*contents: Any, whole: bool = False) -> list[tuple[str, str]]:
    """What is told of it: the type of each item, and what it says."""
    parts: list[dict[str, Any]] = []
    take(parts, contents, speaker="resp_1", whole=whole)
    return [(item["type"], _said(item)) for item in items(parts)]


def _said(item: dict[str, Any]) -> str:
    for key in ("arguments", "output", "encrypted_content"):
        if key in item:
            return str(item[key])
    return "".join(part["text"] for part in item["content"])


CASES = {
    "texts are one text": (
        [text("A"), text("1")],
        [("message", "A1")],
    ),
    "a whole text takes the place of its pieces, and of nothing before": (
        [
            *(text("A"), text("1"), text("A1", merge_mode="replace")),
            *(text(" B"), text(" B2", merge_mode="replace")),
        ],
        [("message", "A1 B2")],
    ),
    "pieces of calls come in turns": (
        [call("c1", "{", 0), call("c2", "[", 1), call("", "}", 0), call("", "]", 1)],
        [("function_call", "{}")],
    ),
    "pieces without a place belong to the last call": (
        [call("c1", "{"), call("", "}"), call("c2", '{"a"'), call("", ": 1}")],
        [("function_call", "{}"), ("function_call", '{"a": 1}')],
    ),
    "whole arguments take the place of pieces": (
        [call("c1", '{"a"'), call("c1", '{"a": 1}', merge_mode="replace")],
        [("function_call", '{"a": 1}')],
    ),
    "half a call goes with its result": (
        [text("A"), call("c1", '{"a'), result("c1")],
        [("message", "A")],
    ),
    "a result of another turn is not of this one": (
        [result("c0"), call("c1", "{}"), result("c1"), result("c1")],
        [("function_call", "{}"), ("function_call_output", "found")],
    ),
    "reasoning is kept if it is sealed and led to something": (
        [thought("hm", "gAAAA"), call("c1", "{}"), text("A"), thought("hm", "gBBBB")],
        [("reasoning", "gAAAA"), ("function_call", "{}"), ("message", "A")],
    ),
    "reasoning that nobody can read is not": (
        [thought("hm"), text("A")],
        [("message", "A")],
    ),
}


@pytest.mark.parametrize("given, expected", CASES.values(), ids=CASES)
def test_what_is_kept(given: list[Any], expected: list[tuple[str, str]]) -> None:
    """Texts as far as they came, whole calls and what they returned."""
    assert kept(*given) == expected


def test_a_call_without_arguments() -> None:
    """In a stream nobody knows whether arguments were still to come; in an answer none were."""
    assert kept(call("c1", "")) == []
    assert kept(call("c1", ""), whole=True) == [("function_call", "")]
