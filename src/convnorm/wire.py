"""Reading what users really put in their lists: dicts, other mappings and the SDKs' objects."""

import json
from collections.abc import Mapping
from typing import Any, cast

from convnorm.errors import DialectError

LIST = (list, tuple)
"""What counts as a list on the wire; `isinstance(x, LIST)` builds the union every time."""


def fields(element: object) -> Mapping[str, Any] | None:
    """The keys of one wire object as they would be sent, or None if it is no object at all.

    An SDK object (a pydantic model) shows what its client would send: the fields that were set.
    """
    if isinstance(element, dict):
        return element
    if isinstance(element, Mapping):
        return element
    dump = getattr(element, "model_dump", None)
    if dump is None or isinstance(element, type):
        return None
    return cast("Mapping[str, Any]", dump(exclude_unset=True))


def text_of(output: object) -> str:
    """What a tool returned, as one text: strings and text parts as they are, the rest as JSON."""
    if isinstance(output, str):
        return output
    if isinstance(output, LIST):
        parts = [fields(part) or {} for part in output]
        if all(isinstance(part.get("text"), str) or part.get("type") in IMAGES for part in parts):
            return "\n".join(part["text"] for part in parts if "text" in part)
    try:
        return json.dumps(output, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise DialectError(f"a tool output cannot be written as JSON: {error}") from None


IMAGES = frozenset({"input_image", "image_url"})


def _plain(value: object) -> object:
    found = fields(value)
    if found is None:
        raise TypeError(f"{type(value).__name__} is no JSON value")
    return dict(found)
