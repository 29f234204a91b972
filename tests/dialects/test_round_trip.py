"""Decoding and encoding lose nothing, whichever way a turn is written."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convnorm import Context
from convnorm.dialects import DIALECTS
from convnorm.dialects.dialect import Call
from convnorm.ir import History, Media, Opaque, Reasoning, Text, ToolCall, ToolResult
from convnorm.targets import find_target
from convnorm.testing.strategies import conversations
from convnorm.wire import fields

CHAT, RESPONSES = "openai.chat", "openai.responses"


def call(dialect: str) -> Call:
    return Call(find_target(dialect), Context(), DIALECTS[dialect].KEY)


def decoded(dialect: str, *elements: Any) -> History:
    return DIALECTS[dialect].decode(elements, {}, call(dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_untouched_turns_are_the_callers_own(dialect: str) -> None:
    """Decode and encode give back the very objects."""

    @given(st.data())
    def run(data: st.DataObject) -> None:
        elements = data.draw(conversations(dialect)).request[DIALECTS[dialect].KEY]
        history = decoded(dialect, *elements)
        done = DIALECTS[dialect].encode(history, history)
        assert all(a is b for a, b in zip(done, elements, strict=True))

    run()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_overlay_writes_what_was_read(dialect: str) -> None:
    """A turn that is written anew, with nothing changed, has all its keys and values."""

    @given(st.data())
    def run(data: st.DataObject) -> None:
        elements = data.draw(conversations(dialect)).request[DIALECTS[dialect].KEY]
        history = decoded(dialect, *elements)
        copied = History(tuple(replace(turn) for turn in history.turns))
        done = DIALECTS[dialect].encode(copied, history)
        assert [dict(fields(a) or {}) for a in done] == [dict(fields(b) or {}) for b in elements]

    run()


def test_chat_parts_become_items() -> None:
    """Every kind of content has its item; what is unknown passes whole."""
    image, odd = {"type": "image_url", "image_url": {"url": "u"}}, {"type": "hologram", "x": 1}
    message = {"role": "user", "content": [{"type": "text", "text": "a"}, image, odd]}

    (turn,) = decoded(CHAT, message).turns
    text, media, opaque = turn.items
    assert isinstance(text, Text)
    assert ("a", image, odd) == (text.text, media.raw, opaque.raw)
    assert (Media, Opaque) == (type(media), type(opaque))


def test_chat_assistant_fields_become_items() -> None:
    """Reasoning, refusal, audio, old function calls and calls are items of the message."""
    message = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "hm",
        "refusal": "no",
        "audio": {"id": "audio_1"},
        "function_call": {"name": "old", "arguments": "{}"},
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
        ],
    }

    (turn,) = decoded(CHAT, message).turns
    kinds = [type(item) for item in turn.items]
    assert [Reasoning, Text, Text, Media, ToolCall, ToolCall, ToolCall] == kinds


@pytest.mark.parametrize("kind", sorted(DIALECTS[RESPONSES].ITEMS))  # type: ignore[attr-defined]  # this dialect's own table
def test_every_responses_item_survives_a_rewrite(kind: str) -> None:
    """Vendor keys and unknown fields stay when a turn is written again."""
    item = {
        "type": kind,
        "id": "x_1",
        "call_id": "c",
        "role": "user",
        "content": "t",
        "vendor": {"a": 1},
    }
    history = decoded(RESPONSES, item)
    copied = History(tuple(replace(turn) for turn in history.turns))

    assert [item] == DIALECTS[RESPONSES].encode(copied, history)


def test_edited_message_keeps_vendor_keys() -> None:
    """Laying a change over the caller's keys leaves the others alone."""
    message = {"role": "user", "content": [{"type": "text", "text": "a", "cache": 1}], "vendor": 2}
    history = decoded(CHAT, message)
    (turn,) = history.turns
    (item,) = turn.items
    assert isinstance(item, Text)
    changed = replace(turn, items=(replace(item, text="b"),))

    (done,) = DIALECTS[CHAT].encode(History((changed,)), history)
    assert {**message, "content": [{"type": "text", "text": "b", "cache": 1}]} == done


def test_results_are_turns_of_their_own() -> None:
    """In every dialect a result is alone in its turn."""
    chat = {"role": "tool", "tool_call_id": "c", "content": "x"}
    responses = {"type": "function_call_output", "call_id": "c", "output": "x"}

    for dialect, element in ((CHAT, chat), (RESPONSES, responses)):
        (turn,) = decoded(dialect, element).turns
        (result,) = turn.items
        assert isinstance(result, ToolResult)
        assert ("tool", "c", "x") == (turn.role, result.call_id, result.output)
