"""What was sent and answered stays byte for byte, and what comes late is told behind it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from builders import Message, call, calls, output, reasoning, result, said, user
from convnorm import (
    ChangeError,
    Context,
    Policy,
    PolicyError,
    Report,
    check,
    envelope,
    explain,
    normalize,
    normalize_request,
)

CHAT, RESPONSES = "openai.chat", "openai.responses"
ID = "call_9a8b7c6d5e"
LONG = f"call_{'9a8b7c6d5e' * 5}"

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
JOINING = Policy.for_target(CHAT, provider="vllm", model="mistralai/Mixtral")
GEMMA = Policy.for_target(CHAT, provider="vllm", model="google/gemma-3")

Way = Callable[[list[Message], list[Message], list[Message]], list[Message]]


def own(raw: list[Message], _sent: list[Message], new: list[Message]) -> list[Message]:
    """The caller's own history grows."""
    return [*raw, *new]


def returned(_raw: list[Message], sent: list[Message], new: list[Message]) -> list[Message]:
    """The list that was returned grows."""
    return [*sent, *new]


both_ways = pytest.mark.parametrize("way", [own, returned])


def late(text: str, call_id: str = ID, name: str | None = "look") -> Message:
    return user(envelope.quote(text, call_id=call_id, name=name))


def again(history: list[Message], sent: list[Message], target: str | Policy = CHAT) -> Report:
    """The next call, which knows the last request."""
    report = explain(history, target, context=Context(last_request=sent))
    if not report.assumed or "not kept" not in report.assumed[0]:
        assert json.dumps(report.messages)[:-1].startswith(json.dumps(sent)[:-1])
        twice = explain(report.messages, target, context=Context(last_request=sent))
        assert (report.messages, ()) == (twice.messages, twice.edits)
    assert report.remaining == []
    return report


def given_up(report: Report) -> str:
    """Why the last request is not kept."""
    start = "last_request is not kept: "
    (said,) = (one.removeprefix(start) for one in report.assumed if one.startswith(start))
    return said


@both_ways
def test_late_result_is_quoted_where_it_came(way: Way) -> None:
    """The marked text stays at the call, and the result is a new turn behind what was sent."""
    raw = [user("a"), calls(ID), user("b")]
    sent = normalize(raw, CHAT)

    report = again(way(raw, sent, [said("soon"), result(ID, "42"), user("c")]), sent)
    assert [*sent, said("soon"), late("42"), user("c")] == report.messages
    assert ["keep_prefix"] == [edit.by for edit in report.edits]


@both_ways
def test_each_late_result_is_told_once(way: Way) -> None:
    """In order of arrival, over several requests, and never a second time."""
    ids = [f"{ID}{n}" for n in "123"]
    raw = [user("a"), calls(*ids), user("b")]
    sent = normalize(raw, CHAT)
    for new, told in (
        ([said("1"), result(ids[2], "c"), result(ids[0], "a"), user("?")], (2, 0)),
        ([said("2"), user("?")], ()),
        ([said("3"), result(ids[1], "b"), user("?")], (1,)),
        ([said("4"), user("?")], ()),
    ):
        history = way(raw, sent, new)
        report = again(history, sent)
        quotes = [late("abc"[n], ids[n]) for n in told]
        assert [new[0], *quotes, new[-1]] == report.messages[len(sent) :]
        raw, sent = [*raw, *new], report.messages


@both_ways
def test_late_result_between_a_call_and_its_result(way: Way) -> None:
    """A quotation does not part the new call from its own result."""
    raw = [user("a"), calls(ID), user("b")]
    sent = normalize(raw, CHAT)
    new = [calls("call_new"), result(ID, "42"), result("call_new", "7")]

    report = again(way(raw, sent, new), sent)
    assert [*sent, calls("call_new"), result("call_new", "7"), late("42")] == report.messages


