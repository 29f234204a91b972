"""How the rules of Responses speak."""

from typing import Final

from convnorm.rules.read_responses import ResponsesScan
from convnorm.rules.scan import Call, shown

API: Final = "openai.responses"


def describe(call: Call) -> str:
    """A call as a message names it."""
    name = call.raw.get("name")
    said = f"{call.kind} call {shown(call.id)}" if call.id else f"a {call.kind} call without an id"
    return f"{said} ({name[:64]})" if isinstance(name, str) and name else said


def link(scan: ResponsesScan) -> str:
    """The request key that names what the server puts before the input."""
    return "previous_response_id" if scan.context.conversation is None else "conversation"


def is_disputed(verdict: str) -> bool:
    """Whether a finding under this verdict of the profile is disputed."""
    return verdict != "refused"
