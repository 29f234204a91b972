"""What the server keeps, under its paths: stored responses and conversations."""

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from convnorm.testing.strict_server.answers import Answer
from convnorm.testing.strict_server.pieces import listed
from convnorm.testing.strict_server.record import Request
from convnorm.testing.strict_server.refusals import error_body
from convnorm.testing.strict_server.state import State

MOST_ITEMS = 20
"""How many items one call may add to a conversation."""


class Shelf:
    """Everything that is answered without a model."""

    def __init__(self, state: State) -> None:
        self.state = state
        conversation = r"/conversations/(?P<name>[^/]+)"
        self._routes: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
            ("GET", r"/responses/(?P<name>[^/]+)", self._response),
            ("DELETE", r"/responses/(?P<name>[^/]+)", self._forget),
            ("GET", r"/responses/(?P<name>[^/]+)/input_items", self._input_items),
            ("POST", r"/conversations", self._open),
            ("GET", conversation, self._conversation),
            ("POST", conversation, self._rename),
            ("DELETE", conversation, self._close),
            ("GET", rf"{conversation}/items", self._items),
            ("POST", rf"{conversation}/items", self._add),
            ("GET", rf"{conversation}/items/(?P<item>[^/]+)", self._item),
            ("DELETE", rf"{conversation}/items/(?P<item>[^/]+)", self._drop),
        )

    def answer(self, request: Request, path: str) -> Answer:
        """Find the route; a path that nobody serves is a 404, another method a 405."""
        known = False
        for method, pattern, found in self._routes:
            match = re.fullmatch(pattern, path)
            if match and method == request.method:
                names = match.groupdict()
                with self.state.lock:
                    if pattern.startswith("/conversations/"):
                        return self._in_conversation(found, request, **names)
                    return found(request, **names)
            known = known or match is not None
        if known or path in ("/chat/completions", "/responses", "/messages"):
            said = f"Not allowed to {request.method} on {request.path}."
            return Answer(405, error_body(None, 405, said, code="method_not_supported"))
        said = f"Invalid URL ({request.method} {request.path})"
        return Answer(404, error_body(None, 404, said))

    # ------------------------------------------------------------ responses

    def _response(self, _request: Request, name: str) -> Answer:
        stored = self.state.bodies.get(name)
        return _no_response(name) if stored is None else Answer(200, stored)

    def _forget(self, _request: Request, name: str) -> Answer:
        if not self.state.forget(name):
            return _no_response(name)
        return Answer(200, {"id": name, "object": "response", "deleted": True})

    def _input_items(self, request: Request, name: str) -> Answer:
        items = self.state.input_items(name)
        return _no_response(name) if items is None else Answer(200, _page(_ordered(items, request)))

    # ------------------------------------------------------------ conversations

    def _in_conversation(
        self, found: Callable[..., Answer], request: Request, **names: str
    ) -> Answer:
        if names["name"] not in self.state.conversations:
            return _missing(f"Conversation with id '{names['name']}' not found.")
        return found(request, **names)

    def _open(self, request: Request) -> Answer:
        items = listed(request.body.get("items"))
        return _too_many(items) or Answer(
            200, self.state.open_conversation(items, request.body.get("metadata"))
        )

    def _conversation(self, _request: Request, name: str) -> Answer:
        return Answer(200, self.state.conversations[name])

    def _rename(self, request: Request, name: str) -> Answer:
        self.state.conversations[name]["metadata"] = request.body.get("metadata") or {}
        return Answer(200, self.state.conversations[name])

    def _close(self, _request: Request, name: str) -> Answer:
        self.state.close_conversation(name)
        return Answer(200, {"id": name, "object": "conversation.deleted", "deleted": True})

    def _items(self, request: Request, name: str) -> Answer:
        return Answer(200, _page(_ordered(self.state.items(name), request)))

    def _add(self, request: Request, name: str) -> Answer:
        items = listed(request.body.get("items"))
        return _too_many(items) or Answer(200, _page(self.state.add_items(name, items)))

    def _item(self, _request: Request, name: str, item: str) -> Answer:
        for one in self.state.items(name):
            if isinstance(one, dict) and one.get("id") == item:
                return Answer(200, one)
        return _missing(f"Item with id '{item}' not found.")

    def _drop(self, _request: Request, name: str, item: str) -> Answer:
        if not self.state.drop_item(name, item):
            return _missing(f"Item with id '{item}' not found.")
        return Answer(200, self.state.conversations[name])


def _ordered(items: list[Any], request: Request) -> list[Any]:
    """The newest first, unless the query says otherwise."""
    query = parse_qs(request.path.partition("?")[2])
    return items if query.get("order") == ["asc"] else items[::-1]


def _page(items: Iterable[Any]) -> dict[str, Any]:
    """A list, as the API pages it; this server has one page."""
    data = list(items)
    ids = [one.get("id") for one in data if isinstance(one, dict)] or [None]
    return {
        "object": "list",
        "data": data,
        "first_id": ids[0],
        "last_id": ids[-1],
        "has_more": False,
    }


def _missing(message: str) -> Answer:
    return Answer(404, error_body(None, 404, message))


def _no_response(name: str) -> Answer:
    return _missing(f"Response with id '{name}' not found.")


def _too_many(items: tuple[Any, ...]) -> Answer | None:
    if len(items) <= MOST_ITEMS:
        return None
    said = (
        f"Invalid 'items': array too long. Expected an array with maximum length {MOST_ITEMS}, "
        f"but got an array with length {len(items)} instead."
    )
    body = error_body(None, 400, said, param="items", code="array_above_max_length")
    return Answer(400, body)
