"""Recording a streamed run: its events, and how they become a history."""

from collections.abc import AsyncGenerator
from typing import Any

from agents import Agent, Runner

from convnorm.mergers import Answer
from convnorm.mergers.openai_responses import OpenaiResponses
from convnorm_openai_agents.placeholders import shown

EVENTS = frozenset({"raw_response_event", "run_item_stream_event", "agent_updated_stream_event"})


async def streamed(agent: Agent[Any], given: Any, **options: Any) -> AsyncGenerator[Any, None]:
    """The events of `Runner.run_streamed`: it starts with the first, and ends with the last.

    Whoever closes the events cancels the run. The SDK alone would let it go on to its end.
    """
    result = Runner.run_streamed(agent, given, **options)
    events = result.stream_events()
    try:
        async for event in events:
            yield event
    finally:
        result.cancel()
        await events.aclose()


class RunEvents:
    """Merges the events of a run: what its models said, and what its tools returned.

    It is a merger for the recorder: `Recorder(store, mergers=(RunEvents, *MERGERS))`.
    """

    def __init__(self) -> None:
        self._parts: list[OpenaiResponses | dict[str, Any]] = []

    @staticmethod
    def takes(update: Any) -> bool:
        """An event of the SDK."""
        return getattr(update, "type", None) in EVENTS

    def add(self, update: Any) -> None:
        """One event; of the SDK's own, only the outputs of tools and handoffs are kept."""
        if update.type == "raw_response_event":
            self._response(update.data).add(update.data)
        elif update.type == "run_item_stream_event":
            item = update.item.to_input_item()
            if str(item.get("type")).endswith("_output"):
                self._parts.append(dict(item))

    def answer(self, *, over: bool) -> Answer:
        """What came so far, in its order."""
        items: list[Any] = []
        cut: set[int] = set()
        notes, complete, last = [], False, Answer()
        for part in self._parts:
            if isinstance(part, dict):
                items.append(part)
                complete = False  # nobody has answered what a tool returned
                continue
            last = part.answer(over=over)
            cut |= {len(items) + at for at in last.incomplete}
            notes += [note.model_copy(update={"at": note.at + len(items)}) for note in last.notes]
            items += shown(last.items)
            complete = last.complete
        return Answer(
            items=tuple(items),
            complete=complete or (over and bool(self._parts)),
            incomplete=frozenset(cut),
            notes=tuple(notes),
            usage=last.usage,
            response_id=last.response_id,
        )

    def _response(self, event: Any) -> OpenaiResponses:
        """The response that an event belongs to."""
        last = self._parts[-1] if self._parts else None
        if event.type == "response.created" or not isinstance(last, OpenaiResponses):
            last = OpenaiResponses()
            self._parts.append(last)
        return last
