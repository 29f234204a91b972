"""What is in the history twice goes, if ids prove that it is the same thing."""

import pytest

from builders import call, calls, message, output, reasoning, result, said, user
from convnorm import Context, Policy, Provenance, explain, normalize

CHAT, RESPONSES = "openai.chat", "openai.responses"
RANDOM = "call_8sXk2Qp91Lm"
EXCHANGE = [user("hi"), calls(RANDOM), result(RANDOM), said("done"), user("yes"), said("ok")]


@pytest.mark.parametrize("times", [2, 3, 5])
def test_whole_replays_are_collapsed(times: int) -> None:
    """N, 2N, 3N messages come back as N, with the new turn behind them."""
    assert [*EXCHANGE, user("more")] == normalize([*EXCHANGE * times, user("more")], CHAT)


def test_growing_replays_are_collapsed() -> None:
    """Each run replays all before it and adds a turn; every turn is kept once."""
    second = [*EXCHANGE, user("two"), said("2")]

    assert [*second, user("three")] == normalize([*EXCHANGE, *second, user("three")], CHAT)


def test_only_proved_turns_of_a_partial_replay_go() -> None:
    """Of a copy that stops midway, what no id proves stays: it may have been said again."""
    history = [*EXCHANGE, *EXCHANGE[:4], user("more")]

    assert [*EXCHANGE, user("hi"), said("done"), user("more")] == normalize(history, CHAT)


def test_turns_between_two_proved_ones_go() -> None:
    """Inside a run that ids prove, turns without ids are part of the copy."""
    run = [
        calls(RANDOM),
        result(RANDOM),
        user("go on"),
        calls("call_77aXbYcZd1"),
        result("call_77aXbYcZd1"),
    ]
    history = [user("a"), *run, said("x"), *run, user("b")]

    assert [user("a"), *run, said("x"), user("b")] == normalize(history, CHAT)


def test_repeated_turns_without_ids_are_no_duplicates() -> None:
    """Nothing goes because it is equal to something else."""
    history = [user("yes"), said("ok"), user("yes"), said("ok"), user("yes")]

    assert explain(history, CHAT).edits == ()


@pytest.mark.parametrize(
    "call_id",
    [
        *("call_0", "c1", "edit:22", "0", "undefined", "call_00001", "agent1_call_0"),
        *("functions.get_s3_object:0", "chatcmpl-tool-7", "look:look:3"),
    ],
)
def test_counters_prove_nothing(call_id: str) -> None:
    """An exchange under an id that anyone can mint again is not taken for a replay."""
    history = [calls(call_id), result(call_id), calls(call_id), result(call_id)]

    assert explain(history, CHAT).edits == ()


def test_copy_without_its_result_goes() -> None:
    """Of two equal calls the one that was never answered is the replay, even under a counter."""
    history = [user("q"), calls("call_1"), user("q"), calls("call_1"), result("call_1"), said("a")]

    assert [user("q"), calls("call_1"), result("call_1"), said("a")] == normalize(history, CHAT)


def test_same_call_with_another_result_is_no_copy() -> None:
    """The tool was asked again and said something else: both exchanges stay, under two ids."""
    history = [call(RANDOM), output(RANDOM, "old"), user("y"), call(RANDOM), output(RANDOM, "new")]

    done = normalize(history, RESPONSES)
    assert ["old", "new"] == [item["output"] for item in done if "output" in item]
    assert 2 == len({item["call_id"] for item in done if "call_id" in item})


def test_parallel_calls_with_a_result_each_are_no_copies() -> None:
    """Two equal calls of one batch that were both answered are renamed, not collapsed."""
    done = normalize(
        [call(RANDOM), call(RANDOM), output(RANDOM, "1"), output(RANDOM, "2")], RESPONSES
    )

    ids = [item["call_id"] for item in done]
    assert (4, ids[:2]) == (len(done), ids[2:])


def test_call_twice_in_one_message_with_one_result_is_one_call() -> None:
    """The copy of a call inside its own message goes."""
    history = [calls(RANDOM, RANDOM), result(RANDOM), user("ok")]

    assert [calls(RANDOM), result(RANDOM), user("ok")] == normalize(history, CHAT)


