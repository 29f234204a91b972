"""Content parts under the names that any API gives them, written as another API has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convnorm.wire import fields

TEXTS: Mapping[str, str] = {
    **dict.fromkeys(("text", "input_text", "output_text"), "text"),
    "refusal": "refusal",
}
"""By type: the key that holds the words of a part."""
FILE_KEYS = ("file_id", "file_data", "file_url", "filename")
NAMED = frozenset({*TEXTS, "image_url", "input_image", "image", "file", "input_file", "document"})
"""The types that are read here."""
ANNOTATIONS = ("annotations", "logprobs")
"""What only a text of a model has."""


@dataclass(frozen=True, slots=True)
class Words:
    """A text, and what else stands beside it."""

    text: str
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, by its address or by the id of an uploaded file."""

    url: str | None
    file_id: str | None
    detail: object


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file: which of `FILE_KEYS` are known."""

    keys: Mapping[str, Any]


Part = Words | Picture | Attachment


def read_part(part: object) -> Part | None:
    """What a part is, whichever API's it is; None if that is not known."""
    if isinstance(part, str):
        return Words(part, {})
    keys = part if type(part) is dict else fields(part)
    kind = None if keys is None else keys.get("type")
    if keys is None:
        return None
    if kind is None and isinstance(keys.get("text"), str):
        kind = "text"  # many leave it out
    if not isinstance(kind, str) or kind not in NAMED:
        return None
    match kind:
        case "image_url" | "input_image":
            return _picture(keys)
        case "image" | "document":
            return _sourced(kind, keys)
        case "file" | "input_file":
            held = fields(keys.get("file")) or {} if kind == "file" else keys
            known = {key: held[key] for key in FILE_KEYS if isinstance(held.get(key), str)}
            return Attachment(known) if known.keys() - {"filename"} else None
    text = keys.get(TEXTS[kind])
    gone = {"type", TEXTS[kind], *ANNOTATIONS}
    more = {key: value for key, value in keys.items() if key not in gone}
    return Words(text, more) if isinstance(text, str) else None


def _picture(keys: Mapping[str, Any]) -> Picture | None:
    given = keys.get("image_url")
    inner = fields(given) or {}
    url = given if isinstance(given, str) else inner.get("url")
    file_id, detail = keys.get("file_id"), keys.get("detail", inner.get("detail"))
    if not isinstance(url, str) and not isinstance(file_id, str):
        return None
    return Picture(
        url if isinstance(url, str) else None,
        file_id if isinstance(file_id, str) else None,
        detail,
    )


def _sourced(kind: str, keys: Mapping[str, Any]) -> Part | None:
    """An image or a document with its data beside it, as Anthropic and MCP write it."""
    source = fields(keys.get("source")) or keys
    data, url, file_id = source.get("data"), source.get("url"), source.get("file_id")
    form = source.get("media_type", source.get("mimeType"))
    if isinstance(data, str) and isinstance(form, str):
        url = f"data:{form};base64,{data}"
    if source.get("type") == "text" or not (isinstance(url, str) or isinstance(file_id, str)):
        return None
    if kind == "image":
        return Picture(
            url if isinstance(url, str) else None,
            file_id if isinstance(file_id, str) else None,
            None,
        )
    given = {
        "file_data" if isinstance(data, str) else "file_url": url,
        "file_id": file_id,
        "filename": keys.get("title"),
    }
    return Attachment({key: value for key, value in given.items() if isinstance(value, str)})


def renamed(
    parts: Sequence[object], allowed: frozenset[str], write: Callable[[Part], object]
) -> Sequence[object]:
    """The parts under this API's names; the same list if nothing had to be written anew.

    A part that stays as it is, since its type is `allowed` or nobody knows it, is the same object.
    """
    new = [_renamed(part, allowed, write) for part in parts]
    return new if any(now is not was for now, was in zip(new, parts, strict=True)) else parts


def _renamed(part: object, allowed: frozenset[str], write: Callable[[Part], object]) -> object:
    if part_type(part) in allowed:
        return part
    read = read_part(part)
    written = None if read is None else write(read)
    return part if written is None or written == part else written


def part_type(part: object) -> str | None:
    """The type of a part, if it has one."""
    keys = part if type(part) is dict else fields(part)
    kind = None if keys is None else keys.get("type")
    return kind if isinstance(kind, str) else None


def chat_part(part: Part) -> object:
    """The part as Chat Completions has it; None if it has none of the kind."""
    match part:
        case Words(text, more):
            return {"type": "text", "text": text, **more}
        case Picture(url=str() as url, detail=detail):
            return {"type": "image_url", "image_url": {"url": url, **_detail(detail)}}
        case Attachment(keys) if "file_url" not in keys:
            return {"type": "file", "file": dict(keys)}
    return None


def input_part(part: Part) -> object:
    """The part as the Responses API has it where the model did not write it."""
    match part:
        case Words(text, more):
            return {"type": "input_text", "text": text, **more}
        case Picture(url, file_id, detail):
            given = {"image_url": url, "file_id": file_id}
            known = {key: value for key, value in given.items() if value is not None}
            return {"type": "input_image", **known, **_detail(detail)}
        case Attachment(keys):
            return {"type": "input_file", **keys}


def output_part(part: Part) -> object:
    """The part as the Responses API has it where the model wrote it."""
    if isinstance(part, Words):
        return {"type": "output_text", "text": part.text, **part.more}
    return input_part(part)


def _detail(detail: object) -> Mapping[str, Any]:
    return {} if detail is None else {"detail": detail}
