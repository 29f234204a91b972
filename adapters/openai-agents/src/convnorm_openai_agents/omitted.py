"""What `reasoning_item_id_policy="omit"` leaves: reasoning without ids, items with theirs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convnorm import Policy
from convnorm.dialects.dialect import Call
from convnorm.edits import Edit, Loss, SetTurn
from convnorm.groups import is_reasoning
from convnorm.ir import History
from convnorm.targets import Fault


def is_omitted(items: Sequence[Any]) -> bool:
    """Whether reasoning has lost its id."""
    return any(
        isinstance(item, Mapping) and item.get("type") == "reasoning" and not item.get("id")
        for item in items
    )


class WholeGroups:
    """A pass: what reasoning led loses its id where the reasoning has lost its own.

    The Responses API gives every reasoning item an id, and so what follows one without is half of
    something: the server finds the other half by the id that is left, and asks for the reasoning.
    """

    name = "whole_groups"

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the ids to go."""
        rule = call.target.rules.get(Fault.LEAD_MISSING)
        led = False
        judged = rule is not None and not call.target.reasoning_by_value
        for at, turn in enumerate(history.turns if judged else ()):
            if is_reasoning(turn):
                led = turn.id is None
            elif turn.role != "assistant":
                led = False
            elif led and turn.id is not None and not turn.needs_id:
                assert rule is not None
                why = "the reasoning that led to it has lost its id"
                yield SetTurn(at, {"id": None}, rule=rule, why=why, loss=Loss.ID)


def for_omitted(policy: Policy) -> Policy:
    """The policy for a history whose reasoning has lost ids."""
    return policy.model_copy(update={"passes": (WholeGroups(), *policy.passes)})