def test_result_that_a_store_puts_behind_its_old_call() -> None:
    """It is late too: its place was taken by the marked text when the request was answered."""
    raw = [user("a"), calls(ID), user("b")]
    sent = normalize(raw, CHAT)

    report = again([*raw[:2], result(ID, "42"), user("b"), said("soon"), user("c")], sent)
    assert [*sent, late("42"), said("soon"), user("c")] == report.messages


def test_copy_of_what_was_sent_is_dropped() -> None:
    """A result that came again, and a marked text that a store kept, add nothing."""
    raw = [user("a"), calls(ID), result(ID, "42"), user("b")]

    report = again([*raw, result(ID, "42"), user("c")], raw)
    assert [*raw, user("c")] == report.messages
    assert [("keep_prefix", "drop")] == [(edit.by, edit.what) for edit in report.edits]


def test_result_is_told_under_the_id_that_was_sent() -> None:
    """A call whose id was too long is known to the model by its new one."""
    raw = [user("a"), calls(LONG), user("b")]
    sent = normalize(raw, CHAT)
    new_id = sent[1]["tool_calls"][0]["id"]

    report = again([*raw, said("soon"), result(LONG, "42")], sent)
    assert new_id != LONG
    assert [*sent, said("soon"), late("42", new_id)] == report.messages


def test_orphan_whose_call_comes_later_stays_a_quotation() -> None:
    """It was told already; the call is closed, since its result is not behind it."""
    raw = [user("a"), result(ID, "42")]
    sent = normalize(raw, CHAT)

    report = again([*raw, calls(ID)], sent)
    assert [*raw[:1], late("42", name=None)] == sent
    closed = envelope.close(ID, "No result was recorded for this call.")
    assert [*sent, calls(ID), result(ID, closed)] == report.messages


@both_ways
def test_what_was_repaired_is_not_repaired_again(way: Way) -> None:
    """Ids, arguments and empties of the old part: one repair, reported by the call that made it."""
    raw = [
        user("a"),
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": []},
        call("c", id="fc_1") | {"arguments": {"n": 1}},
        output("c"),
        {"role": "user", "content": None},
    ]
    body = {"store": False, "input": raw}
    sent = normalize_request(body, RESPONSES)

    history = way(raw, sent["input"], [{"role": "assistant", "content": "ok"}, user("b")])
    report = explain(body | {"input": history}, RESPONSES, context=Context(last_request=sent))
    assert sent["input"] != raw
    assert [*sent["input"], said("ok"), user("b")] == report.messages
    assert report.edits == ()


def test_late_result_in_responses() -> None:
    """The output of a call that was closed is quoted too."""
    raw = [user("a"), call(ID), user("b")]
    sent = normalize(raw, RESPONSES)

    report = again([*raw, said("soon"), output(ID, "42")], sent, RESPONSES)
    quoted = {"type": "message", **late("42")}
    assert [*sent, said("soon"), quoted] == report.messages


def test_late_result_of_a_quoted_call_is_told_behind_another_that_was_whole() -> None:
    """Neither call has a name: the first was quoted with its result, the second without."""
    other = "call_0f1e2d3c4b"
    raw = [
        user("look twice"),
        call(ID, name=""),
        output(ID, "sun"),
        call(other, name=""),
    ]
    sent = normalize_request({"input": raw}, RESPONSES)["input"]

    report = again([*raw, output(other, "rain")], sent, RESPONSES)

    assert [*sent, {"type": "message", **late("rain", other, None)}] == report.messages


def test_quoted_call_is_found_where_its_result_has_come_since() -> None:
    """The first was sent alone, the second behind the exchange that its result came after."""
    other = "call_0f1e2d3c4b"
    raw = [user("a"), call(ID, name="")]
    since = [
        output(ID, "sun"),
        call(other, name=""),
        call("call_5a6b7c8d9e"),
        output("call_5a6b7c8d9e"),
        output(other, "rain"),
        said("b"),
    ]
    sent = normalize([*raw, *since], RESPONSES, context=Context(last_request=normalize(raw)))
    assert [*sent, user("c")] == again([*raw, *since, user("c")], sent, RESPONSES).messages


