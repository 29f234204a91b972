"""The ledger: what was sent and answered, and what the server holds of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convnorm import Context, Ledger, LedgerError, PolicyError, normalize_request
from convnorm.delivery import Exchange, Link

Item = dict[str, Any]


def user(text: str) -> Item:
    """A user's message."""
    return {"role": "user", "content": text}


def said(own: str, text: str) -> Item:
    """A message of the model, as a response has it."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": own, "role": "assistant", "content": [part]}


def call(call_id: str, own: str | None = None) -> Item:
    """A function call, as a response has it."""
    item = {"type": "function_call", "call_id": call_id, "name": "scan", "arguments": "{}"}
    return item if own is None else {**item, "id": own}


def output(call_id: str, text: str = "clean") -> Item:
    """What a function returned."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def response(own: str, *items: Item, **more: Any) -> Item:
    """The body of a response."""
    return {"id": own, "status": "completed", "output": list(items), **more}


def sent(ledger: Ledger, request: Item, answer: Item) -> Ledger:
    """The ledger after a request and its answer."""
    return ledger.attempted(request).accepted(request, answer)


def two_turns() -> Ledger:
    """A call that was answered, and one that waits."""
    one = sent(Ledger(), {"input": "go"}, response("resp_1", call("call_1", "fc_1")))
    follow = {"input": [output("call_1")], "previous_response_id": "resp_1"}
    return sent(one, follow, response("resp_2", said("msg_1", "done"), call("call_2", "fc_2")))


def test_the_server_holds_what_was_answered_in_its_order() -> None:
    """A chain is all inputs and outputs from its first response on."""
    held = two_turns().holds(Link("resp_2"))

    expected = [user("go"), call("call_1", "fc_1"), output("call_1")]
    assert [*held] == [*expected, said("msg_1", "done"), call("call_2", "fc_2")]


def test_what_was_only_sent_is_not_held() -> None:
    """An attempt adds nothing to a chain until it is answered; a refusal takes it back."""
    request = {"input": [output("call_2")], "previous_response_id": "resp_2"}
    tried = two_turns().attempted(request)

    assert [call("call_2", "fc_2")] == tried.pending(Link("resp_2"))
    assert two_turns() == tried.refused(request)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_lost_answer_is_none(status: str) -> None:
    """A response that failed or was cancelled cannot be continued."""
    request = {"input": "go"}
    after = sent(Ledger(), request, {"id": "resp_1", "status": status, "output": []})

    assert Ledger() == after


def test_an_answer_under_way_leaves_the_attempt() -> None:
    """A background response is no answer before it is finished."""
    tried = Ledger().attempted({"input": "go"})

    assert tried.accepted({"input": "go"}, {"id": "resp_1", "status": "queued"}) == tried


@pytest.mark.parametrize(
    ("request_store", "response_store", "retained"),
    [(False, None, True), (None, False, True), (True, True, False)],
)
def test_what_is_not_stored_was_still_issued(
    request_store: bool | None, response_store: bool | None, retained: bool
) -> None:
    """Store may be off in the request, by the server, or for the whole organization."""
    ledger = Ledger(zero_data_retention=not retained)
    request = {"input": "go", "store": request_store}
    after = sent(ledger, request, response("resp_1", said("msg_1", "hi"), store=response_store))

    assert not after.knows(Link("resp_1"))
    assert after.holds(Link("resp_1")) == ()
    assert after.recall(Link("resp_1")) == (user("go"), said("msg_1", "hi"))
    assert [*after.issued_items()] == [said("msg_1", "hi")]
    assert [*after.stored_items()] == []


def test_a_conversation_grows_with_each_answer() -> None:
    """Its items are those that were answered; an unanswered request leaves it unknown."""
    request = {"input": "go", "conversation": {"id": "conv_1"}}
    ledger = sent(Ledger().observed_conversation("conv_1"), request, response("resp_1"))
    tried = ledger.attempted({"input": "and?", "conversation": "conv_1"})

    assert tried.holds(Link(conversation="conv_1")) == (user("go"),)
    (lost,) = tried.unknown("conv_1")
    assert lost.input == (user("and?"),)
    known = tried.observed_conversation("conv_1", [user("go"), user("and?")])
    assert known.unknown("conv_1") == []


def test_a_response_inside_a_conversation_recalls_what_stood_before() -> None:
    """Continued by its id, it brings the conversation up to it."""
    start = Ledger().observed_conversation("conv_1", [user("hello")])
    request = {"input": "go", "conversation": "conv_1"}
    ledger = sent(start, request, response("resp_1", said("msg_1", "hi")))
    later = sent(ledger, {"input": "more", "conversation": "conv_1"}, response("resp_2"))

    recalled = later.recall(Link("resp_1"))
    assert recalled == (user("hello"), user("go"), said("msg_1", "hi"))


