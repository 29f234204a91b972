"""Recording agents and workflows: what they stream, and how it becomes a history.

The items are those of the Responses API. `messages_from` makes messages of them again.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import agent_framework as af

from convnorm import PolicyError
from convnorm.mergers import MERGERS, Answer, Note
from convnorm.recorder import Recorder, Recording
from convnorm.stores import HistoryStore, Snapshot
from convnorm_agent_framework.codec import Codec
from convnorm_agent_framework.parts import Part, items, take

UPDATES = (af.AgentResponseUpdate, af.ChatResponseUpdate)
RESPONSES = (af.AgentResponse, af.ChatResponse)
OUTPUTS = frozenset({"output", "intermediate", "data"})
"""The events that show what an agent of a workflow says."""
BOUNDARIES = frozenset({"superstep_started", "superstep_completed"})
"""The events before which a checkpoint is written."""


def items_from(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """What messages say, as a recorder stores it."""
    return Codec(messages, "openai.responses").elements


async def streamed(one: Any, *given: Any, **options: Any) -> AsyncGenerator[Any, None]:
    """What an agent or a workflow streams: it starts with the first update.

    Whoever closes it ends the run, as far as the release can.
    """
    running = one.run(*given, stream=True, **options)
    if hasattr(running, "__aenter__"):
        async with running:
            async for update in running:
                yield update
        return
    async for update in running:  # older releases have no end of their own
        yield update


class AgentUpdates:
    """Merges what an agent or a client answers, streamed or whole.

    It is a merger for the recorder: `Recorder(store, mergers=(AgentUpdates, *MERGERS))`.
    """

    def __init__(self) -> None:
        self._parts: list[Part] = []

    @staticmethod
    def takes(update: Any) -> bool:
        """A response of the framework, or a part of one."""
        return isinstance(update, UPDATES + RESPONSES)

    def add(self, update: Any) -> None:
        """Take it in."""
        self._take(update, None)

    def answer(self, *, over: bool) -> Answer:
        """What came so far, in its order."""
        found = items(self._parts)
        cut = not over and bool(found) and self._parts[-1]["kind"] == "text"
        incomplete = frozenset({len(found) - 1} if cut else ())
        return Answer(items=tuple(found), complete=over, incomplete=incomplete)

    def _take(self, data: Any, executor: Any) -> None:
        if isinstance(data, UPDATES):
            mark = [executor, data.response_id]
            take(self._parts, data.contents, speaker=mark, whole=False, strangers=True)
        elif isinstance(data, RESPONSES):
            for message in data.messages:
                mark = [executor, data.response_id, len(self._parts)]
                take(self._parts, message.contents, speaker=mark, whole=True, strangers=True)


class WorkflowEvents(AgentUpdates):
    """Merges the events of a workflow: what its agents say, as often as a checkpoint knows of it.

    A run that is left is taken up at its last checkpoint, and what came behind that is made anew.
    So it is not in the history, but in a note.
    """

    def __init__(self) -> None:
        super().__init__()
        self._safe = 0

    @staticmethod
    def takes(update: Any) -> bool:
        """An event of a workflow, or all of them."""
        return isinstance(update, af.WorkflowEvent | af.WorkflowRunResult)

    def add(self, update: Any) -> None:
        """Take it in."""
        for event in update if isinstance(update, af.WorkflowRunResult) else [update]:
            if event.type in BOUNDARIES:
                self._safe = len(self._parts)
            elif event.type in OUTPUTS:
                self._take(event.data, event.executor_id)

    def answer(self, *, over: bool) -> Answer:
        """What came so far, in its order."""
        if over:
            return super().answer(over=True)
        found = items(self._parts[: self._safe])
        notes = [
            Note(
                kind="item",
                why="no checkpoint knows of it: it is made again",
                at=len(found),
                raw=one,
            )
            for one in items(self._parts[self._safe :])
        ]
        return Answer(items=tuple(found), complete=False, notes=tuple(notes))


class RecordedWorkflow:
    """A workflow whose turns are stored, however they end, and go on in any process.

    ```python
    desk = RecordedWorkflow(workflow, storage, store, "session 1")
    async with await desk.run("What is my balance?") as events:
        async for event in events:
            ...
    ```
    """

    def __init__(self, workflow: Any, storage: Any, store: HistoryStore, session: str) -> None:
        """`storage` has the checkpoints of the workflow, `store` the history of the session."""
        self.workflow, self.storage, self.store, self.session = workflow, storage, store, session
        self._recorder = Recorder(store, mergers=(WorkflowEvents, *MERGERS))

    async def run(
        self,
        message: Any = None,
        *,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        stream: bool = True,
    ) -> Recording:
        """The recording of a turn: what the user says, or what answers the workflow's requests."""
        given: dict[str, Any] = {"message": message} if responses is None else {}
        if responses is not None:
            given = {"responses": dict(responses)}
        said = [one for value in _values(given) for one in _messages(value)]
        if checkpoint_id is not None:
            given["checkpoint_id"] = checkpoint_id
        snapshot = await self.store.load(self.session)
        mark = {"newest": await self._newest(), "given": _plain(given)}
        return self._recording(given, snapshot, items_from(said), mark, stream=stream)

    async def go_on(self, *, stream: bool = True) -> Recording:
        """The recording of what is left of a turn that was left, in this process or another.

        It goes on from the newest checkpoint. What the user said in that turn is given to the
        workflow again only if no checkpoint knows of it.
        """
        snapshot = await self.store.load(self.session)
        mark, newest = snapshot.checkpoint, await self._newest()
        if mark is None:
            raise PolicyError(f"the session {self.session!r} has no turn that could go on")
        given: dict[str, Any] = {"checkpoint_id": newest}
        if newest == mark["newest"]:
            given = {**_restored(mark["given"]), "checkpoint_id": newest}
            if "message" in given or newest is None:
                del given["checkpoint_id"]
        return self._recording(given, snapshot, [], mark, stream=stream)

    def _recording(
        self,
        given: dict[str, Any],
        snapshot: Snapshot,
        said: list[dict[str, Any]],
        mark: dict[str, Any],
        *,
        stream: bool,
    ) -> Recording:
        source: Any = streamed(self.workflow, **given)
        if not stream:

            def source() -> Any:
                return self.workflow.run(**given)

        return self._recorder(source, snapshot, input=said, checkpoint=mark)

    async def _newest(self) -> str | None:
        """The newest checkpoint of the workflow."""
        found = await self.storage.get_latest(workflow_name=self.workflow.name)
        return None if found is None else str(found.checkpoint_id)


