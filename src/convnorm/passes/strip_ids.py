"""The pass `strip_ids`."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from convnorm.dialects.dialect import Call
from convnorm.edits import Assumed, Drop, Edit, Loss, SetTurn
from convnorm.facts import Fact
from convnorm.groups import is_reasoning
from convnorm.ir import History, Opaque, Reasoning, Turn
from convnorm.options import Options
from convnorm.targets import Fault


class StripIds(Options):
    """Replay items by value when the server stored none of them.

    ## Why
    Under `store=False` the server keeps nothing, and an item that is sent by its id is not found:
    "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false. Try again
    with `store` set to true, or remove this item from your input."

    ## Example
    ```json
    {"store": false, "input": [
      {"role": "user", "content": "balance?"},
      {"type": "reasoning", "id": "rs_1", "summary": []},
      {"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "balance",
       "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_9", "output": "10 EUR"}]}
    ```
    becomes
    ```json
    {"store": false, "input": [
      {"role": "user", "content": "balance?"},
      {"type": "function_call", "call_id": "call_9", "name": "balance", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_9", "output": "10 EUR"}]}
    ```

    ## Safety
    Runs only when the request or the context says `store: false`. Reasoning that carries its
    encrypted content stays and loses only its id; without it nothing usable is left, so it goes,
    and with it the ids of what it led: a group keeps its ids on both sides or on neither. Items the
    server made (searches, code interpreter, images, MCP, computer calls) are refused without their
    id and keep it. Where the endpoint wants the ids (Azure Foundry, vLLM) they stay. `call_id`s,
    texts and results are never touched.
    """

    name: Literal["strip_ids"] = "strip_ids"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.UNSTORED})

    def __call__(self, history: History, call: Call) -> Iterator[Edit | Assumed]:
        """Ask for the edits this history needs."""
        rules, target = call.target.rules, call.target
        if call.context.store is not False or Fault.UNSTORED_ID not in rules:
            return
        strip = target.unstored_ids == "strip"
        lead_gone = False
        for at, turn in enumerate(history.turns):
            if turn.role != "assistant" or is_reasoning(turn):
                lead_gone = False  # what follows was led by something else
            if turn.id is None:
                continue
            match turn.items:
                case (Opaque(refers=True),):
                    yield Assumed(f"{turn.id} is taken for stored: an item refers to it")
                case (Opaque(),):
                    pass  # nobody knows what its id is for
                case (Reasoning(proof=None),) if not target.reasoning_by_value:
                    lead_gone = True
                    yield Drop(
                        at,
                        rule=rules[Fault.UNSTORED_REASONING],
                        why=f"{turn.id} was never stored and carries no encrypted content",
                        loss=Loss.REASONING,
                    )
                case (Reasoning(),) if _leads_a_needed_id(history.turns, at):
                    pass  # a group keeps its ids on both sides or on neither
                case _ if turn.needs_id:
                    pass
                case _ if strip:
                    yield SetTurn(
                        at,
                        {"id": None},
                        rule=rules[Fault.UNSTORED_ID],
                        why=f"{turn.id} was never stored: the item is sent by value",
                    )
                case _ if lead_gone:
                    yield SetTurn(
                        at,
                        {"id": None},
                        rule=rules[Fault.UNSTORED_REASONING],
                        why=f"{turn.id} was led by reasoning that goes",
                        loss=Loss.ID,
                    )


def _leads_a_needed_id(turns: tuple[Turn, ...], at: int) -> bool:
    for turn in turns[at + 1 : at + 2]:
        return turn.role == "assistant" and turn.needs_id
    return False
