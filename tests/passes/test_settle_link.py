"""What the server lacks is sent, and only that, behind a link that it knows."""

import json
from typing import Any

import pytest

from builders import call, message, output, reasoning, said, user
from convnorm import (
    Context,
    Ledger,
    Link,
    NeedsRequestError,
    NotReadyError,
    Policy,
    Report,
    UnrepairableError,
    check,
    explain,
)
from convnorm.passes.settle_link import MOST_CHAINS
from convnorm.testing import laws
from convnorm.testing.strategies import Sample

Item = dict[str, Any]
RESPONSES = "openai.responses"

KINDS = ("response", "conversation")
for_both_links = pytest.mark.parametrize("kind", KINDS)


def server(kind: str, *items: Item, **more: Any) -> Ledger:
    """A server that holds these items behind a link; the first ones were sent."""
    if kind == "conversation":
        return Ledger(conversations={"conv_1": items}, **more)
    first = next((at for at, item in enumerate(items) if not is_sent(item)), len(items))
    exchange = {"input": items[:first], "output": items[first:]}
    return Ledger(responses={"resp_1": exchange}, **more)


def is_sent(item: Item) -> bool:
    """Whether the client sends an item, and not the model."""
    return item.get("role") == "user" or str(item.get("type")).endswith("_output")


def link(kind: str) -> Item:
    """The field of a body that continues it."""
    return (
        {"conversation": "conv_1"} if kind == "conversation" else {"previous_response_id": "resp_1"}
    )


def settled(ledger: Ledger, body: Item, policy: Policy | str = RESPONSES, **facts: Any) -> Report:
    """The report of a run; what comes out is accepted, and a second run changes nothing."""
    context = Context(ledger=ledger, **facts)
    report = explain(body, policy, context=context)
    sent = report.request or {}
    assert check(sent, policy, context=context) == []
    assert explain(sent, policy, context=context).edits == ()
    assert report.remaining == []
    return report


def body_of(report: Report) -> Item:
    """The request that comes out, without the marks of closed calls."""
    sent = dict(report.request or {})
    sent["input"] = [without_mark(item) for item in sent["input"]]
    return sent


def without_mark(item: Item) -> Item:
    """A closed call as `closed` writes it."""
    said = str(item.get("output", ""))
    return closed(item["call_id"]) if said.startswith("[convnorm:no-result") else item


def closed(call_id: str) -> Item:
    """The output that stands for a missing one."""
    return output(call_id, "(closed)")


def view(report: Report, ledger: Ledger) -> list[Item]:
    """What the model sees: what stands behind the link, and the input."""
    sent = body_of(report)
    return [*ledger.holds(Link.of(sent)), *sent["input"]]


ASKED = [user("scan"), call("call_a1", id="fc_1"), call("call_b1", id="fc_2")]
"""Two calls that wait on the server."""

# ---------------------------------------------------------------- pending calls


@for_both_links
def test_delta_with_all_outputs_is_sent_as_it_is(kind: str) -> None:
    """Outputs whose calls are on the server are legal, and nothing is missing."""
    body = {"input": [output("call_a1"), output("call_b1"), user("and?")], **link(kind)}

    report = settled(server(kind, *ASKED), body)
    assert report.edits == ()
    assert [*map(id, body["input"])] == [*map(id, report.messages)]


@for_both_links
def test_a_call_that_only_the_server_has_is_closed(kind: str) -> None:
    """The input is only a part: the link stays, and what waits is closed in front."""
    body = {"input": [output("call_b1"), user("and?")], **link(kind)}

    sent = body_of(settled(server(kind, *ASKED), body))
    expected = [closed("call_a1"), output("call_b1"), user("and?")]
    assert {**body, "input": expected} == sent


@for_both_links
def test_an_output_that_was_made_and_not_sent_is_sent(kind: str) -> None:
    """A real output is never replaced by an invented one, nor taken for sent."""
    ledger = server(kind, *ASKED).observed_output(output("call_a1", "2 threats"))
    body = {"input": [output("call_b1", "not approved")], **link(kind)}

    report = settled(ledger, body)
    expected = [output("call_a1", "2 threats"), output("call_b1", "not approved")]
    assert expected == report.messages
    assert [("settle_link", "insert", "resp-call-output-missing", None)] == [
        (edit.by, edit.what, edit.rule, edit.loss) for edit in report.edits
    ]


@for_both_links
def test_nothing_answered_and_a_partial_history(kind: str) -> None:
    """A question alone is no whole history: all that waits is closed."""
    body = {"input": [user("never mind")], **link(kind)}

    sent = body_of(settled(server(kind, *ASKED), body))
    assert [closed("call_a1"), closed("call_b1"), user("never mind")] == sent["input"]
    assert link(kind).items() <= sent.items()


@for_both_links
def test_nothing_answered_and_a_whole_history(kind: str) -> None:
    """All but the call that waits is here: it is sent by value, and nothing is closed."""
    local = [user("scan"), {"role": "assistant", "content": "the scanner found two"}, user("and?")]
    report = settled(server(kind, *ASKED), {"input": local, **link(kind)})

    assert {"input": local} == report.request
    assert [*map(id, local)] == [*map(id, report.messages)]