def _values(given: Mapping[str, Any]) -> list[Any]:
    return [given["message"]] if "message" in given else list(given["responses"].values())


def _messages(said: Any) -> list[Any]:
    """What is said in a message or a list of them; approvals say nothing."""
    if isinstance(said, str):
        return [af.Message("user", [said])]
    if isinstance(said, af.Message):
        return [said]
    return [one for each in said for one in _messages(each)] if isinstance(said, list) else []


def _plain(given: Any) -> Any:
    """What is given to a workflow, as JSON."""
    if isinstance(given, Mapping):
        return {str(key): _plain(value) for key, value in given.items()}
    if isinstance(given, list):
        return [_plain(one) for one in given]
    if isinstance(given, af.Message):
        return {"af": "message", "is": given.to_dict()}
    if isinstance(given, af.Content):
        return {"af": "content", "is": given.to_dict()}
    if isinstance(given, str | int | float | bool | None):
        return given
    raise PolicyError(f"a {type(given).__name__} cannot be kept for a turn that is left")


def _restored(kept: Any) -> Any:
    """The same from JSON."""
    if isinstance(kept, list):
        return [_restored(one) for one in kept]
    if not isinstance(kept, dict):
        return kept
    match kept.get("af"):
        case "message":
            return af.Message.from_dict(kept["is"])
        case "content":
            return af.Content.from_dict(kept["is"])
    return {key: _restored(value) for key, value in kept.items()}
