"""One of several replayed histories owns what they share."""

from typing import Any

import pytest

from builders import call, calls, message, output, reasoning, result, said, user
from convnorm import (
    Context,
    Ledger,
    Link,
    Policy,
    PolicyError,
    explain,
    normalize,
    normalize_request,
)

CHAT = "openai.chat"


def merged(
    *sources: tuple[str, list[dict[str, object]]],
) -> tuple[list[dict[str, object]], Context]:
    """Histories in a row, each message labelled with its source."""
    history = [element for _, elements in sources for element in elements]
    labels = tuple(label for label, elements in sources for _ in elements)
    return history, Context(sources=labels)


def arbitrate(strategy: str, *sources: tuple[str, list[dict[str, object]]]) -> list[object]:
    history, context = merged(*sources)
    policy = Policy.for_target(CHAT, arbitrate_sources={"strategy": strategy})
    return normalize(history, policy, context=context)


def test_growth_over_three_turns_is_linear() -> None:
    """Executor and provider replay at every turn: N, N+k, N+2k messages, not N, 2N, 3N."""
    conversation: list[dict[str, object]] = [user("hello")]
    lengths = []
    for turn in range(3):
        new = [said(f"answer {turn}"), user("hello")]
        done = arbitrate("merge", ("store", conversation), ("input", [*conversation, *new]))
        assert [*conversation, *new] == done
        conversation = [*conversation, *new]
        lengths.append(len(done))
    assert [3, 5, 7] == lengths


def test_repetition_inside_one_source_survives() -> None:
    """A user who says the same twice is heard twice."""
    own = [user("yes"), said("ok"), user("yes"), said("ok")]

    assert [*own, user("yes")] == arbitrate("merge", ("a", own), ("b", [*own, user("yes")]))


def test_new_turn_that_equals_an_old_one_survives() -> None:
    """The newest source's last words are new, even if they were said before."""
    store = [user("hello"), said("hi")]

    assert [*store, user("hello")] == arbitrate(
        "merge", ("store", store), ("input", [user("hello")])
    )


def test_older_part_replayed_by_the_newest_source_goes() -> None:
    """A source that holds only the beginning of another adds nothing but its last words."""
    store = [user("a"), said("b"), user("c"), said("d")]

    done = arbitrate("merge", ("store", store), ("input", [user("a"), said("b")]))
    assert store == done


def test_sources_that_differ_are_both_kept_and_reported() -> None:
    """No whole copy, no drop; the report says what was assumed."""
    history, context = merged(("a", [user("1"), said("2")]), ("b", [user("1"), said("3")]))

    report = explain(history, CHAT, context=context)
    assert (history, ()) == (report.messages, report.edits)
    assert ("source 'b' replays no other: all of it was kept, in order",) == report.assumed


@pytest.mark.parametrize("first", [True, False])
def test_instructions_of_one_source_hide_no_replay(first: bool) -> None:  # a parameter
    """Not every source keeps them: what is said behind them is compared."""
    rules: dict[str, object] = {"role": "system", "content": "be kind"}
    head = [rules][: int(first)]
    other = [rules][int(first) :]
    talk = [user("a"), said("b")]

    done = arbitrate("merge", ("store", [*head, *talk]), ("input", [*other, *talk, user("c")]))
    assert [*head, *talk, *other, user("c")] == done
    both = arbitrate("merge", ("store", [rules, *talk]), ("input", [rules, *talk, user("c")]))
    assert [rules, *talk, user("c")] == both
    alone = arbitrate("merge", ("store", [rules]), ("input", [rules, user("a")]))
    assert [rules, user("a")] == alone


def test_shared_ids_prove_single_copies() -> None:
    """Where sources differ, messages with the same id are still copies."""
    exchange = [calls("call_8sXk2Qp91Lm"), result("call_8sXk2Qp91Lm")]

    done = arbitrate(
        "merge", ("a", [user("1"), *exchange]), ("b", [user("2"), *exchange, said("3")])
    )
    assert [user("1"), *exchange, user("2"), said("3")] == done


def test_owner_can_be_named_or_be_the_longest() -> None:
    """The owner's history is kept; what only others have goes, with the loss named."""
    one = [user("x"), said("y"), user("z")]
    two = [user("a"), said("b")]

    assert one == arbitrate("longest", ("two", two), ("one", one))
    assert [*two, *one] == arbitrate("prefer:two", ("two", two), ("one", one))
    assert one == arbitrate("prefer:one", ("two", two), ("one", one))