@for_both_links
def test_a_whole_history_with_the_call_keeps_the_link(kind: str) -> None:
    """What waits is in the local history too: only its output is missing there."""
    local = [*ASKED, user("and?")]
    report = settled(server(kind, *ASKED), {"input": local, **link(kind)})

    assert [closed("call_a1"), closed("call_b1"), user("and?")] == body_of(report)["input"]


@for_both_links
def test_results_that_the_local_history_lost_keep_the_link(kind: str) -> None:
    """By value they would be gone for the model, so the link stays and the call is closed."""
    held = [user("scan"), call("call_a1"), output("call_a1"), call("call_b1", id="fc_2")]
    local = [user("scan"), {"role": "assistant", "content": "found two"}, user("and?")]
    report = settled(server(kind, *held), {"input": local, **link(kind)})

    assert link(kind).items() <= (report.request or {}).items()
    assert [closed("call_b1"), *local] == body_of(report)["input"]


@for_both_links
def test_an_empty_input_brings_what_waits(kind: str) -> None:
    """With outputs that were not sent yet there is something to say."""
    ledger = server(kind, *ASKED).observed_output(output("call_a1", "1"))
    ledger = ledger.observed_output(output("call_b1", "2"))

    report = settled(ledger, {"input": [], **link(kind)})
    assert [output("call_a1", "1"), output("call_b1", "2")] == report.messages


@for_both_links
def test_a_live_call_waits(kind: str) -> None:
    """While it is still being answered, half of the outputs is nothing to send yet."""
    context = Context(ledger=server(kind, *ASKED), live_calls=frozenset({"call_a1"}))
    body = {"input": [output("call_b1")], **link(kind)}
    with pytest.raises(NotReadyError, match="call_a1"):
        explain(body, RESPONSES, context=context)

    gone_on = {**body, "input": [output("call_b1"), user("never mind")]}
    report = settled(server(kind, *ASKED), gone_on, live_calls=frozenset({"call_a1"}))
    assert "still waiting" in report.messages[0]["output"]


@for_both_links
def test_a_screenshot_cannot_be_invented(kind: str) -> None:
    """A computer call that waits on the server needs its own output."""
    made = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "wait"}}
    waits = {**made, "pending_safety_checks": [], "status": "completed"}
    body = {"input": [user("and?")], **link(kind)}

    with pytest.raises(UnrepairableError, match="resp-call-output-missing"):
        explain(body, RESPONSES, context=Context(ledger=server(kind, user("look"), waits)))


def test_the_reasons_of_a_closed_call_are_options() -> None:
    """What stands for a missing output is said as for the calls of the input."""
    words = {"interrupted": "The tool was stopped."}
    policy = Policy.for_target(RESPONSES, repair_tool_pairs=words)
    report = settled(server("response", *ASKED), {"input": [user("?")], **link("response")}, policy)

    assert "The tool was stopped." in report.messages[0]["output"]
    careful = Policy.for_target(RESPONSES, repair_tool_pairs={"side_effecting": ["look"]})
    report = settled(
        server("response", *ASKED), {"input": [user("?")], **link("response")}, careful
    )
    assert "unknown whether it took effect" in report.messages[0]["output"]


# ---------------------------------------------------------------- what is there twice

HELD = [
    user("hi"),
    reasoning("rs_1"),
    message("msg_1", "hello"),
    user("go on"),
    message("msg_2", "ok"),
]
NEW = user("go on")

OVERLAPS: dict[str, list[Item]] = {
    "complete": HELD,
    "complete, without ids": [
        user("hi"),
        {"type": "reasoning", "summary": []},
        {"role": "assistant", "content": "hello"},
        user("go on"),
        {"role": "assistant", "content": "ok"},
    ],
    "partial: only its end": HELD[3:],
    "partial: only what was said": [item for item in HELD if "role" in item],
    "partial: a reference": [{"type": "item_reference", "id": "msg_2"}],
    "empty": [],
}


@for_both_links
@pytest.mark.parametrize("name", OVERLAPS)
def test_local_history_that_overlaps(kind: str, name: str) -> None:
    """What the server has is not sent again; a new turn that equals an old one is."""
    ledger = server(kind, *HELD)
    report = settled(ledger, {"input": [*OVERLAPS[name], NEW], **link(kind)})

    assert {"input": [NEW], **link(kind)} == report.request
    assert report.messages[0] is NEW
    assert {edit.loss for edit in report.edits} <= {None}


@for_both_links
def test_equal_words_alone_prove_nothing(kind: str) -> None:
    """The user says what he said before, and it is new."""
    report = settled(server(kind, *HELD), {"input": [user("hi"), user("go on")], **link(kind)})

    assert report.edits == ()