def test_an_output_made_here_is_not_sent_until_a_request_with_it_is_answered() -> None:
    """What exists locally is never taken for sent; a new call under the id has no output yet."""
    ledger = two_turns().observed_output(output("call_2"))
    assert [call("call_2", "fc_2")] == ledger.pending(Link("resp_2"))

    follow = {"input": [output("call_2")], "previous_response_id": "resp_2"}
    after = sent(ledger, follow, response("resp_3", call("call_2", "fc_3")))
    assert [call("call_2", "fc_3")] == after.pending(Link("resp_3"))
    assert after.outputs == {}


def test_a_link_that_the_server_denied_holds_nothing() -> None:
    """Expired, deleted or another organization's: what it held is still known here."""
    ledger = two_turns().forgotten(Link("resp_2"))

    assert not ledger.knows(Link("resp_2"))
    assert ledger.holds(Link("resp_2")) == ()
    assert 5 == len(ledger.recall(Link("resp_2")))


DELTAS: dict[str, tuple[list[Item], list[Item]]] = {
    "only what is new": ([output("call_2")], [output("call_2")]),
    "copies by id": (
        [call("call_1"), output("call_1"), said("msg_1", "done"), output("call_2")],
        [output("call_2")],
    ),
    "equal words between copies": (
        [user("go"), call("call_1", "fc_1"), output("call_1"), call("call_2"), user("go")],
        [user("go")],
    ),
    "equal words alone prove nothing": ([user("go")], [user("go")]),
}


def test_an_output_that_answers_is_no_copy_of_an_older_one() -> None:
    """A counter names the call that waits, too, and both tools said the same."""
    items = [user("go"), call("call_0"), output("call_0", "ok"), call("call_0")]
    ledger = Ledger(conversations={"conv_1": items})

    link = Link(conversation="conv_1")
    assert [output("call_0", "ok")] == ledger.delta([output("call_0", "ok")], link)
    assert ledger.delta(items[:3], link) == []


@pytest.mark.parametrize("name", DELTAS)
def test_delta(name: str) -> None:
    """What the server lacks of a local history."""
    history, new = DELTAS[name]

    assert new == two_turns().delta(history, Link("resp_2"))


def test_delta_of_a_history_without_ids() -> None:
    """A history that begins with all that the server holds needs no ids; bookkeeping is nothing."""
    ledger = sent(Ledger(), {"input": "hello"}, response("resp_1", said("msg_1", "hi")))
    history = [user("hello"), {"role": "assistant", "content": "hi"}, user("hello")]

    assert [user("hello")] == ledger.delta(history, Link("resp_1"))


def test_delta_of_a_history_without_what_closed_a_call() -> None:
    """No local history has the text that stands for an output, or the quotation of a late one."""
    late, asked = output("call_a", "late"), [user("a"), call("call_a")]
    ledger = sent(Ledger(), {"input": "a"}, response("resp_1", asked[1]))
    for at, new in enumerate(([*asked, user("b")], [late]), 2):
        body = {"input": new, "previous_response_id": f"resp_{at - 1}"}
        request = normalize_request(body, "openai.responses", context=Context(ledger=ledger))
        ledger = sent(ledger, request, response(f"resp_{at}", said(f"msg_{at}", f"answer {at}")))
    texts = ["answer 2", "answer 3"]
    two, three = ({"role": "assistant", "content": text} for text in texts)

    for history in ([*asked, user("b"), two, late, three], [*asked, late, user("b"), two, three]):
        assert [user("c")] == ledger.delta([*history, user("c")], Link("resp_3"))
        assert [user("c")] == ledger.delta([*history[2:], user("c")], Link("resp_3"))


# ---------------------------------------------------------------- values


def by_value(turns: int) -> Ledger:
    """A run that replays its whole history in each request."""
    ledger, history = Ledger(), list[Item]()
    for at in range(turns):
        history = [*history, user(f"question {at} " + "x" * 40)]
        request = {"input": history, "store": at % 2 == 0}
        answer = response(f"resp_{at}", said(f"msg_{at}", f"answer {at}"))
        ledger = sent(ledger, request, answer)
        history = [*history, *answer["output"]]
    return ledger


def chained(turns: int) -> Ledger:
    """A run that continues the last response in each request."""
    ledger, last = Ledger(), None
    for at in range(turns):
        request = {"input": f"question {at}", "previous_response_id": last}
        last = f"resp_{at}"
        ledger = sent(ledger, request, response(last, said(f"msg_{at}", f"answer {at}")))
    return ledger


