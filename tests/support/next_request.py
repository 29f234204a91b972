"""What is asked of a history that the recorder left: the request that comes next."""

import json
from typing import Any

from convnorm import check, normalize_request

NEXT = {"role": "user", "content": "and now?"}
"""What is said next; it may well stand in front of all else too."""


def calls(items: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Id and arguments of all calls, in whatever format."""
    found = [
        (one["id"], json.loads(one["function"]["arguments"]))
        for item in items
        for one in item.get("tool_calls", ())
    ]
    for item in items:
        if item.get("type") == "function_call":
            found.append((item["call_id"], json.loads(item["arguments"])))
        blocks = [block for block in item.get("content") or () if isinstance(block, dict)]
        found += [(one["id"], one["input"]) for one in blocks if one.get("type") == "tool_use"]
    return found


def next_violations(target: str, items: tuple[Any, ...]) -> list[Any]:
    """What is wrong with the request that comes next."""
    if target == "anthropic.messages":
        # Nothing is repaired there yet, so whole calls are answered; all else must be in order.
        results = [
            {"type": "tool_result", "tool_use_id": call_id, "content": "rain"}
            for call_id, _ in calls(items)
        ]
        content = [*results, {"type": "text", "text": "and now?"}]
        messages = [NEXT, *items, {"role": "user", "content": content}]
        body = {"model": "claude-opus-4-5", "max_tokens": 4096, "messages": messages}
        return check(body, target)
    key = "messages" if target == "openai.chat" else "input"
    bodies = [{"model": "gpt-5.1", key: [*items, NEXT], "store": store} for store in (True, False)]
    return [found for body in bodies for found in check(normalize_request(body, target), target)]