@for_both_links
def test_the_end_of_the_chain_without_ids_is_not_sent_again(kind: str) -> None:
    """A window over a local history begins with words of the model that the server has."""
    talk = [user("a"), said("one"), user("b"), said("two"), user("b"), said("two")]
    ledger = server(kind, *talk)
    for window in (talk[-1:], talk[-2:], talk[-4:], talk):
        report = settled(ledger, {"input": [*window, user("b")], **link(kind)})
        assert [user("b")] == report.messages
        held = "resp_1" if kind == "response" else "conv_1"
        told = f"the input is taken to begin with the end of {held}"
        assert (() if window == talk else (told,)) == report.assumed


@for_both_links
def test_words_of_the_model_elsewhere_prove_nothing(kind: str) -> None:
    """Only the very end of the chain can be what a window begins with."""
    ledger = server(kind, user("a"), said("one"), user("b"), said("two"))
    for new in ([user("b")], [said("one")], [user("c"), said("two")], [user("b"), said("one")]):
        body = {"input": [*new, user("d")], **link(kind)}
        assert body == settled(ledger, body).request


@for_both_links
def test_a_copy_and_nothing_new_is_sent_by_value(kind: str) -> None:
    """There is nothing to add behind the link, and an empty input is none."""
    report = settled(server(kind, *HELD), {"input": HELD, **link(kind)})

    assert {"input": HELD} == report.request


@for_both_links
def test_last_words_of_the_user_are_said_again(kind: str) -> None:
    """Nobody newer could have said them; the report says what was assumed."""
    report = settled(server(kind, *HELD), {"input": HELD[:4], **link(kind)})

    assert [user("go on")] == report.messages
    assert ("the last words of the user are taken for said again",) == report.assumed


CONTRADICTIONS: dict[str, tuple[list[Item], list[Item]]] = {
    "an earlier turn in other words": (
        [user("[redacted]"), *HELD[1:], NEW],
        [user("[redacted]"), *HELD[1:], NEW],
    ),
    "one more turn in the middle": (
        [*HELD[:3], user("wait"), *HELD[3:], NEW],
        [*HELD[:3], user("wait"), *HELD[3:], NEW],
    ),
    "other words under the same id": (
        [*HELD[:4], message("msg_2", "no"), NEW],
        [*HELD[:4], message("msg_2", "no"), NEW],
    ),
    "other words, and what the server has besides": (
        [user("[redacted]"), message("msg_2", "ok"), NEW],
        [user("[redacted]"), *HELD[1:], NEW],
    ),
}


@for_both_links
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_local_history_that_contradicts(kind: str, name: str) -> None:
    """The local words are the truth: all is sent by value, without the link."""
    local, sent = CONTRADICTIONS[name]
    report = settled(server(kind, *HELD), {"input": local, **link(kind)})

    assert sent == report.messages
    assert not link(kind).keys() & (report.request or {}).keys()


def test_results_survive_a_contradiction() -> None:
    """An edited question keeps the calls and results that the local history does not speak of."""
    held = [
        user("my card is 4111"),
        call("call_a1", id="fc_1"),
        output("call_a1", "paid"),
        message("msg_1", "done"),
    ]
    ledger = server("conversation", *held)
    local = [user("my card is ****"), message("msg_1", "done"), user("again")]
    report = settled(ledger, {"input": local, "conversation": "conv_1"})

    assert [local[0], held[1], held[2], local[1], local[2]] == report.messages


@for_both_links
def test_a_late_output_of_a_closed_call_is_quoted(kind: str) -> None:
    """The server has an output for it already; an equal one goes, another is told as data."""
    held = [*ASKED[:2], output("call_a1", "an error"), message("msg_1", "failed")]
    ledger = server(kind, *held) if kind == "conversation" else chain(held)
    again = settled(ledger, {"input": [output("call_a1", "an error"), NEW], **tail(kind)})
    late = settled(ledger, {"input": [output("call_a1", "2 threats"), NEW], **tail(kind)})

    assert [NEW] == again.messages
    assert ["user", "user"] == [item["role"] for item in late.messages]
    assert "2 threats" in late.messages[0]["content"]
    assert "resp-duplicate-output" in {edit.rule for edit in late.edits}

    twice = {"input": [output("call_a1", "2 threats")] * 2 + [NEW], **tail(kind)}
    assert late.messages == settled(ledger, twice).messages
    told = [*held, *late.messages, message("msg_2", "so")]
    ledger = server(kind, *told) if kind == "conversation" else chain(told)
    once_more = {"input": [output("call_a1", "2 threats"), NEW], **tail(kind)}
    assert [NEW] == settled(ledger, once_more).messages


def chain(held: list[Item]) -> Ledger:
    """The same exchange in two responses."""
    return Ledger(
        responses={
            "resp_1": {"input": held[:1], "output": held[1:2]},
            "resp_2": {
                "previous_response_id": "resp_1",
                "input": held[2:3],
                "output": held[3:],
            },
        }
    )


def tail(kind: str) -> Item:
    """The link to the end of `chain`."""
    return link(kind) if kind == "conversation" else {"previous_response_id": "resp_2"}


@for_both_links
def test_an_output_that_equals_an_older_one_answers(kind: str) -> None:
    """A counter names the call that waits, too, and both tools said the same."""
    held = [user("a"), call("call_0"), output("call_0", "ok"), call("call_0")]
    ledger = server(kind, *held) if kind == "conversation" else chain(held)
    body = {"input": [output("call_0", "ok"), NEW], **tail(kind)}

    assert settled(ledger, body).edits == ()


