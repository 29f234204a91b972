"""The pass `drop_empty`."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Loss, SetTurn
from convnorm.facts import Fact
from convnorm.ir import History
from convnorm.options import Options
from convnorm.targets import Fault

FAULTS = {
    "content": (Fault.NULL_CONTENT, "its content is null"),
    "content_list": (Fault.EMPTY_CONTENT, "its content is an empty list"),
    "tool_calls": (Fault.EMPTY_CALLS, "its list of calls is empty"),
    "output": (Fault.NULL_OUTPUT, "its output is null"),
}


class DropEmpty(Options):
    """Write what is empty in a form the target accepts, and drop replies that say nothing.

    ## Why
    Providers refuse empty shapes that SDKs and databases produce: "Invalid value for 'content':
    expected a string, got null.", "Invalid 'messages[1].tool_calls': empty array. Expected an array
    with minimum length 1, but got an empty array instead."

    ## Example
    ```json
    {"messages": [
      {"role": "user", "content": "ping"},
      {"role": "assistant", "content": "pong", "tool_calls": []},
      {"role": "assistant", "content": null},
      {"role": "user", "content": null}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "user", "content": "ping"},
      {"role": "assistant", "content": "pong"},
      {"role": "user", "content": ""}]}
    ```

    ## Safety
    An assistant turn with no text, call, refusal, audio, reasoning or other content is dropped; it
    is what an aborted stream leaves. Every other empty content becomes an empty string: a user's
    turn is the user's, and a tool that returned nothing has still answered. Empty texts that the
    target accepts are left alone, and so is the last message of a request.
    """

    name: Literal["drop_empty"] = "drop_empty"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.EMPTY})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        rules = call.target.rules
        left = len(history.turns)
        for at, turn in enumerate(history.turns):
            faults = [
                (empty, rules[fault], why)
                for empty, (fault, why) in FAULTS.items()
                if empty in turn.empties and fault in rules
            ]
            if not faults:
                continue
            _, rule, why = faults[0]
            if turn.role == "assistant" and not (turn.items or turn.has_more) and left > 1:
                left -= 1  # the last message stays: a request needs one
                yield Drop(at, rule=rule, why=f"the reply says nothing: {why}", loss=Loss.EMPTY)
            else:
                mended = turn.empties - {empty for empty, _, _ in faults}
                yield SetTurn(at, {"empties": mended}, rule=rule, why=why)
