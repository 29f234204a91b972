"""What stands in for the missing result of a call, in the words of the policy."""

import json

from convnorm.ir import ToolCall
from convnorm.options import Options


class Closing(Options):
    """The sentences that `repair_tool_pairs` has as its options; `settle_link` says the same."""

    interrupted: str = "No result was recorded for this call."
    """What stands in for a missing result, here and on the server."""
    side_effecting: tuple[str, ...] = ()
    """Names of tools that change something outside: what stands in for their missing result warns
    that they may have done so."""
    effect_unknown: str = (
        "No result was recorded for this call. It is unknown whether it took effect: "
        "check the state before trying again."
    )
    """What stands in for a missing result of a side-effecting tool."""
    malformed: str = "The arguments of this call are not valid JSON, and no result was recorded."
    """What stands in for a missing result when the call itself was cut off."""
    pending: str = "This call is still waiting for its result."
    """What stands in for the result of a live call that the conversation has gone past."""

    def sentence(self, call: ToolCall, *, live: bool) -> str:
        """What is said of this call; `live`: its result may still come."""
        if live:
            return self.pending
        if call.kind == "function" and not _is_json(call.arguments):
            return self.malformed
        if call.name in self.side_effecting:
            return self.effect_unknown
        return self.interrupted


def _is_json(arguments: object) -> bool:
    """Whether arguments can be read; an empty string is how some models say that there are none."""
    if not isinstance(arguments, str) or not arguments:
        return True
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True