def test_of_two_outputs_the_real_one_answers() -> None:
    """A marked text that an earlier run put there gives way."""
    invented = settled(server("response", *ASKED[:2]), {"input": [NEW], **link("response")})
    body = {"input": [invented.messages[0], output("call_a1"), NEW], **link("response")}

    assert [output("call_a1"), NEW] == settled(server("response", *ASKED[:2]), body).messages


# ---------------------------------------------------------------- a list of the caller's own


def with_ids(items: list[Item]) -> list[Item]:
    """The same list as the SDK has it."""
    return [
        message(f"msg_{item['content']}", item["content"])
        if item.get("role") == "assistant"
        else item | {"id": "fc_1"}
        if item.get("type") == "function_call"
        else item
        for item in items
    ]


LATE = output("call_a1", "DEPLOYED")
"""The result of a call that was closed on the server, since the user spoke first."""
WHOLE = [user("U1"), call("call_a1"), user("U2"), said("A2"), LATE, user("U3"), said("A3")]
MOVED = [*WHOLE[:2], LATE, *WHOLE[2:4], *WHOLE[5:]]
CALLED, A2, A3 = (with_ids([item]) for item in (WHOLE[1], WHOLE[3], WHOLE[6]))
CLOSED = (([WHOLE[0]], CALLED), (WHOLE[:3], A2))
"""The model calls, and what it says once the call is closed."""
OWN_LISTS = {
    "the result where it came": (WHOLE[:6], WHOLE),
    "the result behind its call": (MOVED[:6], MOVED),
    "first the result alone": (WHOLE[4:6], WHOLE),
    "first the result alone, then behind its call": (WHOLE[4:6], MOVED),
    "without the result": (WHOLE[4:6], [*WHOLE[:4], *WHOLE[5:]]),
    "the end, from the user on": (WHOLE[:6], WHOLE[2:]),
    "the end, from the model on": (WHOLE[:6], WHOLE[3:]),
    "the end, from the result on": (WHOLE[:6], WHOLE[4:]),
}


@for_both_links
@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("name", OWN_LISTS)
def test_a_list_without_what_was_put_in(kind: str, name: str, ids: bool) -> None:  # a parameter
    """No caller has the text that closed a call, or the quotation of what came after it."""
    late, whole = map(with_ids, OWN_LISTS[name]) if ids else OWN_LISTS[name]
    report, ledger = talk(kind, *CLOSED, (late, A3), ([*whole, user("U4")], []))

    assert [user("U4")] == report.messages
    assert ledger.holds(Link.of(report.request))
    told = [said_in(item) for item in view(report, ledger) if "role" in item]
    assert ["U1", "U2", "A2", "U3", "A3", "U4"] == [one for one in told if one[0] != "<"]
    assert 1 == json.dumps(view(report, ledger)).count("DEPLOYED")


@for_both_links
def test_the_list_of_what_was_sent_is_recognised_too(kind: str) -> None:
    """Somebody may keep what was put in."""
    turns = (*CLOSED, (WHOLE[:6], A3))
    report, ledger = talk(kind, *turns, ([user("U4")], []))
    held = ledger.holds(Link.of(report.request))
    assert "DEPLOYED" in json.dumps(held)
    report, _ = talk(kind, *turns, ([*held, user("U4")], []))

    assert [user("U4")] == report.messages


@for_both_links
def test_nothing_is_new_but_what_was_told_as_data(kind: str) -> None:
    """A request that is sent again brings nothing that could stand behind the link."""
    report, _ = talk(kind, *CLOSED, (WHOLE[:5], A3), ([LATE], []))

    assert Link() == Link.of(report.request)
    assert 1 == json.dumps(report.messages).count("DEPLOYED")


@for_both_links
def test_calls_and_words_of_one_answer(kind: str) -> None:
    """What closes the call stands behind words that are the end of the list, not its beginning."""
    first = (WHOLE[:1], [*CALLED, message("msg_A1", "A1")])
    second = ([*WHOLE[:2], said("A1"), user("U2")], A2)
    third = [said("A1"), user("U2"), said("A2"), user("U3")]
    report, _ = talk(kind, first, second, (third, []))

    assert [user("U3")] == report.messages


@for_both_links
@pytest.mark.parametrize("result", [[], [LATE]])
def test_an_edited_question_keeps_the_result_once(kind: str, result: list[Item]) -> None:
    """By value the result stands where the list has it; else its quotation is no question."""
    edited = [*WHOLE[:4], *result, user("not U3"), *WHOLE[6:], user("U4")]
    report, _ = talk(kind, *CLOSED, (WHOLE[:6], A3), (with_ids(edited), []))

    assert Link() == Link.of(report.request)
    told = [said_in(item) for item in report.messages if "role" in item]
    assert ["U1", "U2", "A2", "not U3", "A3", "U4"] == [one for one in told if one[0] != "<"]
    assert 1 == json.dumps(report.messages).count("DEPLOYED")
    assert len(report.messages) == (8 if result else 9)