def test_same_item_id_and_content_is_one_item() -> None:
    """An item that is sent twice under its server id is sent once."""
    history = [user("q"), message("msg_68a0f1c2", "a"), message("msg_68a0f1c2", "a"), user("n")]

    assert [user("q"), message("msg_68a0f1c2", "a"), user("n")] == normalize(history, RESPONSES)


def test_different_content_under_one_id_loses_the_id_not_the_content() -> None:
    """Both texts stay; the first keeps the id, so that what was sent before stays as it was."""
    second = message("msg_1", "two")
    del second["id"]

    report = explain([message("msg_1", "one"), user("b"), message("msg_1", "two")], RESPONSES)
    assert [message("msg_1", "one"), user("b"), second] == report.messages
    assert ["an id"] == [edit.loss for edit in report.edits]


def test_group_loses_its_ids_together() -> None:
    """If a call loses its id, the reasoning that led it does too, or goes without a proof."""
    first = [reasoning("rs_1", "E1"), call("call_aa11bb22", id="fc_1"), output("call_aa11bb22")]
    sealed = [reasoning("rs_2", "E2"), call("call_cc33dd44", id="fc_1"), output("call_cc33dd44")]
    bare = [reasoning("rs_3"), call("call_ee55ff66", id="fc_1"), output("call_ee55ff66")]

    done = normalize([*first, *sealed, *bare], RESPONSES)
    expected = [
        *first,
        *(reasoning(None, "E2"), call("call_cc33dd44"), output("call_cc33dd44")),
        *(call("call_ee55ff66"), output("call_ee55ff66")),
    ]
    assert expected == done


def test_reasoning_of_a_dropped_copy_goes_with_it() -> None:
    """No reasoning is left without the item it led."""
    run = [call(RANDOM, id="fc_77aa88bb"), output(RANDOM)]
    history = [reasoning("rs_0a1b2c3d", "E"), *run, reasoning("rs_4e5f6a7b", "F"), *run, user("x")]

    assert [reasoning("rs_0a1b2c3d", "E"), *run, user("x")] == normalize(history, RESPONSES)


def test_reference_to_an_item_that_is_there_goes() -> None:
    """An item is sent by value or by reference, not both."""
    reference = {"type": "item_reference", "id": "msg_68a0f1c2"}

    for pair in (
        [message("msg_68a0f1c2", "a"), reference],
        [reference, message("msg_68a0f1c2", "a")],
    ):
        assert [message("msg_68a0f1c2", "a")] == normalize(pair, RESPONSES)


def test_provenance_speaks_against_copies() -> None:
    """What another model made, or what was edited since, is no copy."""
    history = [calls(RANDOM), result(RANDOM), calls(RANDOM), result(RANDOM)]

    assert 2 == len(normalize(history, CHAT))
    for provenance in (Provenance(models={0: "a", 2: "b"}), Provenance(edited=frozenset({2}))):
        assert history == normalize(history, CHAT, context=Context(provenance=provenance))


def test_replay_with_results_in_another_order_is_collapsed() -> None:
    """The copy of parallel calls goes with its results, in whatever order they came."""
    one, two = "call_8sXk2Qp91Lm", "call_77aXbYcZd1"
    made = calls(one, two)

    history = [made, result(one, "1"), result(two, "2"), user("w")]
    copy = [made, result(two, "2"), result(one, "1"), user("z")]
    assert [*history, user("z")] == normalize([*history, *copy], CHAT)


def test_done_items_that_differ_both_stay_under_one_id() -> None:
    """Neither is a copy: the second result answers its own call, or is told as data."""
    shells = [
        {
            "type": "local_shell_call",
            "id": f"lsh_{own}",
            "call_id": own,
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        }
        for own in (RANDOM, "call_77aXbYcZd1")
    ]
    outputs = [
        {"type": "local_shell_call_output", "id": "same", "call_id": own, "output": text}
        for own, text in ((RANDOM, "one"), ("call_77aXbYcZd1", "two"))
    ]
    done = explain([*shells, *outputs], RESPONSES)
    assert ["one", "two"] == [item["output"] for item in done.messages[2:]]
    assert done.remaining == []

    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": None}
    marked = [search | {"x_mark": 1}, user("q"), search | {"x_mark": 2}]
    assert [search, user("q")] == normalize(marked, RESPONSES)

    made = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}"}
    told = normalize([made | {"output": "old"}, user("q"), made | {"output": "new"}], RESPONSES)
    assert made | {"output": "old"} == told[0]
    assert ("user", True) == (told[2]["role"], "new" in told[2]["content"])


