"""What a provider and the client of the same call tell each other."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

OPEN = "convnorm_open_turn"
"""Where a session keeps a turn that has begun and is not over."""
LEDGER = "convnorm_ledger"
"""Where a session keeps what the server holds for it."""
LAST = "convnorm_last_request"
"""Where a session keeps what was sent last, if that is not what it has itself."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The call of a session that is under way in this task."""

    state: dict[str, Any]
    """Where the provider keeps its notes; it is serialised with the session."""
    input: Sequence[Any]
    agent: str | None = None
    """The name of the agent."""

    def is_of(self, messages: Sequence[Any]) -> bool:
        """Whether these messages are this turn's; a turn that was left is no other call's."""
        if not self.input:
            return False
        # Messages are copied on their way, with the same contents.
        last = {id(content) for content in self.input[-1].contents}
        contents = (one for message in messages for one in getattr(message, "contents", ()))
        return any(id(content) in last for content in contents)


LEDGER_TURN: ContextVar[Turn | None] = ContextVar("convnorm_ledger_turn", default=None)
HISTORY_TURN: ContextVar[Turn | None] = ContextVar("convnorm_history_turn", default=None)
HANDOFFS: ContextVar[Any] = ContextVar("convnorm_handoffs", default=None)
"""The conversation of several agents in which this task is."""


def turn_of(var: ContextVar[Turn | None], messages: Sequence[Any]) -> Turn | None:
    """The turn that the call with these messages belongs to."""
    turn = var.get()
    return turn if turn is not None and turn.is_of(messages) else None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks a client, as it is known where the agent calls it.

    Behind that the framework takes the session off, and of a tool loop that is linked the later
    requests hold results alone, which say nothing of where they belong.
    """

    session: Any = None
    history: Turn | None = None
    ledger: Turn | None = None
    handoffs: Any = None
    """The conversation of several agents that it belongs to."""
    doing: dict[str, Any] | None = None
    """What this agent does in it now."""

    @classmethod
    def of(cls, messages: Sequence[Any], session: Any) -> "Caller":
        """The caller of a client with these messages."""
        history, ledger = turn_of(HISTORY_TURN, messages), turn_of(LEDGER_TURN, messages)
        caller = cls(session, history, ledger)
        if session is None or (handoffs := HANDOFFS.get()) is None:
            return caller
        doing = handoffs.began(caller.session_id, caller.agent)
        return replace(caller, handoffs=handoffs, doing=doing)

    @property
    def session_id(self) -> str | None:
        """Which session it is."""
        return getattr(self.session, "session_id", None)

    @property
    def agent(self) -> str | None:
        """The name of the agent, which only providers are told."""
        return next((turn.agent for turn in (self.ledger, self.history) if turn is not None), None)

    def here(self, messages: Sequence[Any]) -> "Caller":
        """The caller of one request: some releases load histories only where it goes out."""
        history = turn_of(HISTORY_TURN, messages) or self.history
        ledger = turn_of(LEDGER_TURN, messages) or self.ledger
        return replace(self, history=history, ledger=ledger)
