"""What the server holds: responses and conversations, and the numbers of its ids."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from threading import RLock
from typing import Any

from convnorm.delivery import Exchange, Ledger
from convnorm.wire import fields

EPOCH = 1_750_000_000
"""When the first request comes; each one comes a second later, so that runs are reproducible."""

PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "compaction": "cmp",
}
"""By item type: how the ids begin that the server gives."""

TEXTS = {"user": "input_text", "system": "input_text", "developer": "input_text"}
"""By role: the type of a text part; all others speak `output_text`."""


class State:
    """All of it, behind one lock."""

    def __init__(self, given: Ledger) -> None:
        self.lock = RLock()
        self.bodies: dict[str, dict[str, Any]] = {}
        """By response id: the stored response as it was sent."""
        self.conversations: dict[str, dict[str, Any]] = {}
        """By conversation id: the object that names it."""
        self._given = given
        self._responses = dict(given.responses)
        self._items = dict(given.conversations)
        self._taken = frozenset(_names(given))
        self._numbers: Counter[str] = Counter()
        for name in self._items:
            self._name_conversation(name, {})

    def next(self, prefix: str) -> int:
        """The next number of ids that begin like this."""
        with self.lock:
            self._numbers[prefix] += 1
            return self._numbers[prefix]

    def id(self, prefix: str) -> str:
        """The next id of its kind: `rs_1`, `rs_2`, …"""
        with self.lock:
            found = f"{prefix}_{self.next(prefix)}"
            while found in self._taken:
                found = f"{prefix}_{self.next(prefix)}"
            return found

    def now(self) -> int:
        """The time, as this server counts it."""
        with self.lock:
            return EPOCH + self._numbers["req"]

    @property
    def ledger(self) -> Ledger:
        """Everything held at this moment, as a plain value."""
        with self.lock:
            held = {"responses": dict(self._responses), "conversations": dict(self._items)}
            return self._given.model_copy(update=held)

    @property
    def stores(self) -> bool:
        """Whether it may store anything."""
        return not self._given.zero_data_retention

    # ------------------------------------------------------------ responses

    def issue(self, response: str, exchange: Exchange) -> None:
        """The answer is under way: its ids are issued, and nothing is stored yet."""
        with self.lock:
            self._responses[response] = exchange.model_copy(update={"stored": False})

    def keep(self, response: str, exchange: Exchange, body: dict[str, Any]) -> None:
        """The answer is complete: store it, if it is to be stored."""
        with self.lock:
            self._responses[response] = exchange
            if exchange.stored:
                self.bodies[response] = body
            if exchange.conversation in self._items:
                self._items[exchange.conversation] += (*exchange.input, *exchange.output)

    def forget(self, response: str) -> bool:
        """Delete a response; what was issued stays issued."""
        with self.lock:
            if self.bodies.pop(response, None) is None:
                return False
            self.issue(response, self._responses[response])
            return True

    def input_items(self, response: str) -> list[Any] | None:
        """The input of a stored response; from now on its items have ids."""
        with self.lock:
            if response not in self.bodies:
                return None
            exchange = self._responses[response]
            items = tuple(map(self._shown, exchange.input))
            self._responses[response] = exchange.model_copy(update={"input": items})
            return list(items)

    # ------------------------------------------------------------ conversations

    def open_conversation(self, items: Iterable[Any], metadata: Any) -> dict[str, Any]:
        """Create a conversation that begins with `items`."""
        with self.lock:
            name = self.id("conv")
            self._items[name] = tuple(map(self._shown, items))
            return self._name_conversation(name, metadata)

    def _name_conversation(self, name: str, metadata: Any) -> dict[str, Any]:
        self.conversations[name] = {
            "id": name,
            "object": "conversation",
            "created_at": self.now(),
            "metadata": metadata if isinstance(metadata, Mapping) else {},
        }
        return self.conversations[name]

    def close_conversation(self, name: str) -> None:
        """Delete a conversation with its items."""
        with self.lock:
            del self.conversations[name], self._items[name]

    def items(self, name: str) -> list[Any]:
        """The items of a conversation, from now on with ids."""
        with self.lock:
            self._items[name] = tuple(map(self._shown, self._items[name]))
            return list(self._items[name])

    def add_items(self, name: str, items: Iterable[Any]) -> list[Any]:
        """Put items behind those of a conversation."""
        with self.lock:
            new = tuple(map(self._shown, items))
            self._items[name] += new
            return list(new)

    def drop_item(self, name: str, item: str) -> bool:
        """Take one item out of a conversation."""
        with self.lock:
            kept = tuple(one for one in self.items(name) if _id(one) != item)
            gone = len(kept) < len(self._items[name])
            self._items[name] = kept
            return gone

    def _shown(self, item: Any) -> Any:
        """An item as a list of stored items shows it: with an id, and its text as a part."""
        if not isinstance(item, Mapping) or item.get("type") == "item_reference":
            return item
        kind = item.get("type") or "message"
        shown = {"type": kind, **item}
        if not isinstance(item.get("id"), str):
            shown["id"] = self.id(PREFIXES.get(kind, "item") if isinstance(kind, str) else "item")
        if kind == "message":
            shown.setdefault("status", "completed")
            said = item.get("content")
            if isinstance(said, str):
                part = {"type": TEXTS.get(str(item.get("role")), "output_text"), "text": said}
                shown["content"] = [part if "input" in part["type"] else part | {"annotations": []}]
        return shown


def _names(given: Ledger) -> Iterator[str]:
    """Every id that a ledger knows: none of them is issued again."""
    yield from (*given.responses, *given.conversations, *given.encrypted_content)
    for item in (*given.stored_items(), *given.issued_items()):
        keys = fields(item) or {}
        named = (keys.get(key) for key in ("id", "call_id", "encrypted_content"))
        yield from (name for name in named if isinstance(name, str))


def _id(item: Any) -> Any:
    return item.get("id") if isinstance(item, Mapping) else None
