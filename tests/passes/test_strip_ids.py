"""Items are replayed by value when the server stored nothing."""

import pytest

from builders import call, message, output, reasoning, user
from convnorm import Context, Policy, explain, normalize, normalize_request

RESPONSES = "openai.responses"
UNSTORED = Context(store=False)
ASKED = {"type": "search", "query": "q"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": ASKED}


def without_id(item: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in item.items() if key != "id"}


def test_ids_of_items_sent_by_value_go() -> None:
    """Messages, calls, outputs and sealed reasoning lose their ids and nothing else."""
    history = [
        user("q"),
        reasoning("rs_1", "E"),
        call("c", id="fc_1"),
        {**output("c"), "id": "fco_1"},
        message("msg_1", "a"),
    ]

    assert [without_id(item) for item in history] == normalize(history, RESPONSES, context=UNSTORED)


def test_reasoning_without_its_proof_goes() -> None:
    """Nothing usable is left of it, and the loss is named."""
    report = explain([reasoning("rs_1"), message("msg_1", "a")], RESPONSES, context=UNSTORED)

    assert [without_id(message("msg_1", "a"))] == report.messages
    assert [("resp-item-not-persisted", True), ("id-unstored", False)] == [
        (edit.rule, edit.loss is not None) for edit in report.edits
    ]


def test_items_the_server_made_keep_their_ids() -> None:
    """A hosted item is refused without its id, and so is a group that keeps half of its ids."""
    history = [reasoning("rs_1", "E"), SEARCH, {"type": "mcp_call", "id": "mcp_1", "name": "x"}]

    assert explain(history, RESPONSES, context=UNSTORED).edits == ()


@pytest.mark.parametrize("store", [True, None])
def test_stored_items_keep_their_ids(store: bool | None) -> None:
    """Only `store: false` wakes the pass."""
    body = {"input": [reasoning("rs_1"), call("c", id="fc_1"), output("c")], "store": store}

    assert body == normalize_request(body, RESPONSES)


def test_endpoints_that_want_the_ids_keep_them() -> None:
    """Azure Foundry keeps the ids of a sealed group; unusable reasoning still goes."""
    foundry = Policy.for_target(RESPONSES, provider="azure-foundry")
    sealed = [reasoning("rs_1", "E"), call("c", id="fc_1"), output("c")]
    bare = [reasoning("rs_2"), call("d", id="fc_2"), output("d")]

    done = normalize([*sealed, *bare], foundry, context=UNSTORED)
    assert [*sealed, call("d"), output("d")] == done


def test_reasoning_that_is_read_as_text_stays() -> None:
    """vLLM reads reasoning back from its text."""
    vllm = Policy.for_target(RESPONSES, provider="vllm")

    assert explain([reasoning("rs_1"), message("msg_1", "a")], vllm, context=UNSTORED).edits == ()


def test_references_are_left_and_the_assumption_is_said() -> None:
    """An item reference may name something that an earlier call stored."""
    history = [{"type": "item_reference", "id": "msg_9"}, call("c", id="fc_1"), output("c")]

    report = explain(history, RESPONSES, context=UNSTORED)
    assert history[0] is report.messages[0]
    assert ("msg_9 is taken for stored: an item refers to it",) == report.assumed


def test_bare_list_with_ids_says_what_was_assumed() -> None:
    """A list shows no `store`: ids are taken for stored, and the report says so."""
    history = [message("msg_1", "a")]

    (assumed,) = explain(history, RESPONSES).assumed
    assert "taken for stored" in assumed
    assert explain(history, RESPONSES, context=Context(store=True)).assumed == ()
    assert explain({"input": history}, RESPONSES).assumed == ()


def test_ids_that_lost_no_lead_stay_where_they_are_wanted() -> None:
    """Azure Foundry: only what the dropped reasoning led loses its id."""
    foundry = Policy.for_target(RESPONSES, provider="azure-foundry")
    history = [reasoning("rs_1"), message("msg_1", "a"), user("q"), message("msg_2", "b")]

    expected = [without_id(message("msg_1", "a")), user("q"), message("msg_2", "b")]
    assert expected == normalize(history, foundry, context=UNSTORED)


def test_reasoning_keeps_its_id_beside_a_hosted_item() -> None:
    """A group keeps its ids on both sides: the hosted item needs its own."""
    history = [reasoning("rs_1", "E"), SEARCH, message("msg_1", "a")]

    expected = [*history[:2], without_id(message("msg_1", "a"))]
    assert expected == normalize(history, RESPONSES, context=UNSTORED)


def test_stored_ids_stay_though_other_things_are_mended() -> None:
    """Ids go only where the server stores nothing, whatever else was wrong."""
    history = [call("a", id="fc_68a1"), user("and?")]
    for store in (True, None):
        body = {"input": history} | ({} if store is None else {"store": store})
        assert "fc_68a1" == normalize_request(body, "openai.responses")["input"][0]["id"]
