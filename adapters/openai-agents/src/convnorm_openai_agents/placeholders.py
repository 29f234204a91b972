"""The id that the SDK writes where a model gave none: it names nothing, and many items have it."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from agents.models.fake_id import FAKE_RESPONSES_ID


def shown(items: Sequence[Any]) -> list[Any]:
    """The items without the placeholder; those that have none are the same objects."""
    return [
        {key: value for key, value in item.items() if key != "id"}
        if isinstance(item, Mapping) and item.get("id") == FAKE_RESPONSES_ID
        else item
        for item in items
    ]


def restored(fixed: Sequence[Any], view: Sequence[Any], items: Sequence[Any]) -> list[Any]:
    """The repaired items, with the caller's own wherever what was `shown` is unchanged.

    What was sent before may come back as an equal item in the same place; its keys may have another
    order, and the order that the SDK has now is the caller's.
    """
    own = {id(seen): item for seen, item in zip(view, items, strict=True)}
    pairs = zip_longest(fixed, view[: len(fixed)], items[: len(fixed)])
    return [
        mine if item == seen and isinstance(item, Mapping) else own.get(id(item), item)
        for item, seen, mine in pairs
    ]


def named(items: Sequence[Any]) -> list[Any]:
    """The items with a placeholder where the SDK wants an id: it takes no message for one else."""
    return [{**item, "id": FAKE_RESPONSES_ID} if _nameless(item) else item for item in items]


def _nameless(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("type") != "message" or "id" in item:
        return False
    return item.get("role") == "assistant"
