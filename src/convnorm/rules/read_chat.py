"""The walk over `messages`."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from convnorm.context import Context
from convnorm.rules.scan import Scan
from convnorm.rules.schema import Flaw, flaws
from convnorm.targets import Target
from convnorm.targets.chat_values import CUSTOM, PART_SHAPES, PARTS, VALUES
from convnorm.wire import LIST, fields

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
KIND = ("tool",)
"""A tool message answers function calls and custom calls alike."""
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What OpenAI asks of the name of a function."""


def read_chat(
    elements: Sequence[object], target: Target, context: Context, other: Mapping[str, Any]
) -> Scan:
    """Scan a list of messages; only the tool messages right behind a message answer its calls."""
    scan = Scan("messages", target, context, other)
    pairs = scan.pairs
    for at, element in enumerate(elements):
        message = element if type(element) is dict else fields(element)
        scan.views.append(message)
        if message is None:
            scan.no_objects.append(at)
            pairs.close()
            continue
        role, content, calls = (
            message.get("role"),
            message.get("content"),
            message.get("tool_calls"),
        )
        if not isinstance(content, str):
            scan.no_text.append(at)
            if isinstance(content, LIST):
                _read_parts(scan, at, role, content)
        if message.get("name") is not None:
            scan.named.append(at)
        elif "name" in message and role != "tool":
            scan.note(at, [Flaw(".name", "the name of the message is null", unsure=True)])
        if calls is not None:
            scan.with_calls.append(at)
        if role == "tool":
            pairs.add_result(at, message.get("tool_call_id"), KIND, message)
            continue
        pairs.close()
        if role == "assistant":
            made = calls if type(calls) is list else read_calls(calls)
            if made:
                pairs.new_batch()
                for index, call in enumerate(made):
                    keys = call if type(call) is dict else fields(as_said(call))
                    if keys is not None:
                        pairs.add_call(at, index, keys.get("id"), "tool", keys)
                        _read_call(scan, at, index, keys)
            for key, wanted in VALUES.items():
                if key in message:
                    scan.note(at, flaws(wanted, message[key], f".{key}"))
            _read_function(scan, at, ".function_call", fields(message.get("function_call")))
        elif not isinstance(role, str) or role not in ROLES:
            scan.odd_roles.append(at)
        elif role == "function":
            scan.functions.append(at)
            if isinstance(content, LIST) or "content" not in message:
                why = "the content of a function message is no text, and not null"
                scan.note(at, [Flaw(".content", why, unsure=True)])
        elif role != "user":
            scan.instructing.append(at)
    pairs.adopt()
    return scan


def read_calls(value: object) -> Sequence[object] | None:
    """The calls, as a list, alone, or as the JSON of either; None if nothing says what they are."""
    said = as_said(value)
    if isinstance(said, LIST):
        return said
    keys = fields(said) or {}
    return [said] if any(key in keys for key in ("function", "custom", "name")) else None


def as_said(value: object) -> object:
    """A text that is the JSON of a list or an object as what it says; the rest as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _read_parts(scan: Scan, at: int, role: object, content: Sequence[object]) -> None:
    """Note the parts that a message of this role cannot have."""
    allowed = PARTS.get(role) if isinstance(role, str) else None
    if allowed is None:
        return
    for index, part in enumerate(content):
        keys = part if type(part) is dict else fields(part)
        kind = None if keys is None else keys.get("type")
        if not isinstance(kind, str) or kind not in allowed:
            scan.odd_parts.append((at, index, keys))
        else:
            scan.note(at, flaws(PART_SHAPES[kind], keys, f".content[{index}]"))


def _read_call(scan: Scan, at: int, index: int, call: Mapping[str, Any]) -> None:
    """Note what a tool call lacks."""
    where = f".tool_calls[{index}]"
    function, custom = fields(call.get("function")), fields(call.get("custom"))
    kind, bodies = call.get("type"), {"function": function, "custom": custom}
    named = bodies.get(kind) if isinstance(kind, str) else None
    if named is None and not (function is None and custom is None):
        scan.no_kind.append((at, where, kind))
    if function is not None:
        _read_function(scan, at, f"{where}.function", function)
    elif custom is not None:
        scan.note(at, flaws(CUSTOM, custom, f"{where}.custom"))
    else:
        scan.no_body.append((at, where, call.get("name")))


def _read_function(scan: Scan, at: int, where: str, body: Mapping[str, Any] | None) -> None:
    """Note a name and arguments that are not as they should be."""
    if body is None:
        return
    name, arguments = body.get("name"), body.get("arguments")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        scan.odd_names.append((at, where, name))
    if not isinstance(arguments, str):
        scan.odd_arguments.append((at, where, arguments))
