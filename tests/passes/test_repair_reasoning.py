"""Reasoning is sent where it is taken, whole and with what it led to."""

from typing import Any

import pytest

from builders import call, calls, message, output, reasoning, result, said, user
from convnorm import Context, Policy, Provenance, check, explain, normalize
from convnorm.delivery import Ledger

CHAT, RESPONSES = "openai.chat", "openai.responses"


def stored(*items: Any) -> Context:
    """The context of a server that made these items in one response."""
    return Context(ledger=Ledger.from_state({"responses": {"resp_1": {"output": list(items)}}}))


def sent(items: list[Any], policy: Policy | str = RESPONSES, **facts: Any) -> list[Any]:
    """What is sent, after a look at whether it would be taken."""
    context = facts.pop("context", None) or Context(**facts)
    done = normalize(items, policy, context=context)
    assert check(done, policy, context=context) == []
    return done


@pytest.mark.parametrize("behind", [[], [user("b")], [output("x")]])
def test_reasoning_without_what_it_led_to_goes(behind: list[Any]) -> None:
    """Whatever stands there instead stays."""
    start = [user("a"), call("x"), *([] if behind == [output("x")] else [output("x")])]

    done = sent([*start, reasoning("rs_1"), *behind], store=True)
    assert [*start, *behind] == done


def test_reasoning_behind_reasoning() -> None:
    """One that leads another is in order, and both go when nothing follows."""
    group = [reasoning("rs_1"), reasoning("rs_2"), message("msg_1", "x")]

    assert group == sent(group, store=True)
    assert [user("a")] == sent([user("a"), *group[:2]], store=True)


def test_model_that_does_not_reason() -> None:
    """The reasoning goes, with the ids of all that it led."""
    policy = Policy.for_target(RESPONSES, model="gpt-4o")
    items = [user("a"), reasoning("rs_1"), call("x", id="fc_1"), call("y", id="fc_2")]
    results = [output("x"), output("y")]

    done = sent([*items, *results, message("msg_9", "b")], policy, store=True)
    assert [user("a"), call("x"), call("y"), *results] == done[:5]
    assert "msg_9" == done[5]["id"]


def test_reasoning_sealed_for_somebody_else() -> None:
    """A ledger tells whose it is; what is no seal at all is seen without one."""
    state = {"organization": "org_a", "encrypted_content": {"gB": {"organization": "org_b"}}}
    context = Context(store=True, ledger=Ledger.from_state(state))
    items = [user("a"), reasoning("rs_1", "gB"), message("msg_1", "b")]
    bare = {key: value for key, value in items[2].items() if key != "id"}

    assert [user("a"), bare] == sent(items, context=context)
    plain = [user("a"), reasoning("rs_1", "work it out"), said("b")]
    assert [user("a"), said("b")] == sent(plain, store=True)


def test_item_whose_reasoning_is_missing() -> None:
    """A stored item is sent by value when its reasoning is not right before it."""
    items = [reasoning("rs_1"), call("x", id="fc_1")]

    done = sent([user("a"), items[1], output("x")], context=stored(*items))
    assert [user("a"), call("x"), output("x")] == done
    whole = [user("a"), *items, output("x")]
    assert whole == sent(whole, context=stored(*items))


def test_summary_and_plain_text() -> None:
    """A missing summary is an empty one; words go where they are not taken, and stay elsewhere."""
    words = [{"type": "reasoning_text", "text": "hm"}]
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gA", "content": words}

    done = sent([user("a"), thought, said("b")], store=True)
    assert {**reasoning("rs_1", "gA")} == done[1]
    vllm = Policy.for_target(RESPONSES, provider="vllm")
    done = sent([user("a"), thought, said("b")], vllm, store=True)
    assert {**thought, "summary": []} == done[1]


def test_reasoning_that_says_nothing() -> None:
    """Without id, proof and words it goes; with words only where a conversation refuses it."""
    words = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    items = [user("a"), reasoning(), said("b"), words, said("c")]

    assert [user("a"), said("b"), words, said("c")] == sent(items)
    state = Ledger.from_state({"conversations": {"conv_1": []}})
    done = sent(items, context=Context(conversation="conv_1", ledger=state))
    assert [user("a"), said("b"), said("c")] == done


def test_foundry_wants_the_id() -> None:
    """There, reasoning that lost its id goes; with its id it stays."""
    foundry = Policy.for_target(RESPONSES, provider="azure-foundry")
    items = [user("a"), reasoning(None, "gA"), said("b"), reasoning("rs_2", "gB"), said("c")]

    assert [user("a"), said("b"), *items[3:]] == sent(items, foundry, store=False)


