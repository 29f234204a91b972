"""A stored history as it is loaded: calls and results in pairs."""

from collections.abc import Collection, Sequence
from typing import Any

from convnorm import Policy, normalize
from convnorm.passes.repair_tool_pairs import RepairToolPairs
from convnorm_agent_framework.codec import Codec

PAIRS = Policy(target="openai.responses", passes=(RepairToolPairs(),), unrepairable="send")


def answered_in(messages: Sequence[Any]) -> list[str]:
    """The calls that an input answers: with a result, or with an approval."""
    return [
        call_id for message in messages for one in message.contents if (call_id := _answers(one))
    ]


def sound(messages: list[Any], answered: Collection[str] | None) -> list[Any]:
    """The messages, with calls that nobody will answer any more closed, and lone results quoted.

    The newest calls may still be answered; who loads for a run knows what its input answers.
    """
    waiting = _waiting(messages)
    if waiting and (answered is None or not waiting.isdisjoint(answered)):
        return messages
    codec = Codec(messages, PAIRS.target)
    return codec.messages_of(normalize(codec.elements, PAIRS))


def _waiting(messages: Sequence[Any]) -> set[str]:
    """The calls behind the last words of the user that have no result."""
    waiting: set[str] = set()
    for message in messages:
        if message.role == "user" and any(one.type == "text" for one in message.contents):
            waiting.clear()
        for one in message.contents:
            if one.type == "function_call" and one.call_id:
                waiting.add(one.call_id)
            elif one.type == "function_result":
                waiting.discard(one.call_id)
    return waiting


def _answers(content: Any) -> str | None:
    if content.type == "function_approval_response":
        content = content.function_call
    elif content.type != "function_result":
        return None
    found = getattr(content, "call_id", None)
    return found if isinstance(found, str) else None