def test_late_result_of_a_quoted_call_beside_a_reference() -> None:
    """The reference is not its call: that was quoted."""
    raw = [user("a"), {"type": "item_reference", "id": "msg_1"}, call(ID, name="")]

    report = again([*raw, output(ID, "sun")], normalize(raw, RESPONSES), RESPONSES)
    assert {"type": "message", **late("sun", name=None)} == report.messages[-1]


@pytest.mark.parametrize("policy", [JOINING, GEMMA], ids=["mixtral", "gemma"])
@pytest.mark.parametrize(
    "before",
    [[], [{"role": "system", "content": "Be brief."}], [user("q"), said("r")]],
    ids=["alone", "behind instructions", "mid-history"],
)
@pytest.mark.parametrize("many", [2, 3])
def test_joined_messages_are_sent_once(policy: Policy, before: list[Message], many: int) -> None:
    """All that became one message was sent, not only the first of it."""
    raw = [*before, *(user(f"U{at}") for at in range(many))]
    sent = normalize(raw, policy)

    report = again([*raw, said("A"), user("V")], sent, policy)
    assert [*sent, said("A"), user("V")] == report.messages
    assert (f"the first {len(raw)} messages are sent as last_request has them",) == report.assumed


def test_joined_messages_are_found_whenever_they_came() -> None:
    """What was sent says which came at one time, whatever would be joined to them now."""
    pieces = [
        [user("U1"), user([{"type": "text", "text": "U2"}, PICTURE]), user("U3\n\nand more")],
        [user("U4"), {"role": "human", "content": "U5"}],
        [said("A1"), said("A2"), user("V1") | {"name": "Ann"}, user("V2") | {"name": "Bob"}],
        [user("W")],
        [said("B"), user("X")],
    ]
    raw, sent = pieces[0], normalize(pieces[0], JOINING)
    for new in pieces[1:]:
        raw = [*raw, *new]
        report = again(raw, sent, JOINING)
        assert report.assumed == (
            f"the first {len(raw) - len(new)} messages are sent as last_request has them",
        )
        sent = report.messages
    invented = {"role": "assistant", "content": envelope.turn("No reply was recorded here.")}
    text = [
        {"type": "text", "text": "U1\n\nU2"},
        PICTURE,
        {"type": "text", "text": "U3\n\nand more"},
    ]
    assert [
        user(text),
        invented,
        user("U4\n\nU5"),
        said("A1\n\nA2"),
        user("Ann:\nV1\n\nBob:\nV2"),
        invented,
        user("W"),
        said("B"),
        user("X"),
    ] == sent


@pytest.mark.parametrize("second", [[], [user("U")], [said("U2")], [user("U2 and more")]])
def test_what_was_joined_and_is_not_there_any_more(second: list[Message]) -> None:
    """Only half of a joined message in the history: it was edited."""
    sent = normalize([user("U1"), user("U2")], JOINING)

    report = explain([user("U1"), *second], JOINING, context=Context(last_request=sent))
    assert "no beginning of this history was made into it" == given_up(report)


@pytest.mark.parametrize(
    "nameless, target",
    [
        ({"role": "tool", "tool_call_id": None, "content": "R1"}, CHAT),
        (output("", "R1"), RESPONSES),
    ],
    ids=["chat", "responses"],
)
def test_quoted_result_is_found_when_its_call_is_anothers(nameless: Message, target: str) -> None:
    """A result without an id was taken for the call's, until the call's own result came."""
    asked, answer = (calls, result) if target == CHAT else (call, output)
    raw, sent = [user("q"), asked(ID)], normalize([user("q"), asked(ID)], target)
    for new in (nameless, answer(ID, "R2"), user("and?")):
        raw = [*raw, new]
        sent = again(raw, sent, target).messages
    assert (str(sent).count("R1"), str(sent).count("R2")) == (1, 1)


