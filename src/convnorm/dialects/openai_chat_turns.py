"""Who speaks after whom in chat messages, for the survey."""

from collections.abc import Mapping
from typing import Any

from convnorm.ir import INSTRUCTING
from convnorm.targets.openai_chat import ChatProfile

SPEAKERS = ("user", "assistant")


class TurnTaking:
    """Whether the roles and their order are such that this server could mind them."""

    def __init__(self, profile: ChatProfile) -> None:
        self.refused = {
            role
            for role, verdict in (
                ("system", profile.system_role),
                ("developer", profile.developer_role),
            )
            if verdict != "accepted"
        }
        self.alternating, self.strict = profile.alternating, profile.strict_order
        self.asks = bool(self.refused) or self.alternating or self.strict
        self.found = False
        self.before: object = None
        """The role of the message before."""
        self.last: object = None
        """Who spoke last."""
        self.is_open = False
        """Whether the message before may stand last."""

    def see(self, message: Mapping[str, Any]) -> None:
        """Take in the next message."""
        role, calls = message.get("role"), message.get("tool_calls")
        if isinstance(role, str) and role in self.refused:
            self.found = True
        if self.alternating:
            if role in INSTRUCTING:
                self.found = self.found or self.before is not None
            elif role in SPEAKERS and not calls:
                self.found = self.found or role == (self.last or "assistant")
                self.last = role
        if self.strict:
            behind = role in INSTRUCTING and self.before in ("assistant", "tool")
            self.found = self.found or behind or (role == "user" and self.before == "tool")
            self.is_open = role in ("user", "tool") or bool(
                role == "assistant" and (calls or message.get("prefix") is True)
            )
        self.before = role or ""

    def is_broken(self) -> bool:
        """Whether anything was seen that a pass may have to mend."""
        return self.found or (self.strict and not self.is_open)