@pytest.mark.parametrize("run", [by_value, chained])
def test_size_is_linear(run: Any) -> None:
    """Twice the turns are twice the size, also when each request repeats the whole history."""
    small, large = (len(run(turns).to_json()) for turns in (20, 40))

    assert large < 2.2 * small


def test_a_repeated_beginning_is_read_whole() -> None:
    """An input that is kept as the rest of an older one is told whole, and stored by parts."""
    ledger = by_value(4)

    assert 7 == len(ledger.input_of("resp_3"))
    assert ledger.responses["resp_3"].repeats == ("resp_2", 5)
    # resp_0 and resp_2 are stored, and with resp_2 the questions and answers it repeats.
    texts = [json.dumps(item)[:60] for item in ledger.stored_items()]
    assert 6 == len(set(texts)) == len(texts) - 1


LEDGERS = st.sampled_from(
    [
        Ledger(),
        two_turns().observed_output(output("call_2")).attempted({"input": "x"}),
        by_value(4),
        chained(3).forgotten(Link("resp_0")),
        Ledger.from_state(
            {
                "conversations": {"conv_1": {"items": [user("a"), user("a")]}},
                "items": [said("msg_9", "kept")],
                "outputs": [output("call_7")],
                "encrypted_content": {"gAAAA": {"organization": "org_b"}},
                "organization": "org_a",
                "locked": ["conv_1"],
            }
        ),
    ]
)


@given(LEDGERS)
def test_json_both_ways(ledger: Ledger) -> None:
    """Text and back is the same ledger, by its own methods and by pydantic's."""
    text = ledger.to_json()

    assert ledger == Ledger.from_json(text) == Ledger.model_validate_json(ledger.model_dump_json())
    assert text == Ledger.from_json(text).to_json()
    assert ledger == Ledger.from_state(json.loads(text))


@given(LEDGERS, LEDGERS)
def test_merge_knows_what_either_knew(one: Ledger, other: Ledger) -> None:
    """The union of two branches, whichever is first; or an error, never half of it."""
    try:
        both = one.merge(other)
    except LedgerError:
        with pytest.raises(LedgerError):
            other.merge(one)
        return
    assert both.responses.keys() == one.responses.keys() | other.responses.keys()
    assert both.responses == other.merge(one).responses
    assert one == one.merge(one)


def test_branches_are_values() -> None:
    """Two branches of a run do not see each other, and what the caller changes later is his own."""
    request: Item = {"input": [user("go")]}
    base = Ledger()
    one = sent(base, request, response("resp_1", said("msg_1", "hi")))
    request["input"][0]["content"] = "changed"
    two = sent(base, request, response("resp_2"))

    assert base == Ledger()
    assert one.input_of("resp_1") == (user("go"),)
    assert [*one.merge(two).responses] == ["resp_1", "resp_2"]


def test_merge_keeps_what_each_response_is_built_on() -> None:
    """A saved run knows the last response alone; what that repeats of others comes before it."""
    live, items = Ledger(), list[Item]()
    for number in "123":
        items.append(user(f"u{number}"))
        answered = response(f"resp_{number}", said(f"msg_{number}", f"a{number}"))
        live = live.accepted({"input": items}, answered)
        items += answered["output"]
    whole = {"input": items[:-1], "output": items[-1:]}
    saved = Ledger.from_state({"responses": {"resp_3": whole}})

    for both in (saved.merge(live), live.merge(saved)):
        assert tuple(items) == both.prune(Link("resp_3")).recall(Link("resp_3"))
        assert ["resp_1", "resp_2", "resp_3"] == [*both.responses]


def test_responses_may_be_told_in_any_order() -> None:
    """A chain is the same chain; one that bites its tail is read as far as it goes."""
    told = {"resp_2": {"previous_response_id": "resp_1"}, "resp_1": {"input": "a"}}
    assert ["resp_1", "resp_2"] == [*Ledger.from_state({"responses": told}).responses]
    bitten = told | {"resp_1": {"previous_response_id": "resp_2"}}
    assert {*bitten} == {*Ledger.from_state({"responses": bitten}).responses}


def test_merge_of_a_conversation_that_grew_takes_the_longer() -> None:
    """One branch saw more; what it saw arrive is not unknown any more."""
    request = {"input": "and?", "conversation": "conv_1"}
    start = Ledger().observed_conversation("conv_1", [user("go")])
    grown = start.accepted(request, response("resp_1", said("msg_1", "hi")))
    both = start.attempted(request).merge(grown)

    assert both.holds(Link(conversation="conv_1")) == (user("go"), user("and?"), grown_answer())
    assert both.unknown("conv_1") == []


def grown_answer() -> Item:
    """What the model said in the branch that saw more."""
    return said("msg_1", "hi")


