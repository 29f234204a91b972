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
    try:
        dump = getattr(element, "model_dump", None)
        if not callable(dump) or isinstance(element, type):
            return None
        # What the SDKs' clients do with their own objects; anthropic's writes its own names.
        found = dump(
            exclude_unset=True,
            mode="json",
            exclude=getattr(element, "__api_exclude__", None),
            by_alias=type(element).__module__.partition(".")[0] == "anthropic",
        )
    except Exception:  # noqa: BLE001  # whatever a stranger's object raises: it cannot be read
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def text_of(output: object, where: str) -> str:
    """What a tool returned, as one text: strings and text parts as they are, the rest as JSON."""
    if isinstance(output, str):
        return output
    if isinstance(output, LIST):
        return "\n".join(_part_text(part, where) for part in output if not is_media(part))
    return json_text(output, where)


def is_media(part: object) -> bool:
    """Whether a content part is an image, a sound or a file."""
    return media_kind(part) is not None


def media_kind(part: object) -> str | None:
    """Which kind of medium a content part is, if it is one."""
    kind = (fields(part) or {}).get("type")
    return MEDIA.get(kind) if isinstance(kind, str) else None


MEDIA = {
    "input_image": "image",
    "image_url": "image",
    "input_audio": "audio",
    "input_file": "file",
    "file": "file",
}
"""By type of part: the kind of medium it is."""


def _part_text(part: object, where: str) -> str:
    keys = fields(part) or {}
    text = keys.get("text")
    return text if isinstance(text, str) else json_text(part, where)


def json_text(value: object, where: str) -> str:
    """A value as JSON text; what is no JSON is an error that says where it stands."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise DialectError(f"{where} holds a value that is no JSON: {error}") from None


def _plain(value: object) -> object:
    found = fields(value)
    if found is None:
        raise TypeError(f"a {type(value).__name__} is no JSON value")
    return dict(found)


def is_whole(text: str) -> bool:
    """Whether a text can be written in UTF-8: it holds no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """The text with both halves of a pair joined, and a mark for a half that is alone."""
    if is_whole(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


SAID = ("text", "refusal", "stdout", "stderr")
"""Keys of a part under which it says something."""
