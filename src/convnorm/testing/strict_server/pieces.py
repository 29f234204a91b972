"""What all renderers need: texts in pieces, and made-up counts of tokens."""

import json
import re
from typing import Any

from convnorm.testing.strict_server.script import Delay, Reply
from convnorm.wire import LIST


def words(text: str) -> list[str]:
    """A text as a stream sends it: word by word; together they are the text."""
    return re.findall(r"\s*\S+|\s+", text)


def slices(text: str, size: int = 12) -> list[str]:
    """A text in pieces of one length, as arguments are streamed."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def tokens(value: Any) -> int:
    """A number of tokens as plausible as it is made up: one for four characters."""
    return len(json.dumps(value, default=str)) // 4


def waiting(reply: Reply) -> float:
    """All the silence of a reply."""
    return sum(part.seconds for part in reply.parts if isinstance(part, Delay))


def listed(value: Any) -> tuple[Any, ...]:
    """The elements of a list that came over the wire; nothing when it is none."""
    return tuple(value) if isinstance(value, LIST) else ()
