"""Empty shapes are written in a form the target accepts."""

from builders import calls, output, result, said, user
from convnorm import explain, normalize

CHAT, RESPONSES = "openai.chat", "openai.responses"


def test_null_contents_become_empty_strings() -> None:
    """A user's turn and a tool's answer stay, even when they say nothing."""
    history = [{**user(""), "content": None}, calls("a"), result("a", None), {"role": "system"}]

    expected = [user(""), calls("a"), result("a", ""), {"role": "system", "content": ""}]
    assert expected == normalize(history, CHAT)


def test_replies_that_say_nothing_are_dropped() -> None:
    """An assistant turn with nothing in it goes, and the loss is named."""
    empty = [{"role": "assistant"}, {"role": "assistant", "content": [], "tool_calls": []}]

    report = explain([user("a"), *empty, user("b")], CHAT)
    assert [user("a"), user("b")] == report.messages
    assert ["a message that said nothing"] * 2 == [edit.loss for edit in report.edits]


def test_null_is_how_an_assistant_calls_refuses_or_speaks_aloud() -> None:
    """Null content beside calls, a refusal, audio or an old function call is legal."""
    history = [
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": None},
        calls("a"),
        result("a"),
    ]

    assert explain(history, CHAT).edits == ()


def test_thought_without_words_stays() -> None:
    """A reply that holds reasoning is not empty."""
    thought = {"role": "assistant", "content": None, "reasoning_content": "hm"}

    done = normalize([user("a"), thought, user("b")], CHAT)
    assert [user("a"), {**thought, "content": ""}, user("b")] == done


def test_empty_list_of_calls_is_removed() -> None:
    """`tool_calls: []` goes, and the message keeps its other keys."""
    history = [{**said("hi"), "tool_calls": [], "vendor": 1}]

    assert [{**said("hi"), "vendor": 1}] == normalize(history, CHAT)


def test_empty_texts_the_target_accepts_are_left_alone() -> None:
    """An empty string is no fault here."""
    assert explain([user(""), said("")], CHAT).edits == ()


def test_responses_items_get_their_required_fields() -> None:
    """A null output becomes an empty string, a null content too."""
    history = [{"role": "user", "content": None}, {**output("c"), "output": None}]
    made = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}

    done = normalize([made, *history], RESPONSES)
    assert [made, user(""), output("c", "")] == done


def test_reply_with_content_of_a_vendor_is_not_empty() -> None:
    """Keys that the dialect does not know may say something."""
    reply = {"role": "assistant", "content": None, "images": [{"url": "u"}]}

    report = explain([user("a"), {**reply, "tool_calls": []}, user("b")], CHAT)
    assert [user("a"), {**reply, "content": ""}, user("b")] == report.messages
    assert 1 == len(report.edits)


def test_reasoning_that_led_an_empty_reply_goes_with_it() -> None:
    """No reasoning is left without what it produced."""
    led = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "assistant", "content": None},
    ]

    assert [user("q"), user("x")] == normalize([user("q"), *led, user("x")], RESPONSES)


def test_last_message_stays() -> None:
    """A request needs a message, even one that says nothing."""
    empty = {"role": "assistant", "content": None}

    assert [said("")] == normalize([empty, empty], CHAT)
