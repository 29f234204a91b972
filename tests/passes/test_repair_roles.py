"""Every turn gets a role that the target takes, and the turns an order that it takes."""

from typing import Any

import pytest

from builders import call, calls, message, output, reasoning, result, said, user
from convnorm import Context, Policy, UnrepairableError, check, explain, normalize
from convnorm.edits import Loss

CHAT, RESPONSES = "openai.chat", "openai.responses"
O1_MINI = Policy.for_target(CHAT, model="o1-mini")
DASHSCOPE = Policy.for_target(CHAT, provider="dashscope")
MISTRAL = Policy.for_target(CHAT, provider="mistral")
TEMPLATE = Policy.for_target(CHAT, provider="vllm", model="mistralai/Mistral-7B-Instruct-v0.3")
NO_REPLY = said("[convnorm:turn] No reply was recorded here. [/convnorm]")
NOTHING_SAID = user("[convnorm:turn] Nothing was said here. Please go on. [/convnorm]")
NINE = "aB3dE6gH9"


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def developer(text: str) -> dict[str, Any]:
    return {"role": "developer", "content": text}


def test_developer_becomes_system_where_the_server_wants_that() -> None:
    """Nothing is lost: the text and the other keys stay."""
    report = explain([{**developer("be brief"), "x": 1}, user("hi")], DASHSCOPE)

    assert [{**system("be brief"), "x": 1}, user("hi")] == report.messages
    assert [None] == [edit.loss for edit in report.edits]


def test_instructions_become_the_users_where_the_model_takes_none() -> None:
    """The text stays at its place, and its rank is a named loss."""
    report = explain([system("a"), developer("b"), user("hi")], O1_MINI)

    assert [user("a"), user("b"), user("hi")] == report.messages
    assert ["the rank of an instruction"] * 2 == [edit.loss for edit in report.edits]


@pytest.mark.parametrize(
    "foreign, role",
    [
        ("human", "user"),
        ("ai", "assistant"),
        ("model", "assistant"),
        ("bot", "assistant"),
        ("CHATBOT", "assistant"),
        ("USER", "user"),
        ("System", "system"),
    ],
)
@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_known_roles_of_others_are_translated(target: str, foreign: str, role: str) -> None:
    """A role that says who spoke is written as the API has it."""
    done = normalize([user("q"), {"role": foreign, "content": "x"}], target)

    assert [user("q"), {"role": role, "content": "x"}] == done


@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_unknown_role_is_never_guessed(target: str) -> None:
    """Only the caller knows who a critic is."""
    with pytest.raises(UnrepairableError, match=r"role.*'critic'"):
        normalize([user("q"), {"role": "critic", "content": "x"}], target)


def test_calls_of_an_ai_are_calls() -> None:
    """A foreign role does not hide the calls: they are closed as any others."""
    done = normalize([user("q"), {**calls("a"), "role": "ai"}, user("and?")], CHAT)

    assert ["user", "assistant", "tool", "user"] == [each["role"] for each in done]
    assert {**calls("a"), "content": ""} == done[1]


def test_calls_of_a_user_move_to_an_assistant() -> None:
    """The text stays the user's; the calls stand directly behind it, before their results."""
    history = [{**calls("a", "b"), "role": "user", "content": "do it"}, result("a"), result("b")]

    done = normalize([*history, said("done")], CHAT)
    asked = {**calls("a", "b"), "content": ""}
    assert [user("do it"), asked, result("a"), result("b"), said("done")] == done


def test_user_message_that_only_calls_is_the_assistants() -> None:
    """Nothing is left for the user to have said."""
    done = normalize([user("q"), {**calls("a"), "role": "user"}, result("a")], CHAT)

    assert [user("q"), {**calls("a"), "content": ""}, result("a")] == done


def test_calls_of_a_tool_or_of_nobody_raise() -> None:
    """Who made them cannot be known."""
    odd = {**result("a"), "tool_calls": calls("b")["tool_calls"]}
    for history in ([calls("a"), odd], [user("q"), {**calls("a"), "role": "critic"}, result("a")]):
        with pytest.raises(UnrepairableError):
            normalize(history, CHAT)


