"""Repair before the SDK has merged and deduplicated: of what can be told there, and no more."""

from collections.abc import Sequence
from typing import Any

from convnorm import Context, Policy, normalize
from convnorm_openai_agents.on_error import OnError, guarded
from convnorm_openai_agents.placeholders import restored, shown

READING = Policy(
    target="openai.responses", passes=("dedupe", "repair_tool_pairs"), unrepairable="send"
)
"""What the SDK would hide from the model wrapper: it merges by call id. Item ids stay, since the
SDK knows its items by them."""

PERHAPS_LINKED = Context(store=True, previous_response_id="unknown")
"""An output without its call may belong to one that the server holds."""
WHOLE = Context(store=True)


def repaired(
    items: Sequence[Any],
    policy: Policy | str | None,
    context: Context,
    on_error: OnError,
    what: str,
) -> list[Any]:
    """The items with what is wrong in them repaired; the caller's own wherever nothing is."""
    with guarded(on_error, f"{what}: sent as it was"):
        view = shown(items)
        return restored(normalize(view, policy or READING, context=context), view, items)
    return list(items)
