"""Seeded conversations of about 1.5 KB a message, whole and broken, and shapes made to hurt."""

import json
from random import Random
from typing import Any

from convnorm import Context, normalize

Messages = list[dict[str, Any]]

_CODE = 'def run(x):\n    """Say \\"hi\\"."""\n    return {"a": [1, 2], "b": "c\\\\d"}\n'


def _text(random: Random, low: int, high: int) -> str:
    size = random.randint(low, high)
    start = random.randrange(len(_CODE))
    return (_CODE[start:] + _CODE * (size // len(_CODE) + 1))[:size]


def chat(size: int, seed: int = 0) -> Messages:
    """A clean tool-using conversation of at least `size` chat messages."""
    random = Random(seed)  # a workload, not a secret
    messages: Messages = [{"role": "system", "content": _text(random, 1500, 1500)}]
    while len(messages) < size:
        messages.append({"role": "user", "content": _text(random, 40, 400)})
        for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4))):
            ids = [
                f"call_{random.getrandbits(96):024x}" for _ in range(random.choice((1, 1, 2, 3)))
            ]
            function = {"name": "look", "arguments": json.dumps({"q": _text(random, 20, 60)})}
            calls = [{"id": i, "type": "function", "function": function} for i in ids]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.extend(
                {"role": "tool", "tool_call_id": i, "content": _text(random, 200, 4000)}
                for i in ids
            )
        messages.append({"role": "assistant", "content": _text(random, 100, 1500)})
    return json.loads(json.dumps(messages))  # type: ignore[no-any-return]  # fresh strings, as loaded


def responses(size: int, *, ids: bool, seed: int = 0) -> Messages:
    """The same conversation as input items; with `ids`, as a `store=False` agent replays it."""
    items: Messages = []
    for at, message in enumerate(chat(size, seed)):
        own = {"id": f"msg_{at:024x}"} if ids else {}
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            out = {"type": "function_call_output", "call_id": call_id, "output": message["content"]}
            items.append(out)
        elif "tool_calls" in message:
            for n, call in enumerate(message["tool_calls"]):
                own = {"id": f"fc_{at:020x}{n:04x}"} if ids else {}
                made = {"type": "function_call", "call_id": call["id"], **call["function"], **own}
                items.append(made)
        else:
            items.append({"type": "message", **message, **own})
    return items


def faulty(size: int, seed: int = 0) -> Messages:
    """2 % of the results missing, 2 % twice, 1 % without their call."""
    random = Random(seed)  # a workload, not a secret
    messages: Messages = []
    for message in chat(size, seed):
        luck = random.random() if message["role"] == "tool" else 1.0
        if luck >= 0.02:
            messages.append(message)
        if 0.02 <= luck < 0.04:
            messages.append(dict(message))
        if 0.04 <= luck < 0.05:
            messages.append({**message, "tool_call_id": f"lost_{random.getrandbits(64):x}"})
    return messages


def _call(*ids: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(call_id: str, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _item(kind: str, **keys: Any) -> dict[str, Any]:
    return {"type": kind, **keys}


def hurtful(size: int) -> dict[str, tuple[str, Messages, Context]]:
    """Shapes on which careless repairs are quadratic: the target, the messages, the facts."""
    ids = [f"call_{at:x}q7z{at:x}k1" for at in range(size // 2)]
    user = {"role": "user", "content": "go"}
    pairs = [m for i in ids for m in (_call(i), _result(i))]
    alike = [_call(*["x"] * len(ids)), *(_result("x") for _ in ids)]
    chat = {
        "late: one early result at the very end": [_call("x"), *pairs, user, _result("x")],
        "unanswered: all results lost": [*map(_call, ids), user],
        "orphans: all calls lost": [*(_result(i) for i in ids * 2), user],
        "wide: one step with all calls, results last": [_call(*ids), user, *map(_result, ids)],
        "same: one call answered over and over": [_call("x"), *map(_result, "x" * size), user],
        "renamed: one id for all calls of a step": alike,
        "twice: a step under one id, replayed": alike * 2,
        "replayed: a short block again and again": [user, *pairs[:4]] * (size // 5),
        "reversed: results before their calls": [*map(_result, ids), *map(_call, ids), user],
    }
    thoughts = [
        _item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": str(at)}])
        for at in range(size)
    ]
    made = [_item("function_call", call_id=i, name="f", arguments="{}") for i in ids]
    twice = [_item("function_call_output", call_id=i, output=text) for text in "ab" for i in ids]
    responses = {
        "thoughts: one id for a run of reasoning": [
            *thoughts,
            {"role": "assistant", "content": "a"},
        ],
        "doubled: all calls twice, then two outputs each": [*made, *made, *twice],
        "hosted: one id for all searches": [
            _item("web_search_call", id="ws_1", action={"n": at}) for at in range(size)
        ],
    }
    asked = [*map(_call, ids), user]
    closed = Context(last_request=normalize(asked, "openai.chat"))
    labels = Context(sources=tuple(f"s{at % max(size // 20, 1)}" for at in range(size)))
    return (
        {name: ("openai.chat", messages, Context()) for name, messages in chat.items()}
        | {name: ("openai.responses", items, Context()) for name, items in responses.items()}
        | {
            "kept: all results came after the last request": (
                "openai.chat",
                [*asked, *map(_result, ids), user],
                closed,
            )
        }
        | {"sources: many that say the same": ("openai.chat", [user] * size, labels)}
    )