def test_finished_copy_of_a_hosted_item_stays() -> None:
    """A stream leaves an unfinished copy; what the tool returned is kept."""
    item = {"type": "mcp_call", "id": "mcp_68afa1", "name": "x", "server_label": "s"}
    begun, done = {**item, "status": "in_progress"}, {**item, "status": "completed", "output": "D"}

    assert [user("q"), done] == normalize([user("q"), begun, done], RESPONSES)
    assert [user("q"), done] == normalize([user("q"), done, begun], RESPONSES)


def test_unknown_items_under_one_id_both_stay() -> None:
    """What is not known is never dropped for its id; the later one loses it."""
    one = {"type": "vendor", "id": "v1", "d": 1}

    policy = Policy(target=RESPONSES, passes=["dedupe"])
    assert [one, {"type": "vendor", "d": 2}] == normalize([one, {**one, "d": 2}], policy)


@pytest.mark.parametrize(
    "led",
    [
        [
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "web_search_call", "id": "ws_1"},
        ],
        [message("msg_9", "x"), {"type": "item_reference", "id": "msg_9"}],
    ],
)
def test_reasoning_goes_with_what_it_led(led: list[dict[str, object]]) -> None:
    """No pass leaves reasoning in front of something that it did not produce."""
    history = [user("q"), led[0], reasoning("rs_2"), led[1], user("z")]

    done = normalize(history, RESPONSES)
    assert not any(item.get("type") == "reasoning" for item in done)


def test_reasoning_is_not_given_to_a_stranger() -> None:
    """When a copy goes, its reasoning goes, though another item now follows."""
    exchange = [call(RANDOM, id="fc_68af01"), output(RANDOM)]
    history = [
        reasoning("rs_aa11bb22c"),
        *exchange,
        user("w"),
        reasoning("rs_dd11bb22c"),
        *exchange,
    ]

    done = normalize([*history, message("msg_a1b2c3", "done")], RESPONSES)
    expected = [reasoning("rs_aa11bb22c"), *exchange, user("w"), message("msg_a1b2c3", "done")]
    assert expected == done


def test_unanswered_copy_is_the_one_that_goes() -> None:
    """The call that was answered stays where it is, with its result behind it."""
    history = [user("q"), calls("call_1"), user("x"), calls("call_1"), result("call_1"), user("z")]

    report = explain(history, CHAT)
    assert ["messages[1]"] == [edit.where for edit in report.edits]
    assert [history[at] for at in (0, 2, 3, 4, 5)] == report.messages


def test_equal_calls_of_one_message_that_were_both_answered_stay() -> None:
    """Two results for two equal calls: the second is renamed, and nothing is quoted."""
    done = normalize([calls(RANDOM, RANDOM), result(RANDOM, "A"), result(RANDOM, "B")], CHAT)

    assert 2 == len(done[0]["tool_calls"])
    assert ["A", "B"] == [message["content"] for message in done[1:]]


def test_counted_message_ids_prove_nothing() -> None:
    """A client that numbers its messages anew each time did not send the same one twice."""
    yes = {**user("yes"), "id": "1"}
    history = [yes, said("ok"), {**yes}]
    assert history == normalize(history, "openai.chat")


def test_hosted_copy_between_calls_of_one_id_still_parts_them() -> None:
    """What stood between two calls parted them, also when it goes as a copy."""
    search = {"type": "web_search_call", "id": "ws_68a0f1c2", "status": "completed"}
    other = call("call_0", name="other")
    history = [user("x"), search, call("call_0"), dict(search), other, output("call_0")]
    ready = normalize(history, "openai.responses")
    answered = next(item["call_id"] for item in ready if item.get("name") == "other")
    assert output(answered) in ready
