"""Framework messages become wire elements and come back as the same objects."""

import copy
from typing import Any

import pytest
from agent_framework import Content, Message
from convnorm_agent_framework.codec import Codec

from convnorm import normalize_request

TARGETS = pytest.mark.parametrize(
    "target, key", [("openai.responses", "input"), ("openai.chat", "messages")]
)


def image() -> Any:
    return Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")


def call(call_id: str, arguments: Any = "{}", **ids: Any) -> Any:
    return Content.from_function_call(
        call_id, "look_up", arguments=arguments, additional_properties=ids or None
    )


def result(call_id: str, said: Any = "found") -> Any:
    return Content.from_function_result(call_id, result=said)


def history() -> list[Any]:
    return [
        Message("system", ["Be brief."]),
        Message("user", [Content.from_text("what is this?"), image()]),
        Message("assistant", [Content.from_text("I look."), call("call_Ab1"), call("call_Cd2")]),
        Message("tool", [result("call_Ab1"), result("call_Cd2")]),
        Message("assistant", ["A cat."]),
        Message("user", []),
    ]


def through(messages: list[Any], target: str, key: str, **body: Any) -> list[Any]:
    codec = Codec(messages, target)
    return codec.messages_of(normalize_request({key: codec.elements, **body}, target)[key])


def plain(messages: list[Any]) -> list[Any]:
    return [message.to_dict() for message in messages]


def same(given: list[Any], got: list[Any]) -> list[bool]:
    return [any(one is other for other in given) for one in got]


@TARGETS
def test_a_clean_history_comes_back(target: str, key: str) -> None:
    """The same objects, in order, those that say nothing among them."""
    given = history()

    got = through(given, target, key)

    assert [id(message) for message in given] == [id(message) for message in got]


@TARGETS
def test_what_was_sent_before_comes_back(target: str, key: str) -> None:
    """Elements that are equal to those of a message stand for it, in its place and once."""
    given = [*history(), Message("user", ["again"]), Message("user", ["again"])]
    codec = Codec(given, target)

    got = codec.messages_of(copy.deepcopy(codec.elements))

    assert [id(message) for message in given] == [id(message) for message in got]


@TARGETS
def test_only_what_is_repaired_is_new(target: str, key: str) -> None:
    """A missing result is put behind its call; every other message is the same object."""
    given = history()
    del given[3].contents[1]
    before = plain(given)

    got = through(given, target, key)

    assert plain(given) == before
    results = [c.call_id for m in got for c in m.contents if c.type == "function_result"]
    assert ["call_Ab1", "call_Cd2"] == sorted(results)
    assert (6, 1) == (sum(same(given, got)), same(given, got).count(False))


@TARGETS
def test_a_changed_message_keeps_its_rest(target: str, key: str) -> None:
    """Broken arguments are rewritten in a copy, beside the contents that were right."""
    asked = Message(
        "assistant",
        [Content.from_text("I look."), call("call_Ab1", '{"a": '), call("call_Cd2")],
        author_name="looker",
        additional_properties={"mine": 1, "_group": {"id": "g"}},
    )
    given = [
        Message("user", ["?"]),
        asked,
        Message("tool", [result("call_Ab1"), result("call_Cd2")]),
    ]
    before = copy.deepcopy(plain(given))

    got = through(given, target, key)

    assert plain(given) == before
    new = got[1]
    assert ("looker", {"mine": 1}) == (new.author_name, new.additional_properties)
    assert [True, False, True] == [
        any(content is old for old in asked.contents) for content in new.contents
    ]
    assert [False, True, True] == [got[1] is asked, got[0] is given[0], got[2] is given[2]]


def test_ids_go_where_nothing_was_stored() -> None:
    """Under store=False a call loses the id of its item, in a copy."""
    asked = Message(
        "assistant", [call("call_Ab1", fc_id="fc_1", openai={"item_id": "fc_1", "x": 1})]
    )
    given = [Message("user", ["?"]), asked, Message("tool", [result("call_Ab1")])]

    got = through(given, "openai.responses", "input", store=False)

    assert {"openai": {"x": 1}} == got[1].contents[0].additional_properties
    assert {"fc_id": "fc_1", "openai": {"item_id": "fc_1", "x": 1}} == asked.contents[
        0
    ].additional_properties


def test_reasoning_without_its_content_goes() -> None:
    """Under store=False a thought that can neither be found nor read is left out."""
    thought = Content.from_text_reasoning(text="hm")
    thought.id = "rs_1"
    given = [
        Message("user", ["?"]),
        Message("assistant", [thought, call("call_Ab1", fc_id="fc_1")]),
        Message("tool", [result("call_Ab1")]),
    ]

    got = through(given, "openai.responses", "input", store=False)

    assert ["function_call"] == [content.type for content in got[1].contents]
    assert 2 == len(given[1].contents)


def test_sealed_reasoning_keeps_its_id() -> None:
    """Sealed reasoning stays as it is: newer clients send none without its id."""
    thought = Content.from_text_reasoning(text="hm", protected_data="gAAAA")
    thought.id = "rs_1"
    given = [
        Message("user", ["?"]),
        Message("assistant", [thought, call("call_Ab1")]),
        Message("tool", [result("call_Ab1")]),
    ]

    got = through(given, "openai.responses", "input", store=False)

    assert got[1].contents[0] is thought


@TARGETS
def test_results_that_are_objects(target: str, key: str) -> None:
    """Older clients send an object as it is, and it is refused: it goes as its JSON text."""
    given = [
        Message("user", ["?"]),
        Message("assistant", [call("call_Ab1")]),
        Message("tool", [result("call_Ab1", {"to": "account"})]),
    ]

    got = through(given, target, key)

    assert '{"to": "account"}' == got[2].contents[0].result


@TARGETS
def test_approvals_stay(target: str, key: str) -> None:
    """An approval request is the framework's own, and stays beside the call that is closed."""
    asked = call("call_Ab1")
    request = Content.from_function_approval_request(id="call_Ab1", function_call=asked)
    given = [
        Message("user", ["?"]),
        Message("assistant", [asked, request]),
        Message("user", ["well?"]),
    ]

    got = through(given, target, key)

    assert ["user", "assistant", "tool", "user"] == [message.role for message in got]
    assert got[1] is given[1]
