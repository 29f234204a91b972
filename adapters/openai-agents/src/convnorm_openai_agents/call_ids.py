"""Call ids that a model uses again: each call gets one of its own, of which no server hears.

Some servers count the calls of each answer from nought. The SDK takes two calls with one id for
one: it merges them, gives both the same output, or ends the run.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from agents.models.fake_id import FAKE_RESPONSES_ID

from convnorm.delivery import Ledger, Link
from convnorm.delivery.items import ANSWERS, answered_id
from convnorm.envelope import digest
from convnorm.wire import fields

MARK = re.compile(r"(?P<own>.+)_again_(?P<salt>[0-9a-f]{6})[0-9a-f]{4}", re.DOTALL)


def original(call_id: str) -> str:
    """The id that the server gave a call; what only looks like one of ours is left as it is."""
    found = MARK.fullmatch(call_id)
    return found["own"] if found and again(found["own"], found["salt"]) == call_id else call_id


def again(call_id: str, salt: str) -> str:
    """Another id for a call, from which `original` can tell its own."""
    return f"{call_id}_again_{salt}{digest(call_id, salt)[:4]}"


def as_the_server_knows(items: Sequence[Any], ledger: Ledger | None, link: Link) -> list[Any]:
    """Outputs under the ids of the server, where it holds their calls.

    Outputs of calls that have one id there stand in the order of the calls: that is how it, too,
    tells them apart.
    """
    here = {_call_id(item) for item in items}
    places: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        call_id = _answered(item)
        if call_id is not None and call_id not in here:
            places.setdefault(original(call_id), []).append(at)
    known = list(items)
    for own, found in places.items():
        called = sorted(found, key=_order(ledger, link, items)) if len(found) > 1 else found
        for at, source in zip(found, called, strict=True):
            item = items[source]
            known[at] = item if _answered(item) == own else {**item, "call_id": own}
    return known


def _order(ledger: Ledger | None, link: Link, items: Sequence[Any]) -> Callable[[int], int]:
    """Where the call of an output stands among those that the server holds."""
    held = ledger.recall(link) if ledger is not None else ()
    order = {_call_id(item): at for at, item in enumerate(held)}
    return lambda at: order.get(_answered(items[at]), -1)


class CallIds:
    """The calls of one answer, each under an id that no call before it has."""

    def __init__(self, items: Sequence[Any], ledger: Ledger | None, link: Link) -> None:
        self._before = (items, ledger, link)
        self._used: dict[str, set[Any]] | None = None
        self._salt = str(len(items))
        self._started: dict[int, tuple[str, int]] = {}
        self._own: dict[tuple[str, int], str] = {}

    def of_response(self, response: Any) -> Any:
        """A response of the SDK or of the API; the same object where no id is used again."""
        own = getattr(response, "response_id" if is_dataclass(response) else "id", None)
        if own not in (None, FAKE_RESPONSES_ID):
            self._salt = own
        seen, output = Counter[str](), []
        for item in response.output:
            call_id = _call_id(item)
            output.append(item if call_id is None else self._named(item, call_id, seen[call_id]))
            seen[call_id or ""] += 1
        if all(one is other for one, other in zip(output, response.output, strict=True)):
            return response
        if is_dataclass(response):
            return replace(response, output=output)  # type: ignore[type-var]  # no class, an object
        return response.model_copy(update={"output": output})

    def of_event(self, event: Any) -> Any:
        """An event of a stream."""
        name = "response" if getattr(event, "response", None) is not None else "item"
        old = new = getattr(event, name, None)
        if name == "response":
            new = self.of_response(old)
        elif (call_id := _call_id(old)) is not None:
            nth = sum(other == call_id for other, _ in self._started.values())
            _, nth = self._started.setdefault(event.output_index, (call_id, nth))
            new = self._named(old, call_id, nth)
        return event if new is old else event.model_copy(update={name: new})

    def _named(self, item: Any, call_id: str, nth: int) -> Any:
        """A call under an id of its own; `nth` of those that have this one in the answer."""
        if (call_id, nth) not in self._own:
            self._own[call_id, nth] = self._free(call_id, nth, (fields(item) or {}).get("id"))
        own = {"call_id": self._own[call_id, nth]}
        if own["call_id"] == call_id:
            return item
        return {**item, **own} if isinstance(item, dict) else item.model_copy(update=own)

    def _free(self, call_id: str, nth: int, item_id: Any) -> str:
        if self._used is None:
            items, ledger, link = self._before
            held = ledger.recall(link) if ledger is not None and link else ()
            self._used = _used((*items, *held))
        known = self._used.get(call_id, set())
        repeated = item_id not in (None, FAKE_RESPONSES_ID) and item_id in known
        if (not known and not nth) or repeated:  # the very item that is there is no second call
            return call_id
        return again(call_id, digest(self._salt, str(nth))[:6])


def _used(items: Iterable[Any]) -> dict[str, set[Any]]:
    """The call ids of a history, and the ids of the items that have them."""
    found: dict[str, set[Any]] = {}
    for item in items:
        call_id = _call_id(item) or _answered(item)
        for name in {call_id, original(call_id)} if call_id is not None else ():
            found.setdefault(name, set()).add((fields(item) or {}).get("id"))
    return found


def _call_id(item: Any) -> str | None:
    """The call id of a call that waits for an output under the same key."""
    keys = fields(item) or {}
    found = keys.get("call_id")
    named = keys.get("type") in ANSWERS and keys.get("type") != "local_shell_call"
    return found if named and isinstance(found, str) else None


def _answered(item: Any) -> str | None:
    return answered_id(fields(item) or {})
