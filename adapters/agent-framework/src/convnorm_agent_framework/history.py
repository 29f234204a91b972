"""History providers: one that stores all of it once, and one that stores nothing."""

import copy
from collections.abc import Sequence
from typing import Any

import agent_framework

from convnorm_agent_framework.codec import messages_from
from convnorm_agent_framework.loading import answered_in, sound
from convnorm_agent_framework.on_error import Complaints, OnError
from convnorm_agent_framework.parts import items
from convnorm_agent_framework.sources import new_in
from convnorm_agent_framework.turn import HISTORY_TURN, OPEN, Turn

ANSWERED = "convnorm_answered"
"""Where a provider is told, while it loads, which calls the input answers."""
# The base class got its final name with 1.0.0.
_Base: Any = (
    getattr(agent_framework, "HistoryProvider", None) or agent_framework.BaseHistoryProvider
)


class NormalizingHistoryProvider(_Base):
    """Another provider's history, with each message stored once and no turn lost.

    Of a transcript that is passed in again only what is new is stored, so sessions and checkpoints
    grow by what was said. Equal turns are stored as often as they were said. A turn whose stream
    was left, or whose run was cancelled, is stored when the session goes on: what the user said,
    the text of the answer as far as it came, and its whole calls with what was returned.

    What is loaded is sound, whatever client it goes to: a call that nobody will answer any more is
    closed, and a result without a call is quoted. What is stored stays as it is.
    """

    def __init__(self, inner: Any, *, on_error: OnError = "send") -> None:
        """`on_error` as for `normalize_client`: what an error of ours means for the history."""
        flags = ("load_messages", "store_inputs", "store_context_messages", "store_context_from")
        super().__init__(
            inner.source_id,
            store_outputs=inner.store_outputs,
            **{flag: getattr(inner, flag) for flag in flags},
        )
        self.inner = inner
        self.on_error: OnError = on_error
        self._complaints = Complaints()

    async def get_messages(self, session_id: str | None, **rest: Any) -> list[Any]:
        """What the inner provider has, with calls and results in pairs."""
        found: list[Any] = await self.inner.get_messages(session_id, **rest)
        with self._complaints.guarded(self.on_error, "the history is loaded as it is"):
            return sound(found, (rest.get("state") or {}).get(ANSWERED))
        return found

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Any], **rest: Any
    ) -> None:
        """Store messages at the end, each as one that was not there before."""
        held = await self.inner.get_messages(session_id, **rest)
        own = [_named(message, len(held) + at) for at, message in enumerate(messages)]
        await self.inner.save_messages(session_id, own, **rest)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Store a turn that was left, load the history, and note that a turn begins."""
        left = state.pop(OPEN, None)
        if left is not None:
            answer = messages_from(items(left["answer"]))
            await self._store(context.session_id, left["input"], answer, state)
        given = list(context.input_messages)
        state[ANSWERED] = answered_in(given)
        try:
            await super().before_run(agent=agent, session=session, context=context, state=state)
        finally:
            del state[ANSWERED]
        if given:
            state[OPEN] = {"input": given, "answer": []}
            HISTORY_TURN.set(Turn(state, given, getattr(agent, "name", None)))

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Store what is new of the turn; it is over."""
        response = context.response
        said = list(response.messages) if response is not None and response.messages else []
        told = [*self._get_context_messages_to_store(context), *context.input_messages]
        await self._store(context.session_id, told, said, state)
        state.pop(OPEN, None)
        HISTORY_TURN.set(None)

    async def _store(self, session_id: Any, told: list[Any], said: list[Any], state: Any) -> None:
        held = await self.inner.get_messages(session_id, state=state)
        messages = new_in(told, held) if self.store_inputs else []
        if self.store_outputs:
            messages += said
        if messages:
            await self.save_messages(session_id, messages, state=state)


class NoHistoryProvider(_Base):
    """A provider that keeps nothing, where an executor passes on the whole conversation anyway.

    With it the framework adds no provider of its own. A normalized client makes it unnecessary.
    """

    def __init__(self, source_id: str = "no_history") -> None:
        super().__init__(source_id)

    async def get_messages(self, session_id: str | None, **rest: Any) -> list[Any]:
        """Nothing."""
        return []

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Any], **rest: Any
    ) -> None:
        """Nothing is kept."""


def _named(message: Any, place: int) -> Any:
    """The message with an id, without which newer providers take equal turns for copies."""
    if message.message_id is not None:
        return message
    new = copy.copy(message)
    new.message_id = f"convnorm_{place}"
    return new
