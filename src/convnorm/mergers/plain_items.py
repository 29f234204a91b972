"""Plain items: every update is a whole element of the history, or a list of them."""

from typing import Any

from convnorm.mergers.anthropic_messages import EVENTS
from convnorm.mergers.merger import Answer, Note
from convnorm.wire import LIST, fields


class PlainItems:
    """The items as they came: of each there is all or nothing."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._notes: list[Note] = []

    @staticmethod
    def takes(update: Any) -> bool:
        """An object with a role or an item's type, or a list of such."""
        listed = update if isinstance(update, LIST) else [update]
        return all(_is_item(one) for one in listed)

    def add(self, update: Any) -> None:
        """One item or several."""
        for one in update if isinstance(update, LIST) else [update]:
            if _is_item(one):
                self._items.append(dict(fields(one) or {}))
            else:
                why = f"a {type(one).__name__} without the role or type of an item"
                self._notes.append(Note(kind="update", why=why, at=len(self._items)))

    def answer(self, *, over: bool) -> Answer:
        """Nothing says that the last item was the last, except that the stream is over."""
        return Answer(items=tuple(self._items), complete=over, notes=tuple(self._notes))


def _is_item(one: object) -> bool:
    keys = fields(one) or {}
    kind = keys.get("type")
    # Types with a dot are events of a stream that no merger knows; others come in a list here.
    named = isinstance(kind, str) and "." not in kind and kind not in EVENTS
    return named or isinstance(keys.get("role"), str)
