"""Which ids prove something, and which anyone can mint again."""

import re

_TOKENS = re.compile(r"[A-Za-z0-9]+")
_CHANGES = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")


def is_counter(value: str, name: str | None = None) -> bool:
    """Whether an id may come up again by itself: `call_0`, `c1`, `get_user:2`, `call_00012`.

    An id is taken for unique only if some part of it looks random: six or more letters and digits
    that change places at least twice. The tool's own name in it does not count.
    """
    if name:
        value = value.replace(name, "")
    return not any(
        len(token) >= 6 and len(_CHANGES.findall(token)) >= 2 for token in _TOKENS.findall(value)
    )
