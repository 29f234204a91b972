"""One turn of a session, from its input to its answer, without any waiting."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from convnorm.delivery import Ledger
from convnorm.errors import DialectError, StoreError
from convnorm.mergers import Answer, Merger, Note, merger_for
from convnorm.mergers.merger import text
from convnorm.options import Options
from convnorm.stores import Commit, OpenTurn, Snapshot
from convnorm.stores.store import encoded
from convnorm.wire import fields

logger = logging.getLogger("convnorm")

SAYS_NOTHING = frozenset({"ping", "keepalive"})
"""Types of events that only keep a connection alive; one may come before the format is known."""

Emit = Literal["updates", "final", "both"]
Ended = Literal["complete", "cut", "left", "cancelled", "producer failed", "consumer failed"]
REASONS: dict[Ended, str] = {
    "complete": "the stream ended",
    "cut": "the stream ended before the answer did",
    "left": "the consumer left the stream",
    "cancelled": "the consumer was cancelled",
    "producer failed": "the stream failed",
    "consumer failed": "the consumer failed",
}


class TurnReport(Options):
    """How a turn ended, and what is kept of it."""

    ended: Ended
    """Which way the stream was left; `cut` is one that stopped before its answer was at its end."""
    answer: Answer
    """What came, as it is stored; its notes say what is not."""
    stored: bool = True
    """Whether the session has it; else `unsaved` is what was refused."""
    unsaved: Commit | None = None
    """The commit that failed, to be made again."""


@dataclass(slots=True)
class Turn:
    """What a recording knows; `Updates` and `SyncUpdates` do the waiting."""

    snapshot: Snapshot
    """The session as it was loaded; later with the input, then with the answer."""
    input: Sequence[Any]
    mergers: Sequence[type[Merger]]
    emit: Emit
    request: Mapping[str, Any] | None = None
    """The body that was sent, for the ledger."""
    ledger: Ledger | None = None
    """What the next commit says of the server, if anything is new."""
    checkpoint: Any = None
    """What the next commit keeps for the caller, if anything is new."""
    report: TurnReport | None = None
    begun: bool = False
    over: bool = False
    """The stream ended by itself."""
    failed: BaseException | None = None
    """What the stream raised, if nothing came after it."""
    merger: Merger | None = None
    lost: list[Note] = field(default_factory=list)
    """Updates that the merger could not take."""
    final: bool = False
    """The answer has been handed on."""

    def begin(self) -> Commit:
        """The input, and the mark that an answer is on its way; a turn that was left is closed."""
        notes: tuple[Note, ...] = ()
        if (left := self.snapshot.turn) is not None:
            why = (
                f"the turn that began at item {left.at} was never finished: its answer is not known"
            )
            notes = (Note(kind="turn", why=why),)
        return Commit(
            items=tuple(self.input),
            notes=notes,
            turn=OpenTurn(at=self.snapshot.bookmark, number=self.snapshot.version),
            ledger=self._attempted(),
            checkpoint=self._taken("checkpoint"),
        )

    def take(self, update: Any) -> None:
        """Merge one update. A stream goes on even if an update cannot be read: that is a note."""
        self.failed = None
        if self.merger is None:
            if text(update, "type") in SAYS_NOTHING:
                return
            self.merger = merger_for(update, self.mergers)
        try:
            self.merger.add(update)
        except Exception as error:  # noqa: BLE001  # whatever a damaged update makes a merger raise
            self._lose(error, update)

    def answer(self) -> Answer:
        """What came so far."""
        over = self.over and self.failed is None
        if self.merger is None:
            return Answer(complete=False, notes=tuple(self.lost))
        try:
            found = self.merger.answer(over=over)
        except Exception as error:  # noqa: BLE001  # as above: the turn ends all the same
            self._lose(error, None)
            return Answer(complete=False, notes=tuple(self.lost))
        return found.model_copy(update={"notes": (*found.notes, *self.lost)})

    def finish(self, error: BaseException | None, *, cancelled: bool) -> Commit:
        """The answer as far as it came, with what else belongs to this step."""
        answer = self.answer()
        ended = self._ended(error, answer, cancelled=cancelled)
        self.report = TurnReport(ended=ended, answer=answer, stored=False)
        notes = answer.notes
        if not answer.complete:
            why = f"the answer is not whole: {REASONS[ended]}"
            notes = (*notes, Note(kind="turn", why=why, at=len(answer.items)))
        return Commit(
            items=answer.items,
            incomplete=answer.incomplete,
            notes=notes,
            ledger=self._taken("ledger") or self._accepted(answer),
            checkpoint=self._taken("checkpoint"),
        )

    def saved(self, after: Snapshot) -> None:
        """Go on from the session as it is now, with this turn's commit."""
        self.snapshot = after
        if self.report is None:
            self.begun = True
        else:
            self.report = self.report.model_copy(update={"stored": True})

    def unsaved(self, change: Commit, failure: Exception, error: BaseException | None) -> None:
        """Tell of a commit that failed while another error was already on its way."""
        assert self.report is not None
        self.report = self.report.model_copy(update={"unsaved": change})
        if error is None:
            raise failure
        what = f"the turn could not be stored: {failure}"
        logger.error("%s", what)
        error.add_note(what)

    def _lose(self, error: Exception, update: Any) -> None:
        why = f"an update could not be read: {type(error).__name__}: {error}"
        if not self.lost:  # the others of this turn are notes
            logger.warning("%s", why)
        self.lost.append(Note(kind="update", why=why, raw=_shown(update)))

    def _ended(self, error: BaseException | None, answer: Answer, *, cancelled: bool) -> Ended:
        if self.failed is not None and not cancelled:
            return "producer failed"
        if cancelled:
            return "cancelled"
        if error is not None and not isinstance(error, GeneratorExit):
            return "consumer failed"
        if answer.complete:
            return "complete"
        return "cut" if self.over else "left"

    def _attempted(self) -> Ledger | None:
        ledger: Ledger | None = self._taken("ledger")
        if self.request is None:
            return ledger
        return (ledger or self.snapshot.ledger or Ledger()).attempted(self.request)

    def _accepted(self, answer: Answer) -> Ledger | None:
        """An answer that did not come whole is none: nobody knows what the server made of it."""
        if self.request is None or not answer.complete or answer.response_id is None:
            return None
        assert self.snapshot.ledger is not None  # the begin put it there
        response = {"id": answer.response_id, "output": answer.items, "store": answer.store}
        return self.snapshot.ledger.accepted(self.request, response)

    def _taken(self, name: Literal["ledger", "checkpoint"]) -> Any:
        """A value that goes into one commit, and is not new any more afterwards."""
        value = getattr(self, name)
        setattr(self, name, None)
        return value


def _shown(update: Any) -> Any:
    """An update as a note can keep it: what is no JSON is only described."""
    raw = fields(update)
    try:
        return None if raw is None else json.loads(encoded(dict(raw), "an update"))
    except DialectError:
        return repr(update)


class TurnView:
    """What a consumer sees of the turn, and may add to it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def snapshot(self) -> Snapshot:
        """The session as far as this turn has stored it: what the next turn goes on from."""
        return self._turn.snapshot

    @property
    def report(self) -> TurnReport | None:
        """How the turn ended; None as long as it is open."""
        return self._turn.report

    def keep(self, *, ledger: Ledger | None = None, checkpoint: Any = None) -> None:
        """Store this together with the answer, in the same step. The last word counts."""
        if self._turn.report is not None:
            raise StoreError("the turn is stored already: keep what belongs to it before it ends")
        if ledger is not None:
            self._turn.ledger = ledger
        if checkpoint is not None:
            self._turn.checkpoint = checkpoint