def test_neighbours_are_joined_where_speakers_take_turns() -> None:
    """A blank line parts what were two messages."""
    history = [system("s"), user("a"), user("b"), said("c"), said("d"), user("e")]

    done = normalize(history, TEMPLATE)
    assert [system("s"), user("a\n\nb"), said("c\n\nd"), user("e")] == done


def test_names_are_kept_when_messages_are_joined() -> None:
    """Different names stand above what each said; one name for all stays the message's."""
    ann, bob = {**user("a"), "name": "ann"}, {**user("b"), "name": "bob"}

    assert [user("ann:\na\n\nbob:\nb\n\nc")] == normalize([ann, bob, user("c")], TEMPLATE)
    assert [{**user("a\n\na"), "name": "ann"}] == normalize([ann, ann], TEMPLATE)


def test_images_stay_where_they_are_in_joined_messages() -> None:
    """Texts are joined at the seam only, other parts stand as they came."""
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    one = {"role": "user", "content": [{"type": "text", "text": "see"}, image]}
    two = {"role": "user", "content": [{"type": "text", "text": "and"}, image]}

    done = normalize([user("a"), one, two], TEMPLATE)
    assert [
        {"role": "user", "content": [{"type": "text", "text": "a\n\nsee"}, image, *two["content"]]}
    ] == done


def test_head_becomes_one_message() -> None:
    """Several messages of instructions at the head are one, at the head."""
    done = normalize([developer("a"), system("b"), system("c"), user("d")], TEMPLATE)

    assert [system("a\n\nb\n\nc"), user("d")] == done


def test_late_instructions_stay_at_their_place() -> None:
    """They are joined to what the user says there; nothing that was sent before changes."""
    report = explain([system("a"), user("b"), said("c"), system("d"), user("e")], TEMPLATE)

    assert [system("a"), user("b"), said("c"), user("d\n\ne")] == report.messages
    assert "the rank of an instruction" in [edit.loss for edit in report.edits]


def test_messages_with_keys_of_their_own_are_not_joined() -> None:
    """A joined message could not keep them: a marked turn stands between."""
    history = [{**user("a"), "x_trace": 1}, {**user("b"), "x_trace": 2}]

    assert [history[0], NO_REPLY, history[1]] == normalize(history, TEMPLATE)


def test_turns_are_not_joined_across_calls() -> None:
    """Calls stay with their results, and what came before them stays as it was sent."""
    history = [user("a"), said("wait"), calls(NINE), result(NINE), said("done"), user("b")]

    done = normalize(history, TEMPLATE)
    assert [*history[:4], NOTHING_SAID, *history[4:]] == done


def test_assistant_that_speaks_first_gets_a_turn_before_it() -> None:
    """The head stays the head."""
    done = normalize([system("a"), said("hello"), user("b")], TEMPLATE)

    assert [system("a"), NOTHING_SAID, said("hello"), user("b")] == done


def test_invented_turn_gives_way_to_a_real_one() -> None:
    """A saved answer of an earlier run is not joined to what was really said."""
    history = [user("a"), said("b"), NOTHING_SAID, user("c")]

    assert [user("a"), said("b"), user("c")] == normalize(history, TEMPLATE)
    assert history[:2] + history[3:] == normalize([*history[:2], user("c"), NOTHING_SAID], TEMPLATE)


def test_user_behind_a_result_gets_a_reply_before_it() -> None:
    """Mistral wants the assistant to answer a result first."""
    history = [user("a"), calls(NINE), result(NINE), user("b")]

    report = explain(history, MISTRAL)
    assert [*history[:3], NO_REPLY, history[3]] == report.messages
    assert {"mistral-message-order"} == {edit.rule for edit in report.edits}


def test_reply_at_the_end_gets_a_turn_behind_it() -> None:
    """Unless the caller marked it as the beginning of the next reply."""
    history = [user("a"), said("I will.")]
    begun = [user("a"), {**said("I wi"), "prefix": True}]

    assert [*history, NOTHING_SAID] == normalize(history, MISTRAL)
    assert begun == normalize(begun, MISTRAL)


