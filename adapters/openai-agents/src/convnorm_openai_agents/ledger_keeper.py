"""The ledger of one conversation while its runs go on, and what fills it."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from agents import RunState

from convnorm.delivery import Ledger, Link
from convnorm.errors import LedgerError

MOST_SPEAKERS = 16


class LedgerKeeper:
    """Holds the newest `Ledger` of a conversation: providers read it, providers and hooks tell it.

    Outputs are known by their call ids, which some servers count from one in every conversation:
    each conversation needs a keeper of its own.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger or Ledger()
        self._last: dict[Hashable, Sequence[Any]] = {}

    def last_request(self, speaker: Hashable) -> Sequence[Any] | None:
        """The history that this agent's model was last sent, if it was repaired and answered."""
        return self._last.get(speaker)

    def remember(self, speaker: Hashable, items: Sequence[Any] | None) -> None:
        """A repaired history was answered, or none: of the agents, the latest are remembered."""
        self._last.pop(speaker, None)
        if items is not None:
            self._last[speaker] = items
        if len(self._last) > MOST_SPEAKERS:
            del self._last[next(iter(self._last))]

    def about(self, link: Link, items: Sequence[Any]) -> Ledger | None:
        """The ledger, where it knows the link, or all ids; else the server knows more than we do.

        For what is not in a ledger, the server does not have.
        """
        if link:
            return self.ledger if self.ledger.knows(link) else None
        named = _ids(items)
        return self.ledger if named and named <= _ids(self.ledger.issued_items()) else None

    def attempted(self, request: Mapping[str, Any]) -> None:
        """A request is sent now."""
        self.ledger = self.ledger.attempted(request)

    def accepted(self, request: Mapping[str, Any], response: object) -> None:
        """A request was answered."""
        self.ledger = self.ledger.accepted(request, response)

    def refused(self, request: Mapping[str, Any]) -> None:
        """The server took nothing of a request."""
        self.ledger = self.ledger.refused(request)

    def observed_output(self, item: object) -> None:
        """A tool returned something."""
        self.ledger = self.ledger.observed_output(item)


def _ids(items: Iterable[Any]) -> set[Any]:
    return {item["id"] for item in items if isinstance(item, Mapping) and item.get("id")}


def ledger_from_state(
    state: RunState[Any],
    *,
    previous_response_id: str | None = None,
    conversation: str | None = None,
) -> Ledger:
    """What a paused run knows of the server, also in another process than the one that paused it.

    The link is the one the run was started with. An output in the state counts as made, not as
    sent: only a response that came later proves that.
    """
    form = state.to_json()
    ledger, previous = Ledger(), previous_response_id
    for response in form.get("model_responses") or ():
        own = response.get("response_id")
        if not isinstance(own, str):
            continue  # a model without stored responses
        link = (
            {"conversation": conversation} if conversation else {"previous_response_id": previous}
        )
        body = {"id": own, "output": response.get("output") or []}
        ledger = ledger.accepted({"input": [], **link}, body)
        previous = own
    for item in form.get("generated_items") or ():
        raw = item.get("raw_item") if isinstance(item, Mapping) else None
        if isinstance(raw, Mapping) and str(raw.get("type")).endswith("_output"):
            try:
                ledger = ledger.observed_output(raw)
            except LedgerError:
                continue  # an output that answers no call of the client
    return ledger
