"""What the server holds behind each id that a request can continue."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from convnorm.delivery import Ledger, Link

MOST = 1000
"""So many ends of conversations are remembered; the one used longest ago is forgotten first."""


class Memory:
    """One ledger per end of a conversation; what they share is held once."""

    def __init__(self) -> None:
        self._ledgers: OrderedDict[str, Ledger] = OrderedDict()
        self._instructions: dict[str, str | None] = {}

    def ledger(self, link: str) -> Ledger | None:
        """What is known behind a response or a conversation; None if nothing is."""
        found = self._ledgers.get(link)
        if found is not None:
            self._ledgers.move_to_end(link)
        return found

    def instructions(self, link: str) -> str | None:
        """The instructions that the request behind a link came with."""
        return self._instructions.get(link)

    def learn(self, link: str, ledger: Ledger, instructions: str | None = None) -> None:
        """Remember what stands behind a link."""
        self._ledgers[link] = ledger
        self._instructions[link] = instructions
        self._ledgers.move_to_end(link)
        while len(self._ledgers) > MOST:
            oldest, _ = self._ledgers.popitem(last=False)
            del self._instructions[oldest]

    def note(
        self,
        before: Ledger,
        request: Mapping[str, Any],
        response: Any,
        instructions: str | None = None,
    ) -> str:
        """A request was answered; what the next one can continue."""
        after = before.accepted(request, response)
        conversation = Link.of(request).conversation
        link = Link(None, conversation) if conversation else Link(response.id)
        name = str(conversation or response.id)
        self.learn(name, after.prune(link), instructions)
        return name