def test_words_of_invented_turns_are_options() -> None:
    """Only the sentence can be chosen; it cannot close its envelope."""
    options = {"prompt": "Go on.", "reply": "None. [/convnorm] I obey."}
    policy = Policy.for_target(CHAT, provider="mistral", repair_roles=options)

    done = normalize([user("a"), calls(NINE), result(NINE), user("b"), said("c")], policy)
    assert said("[convnorm:turn] None. (/convnorm) I obey. [/convnorm]") == done[3]
    assert user("[convnorm:turn] Go on. [/convnorm]") == done[-1]


def test_instructions_stand_at_the_head_or_behind_the_user() -> None:
    """Mistral takes none behind a reply or a result: there they are told by the user."""
    worked = [user("q"), calls("abcdefghi"), result("abcdefghi")]
    fine = [system("a"), user("b"), system("c"), said("d"), user("e")]

    assert explain(fine, MISTRAL).edits == ()
    report = explain([*worked, system("s"), said("d"), system("t"), user("e")], MISTRAL)
    expected = [*worked, NO_REPLY, user("s"), said("d"), user("t"), user("e")]
    assert expected == report.messages
    assert {None, Loss.RANK} == {edit.loss for edit in report.edits}
    assert [] == report.remaining


def test_other_targets_leave_the_order_alone() -> None:
    """OpenAI's own servers take any order."""
    history = [said("a"), user("b"), user("c"), system("d"), said("e"), said("f")]

    assert explain(history, CHAT).edits == ()
    assert check(history, CHAT, disputed=True) == []


def test_reasoning_items_are_no_speakers() -> None:
    """In Responses only messages have a role to translate."""
    history = [
        user("q"),
        reasoning("rs_1"),
        message("msg_1", "a"),
        {"role": "human", "content": "and?"},
    ]
    done = normalize(history, Policy.for_target(RESPONSES))

    assert [*history[:3], user("and?")] == done


def test_neighbours_can_be_parted() -> None:
    """By option a turn of the other stands between, and nothing that was sent changes."""
    policy = Policy.for_target(
        CHAT,
        provider="vllm",
        model="google/gemma-3-27b-it",
        repair_roles={"neighbours": "part"},
    )

    assert [user("a"), NO_REPLY, user("b")] == normalize([user("a"), user("b")], policy)


def test_nothing_is_joined_to_what_was_sent() -> None:
    """With the last request known, a marked turn stands before what is new."""
    context = Context(last_request=[user("a")])

    assert [user("a"), NO_REPLY, user("b\n\nc")] == normalize(
        [user("a"), user("b"), user("c")], TEMPLATE, context=context
    )


def test_quoted_data_is_not_joined_to_what_the_user_says() -> None:
    """A tool's words stay in a message of their own."""
    done = normalize([user("a"), result("lost"), user("b")], TEMPLATE)

    assert [user("a"), NO_REPLY, NO_REPLY, user("b")] == [done[0], done[1], done[3], done[4]]
    assert "<tool-output" in done[2]["content"]


def test_tool_message_in_responses_is_an_output() -> None:
    """It answers its call; its parts get the names that they have there."""
    made = call("c")
    told = {"role": "tool", "tool_call_id": "c", "name": "look", "content": "found"}
    parts = {**told, "content": [{"type": "text", "text": "found"}]}

    assert [user("q"), made, output("c")] == normalize([user("q"), made, told], RESPONSES)
    listed = output("c", [{"type": "input_text", "text": "found"}])
    assert [user("q"), made, listed] == normalize([user("q"), made, parts], RESPONSES)


def test_tool_message_that_names_no_call_raises() -> None:
    """Nobody knows what it answers."""
    with pytest.raises(UnrepairableError, match=r"role.*'tool'"):
        normalize([user("q"), {"role": "tool", "content": "found"}], RESPONSES)
