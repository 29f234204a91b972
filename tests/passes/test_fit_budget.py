"""The oldest goes when it is too much, and nothing is torn apart."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import call, calls, message, output, reasoning, result, said, user
from convnorm import Context, Policy, PolicyError, check, explain, normalize
from convnorm.dialects import DIALECTS
from convnorm.edits import Loss
from convnorm.testing import laws
from convnorm.testing.strategies import Sample, broken

CHAT, RESPONSES = "openai.chat", "openai.responses"
SYSTEM = {"role": "system", "content": "Be brief."}


def fitted(messages: list[Any], target: str = CHAT, **options: Any) -> list[Any]:
    """What is sent, after a look at whether it would be taken and whether it stays so."""
    policy = Policy.for_target(target, fit_budget=options)
    done = normalize(messages, policy, context=Context(store=True))
    assert check(done, target, context=Context(store=True)) == []
    assert explain(done, policy, context=Context(store=True)).edits == ()
    return done


def test_whole_turns_go_and_instructions_stay() -> None:
    """A question goes with its answer and its calls, the oldest first."""
    first = [user("a"), calls("x", "y"), result("x"), result("y"), said("b")]
    rest = [user("c"), said("d"), user("e")]

    assert [SYSTEM, *first, *rest] == fitted([SYSTEM, *first, *rest], max_messages=9)
    for most in (8, 5, 4):
        assert [SYSTEM, *rest] == fitted([SYSTEM, *first, *rest], max_messages=most)
    assert [SYSTEM, user("e")] == fitted([SYSTEM, *first, *rest], max_messages=3)


def test_question_of_a_long_loop_stays() -> None:
    """In one turn the oldest exchanges go, each with all its results."""
    loop = [each for name in "abc" for each in (calls(name), result(name))]

    assert [user("q"), *loop[2:]] == fitted([user("q"), *loop], max_messages=6)
    assert [user("q"), *loop[4:]] == fitted([user("q"), *loop], max_messages=4)


def test_newest_messages_stay_with_their_exchange() -> None:
    """Of a block of results that is kept in part, everything is kept."""
    history = [user("a"), said("b"), user("c"), calls("x", "y"), result("x"), result("y")]

    assert history[2:] == fitted(history, max_messages=1)
    assert history == fitted(history, max_messages=1, keep_last=5)


def test_tools_first() -> None:
    """What tools returned goes before what was said."""
    old, new = [calls("o1"), result("o1")], [calls("o2"), result("o2")]

    done = fitted([user("a"), *old, *new, user("b")], max_messages=4, keep_last=2, first="tools")
    assert [user("a"), *new, user("b")] == done


def test_tokens() -> None:
    """Counted by the caller, or roughly."""
    history = [user("one two"), said("three"), user("four"), said("five")]

    assert history[2:] == fitted(history, max_tokens=3, count=lambda text: len(text.split()))
    assert history == fitted(history, max_tokens=5, count=lambda text: len(text.split()))
    assert history[2:] == fitted(history, max_tokens=5)


def test_reasoning_and_what_it_led_to() -> None:
    """They go together, and what the server made is not torn from its turn."""
    old = [user("a"), reasoning("rs_1"), call("x", id="fc_1"), output("x"), message("msg_1", "b")]
    new = [user("c"), reasoning("rs_2"), message("msg_2", "d")]

    assert new == fitted([*old, *new], RESPONSES, max_messages=7)


def test_compacted_history_stays() -> None:
    """What convnorm does not look into may be everything that was said before."""
    compacted = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gA"}

    history = [user("a"), compacted, user("b"), said("c"), user("d")]
    assert [compacted, user("d")] == fitted(history, RESPONSES, max_messages=2)


def test_limit_of_the_server() -> None:
    """Without options, what the server is known to take; where nobody knows, all of it."""
    history = [user(str(at)) for at in range(2050)]
    azure = Policy.for_target(CHAT, provider="azure", fit_budget={})

    report = explain(history, azure)
    assert history[2:] == report.messages
    assert {("chat-messages-too-many", Loss.OLDEST)} == {
        (edit.rule, edit.loss) for edit in report.edits
    }
    assert history == normalize(history, Policy.for_target(CHAT, fit_budget={}))
    assert history == normalize(history, Policy.for_target(CHAT, provider="azure"))


def test_long_texts_are_cut_with_a_mark() -> None:
    """The mark says how much is gone; what is short enough is the same object."""
    parts = [{"type": "input_text", "text": "z" * 900}, {"type": "input_text", "text": "short"}]
    history = [user("q"), call("x"), output("x", "y" * 1000), call("p"), output("p", parts)]

    done = fitted(history, RESPONSES, max_output=300)
    assert 300 >= len(done[2]["output"]) > 280
    kept = done[2]["output"].index("[convnorm:cut ")
    assert f" {1000 - kept} characters are left out" in done[2]["output"]
    assert ["short"] == [part["text"] for part in done[4]["output"][1:]]
    assert history[:2] == done[:2]


def test_texts_longer_than_the_server_takes() -> None:
    """Any text, output or arguments; nothing else of the item changes."""
    long = "x" * 10_485_761
    history = [user(long), {**call("a"), "arguments": f'{{"q": "{long}"}}'}, output("a", long)]

    done = fitted(history, RESPONSES)
    lengths = [len(done[0]["content"]), len(done[1]["arguments"]), len(done[2]["output"])]
    assert max(lengths) <= 10_485_760


def test_what_has_to_stay_is_said() -> None:
    """A budget that cannot be kept is no reason to tear something apart."""
    policy = Policy.for_target(CHAT, fit_budget={"max_messages": 1})
    report = explain([SYSTEM, user("q"), calls("x"), result("x")], policy)

    assert ((), 4) == (report.edits, len(report.messages))
    assert "what has to stay is over the budget: 4 messages" in report.assumed[0]


def test_output_of_a_call_that_the_server_has_stays() -> None:
    """The server waits for it, however much there is."""
    body = {"previous_response_id": "resp_1", "input": [output("x"), user("a"), user("b")]}
    policy = Policy.for_target(RESPONSES, fit_budget={"max_messages": 1})

    report = explain(body, policy)
    assert [output("x"), user("b")] == report.messages


def test_options_are_checked() -> None:
    """A budget of nothing is a mistake."""
    with pytest.raises(PolicyError, match="max_messages"):
        Policy.for_target(CHAT, fit_budget={"max_messages": 0})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_laws_that_hold_for_it_too(dialect: str) -> None:
    """Whatever is broken and however small the budget, what is sent is taken, and final."""

    @given(broken(dialect), st.integers(1, 8), st.integers(1, 3), st.booleans())
    def holds(sample: Sample, most: int, last: int, tools: bool) -> None:
        options = {"max_messages": most, "keep_last": last, "first": "tools" if tools else "turns"}
        policy = Policy.for_target(dialect, fit_budget=options)
        for law in (laws.pure, laws.sound, laws.idempotent, laws.deterministic, laws.surveyed):
            law(sample, policy)
        report = explain(sample.request, policy, context=sample.context)
        over = any("over the budget" in each for each in report.assumed)
        assert over or len(report.messages) <= most

    holds()
