"""Tool calls as frameworks store them, and as a chat message has them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.ir import Flaw
from convnorm.targets import Fault
from convnorm.wire import LIST, fields

KEY = "tool_calls"
BODY = {"function": ("function", "arguments"), "custom": ("custom", "input")}
"""By kind of call: the key of its body, and the key in it that holds the arguments."""
ARGUMENTS = ("arguments", "args", "input")
"""What other libraries call the arguments of a call without a body of its own."""


def chat_calls(message: Mapping[str, Any]) -> object:
    """The calls of a message in the shape they have here; the same object if they have it.

    They may stand alone, be written as JSON, or have nulls between them. What says nothing of any
    call is left as it is.
    """
    given = message.get(KEY)
    read = _from_json(given)
    if not isinstance(read, LIST):
        return [whole_call(read)] if is_call(read) else given
    new = [whole_call(_from_json(call)) for call in read if call is not None]
    whole = len(new) == len(read)
    same = whole and all(now is was for now, was in zip(new, read, strict=True))
    if whole and read is given:
        return given if same else new
    return new if new and all(fields(call) is not None for call in new) else given


def is_call(value: object) -> bool:
    """Whether a value is a call, in any shape that is known here."""
    keys = fields(value)
    return keys is not None and (bool(_bodies(keys)) or isinstance(keys.get("name"), str))


def whole_call(call: object) -> object:
    """A call with its type and its body; the same object if it has them, or nobody knows them."""
    keys = call if type(call) is dict else fields(call)
    if keys is None:
        return call
    kind, bodies = keys.get("type"), _bodies(keys)
    if bodies:
        return call if kind in bodies else {**keys, "type": bodies[0]}
    if not isinstance(keys.get("name"), str):
        return call
    given = next((keys[key] for key in ARGUMENTS if keys.get(key) is not None), None)
    body = {"name": keys["name"], "arguments": given}
    return {"id": keys.get("call_id") or keys.get("id"), "type": "function", "function": body}


def call_flaws(message: Mapping[str, Any]) -> Iterator[Flaw]:
    """What is wrong with the shape of the calls of a message."""
    given = message.get(KEY)
    calls = chat_calls(message) if given else given
    if calls is given:
        return
    if isinstance(given, LIST) and all(fields(call) is not None for call in given):
        yield Flaw(Fault.CALL_SHAPE, KEY, calls, "a call has no type, or no body of its own")
    else:
        yield Flaw(Fault.CALLS_UNLISTED, KEY, calls, "the calls are no list of objects")


def _bodies(keys: Mapping[str, Any]) -> list[str]:
    return [key for key in BODY if fields(keys.get(key)) is not None]


def _from_json(value: object) -> object:
    """What a text says if it is the JSON of a list or an object; everything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
