"""The pass `repair_arguments`."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from convnorm.dialects.dialect import Call
from convnorm.edits import Edit, Replace
from convnorm.facts import Fact
from convnorm.ir import History, ToolCall
from convnorm.options import Options
from convnorm.targets import Fault
from convnorm.wire import json_text

TEXTUAL = {"function": "{}", "legacy_function": "{}", "custom": ""}
"""The kinds of call whose arguments are a text, and what stands for none."""
UNPARSED = "unparsed_arguments"
"""The key under which a text is kept that is no JSON object."""


class RepairArguments(Options):
    r"""Write the arguments of calls as the text that servers expect, and never guess what is lost.

    ## Why
    Frameworks store parsed arguments, and a dropped stream leaves half of them: "Invalid type for
    'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
    "Expecting ',' delimiter: line 1 column 54 (char 53)", "Failed to parse tool call arguments as
    JSON". Every later request then fails for the same old call.

    ## Example
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9a", "type": "function",
         "function": {"name": "scan", "arguments": {"path": "a.py"}}},
        {"id": "call_9b", "type": "function",
         "function": {"name": "edit", "arguments": "{\"text\": \"def f("}}]},
      {"role": "tool", "tool_call_id": "call_9a", "content": "clean"},
      {"role": "tool", "tool_call_id": "call_9b", "content": "error: bad arguments"}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9a", "type": "function",
         "function": {"name": "scan", "arguments": "{\"path\": \"a.py\"}"}},
        {"id": "call_9b", "type": "function",
         "function": {"name": "edit",
                      "arguments": "{\"unparsed_arguments\": \"{\\\"text\\\": \\\"def f(\"}"}}]},
      {"role": "tool", "tool_call_id": "call_9a", "content": "clean"},
      {"role": "tool", "tool_call_id": "call_9b", "content": "error: bad arguments"}]}
    ```

    ## Safety
    Objects become their JSON text, and missing arguments an empty object. A text that the server
    would parse and cannot is kept whole, as a string in an object of its own, so nobody reads a
    call into it that the model did not make. Arguments that were cut off are wrapped for every
    server; other text that is no JSON object, and an empty text, only for servers that parse it.
    """

    name: Literal["repair_arguments"] = "repair_arguments"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.ARGUMENTS})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        rules = call.target.rules
        parses = call.target.profile.parsed_arguments == "refused"
        for place, item in history.items:
            if not isinstance(item, ToolCall) or item.kind not in TEXTUAL:
                continue
            given = item.arguments
            if given is None:
                fault, arguments, why = Fault.ARGUMENTS_MISSING, TEXTUAL[item.kind], "missing"
            elif not isinstance(given, str):
                where = call.where(history.turns[place.turn])
                fault, arguments, why = Fault.ARGUMENTS_RAW, json_text(given, where), "no text"
                if parses and item.kind != "custom" and not _is_object(arguments):
                    arguments = _wrapped(arguments)
            elif item.kind != "custom" and not (_is_object(given) if parses else _is_whole(given)):
                fault, arguments = Fault.ARGUMENTS_UNPARSED, _wrapped(given)
                why = "no JSON object" if parses else "cut off"
            else:
                continue
            if fault in rules:
                new = replace(item, arguments=arguments)
                said = f"the arguments of the call {item.name!r} are {why}"
                yield Replace(place.turn, new, place.item, rule=rules[fault], why=said)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_whole(text: str) -> bool:
    """Whether a text can have come to its end; the survey asks the same."""
    bare = text.strip()
    return bare[:1] != "{" or bare[-1:] == "}"


def _wrapped(text: str) -> str:
    return json.dumps({UNPARSED: text}, ensure_ascii=False) if text.strip() else "{}"
