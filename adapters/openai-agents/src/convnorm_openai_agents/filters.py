"""The two filters of the SDK: of a model call's input, and of what a handoff passes on."""

import inspect
from collections.abc import Callable
from typing import Any

from agents import HandoffInputData
from agents.run_config import CallModelData, ModelInputData

from convnorm import Policy
from convnorm_openai_agents.on_error import OnError
from convnorm_openai_agents.reading import PERHAPS_LINKED, WHOLE, repaired

InputFilter = Callable[[CallModelData[Any]], Any]
HandoffFilter = Callable[[HandoffInputData], Any]


def input_filter(
    policy: Policy | str | None = None,
    *,
    chain: InputFilter | None = None,
    whole: bool = False,
    on_error: OnError = "send",
) -> InputFilter:
    """A `call_model_input_filter` that repairs, behind your own filter `chain`.

    The SDK does not tell a filter whether the server holds a part of the history. `whole` says that
    it never does: then outputs without their calls are repaired too.
    """
    context = WHOLE if whole else PERHAPS_LINKED

    async def repair(data: CallModelData[Any]) -> ModelInputData:
        found = data.model_data if chain is None else await _waited(chain(data))
        items = repaired(found.input, policy, context, on_error, "a filtered input")
        return ModelInputData(input=items, instructions=found.instructions)

    return repair


def handoff_filter(
    policy: Policy | str | None = None,
    *,
    chain: HandoffFilter | None = None,
    on_error: OnError = "send",
) -> HandoffFilter:
    """A handoff's `input_filter` that repairs, behind your own filter `chain`.

    What is repaired is what the next agent is sent; the session keeps the items as they were.
    """

    async def repair(data: HandoffInputData) -> HandoffInputData:
        found = data if chain is None else await _waited(chain(data))
        if isinstance(found.input_history, str):
            return found  # words of the user, and no history yet
        made = found.new_items if found.input_items is None else found.input_items
        items = [
            *found.input_history,
            *(item.to_input_item() for item in (*found.pre_handoff_items, *made)),
        ]
        fixed = repaired(items, policy, WHOLE, on_error, "a handoff")
        if len(fixed) == len(items) and all(
            one is other for one, other in zip(fixed, items, strict=True)
        ):
            return found
        return found.clone(input_history=tuple(fixed), pre_handoff_items=(), input_items=())

    return repair


async def _waited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
