"""`LedgerProvider`: what the server holds for a session is kept with the session."""

import json
from typing import Any

import agent_framework

from convnorm.delivery import Ledger
from convnorm_agent_framework.client import MARK
from convnorm_agent_framework.memory import Memory
from convnorm_agent_framework.normalizer import Normalizer
from convnorm_agent_framework.turn import LAST, LEDGER, LEDGER_TURN, Turn

# The base class got its final name with 1.0.0.
_Base: Any = (
    getattr(agent_framework, "ContextProvider", None) or agent_framework.BaseContextProvider
)


class LedgerProvider(_Base):
    """Keep the ledger of a normalized client in the session's state, and serialise it with it.

    A session that goes on in another process knows which calls wait on the server. Without this
    provider the ledger lives and dies with the client.
    """

    def __init__(self, source_id: str = "convnorm") -> None:
        super().__init__(source_id)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Tell the client what the session knows."""
        normalizer: Normalizer | None = getattr(agent.client, MARK, None)
        if normalizer is not None and session is not None:  # older releases run without one
            with normalizer.guarded("what the session knows is not used"):
                _tell(normalizer.memory, session, state)
        LEDGER_TURN.set(Turn(state, list(context.input_messages), getattr(agent, "name", None)))


def _tell(memory: Memory, session: Any, state: Any) -> None:
    kept, link = state.get(LEDGER), session.service_session_id
    if kept is not None and link in (kept["link"], None):
        memory.learn(kept["link"], Ledger.from_json(kept["ledger"]))
        memory.linked(session.session_id, kept["link"])
    if (last := state.get(LAST)) is not None:
        memory.remember(last["speaker"], json.loads(last["sent"]))
