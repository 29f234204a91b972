"""What the server holds behind each id that a request can continue, and what was sent last."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from convnorm.delivery import Ledger, Link

MOST = 1000
"""So many conversations are remembered; the one used longest ago is forgotten first."""

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values that were used last, by their keys."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str) -> Value | None:
        """A value, which counts as used."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: str, value: Value) -> None:
        """Remember a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    def drop(self, key: str) -> None:
        """Forget a value."""
        self._values.pop(key, None)


class Memory:
    """One ledger per end of a conversation; what they share is held once."""

    def __init__(self) -> None:
        self._ends: Recent[tuple[Ledger, str | None]] = Recent()
        self._sent: Recent[list[Any]] = Recent()
        self._links: Recent[str] = Recent()
        self._thoughts: Recent[str] = Recent(most=10 * MOST)

    def ledger(self, link: str) -> Ledger | None:
        """What is known behind a response or a conversation; None if nothing is."""
        found = self._ends.get(link)
        return found[0] if found else None

    def instructions(self, link: str) -> str | None:
        """The instructions that the request behind a link came with."""
        found = self._ends.get(link)
        return found[1] if found else None

    def learn(self, link: str, ledger: Ledger, instructions: str | None = None) -> None:
        """Remember what stands behind a link."""
        self._ends.put(link, (ledger, instructions))

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

    def thought(self, output: Sequence[Any]) -> None:
        """Remember which reasoning led to which calls."""
        last = None
        for item in output:
            if item.type == "reasoning":
                last = item.id
            elif item.type == "function_call" and item.id and last:
                self._thoughts.put(item.id, last)

    def bereft(self, elements: Sequence[Any]) -> set[str]:
        """The items of calls among the elements whose reasoning is not there any more."""
        there = {one["id"] for one in elements if one.get("type") == "reasoning" and "id" in one}
        ids = {one["id"] for one in elements if one.get("type") == "function_call" and "id" in one}
        return {own for own in ids if (self._thoughts.get(own) or own) not in there | ids}

    def last_request(self, speaker: str) -> list[Any] | None:
        """What a speaker was sent last, if it was repaired."""
        return self._sent.get(speaker)

    def remember(self, speaker: str, sent: list[Any] | None) -> None:
        """A request was answered; None: it went out as it came, in whatever words."""
        if sent is None:
            self._sent.drop(speaker)
        else:
            self._sent.put(speaker, sent)

    def link_of(self, speaker: str) -> str | None:
        """Where a speaker's conversation was last continued."""
        return self._links.get(speaker)

    def linked(self, speaker: str, link: str) -> None:
        """A speaker's conversation can be continued there."""
        self._links.put(speaker, link)


def digest(*marks: object) -> str:
    """What tells things apart, in a few letters; the same in every process."""
    said = json.dumps(marks, sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def begins(elements: Sequence[Any]) -> object:
    """What tells conversations apart that nobody has given a name."""
    return elements[0] if elements else None