@for_both_links
def test_a_quoted_result_whose_call_is_nowhere_is_told_once(kind: str) -> None:
    """It was told as data, and the list has it as a result still."""
    lone = [output("call_none", "DEPLOYED"), user("U3")]
    first = ([user("U2")], A2)
    report, _ = talk(kind, first, (lone, A3), ([*lone, said("A3"), user("U4")], []))

    assert [user("U4")] == report.messages


def talk(kind: str, *turns: tuple[list[Item], list[Item]]) -> tuple[Report, Ledger]:
    """The report of the last of these inputs with their answers, and the ledger before it."""
    linked: Item = {"conversation": "conv_1"} if kind == "conversation" else {}
    ledger = Ledger().observed_conversation("conv_1") if linked else Ledger()
    for at, (given, made) in enumerate(turns):
        before = ledger
        body = {"input": given, **linked}
        report = settled(ledger, body)
        laws.untouched(Sample(body, Context(ledger=ledger)))
        answer = {"id": f"resp_{at}", "status": "completed", "output": made}
        ledger = ledger.accepted(report.request or {}, answer)
        linked = linked if kind == "conversation" else {"previous_response_id": f"resp_{at}"}
    return report, before


# ---------------------------------------------------------------- links that cannot be used

UNUSABLE: dict[str, Item] = {
    "not stored": {},
    "expired, or of another organization": {"gone": ("resp_1", "conv_1")},
    "without retention": {"zero_data_retention": True},
}


def unusable(name: str, kind: str, held: list[Item]) -> Ledger:
    """A ledger that knows what stood behind a link that the server denies."""
    if name == "not stored":
        return Ledger(
            responses={"resp_1": {"input": held[:1], "output": held[1:], "stored": False}}
        )
    return server(kind, *held, **UNUSABLE[name])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("not stored", "response"),
        ("expired, or of another organization", "response"),
        ("expired, or of another organization", "conversation"),
        ("without retention", "response"),
    ],
)
@pytest.mark.parametrize("local", [[], [user("hi")], HELD], ids=["delta", "again", "whole"])
def test_a_link_that_cannot_be_used(name: str, kind: str, local: list[Item]) -> None:
    """What stood behind it is sent by value, once, with what is new."""
    held = [user("hi"), reasoning("rs_1"), message("msg_1", "hello")]
    local = [] if not local else held if local is HELD else local
    report = settled(unusable(name, kind, held), {"input": [*local, NEW], **link(kind)})

    texts = ["hi", "hello", "go on"] if local != [user("hi")] else ["hi", "hello", "hi", "go on"]
    assert texts == [said_in(item) for item in report.messages if item.get("type") != "reasoning"]
    assert not link(kind).keys() & (report.request or {}).keys()


