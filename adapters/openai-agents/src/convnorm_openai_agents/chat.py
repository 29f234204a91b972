"""What a model needs that is called over Chat Completions, though its items are of Responses."""

from collections.abc import Iterator, Sequence
from typing import Any

from convnorm import Policy
from convnorm.delivery.items import ANSWERS, OUTPUTS, answered_id
from convnorm.dialects.dialect import Call
from convnorm.edits import Edit, Move
from convnorm.ir import History
from convnorm.pairing import pair_up
from convnorm.wire import fields

NOT_SENT = frozenset({"settle_link", "strip_ids", "repair_reasoning"})
"""Passes about what the SDK leaves out of a Chat Completions request, or turns into something else:
links, item ids and reasoning items."""


class OutputsBehindCalls:
    """A pass: outputs stand directly behind the calls that were made together.

    The Responses API takes an output anywhere behind its call. The SDK makes a tool message of it
    where it stands, and Chat Completions refuses that.
    """

    name = "outputs_behind_calls"

    def __call__(self, history: History, _call: Call) -> Iterator[Edit]:
        """Ask for the moves."""
        found = pair_up(history, batch_is_turn=False)
        answers = {pair.result.turn: pair for pair in found.pairs if pair.result is not None}
        blocks: dict[int, int] = {}
        for batch, end in enumerate(found.batch_end):
            at = end
            while (pair := answers.get(at + 1)) is not None and pair.batch == batch:
                at += 1
            blocks[batch] = at
        for at, pair in sorted(answers.items()):
            if not found.batch_end[pair.batch] < at <= blocks[pair.batch]:
                yield Move(
                    at,
                    blocks[pair.batch],
                    rule="chat-tool-calls-unanswered",
                    why="a tool message stands directly behind the message with its call",
                )


def is_apart(items: Sequence[Any]) -> bool:
    """Whether an output stands elsewhere than behind the calls that were made with its own.

    Most histories are in order, and the pass would have to look at each item to find that out.
    """
    batch: set[Any] = set()
    before = ""
    for item in items:
        keys = fields(item) or {}
        kind = str(keys.get("type"))
        if kind in ANSWERS:
            batch = {keys.get("call_id"), *(batch if before == "call" else ())}
            before = "call"
        elif kind in OUTPUTS:
            if before == "" or answered_id(keys) not in batch:
                return True
            before = "output"
        else:
            before = ""
    return False


def for_chat(policy: Policy) -> Policy:
    """The policy without what is not sent."""
    passes = [pass_ for pass_ in policy.passes if pass_.name not in NOT_SENT]
    return policy.model_copy(update={"passes": tuple(passes)})


def for_apart(policy: Policy) -> Policy:
    """The policy with what Chat Completions asks for beside."""
    return policy.model_copy(update={"passes": (*policy.passes, OutputsBehindCalls())})