def test_one_sealed_response() -> None:
    """Azure's gpt-6 gets the reasoning of the newest turn, and both of a turn with two."""
    policy = Policy.for_target(RESPONSES, provider="azure", model="gpt-6-astra")
    old = [user("a"), reasoning(None, "gA"), said("b")]
    new = [
        user("c"),
        reasoning(None, "gB"),
        call("x"),
        output("x"),
        reasoning(None, "gC"),
        said("d"),
    ]

    assert [user("a"), said("b"), *new] == sent([*old, *new], policy, store=False)


def test_reasoning_of_another_model() -> None:
    """It goes with the ids that it led; who made the rest nobody says."""
    items = [user("a"), reasoning("rs_1", "gA"), message("msg_1", "b"), user("c")]
    items += [reasoning("rs_2", "gB"), message("msg_2", "d")]
    policy = Policy.for_target(RESPONSES, model="gpt-5.1")
    context = Context(store=True, provenance=Provenance(models={1: "o3", 2: "o3"}))

    report = explain(items, policy, context=context)
    ids = [item.get("id") for item in report.messages]
    assert [None, None, None, "rs_2", "msg_2"] == ids
    assert {"reasoning-of-another-model"} == {edit.rule for edit in report.edits}


DEEPSEEK = Policy.for_target(CHAT, provider="deepseek", model="deepseek-v4-pro")
KIMI = Policy.for_target(CHAT, provider="moonshot", model="kimi-k2.5")


def test_reasoning_that_a_server_wants_back() -> None:
    """A blank stands for what nobody kept, and the words where another key has them."""
    known = {**calls("b"), "reasoning": "hm"}
    history = [user("q"), calls("a"), result("a"), known, result("b"), said("done"), user("more")]

    done = sent(history, DEEPSEEK)
    assert [" ", "hm", " "] == [each["reasoning_content"] for each in done[1:6:2]]
    done = sent(history, KIMI)
    assert ["", "hm"] == [each["reasoning_content"] for each in done[1:5:2]]
    assert said("done") == done[5]


def test_thinking_can_be_switched_off() -> None:
    """Then nothing is missing; and where it is on by request, it is."""
    request = {"messages": [user("q"), calls("a"), result("a")], "thinking": {"type": "disabled"}}

    assert explain(request, DEEPSEEK).edits == ()
    chat = Policy.for_target(CHAT, provider="deepseek", model="deepseek-chat")
    assert explain(request | {"thinking": {"type": "enabled"}}, chat).edits != ()


def test_entry_of_reasoning_stands_once() -> None:
    """The first message keeps it."""
    policy = Policy.for_target(CHAT, provider="openrouter", model="openai/gpt-5-codex")
    one, two = {"id": "rs_1", "data": "A"}, {"id": "rs_2", "data": "B"}
    history = [
        {**calls("a"), "reasoning_details": [one]},
        result("a"),
        {**said("x"), "reasoning_details": [one]},
        {**said("y"), "reasoning_details": [one, two]},
    ]

    done = sent(history, policy)
    assert [[one], None, None, [two]] == [each.get("reasoning_details") for each in done]


def test_call_without_its_signature_is_quoted() -> None:
    """Gemini would refuse it; what was asked and returned can still be read."""
    policy = Policy.for_target(CHAT, provider="openrouter", model="google/gemini-3-pro-preview")
    signed = {**calls("b"), "reasoning_details": [{"type": "reasoning.encrypted", "data": "A"}]}
    history = [user("q"), calls("a", arguments='{"x": 1}'), result("a", "42"), signed, result("b")]

    done = sent(history, policy)
    assert [signed, result("b")] == done[-2:]
    assert [True, True] == [text in done[1]["content"] for text in ('{"x": 1}', "42")]
    assert "user" == done[1]["role"]


def test_a_plain_seal_is_left_where_nobody_checks_it() -> None:
    """Only OpenAI's servers were seen to refuse encrypted content that is plain text."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "work it out"}
    history = [user("a"), thought, {"role": "assistant", "content": "b"}]

    for provider in ("ollama", "mlx-vlm"):
        policy = Policy.for_target("openai.responses", provider=provider)
        assert history == explain({"input": history}, policy).messages
    assert thought not in explain({"input": history}, "openai.responses").messages


def test_reasoning_without_an_id_is_looked_at_when_somebody_knows_it() -> None:
    """A ledger or a provenance can tell of sealed reasoning that has lost its id."""
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB1"}
    history = [user("a"), thought, {"role": "assistant", "content": "b"}]
    ledger = {"organization": "org_a", "encrypted_content": {"gAAAAAB1": {"organization": "org_b"}}}
    policy = Policy.for_target("openai.responses", model="gpt-5.1")

    for context in (
        Context(ledger=Ledger.from_state(ledger)),
        Context(provenance=Provenance(models={1: "o3"})),
    ):
        done = explain({"input": history, "store": False}, policy, context=context).messages
        assert [history[0], history[2]] == done