def test_result_that_was_quoted_with_its_call_is_told_once() -> None:
    """Its call has no name and was found in its message, before results that came with it."""
    other = "call_0f1e2d3c4b"
    asked = calls(other, "call_5a6b7c8d9e", ID)
    for made in asked["tool_calls"][:2]:
        made["function"] = made["function"] | {"name": ""}
    raw = [user("q"), asked, result(other, "R1"), {"role": "tool", "content": "R2"}]
    sent = normalize(raw, CHAT)

    said = str(again([*raw, result(ID, "R3")], sent).messages)
    assert [1, 1, 1] == [said.count(each) for each in ("R1", "R2", "R3")]


def test_result_that_says_what_a_quotation_of_the_caller_says_is_told() -> None:
    """The quotation stands in the history itself, and the result is another's."""
    raw = [user("q"), late("ok", "call_0f1e2d3c4b"), said("and"), calls(ID), user("b")]
    sent = normalize(raw, CHAT)

    report = again([*raw, said("c"), result(ID, "ok")], sent)
    assert [*sent, said("c"), late("ok")] == report.messages


def test_result_says_what_a_quoted_one_said_that_was_taken_out() -> None:
    """Only a result that is not sure to be of one call is looked for by what it says."""
    other = "call_0f1e2d3c4b"
    raw = [user("q"), calls(ID, other), user("b")]
    sent = normalize(
        [*raw, said("c"), result(ID, "ok")], CHAT, context=Context(last_request=normalize(raw))
    )

    report = again([*raw, said("c"), result(other, "ok")], sent)
    assert [*sent, late("ok", other)] == report.messages


def test_text_as_input_is_a_message() -> None:
    """A Responses request may have been a plain text."""
    history = [user("a"), said("b"), user("c")]
    body = {"input": history, "store": False}

    report = explain(body, RESPONSES, context=Context(last_request={"input": "a"}))
    assert (history, (), ()) == (report.messages, report.edits, report.assumed)


def test_what_was_sent_is_sent_again_not_an_equal_copy() -> None:
    """A store that sorts keys does not change the bytes."""
    sent = [{"role": "user", "content": "a"}]
    stored = [{"content": "a", "role": "user"}, said("b")]

    answer = normalize(stored, CHAT, context=Context(last_request=sent))
    assert json.dumps([*sent, said("b")]) == json.dumps(answer)


def test_places_in_the_report_are_the_callers() -> None:
    """Behind a closed call everything stands one further in what is sent, not in the report."""
    raw = [user("a"), calls(ID), user("b")]
    sent = normalize(raw, CHAT)

    report = again([*raw, {"role": "assistant", "content": "ok", "tool_calls": []}], sent)
    assert ["messages[3]"] == [edit.where for edit in report.edits]
    assert ("the first 3 messages are sent as last_request has them",) == report.assumed


# ---------------------------------------------------------------- when it cannot be kept

RAW = [user("a"), calls(ID), result(ID, "42"), user("b")]


@pytest.mark.parametrize(
    "history, why",
    [
        ([user("A"), *RAW[1:], said("ok")], "no beginning of this history was made into it"),
        (RAW[3:], "no beginning of this history was made into it"),
        ([], "no beginning of this history was made into it"),
        (
            [*RAW[:2], result(ID, "[cleared]"), user("b"), said("ok"), user("c")],
            "a result in it is not in this history any more",
        ),
    ],
    ids=["edited", "trimmed", "emptied", "result cleared"],
)
def test_history_that_is_no_growth(history: list[Message], why: str) -> None:
    """What the caller took out stays out: the history is repaired as if nothing had been sent."""
    context = Context(last_request=RAW)
    policy = Policy.for_target(CHAT, unrepairable="send")

    report = explain(history, policy, context=context)
    assert why == given_up(report)
    assert explain(history, policy).messages == report.messages


@pytest.mark.parametrize(
    "last, why",
    [
        ({"input": RAW}, "it has no list 'messages'"),
        ({}, "it has no list 'messages'"),
        ({"messages": "a"}, "it has no list 'messages'"),
    ],
)
def test_request_of_another_shape(last: dict[str, Any], why: str) -> None:
    """A body without the list is no last request, and the report says so."""
    report = explain(RAW, CHAT, context=Context(last_request=last))
    assert (RAW, why) == (report.messages, given_up(report))


