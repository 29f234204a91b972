"""The walk over `messages`."""

from collections.abc import Mapping, Sequence
from typing import Any

from convnorm.context import Context
from convnorm.rules.scan import Scan
from convnorm.targets import Target
from convnorm.wire import fields

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
KIND = ("tool",)
"""A tool message answers function calls and custom calls alike."""


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
        if not isinstance(message.get("content"), str):
            scan.no_text.append(at)
        role, calls = message.get("role"), message.get("tool_calls")
        if calls is not None:
            scan.with_calls.append(at)
        if role == "tool":
            pairs.add_result(at, message.get("tool_call_id"), KIND, message)
            continue
        pairs.close()
        if role == "assistant":
            if isinstance(calls, list | tuple) and calls:
                pairs.new_batch()
                for index, call in enumerate(calls):
                    keys = call if type(call) is dict else fields(call)
                    if keys is not None:
                        pairs.add_call(at, index, keys.get("id"), "tool", keys)
        elif not isinstance(role, str) or role not in ROLES:
            scan.odd_roles.append(at)
    pairs.adopt()
    return scan
