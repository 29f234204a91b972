"""Examples of rules as they are shown: those of thousands of messages by their ends."""

import json
from collections.abc import Mapping
from typing import Any

from convnorm.wire import is_whole

LONGEST = 12
"""A list of an example that has more elements than this is cut."""


def shortened(value: Any, path: str = "") -> tuple[Any, list[str]]:
    """An example that fits on a page, and a sentence for each list that was cut."""
    if isinstance(value, Mapping):
        found = {key: shortened(one, f"{path}.{key}") for key, one in value.items()}
        return {key: one for key, (one, _) in found.items()}, [
            cut for _, cuts in found.values() for cut in cuts
        ]
    if not isinstance(value, list):
        return value, []
    kept = value if len(value) <= LONGEST else [value[0], value[-1]]
    parts = [shortened(one, f"{path}[{index}]") for index, one in enumerate(kept)]
    cuts = [cut for _, inner in parts for cut in inner]
    if kept is not value:
        more = len(value) - len(kept)
        cuts.append(f"Between these two, `{path[1:]}` has {more:,} more elements.")
    return [one for one, _ in parts], cuts


def as_json(value: Any) -> str:
    """JSON to read; what UTF-8 cannot write is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if is_whole(text) else json.dumps(value, indent=2)