CONFLICTS: dict[str, tuple[Ledger, Ledger, str]] = {
    "a conversation that forked": (
        Ledger(conversations={"conv_1": (user("a"), user("b"))}),
        Ledger(conversations={"conv_1": (user("a"), user("c"))}),
        "observed_conversation",
    ),
    "a response": (
        Ledger(responses={"resp_1": Exchange(output=(said("m", "a"),))}),
        Ledger(responses={"resp_1": Exchange(output=(said("m", "b"),))}),
        "response resp_1",
    ),
    "an output": (
        Ledger().observed_output(output("call_1", "a")),
        Ledger().observed_output(output("call_1", "b")),
        "call_1",
    ),
    "an organization": (
        Ledger(organization="org_a"),
        Ledger(organization="org_b"),
        "organizations",
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_merge_conflict(name: str) -> None:
    """What contradicts is an error that names it."""
    one, other, words = CONFLICTS[name]

    with pytest.raises(LedgerError, match=words):
        one.merge(other)


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=9), max_size=6))
def test_every_input_is_remembered_as_it_was_sent(histories: list[list[str]]) -> None:
    """However much of it an earlier one began with, and whatever that one repeated itself."""
    ledger, inputs = Ledger(), [[user(word) for word in words] for words in histories]
    for number, items in enumerate(inputs):
        ledger = sent(ledger, {"input": items, "store": False}, response(f"resp_{number}"))
    for known in (ledger, Ledger.from_json(ledger.to_json())):
        assert inputs == [[*known.input_of(name)] for name in known.responses]


def test_prune_keeps_what_the_link_needs() -> None:
    """The chain, what its inputs repeat, and outputs that are still to be sent."""
    ledger = two_turns().observed_output(output("call_2")).observed_output(output("call_9"))
    ledger = sent(ledger, {"input": "another"}, response("resp_9"))
    pruned = ledger.prune(Link("resp_2"))

    assert [*pruned.responses] == ["resp_1", "resp_2"]
    assert [*pruned.outputs] == ["call_2"]
    assert pruned.holds(Link("resp_2")) == ledger.holds(Link("resp_2"))
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA1"}
    first = sent(Ledger(), {"input": "a", "store": False}, response("resp_1", sealed))
    again = {"input": [user("a"), sealed, user("b")], "store": False}
    kept = sent(first, again, response("resp_2")).prune(Link("resp_2"))
    assert ["resp_2"] == [name for name in kept.responses if name != "resp_1"]
    assert kept.encrypted_content == {"gAAAAA1": {}}
    replayed = by_value(4)
    assert replayed.prune(Link("resp_3")).recall(Link("resp_3")) == replayed.recall(Link("resp_3"))


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "no JSON"),
    "no object": ("[]", "JSON object"),
    "newer": ('{"schema": 99, "pool": []}', "newer convnorm"),
    "no pool": ('{"schema": 1}', "no pool"),
    "a reference too far": ('{"schema": 1, "pool": [], "items": [0]}', "leads nowhere"),
    "a reference from the end": ('{"schema": 1, "pool": [1], "items": [-1]}', "leads nowhere"),
    "no references": ('{"schema": 1, "pool": [], "responses": []}', "leads nowhere"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_ledger_that_cannot_be_read(name: str) -> None:
    """A newer, cut off or mistyped ledger is answered in plain words."""
    text, words = BROKEN[name]

    with pytest.raises(LedgerError, match=words):
        Ledger.from_json(text)


def test_an_unknown_key_is_refused() -> None:
    """A misspelt key would be a fact that nobody sees."""
    with pytest.raises(PolicyError, match="did you mean 'responses'"):
        Ledger.from_state({"response": {}})


@pytest.mark.parametrize("item", [user("no output"), {"type": "function_call_output"}, 7])
def test_an_output_names_its_call(item: Any) -> None:
    """What answers no call cannot be noted as an output."""
    with pytest.raises(LedgerError, match="call_id"):
        Ledger().observed_output(item)


@pytest.mark.parametrize(
    ("request_", "answer"),
    [({"input": "x"}, {"output": []}), ({"input": "x"}, "text"), ({"input": 7}, response("r"))],
)
def test_what_is_no_request_or_response(request_: Any, answer: Any) -> None:
    """Only a body and a response with an id are recorded."""
    with pytest.raises(LedgerError):
        Ledger().accepted(request_, answer)


def test_a_repetition_of_nothing_ends() -> None:
    """A ledger written by hand may point in circles, or at what is not there."""
    circle = Exchange(input=(user("a"),), repeats=("resp_1", 1))
    ledger = Ledger(responses={"resp_1": circle, "resp_2": Exchange(repeats=("resp_0", 3))})

    assert 1 == len(ledger.input_of("resp_1"))
    assert ledger.input_of("resp_2") == ()
