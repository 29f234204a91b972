import json
from hashlib import blake2b
from typing import Any

import pytest

import broken
from broken import Messages
from quality import SEED, Cleaner, measure, own_cleaners

WILD = [broken.wild(SEED, number) for number in range(60)]
LATE = [broken.late(SEED, number) for number in range(12)]
REQUESTS = sum(len(broken.requests(history)) for history in LATE)
UNIQUE = sum(not broken.reuses_ids(history) for history in WILD)
OURS = [cleaner for cleaner in own_cleaners() if cleaner.name.startswith("convnorm")]
LOSSES = (
    "user text lost",
    "answer lost",
    "any result lost",
    "text or call of the model lost",
)

each_of_ours = pytest.mark.parametrize("cleaner", OURS, ids=lambda each: f"{each.api}-{each.name}")


def test_the_generator_is_deterministic() -> None:
    """A seed means the same histories everywhere, so that the page can be measured again."""
    written = json.dumps([[broken.chat(each), broken.responses(each)] for each in (*WILD, *LATE)])

    assert "9408ecce5d73d1db" == blake2b(written.encode(), digest_size=8).hexdigest()


def test_the_generator_breaks_the_pairing_in_every_way() -> None:
    """Calls without results, results without calls, second results and reused ids all occur."""
    chat, responses = (
        measure(cleaner, WILD, LATE) for cleaner in own_cleaners() if cleaner.name == "as it is"
    )

    assert {
        "chat-tool-calls-unanswered",
        "chat-tool-message-orphan",
        "chat-duplicate-tool-result",
    } <= set(chat.broken_rules)
    assert {
        "resp-call-output-missing",
        "resp-output-without-call",
        "resp-duplicate-call-id",
    } == set(responses.broken_rules)
    assert 0 < chat.wild["valid"] < len(WILD) / 2
    assert chat.late["valid"] < REQUESTS


@each_of_ours
def test_everything_is_valid_and_nothing_is_lost(cleaner: Cleaner) -> None:
    """What convnorm makes of these histories is accepted, and all of it is still there."""
    scores = measure(cleaner, WILD, LATE)

    assert {
        "valid": len(WILD),
        "valid, ids never reused": UNIQUE,
        **dict.fromkeys(LOSSES, 0),
    } == scores.wild
    assert (REQUESTS, 0) == (scores.late["valid"], scores.late["result lost"])
    assert {} == scores.broken_rules


def test_the_last_request_keeps_the_prefix() -> None:
    """Told what it sent, convnorm sends it again in every history; else late results are moved."""
    kept = {(each.api, each.name): measure(each, (), LATE).late["prefix kept"] for each in OURS}

    for api in ("openai.chat", "openai.responses"):
        assert len(LATE) == kept[api, "convnorm, with last_request"]
        assert len(LATE) > kept[api, "convnorm"]


def test_every_chat_call_is_answered_once_and_at_once() -> None:
    """A judge that knows nothing of convnorm's rules agrees."""
    (cleaner,) = (each for each in OURS if each.api == "openai.chat" and each.name == "convnorm")

    outputs = cleaner.clean([[broken.chat(history)] for history in WILD])

    assert [] == [output for (output,) in outputs if not paired(output)]
    assert not all(paired(broken.chat(history)) for history in WILD)


def paired(messages: Messages) -> bool:
    asked: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in asked:
                return False
            asked.remove(message["tool_call_id"])
        elif asked:
            return False
        else:
            asked = [call["id"] for call in message.get("tool_calls", ())]
    return not asked


@pytest.mark.parametrize(
    "role, columns",
    [
        ("user", {"user text lost"}),
        ("tool", {"answer lost", "any result lost"}),
        ("assistant", {"text or call of the model lost"}),
    ],
)
def test_a_loss_is_seen(role: str, columns: set[str]) -> None:
    """Whoever drops all messages of a role is found to lose what they said, and nothing else."""
    dropping = Cleaner(
        "drops",
        "openai.chat",
        lambda grown: [[[m for m in one if m["role"] != role] for one in each] for each in grown],
    )

    scores = measure(dropping, WILD, LATE)

    assert columns == {name for name in LOSSES if scores.wild[name]}


def test_a_changed_prefix_is_seen() -> None:
    """Whoever rewrites the first message with every request keeps no prefix."""
    counting = Cleaner(
        "counts",
        "openai.chat",
        lambda grown: [[[{"role": "user", "content": str(len(m))}, *m] for m in g] for g in grown],
    )

    assert 0 == measure(counting, WILD, LATE).late["prefix kept"]