def test_unknown_owner_is_refused() -> None:
    """A preferred source that is not there is a mistake, not a wish."""
    with pytest.raises(PolicyError, match="prefers 'nobody'"):
        arbitrate("prefer:nobody", ("a", [user("1")]), ("b", [user("2")]))


def test_every_message_needs_a_label() -> None:
    """Labels that do not fit the list are refused."""
    with pytest.raises(PolicyError, match="2 labels for 1 messages"):
        normalize([user("a")], CHAT, context=Context(sources=("x", "y")))


def test_unlabelled_messages_are_left_alone() -> None:
    """None is no source."""
    history = [message("msg_1", "a"), user("b"), user("b")]

    report = explain(history[1:], CHAT, context=Context(sources=(None, "a")))
    assert report.edits == ()


def test_counters_prove_nothing_across_sources() -> None:
    """A tool that was asked again under the same counter keeps its answer."""
    one = [user("ready?"), calls("call_0"), result("call_0", "no")]
    two = [user("now?"), calls("call_0"), result("call_0", "yes")]

    assert [*one, *two] == arbitrate("merge", ("a", one), ("b", two))


def test_three_sources_share_one_beginning() -> None:
    """Each source adds what it has alone."""
    start = [user("a"), said("b")]

    done = arbitrate(
        "merge", ("x", start), ("y", [*start, user("c")]), ("z", [*start, user("c"), said("d")])
    )
    assert [*start, user("c"), said("d")] == done


@pytest.mark.parametrize("strategy", ["prefer:b", "longest"])
def test_owner_is_told_first(strategy: str) -> None:
    """What the owner shares with a source before it is kept, and the newest words come last."""
    one = [user("1"), said("2")]
    two = [*one, user("3"), said("4")]

    assert [*two, user("5")] == arbitrate(strategy, ("a", one), ("b", two), ("c", [user("5")]))


def test_history_that_its_owner_does_not_have_is_a_named_loss() -> None:
    """Dropping what is no copy is reported as what it is."""
    history, context = merged(
        ("a", [user("lost")]), ("b", [user("1"), said("2")]), ("c", [user("3")])
    )
    policy = Policy.for_target(CHAT, arbitrate_sources={"strategy": "longest"})

    report = explain(history, policy, context=context)
    lost = ["turns of a source that does not own the history"]
    assert (history[1:], lost) == (report.messages, [edit.loss for edit in report.edits])


def test_equal_words_with_other_media_or_arguments_are_no_copy() -> None:
    """A source replays another only if everything is equal."""

    def seen(url: str) -> dict[str, object]:
        image = {"type": "image_url", "image_url": {"url": url}}
        return {"role": "user", "content": [{"type": "text", "text": "see"}, image]}

    history, context = merged(("a", [seen("x"), said("1")]), ("b", [seen("y"), said("1")]))
    assert explain(history, CHAT, context=context).edits == ()


def test_reasoning_that_ends_a_source_led_nothing_of_the_next() -> None:
    """A source that was cut behind its reasoning is continued by the one that replays it."""
    thought, search = reasoning(proof="sealed"), {"type": "web_search_call", "id": "ws_68a0f1c2"}
    whole = [{"type": "compaction", "id": "cmp_68a0", "encrypted_content": "E"}, thought, search]
    context = Context(sources=("store", "store", "input", "input", "input"))
    assert whole == normalize([*whole[:2], *whole], "openai.responses", context=context)


def test_growth_with_tools_behind_a_link_is_linear() -> None:
    """Executor, provider and server all have the past; what is sent is what is new, each turn."""
    policy = Policy.for_target("openai.responses")
    ledger, past, sizes = Ledger(), list[dict[str, object]](), list[int]()
    last: str | None = None
    for turn in range(3):
        asked = user("balance?")
        labels = ("provider",) * len(past) + ("executor",) * (len(past) + 1)
        body = {"input": [*past, *past, asked], "previous_response_id": last}
        facts = Context(sources=labels, ledger=ledger)
        sent = normalize_request(body, policy, context=facts)
        assert [asked] == sent["input"]
        first: Any = {"id": f"resp_{turn}a", "output": [call(f"call_{turn}x")]}
        returned = [output(f"call_{turn}x", "10 EUR")]
        second: Any = {"id": f"resp_{turn}b", "output": [message(f"msg_{turn}", "10 EUR")]}
        follow = {"input": returned, "previous_response_id": first["id"]}
        ledger = ledger.accepted(sent, first).accepted(follow, second)
        past = [*past, asked, *first["output"], *returned, *second["output"]]
        last = str(second["id"])
        sizes.append(len(ledger.holds(Link(last))))
    assert [4, 8, 12] == sizes