@pytest.mark.parametrize("last", ["a", 3, [3], {"messages": [user("a"), None]}])
def test_what_is_no_request_is_refused(last: Any) -> None:
    """A last request is a body or a list of messages."""
    with pytest.raises(PolicyError, match="last_request"):
        normalize(RAW, CHAT, context=Context(last_request=last))


def test_linked_call_has_no_prefix_of_its_own() -> None:
    """With a link the server has what was sent, and the input is only what is new."""
    body = {"previous_response_id": "resp_1", "input": [user("b")]}

    report = explain(body, RESPONSES, context=Context(last_request=[user("a")]))
    assert "the server puts its own history before this call's" == given_up(report)
    assert [user("b")] == report.messages


def test_prefix_that_breaks_a_rule_of_the_target_is_repaired() -> None:
    """A request that another server answered is not kept when this one refuses it."""
    sent = [user("a"), calls(LONG), result(LONG), user("b")]

    report = explain([*sent, said("c")], CHAT, context=Context(last_request=sent))
    assert "messages[1] must change" in given_up(report)
    assert "[chat-tool-call-id-too-long]" in given_up(report)
    assert explain([*sent, said("c")], CHAT).messages == report.messages


def test_rule_that_judges_the_past_by_the_present() -> None:
    """Where only the newest reasoning is taken, the older must go although it was sent."""
    policy = Policy.for_target(RESPONSES, provider="azure", model="gpt-6")

    sent = [user("a"), reasoning(proof="gAAA1"), said("b"), user("c")]
    history = [*sent, reasoning(proof="gAAA2"), said("d")]
    body = {"store": False, "input": history}
    report = explain(body, policy, context=Context(last_request=sent))
    assert "only the newest response's reasoning may be sent" in given_up(report)
    assert check(report.request or {}, policy) == []


def test_item_that_the_server_was_working_on() -> None:
    """It comes again when it is done, and only one of the two may be sent."""
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}}
    sent = [user("a"), search | {"status": "in_progress"}, user("b")]
    body = {"store": True, "input": [*sent, search | {"status": "completed"}]}

    report = explain(body, RESPONSES, context=Context(last_request=sent))
    assert "the id ws_1 is used before [resp-duplicate-item-id]" in given_up(report)


def test_policy_without_the_pass() -> None:
    """Then a late result is moved to its call, and the report says what that costs."""
    policy = Policy(target=CHAT, passes=["repair_tool_pairs"])
    raw = [user("a"), calls(ID), user("b")]
    sent = normalize(raw, policy)

    history = [*raw, said("soon"), result(ID, "42")]
    report = explain(history, policy, context=Context(last_request=sent))
    assert "must change" in given_up(report)
    assert [*raw[:2], result(ID, "42"), user("b"), said("soon")] == report.messages


def test_refused_change() -> None:
    """Under `raise` a late result is an error before anything is sent."""
    raw = [user("a"), calls(ID), user("b")]
    sent = normalize(raw, CHAT)

    policy = Policy.for_target(CHAT, on_change="raise")
    with pytest.raises(ChangeError, match=r"keep_prefix would change messages\[4\]"):
        normalize([*raw, said("soon"), result(ID)], policy, context=Context(last_request=sent))


def test_result_that_came_before_its_quoted_call_is_told() -> None:
    """It stands directly behind what was sent, and its call cannot be sent as a call."""
    nameless = calls(ID)
    nameless["tool_calls"][0]["function"]["name"] = ""
    raw = [user("q"), calls("call_7f6e5d4c3b"), user("b")]

    done = again([*raw, result(ID, "rain"), nameless, user("c")], normalize(raw, CHAT))
    told = [each for each in done.messages if "rain" in str(each["content"])]
    assert ["<tool-call" in each["content"] for each in told] == [True]