def said_in(item: Item) -> str:
    """The text of a message."""
    content = item["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


def test_calls_behind_an_unstored_response_are_sent_with_their_outputs() -> None:
    """The tool loop goes on by value: the call, the output that came, and one that was made."""
    ledger = unusable("not stored", "response", [user("scan"), reasoning("rs_1", "E"), *ASKED[1:]])
    ledger = ledger.observed_output(output("call_a1", "2 threats"))
    body = {"input": [output("call_b1")], "store": False, **link("response")}

    report = settled(ledger, body)
    assert ["user", "reasoning", "function_call", "function_call_output"] == [
        item.get("role", item.get("type")) for item in report.messages[:4]
    ]
    outputs = {item["call_id"]: item["output"] for item in report.messages if "output" in item}
    assert {"call_a1": "2 threats", "call_b1": "found"} == outputs
    assert all("id" not in item for item in report.messages)


def test_a_whole_history_without_the_call_that_waited_behind_a_lost_link() -> None:
    """Its owner took the call out, and nothing is closed for it."""
    local = [user("scan"), {"role": "assistant", "content": "found two"}, user("and?")]
    report = settled(
        unusable("not stored", "response", ASKED), {"input": local, **link("response")}
    )

    assert {"input": local} == report.request


@pytest.mark.parametrize("first", [True, False])
def test_store_on_off_on(first: bool) -> None:  # a parameter of the test
    """Whatever was stored in between, the third request sees both turns, each once."""
    responses = {
        "resp_1": {"input": "one", "output": [message("msg_1", "1")], "stored": first},
        "resp_2": {
            "previous_response_id": "resp_1" if first else None,
            "input": ([] if first else [user("one"), message("msg_1", "1")]) + [user("two")],
            "output": [message("msg_2", "2")],
            "stored": not first,
        },
    }
    ledger = Ledger(responses=responses)
    body = {"input": "three", "previous_response_id": "resp_2", "store": True}

    report = settled(ledger, body)
    texts = ["one", "1", "two", "2", "three"]
    assert texts == [said_in(item) for item in seen(report, ledger, "three")]


def seen(report: Report, ledger: Ledger, text: str) -> list[Item]:
    """What the model sees, also where the input is a plain text."""
    sent = dict(report.request or {})
    given = [user(text)] if isinstance(sent["input"], str) else sent["input"]
    return [*ledger.holds(Link.of(sent)), *given]


def test_an_unknown_link_and_a_whole_history() -> None:
    """Nothing else is known: the input is taken for the whole, and the report says so."""
    local = [user("hi"), {"role": "assistant", "content": "hello"}, NEW]
    for kind in KINDS:
        report = settled(Ledger(), {"input": local, **link(kind)})
        assert {"input": local} == report.request
        assert "the input is taken for the whole history: nothing else is known" in report.assumed


@for_both_links
def test_an_unknown_link_and_a_delta(kind: str) -> None:
    """What nobody knows any more is refused, with what to do about it, and never left out."""
    with pytest.raises(UnrepairableError, match="send the whole history"):
        explain({"input": [NEW], **link(kind)}, RESPONSES, context=Context(ledger=Ledger()))


def test_an_unknown_link_and_one_response_that_is_known() -> None:
    """A cancelled answer left its id: the one end of what is known is continued."""
    body = {"input": [NEW], "previous_response_id": "resp_lost"}
    report = settled(server("response", *HELD), body)

    assert {**body, "previous_response_id": "resp_1"} == report.request
    assert ("the input is taken to go on from resp_1, which the ledger knows",) == report.assumed


def test_an_unknown_link_and_a_response_that_is_known_and_not_stored() -> None:
    """What the only end held is sent by value, not what an older stored response holds."""
    first = {"input": "a", "output": [message("msg_1", "one")]}
    second = {
        "input": [user("a"), said("one"), user("b")],
        "output": [message("msg_2", "two")],
        "stored": False,
        "repeats": None,
    }
    ledger = Ledger(responses={"resp_1": first}).accepted(
        {"input": "b", "previous_response_id": "resp_1", "store": False},
        {"id": "resp_2", "output": second["output"]},
    )
    report = settled(ledger, {"input": [NEW], "previous_response_id": "resp_lost"})

    assert "previous_response_id" not in (report.request or {})
    said_there = [str(item) for item in report.messages]
    assert all(word in "".join(said_there) for word in ("one", "'b'", "two"))
    assert NEW == report.messages[-1]


@pytest.mark.parametrize("stored", [True, False])
def test_an_unknown_link_and_an_input_that_goes_on_from_a_response(stored: bool) -> None:
    """Among several conversations, whose call it answers tells which one is meant."""
    one = {"input": "a", "output": [call("call_a1", id="fc_1")], "stored": stored}
    ledger = Ledger(responses={"resp_1": one, "resp_2": {"input": "b"}})
    new = [output("call_a1"), said("done"), NEW]
    report = settled(ledger, {"input": new, "previous_response_id": "resp_lost"})

    seen = [*ledger.holds(Link.of(report.request)), *report.messages]
    assert [user("a"), *new] == [seen[0], *seen[2:]]
    assert "call_a1" == seen[1]["call_id"]


def test_an_unknown_link_and_two_conversations() -> None:
    """Which of them was meant nobody knows, and neither is guessed."""
    two = Ledger(responses={"resp_1": {"input": "a"}, "resp_2": {"input": "b"}})
    body = {"input": [NEW], "previous_response_id": "resp_lost"}

    with pytest.raises(UnrepairableError):
        explain(body, RESPONSES, context=Context(ledger=two))


def test_a_server_that_keeps_nothing() -> None:
    """The link goes, with or without a ledger that tells what stood behind it."""
    ollama = Policy.for_target(RESPONSES, provider="ollama")
    body = {"input": [NEW], **link("response")}

    assert {"input": [NEW]} == explain(body, ollama).request
    held = [user("hi"), {"role": "assistant", "content": "hello"}]
    assert [*held, NEW] == settled(server("response", *held), body, ollama).messages


# ---------------------------------------------------------------- the wrong link


@pytest.mark.parametrize("stored", [True, False])
def test_a_chain_that_ends_before_a_call_made_later(stored: bool) -> None:  # a parameter
    """The link moves to the response that made the call; what it did not store is sent."""
    ledger = Ledger(
        responses={
            "resp_0": {"input": "hi", "output": [message("msg_0", "hello")]},
            "resp_1": {
                "previous_response_id": "resp_0",
                "input": "look",
                "output": [call("call_a1", id="fc_1")],
                "stored": stored,
            },
        }
    )
    report = settled(ledger, {"input": [output("call_a1")], "previous_response_id": "resp_0"})

    kinds = [item.get("type", "message") for item in view(report, ledger)]
    assert ["message", "message", "message", "function_call", "function_call_output"] == kinds
    assert {edit.rule for edit in report.edits} == {"resp-output-without-call"}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("previous", ["resp_1", "resp_2", "resp_unheard_of"])
@pytest.mark.parametrize("first", ["call_a1", "call_b2"])
def test_outputs_of_two_chains(previous: str, first: str, stored: bool) -> None:  # a parameter
    """A request continues one chain: what the other one held is sent by value."""
    ledger = Ledger(
        responses={
            "resp_1": {"input": "look here", "output": [call("call_a1", id="fc_1")]},
            "resp_2": {
                "input": "look there",
                "output": [call("call_b2", id="fc_2")],
                "stored": stored,
            },
        }
    )
    two = [output("call_a1", "sun"), output("call_b2", "rain")]
    two = two if first == "call_a1" else two[::-1]
    report = settled(ledger, {"input": two, "previous_response_id": previous})

    shown = json.dumps(view(report, ledger))
    told = ("look here", "call_a1", "sun", "look there", "call_b2", "rain")
    assert [1, 2, 1, 1, 2, 1] == [shown.count(f'"{one}"') for one in told]


def test_outputs_of_more_chains_than_are_brought() -> None:
    """What the newest chains held is sent; what answers calls of older ones is told as data."""
    made = {
        f"resp_{at}": {"input": f"q{at}", "output": [call(f"call_{at}a1b2", id=f"fc_{at}")]}
        for at in range(MOST_CHAINS + 3)
    }
    outputs = [output(f"call_{at}a1b2", f"found {at}.") for at in range(MOST_CHAINS + 3)]
    body = {"input": outputs, "previous_response_id": f"resp_{MOST_CHAINS + 2}"}
    told = json.dumps(settled(Ledger(responses=made), body).messages)

    assert [1] * len(outputs) == [told.count(each["output"]) for each in outputs]
    assert (2, MOST_CHAINS) == (told.count("<tool-output"), told.count('"function_call"'))


BOTH = {"previous_response_id": "resp_1", "conversation": "conv_1"}
CHAIN = {"resp_1": {"input": [HELD[0]], "output": HELD[1:]}}
TWO: dict[str, tuple[Item, Item, int]] = {
    "nothing is known": ({}, {"conversation": "conv_1"}, 1),
    "the conversation has the response": (
        {
            "responses": {"resp_1": {"input": [HELD[0]], "output": HELD[1:3]}},
            "conversations": {"conv_1": HELD},
        },
        {"conversation": "conv_1"},
        1,
    ),
    "the chain has the conversation": (
        {
            "responses": {"resp_1": {"input": [HELD[0]], "output": HELD[1:]}},
            "conversations": {"conv_1": HELD[:3]},
        },
        {"previous_response_id": "resp_1"},
        1,
    ),
    "the conversation is empty": (
        {
            "responses": {"resp_1": {"input": [HELD[0]], "output": HELD[1:]}},
            "conversations": {"conv_1": ()},
        },
        {"previous_response_id": "resp_1"},
        1,
    ),
    "only the response is known": (
        {"responses": CHAIN},
        {"previous_response_id": "resp_1"},
        1,
    ),
    "each has its own": (
        {
            "responses": {"resp_1": {"input": [user("x")], "output": [message("msg_9", "y")]}},
            "conversations": {"conv_1": HELD},
        },
        {"conversation": "conv_1"},
        3,
    ),
}


@pytest.mark.parametrize("name", TWO)
def test_both_links_at_once(name: str) -> None:
    """The one that has the other is continued; what only the other has is sent by value."""
    state, kept, count = TWO[name]
    context = Context(ledger=Ledger(**state) if state else None)
    report = explain({"input": [NEW], **BOTH}, RESPONSES, context=context)

    sent = report.request or {}
    assert kept == {key: sent[key] for key in BOTH if key in sent}
    assert count == len(sent["input"])
    assert sent["input"][-1] is NEW
    assert check(sent, RESPONSES, context=context) == []


def test_both_links_and_a_response_that_is_not_stored() -> None:
    """What only the ledger still knows of it is sent, with the outputs that were made for it."""
    chain = {"input": "a", "output": [call("call_a1", id="fc_1"), call("call_b1", id="fc_2")]}
    responses = {"resp_1": {**chain, "stored": False}}
    ledger = Ledger(responses=responses, conversations={"conv_1": [user("b"), said("two")]})
    body = {"input": [output("call_b1")], "previous_response_id": "resp_1"}
    made = ledger.observed_output(output("call_a1", "2 threats"))

    report = settled(made, {**body, "conversation": "conv_1"})
    expected = [user("a"), call("call_a1"), output("call_a1", "2 threats"), call("call_b1")]
    assert [*expected, output("call_b1")] == report.messages
    assert "conv_1" == (report.request or {})["conversation"]
    lost = settled(made, {**body, "conversation": "conv_lost"})
    assert sorted(map(str, report.messages)) == sorted(map(str, lost.messages))


@pytest.mark.parametrize("stored", [True, False])
def test_a_call_that_another_chain_made(stored: bool) -> None:
    """An output needs its call: what the response that made it held is sent by value."""
    one = {"input": "a", "output": [message("msg_1", "one")]}
    two = {"input": "b", "output": [call("call_a1", id="fc_1")], "stored": stored}
    ledger = Ledger(responses={"resp_1": one, "resp_2": two})
    report = settled(ledger, {"input": [output("call_a1"), NEW], **link("response")})

    seen = [*ledger.holds(Link.of(report.request)), *report.messages]
    assert [user("a"), "one", user("b"), "call_a1", output("call_a1"), NEW] == [
        seen[0],
        seen[1]["content"][0]["text"],
        seen[2],
        seen[3]["call_id"],
        *seen[4:],
    ]


@for_both_links
def test_an_output_whose_call_is_nowhere_is_quoted(kind: str) -> None:
    """Where the ledger has seen all of the chain, nobody can hold its call."""
    report = settled(server(kind, *HELD), {"input": [output("call_none"), NEW], **link(kind)})

    assert ["user", "user"] == [item["role"] for item in report.messages]
    assert "found" in report.messages[0]["content"]


# ---------------------------------------------------------------- a request that got no answer


def test_a_conversation_that_may_have_more() -> None:
    """Whether the request arrived nobody knows: all is sent by value, so nothing is there twice."""
    lost = {"input": [NEW], "conversation": "conv_1"}
    ledger = server("conversation", *HELD).attempted(lost)

    report = settled(ledger, lost)
    assert {"input": [*HELD, NEW]} == report.request
    assert {edit.rule for edit in report.edits} == {"delivery-unknown"}
    sending = Policy.for_target(RESPONSES, settle_link={"unanswered": "send"})
    assert lost == settled(ledger, lost, sending).request


def test_a_response_that_got_no_answer_is_asked_again() -> None:
    """The chain did not move, so the same request is right."""
    lost = {"input": [NEW], "previous_response_id": "resp_1"}
    report = settled(server("response", *HELD).attempted(lost), lost)

    assert report.edits == ()


# ---------------------------------------------------------------- what is only referred to


def test_a_call_by_reference_is_sent_whole() -> None:
    """Its output goes by call id, and finds no call behind a reference."""
    ledger = server("response", user("q"), call("call_a1", id="fc_1"))
    body = {"input": [user("q"), {"type": "item_reference", "id": "fc_1"}, output("call_a1")]}

    assert [user("q"), call("call_a1"), output("call_a1")] == settled(ledger, body).messages


def test_a_call_by_reference_behind_its_reasoning_keeps_its_id() -> None:
    """A group has its ids on both sides."""
    ledger = server("response", user("q"), reasoning("rs_1"), call("call_a1", id="fc_1"))
    references = [{"type": "item_reference", "id": own} for own in ("rs_1", "fc_1")]
    body = {"input": [user("q"), *references, output("call_a1")]}

    assert call("call_a1", id="fc_1") == settled(ledger, body).messages[2]


def test_references_to_nothing() -> None:
    """What the server made and did not store is sent by value; what nobody knows goes."""
    ledger = unusable("not stored", "response", [user("q"), message("msg_1", "a")])
    named = [{"type": "item_reference", "id": own} for own in ("msg_1", "msg_9")]
    bare = {"type": "web_search_call", "id": "ws_9"}
    report = settled(ledger, {"input": [user("q"), *named, bare, NEW]})

    assert ["q", "a", "go on"] == [said_in(item) for item in report.messages]
    assert {edit.loss and edit.loss.value for edit in report.edits} == {None, "an id"}


def test_code_of_a_container_that_is_gone_is_quoted() -> None:
    """The server would look for the container; the code and the text stay readable."""
    item = {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "container_id": "cntr_1",
        "code": "6*7",
        "outputs": [{"type": "logs", "logs": "42"}],
        "status": "completed",
    }
    body = {"input": [user("q"), reasoning("rs_1", "E"), item, message("msg_1", "42"), NEW]}
    report = settled(Ledger(expired_containers=("cntr_1",)), body)

    assert 4 == len(report.messages)
    assert "6*7" in report.messages[1]["content"]
    assert "logs" in report.messages[1]["content"]


# ---------------------------------------------------------------- what is passed


def test_a_plain_text_behind_a_link() -> None:
    """An input that is a text stays one, unless something has to be sent with it."""
    body = {"input": "never mind", **link("response")}

    assert body == settled(server("response", *HELD), body).request
    report = settled(server("response", *ASKED[:2]), body)
    assert [closed("call_a1"), user("never mind")] == body_of(report)["input"]


def test_a_link_that_is_not_in_the_body_cannot_change() -> None:
    """A bare list has no link to take out, and neither has a body without one."""
    context = Context(
        ledger=unusable("not stored", "response", HELD), previous_response_id="resp_1"
    )
    for given in ([NEW], {"input": [NEW]}):
        with pytest.raises(NeedsRequestError, match="previous_response_id"):
            explain(given, RESPONSES, context=context)


def test_without_a_ledger_a_link_is_left_alone() -> None:
    """Nothing is known of the server, so nothing is changed."""
    body = {"input": [output("call_a1"), user("scan")], **link("response")}

    assert explain(body, RESPONSES).edits == ()


def test_on_raise_nothing_is_changed() -> None:
    """The error names what would have changed, its place and its rule."""
    policy = Policy.for_target(RESPONSES, on_change={"settle_link": "raise"})
    body = {"input": [*HELD, NEW], **link("response")}

    with pytest.raises(Exception, match="settle_link would change"):
        explain(body, policy, context=Context(ledger=server("response", *HELD)))
