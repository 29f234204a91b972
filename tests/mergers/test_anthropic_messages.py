from typing import Any

import pytest

from convnorm.mergers import Answer, merger_for
from convnorm.testing.strict_server import Reply, call, reasoning
from streams import messages_stream

WHOLE, EVENTS = messages_stream(
    Reply(reasoning("Hm."), "It rains.", call("weather", city="Oslo", days=3), call("weather"))
)
THINKING, TEXT, FIRST, SECOND = WHOLE["content"]


def merged(*updates: Any) -> Answer:
    merger = merger_for(updates[0])
    for update in updates:
        merger.add(update)
    return merger.answer(over=True)


def until(kind: str, number: int = 1) -> list[Any]:
    """The events up to the given one of its kind, or of its kind of delta."""
    places = [
        at
        for at, event in enumerate(EVENTS)
        if kind in (event["type"], event.get("delta", {}).get("type"))
    ]
    return EVENTS[: places[number - 1] + 1]


def test_events_and_message_are_the_same() -> None:
    """Blocks, usage and id."""
    answer = merged(*EVENTS)

    assert answer == merged(WHOLE)
    assert [{"role": "assistant", "content": WHOLE["content"]}] == list(answer.items)
    assert (WHOLE["usage"], WHOLE["id"]) == (answer.usage, answer.response_id)


def test_what_the_client_adds_is_left_out() -> None:
    """Keys without a value, and those of the helpers."""
    block = {"type": "text", "text": "yes", "citations": None, "parsed_output": {"x": 1}}
    answer = merged({**WHOLE, "content": [block]})

    assert [{"type": "text", "text": "yes"}] == answer.items[0]["content"]


def block(at: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    return [
        {"type": "content_block_start", "index": at, "content_block": start},
        *({"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": at},
    ]


END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def test_citations_and_server_tools() -> None:
    """Citations are gathered; a server tool and its result are blocks like others."""
    one, two = {"type": "char_location", "n": 1}, {"type": "char_location", "n": 2}
    updates = [
        *EVENTS[:1],
        *block(0, SEARCH),
        *block(1, FOUND),
        *block(
            2,
            {"type": "text", "text": ""},
            {"type": "citations_delta", "citation": one},
            {"type": "text_delta", "text": "yes"},
            {"type": "citations_delta", "citation": two},
        ),
        END,
    ]
    assert [SEARCH, FOUND, {"type": "text", "text": "yes", "citations": [one, two]}] == merged(
        *updates
    ).items[0]["content"]


@pytest.mark.parametrize("given", ['{"a": ', '{"a": NaN}', '{"a": -Infinity}'])
def test_input_that_is_no_json(given: str) -> None:
    """It is wrapped as the API's guide says, so that it can be sent back."""
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    updates = block(0, start, {"type": "input_json_delta", "partial_json": given})

    assert {"INVALID_JSON": given} == merged(EVENTS[0], *updates, END).items[0]["content"][0][
        "input"
    ]


def test_a_signature_has_the_last_word() -> None:
    """It comes whole: servers that begin a block with it tell it twice."""
    start = {"type": "thinking", "thinking": "", "signature": "sig"}
    deltas = ({"type": "thinking_delta", "thinking": "Hm"}, {"type": "signature_delta"})
    updates = block(0, start, deltas[0], {**deltas[1], "signature": "sig"})

    assert {"type": "thinking", "thinking": "Hm", "signature": "sig"} == merged(
        EVENTS[0], *updates, END
    ).items[0]["content"][0]


def test_an_unknown_delta_is_noted() -> None:
    """What it says is not lost silently."""
    updates = block(0, {"type": "text", "text": ""}, {"type": "new_delta", "new": "x"})
    [note] = merged(EVENTS[0], *updates, END).notes

    assert ("update", {"type": "new_delta", "new": "x"}) == (note.kind, note.raw)


def test_an_error_event_is_noted() -> None:
    """The answer ends there, and is not whole."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    answer = merged(*until("text_delta"), error)

    assert (False, [error]) == (answer.complete, [note.raw for note in answer.notes])


UNSIGNED = {"type": "thinking", "thinking": "Hm.", "signature": ""}
CODE = {"type": "server_tool_use", "id": "srv_2", "name": "code_execution", "input": {"code": "x"}}
CALLER = {"type": "code_execution_20250825", "tool_id": "srv_2"}
CALLED = {"type": "tool_use", "id": "toolu_9", "name": "f", "input": {"a": 1}, "caller": CALLER}
HALF = {"type": "tool_use", "id": FIRST["id"], "name": "weather", "input": '{"city":"Osl'}
CUT: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
    "before anything": (until("message_start"), [], []),
    "in the thinking": (
        until("thinking_delta"),
        [],
        [{"type": "thinking", "thinking": "Hm.", "signature": ""}],
    ),
    "behind the signature": (until("signature_delta"), [], [THINKING]),
    "before the first word": (
        until("content_block_start", 2),
        [],
        [{"type": "text", "text": ""}, THINKING],
    ),
    "in the text": (until("text_delta"), [THINKING, {"type": "text", "text": "It"}], []),
    "in a call": (until("input_json_delta", 2), [THINKING, TEXT], [HALF]),
    "behind its input": (until("content_block_stop", 3), [THINKING, TEXT, FIRST], []),
    "in the second call": (
        until("content_block_start", 4),
        [THINKING, TEXT, FIRST],
        [{**SECOND, "input": {}}],
    ),
    "before the stop reason": (until("content_block_stop", 4), WHOLE["content"], []),
    "before a server tool's result": ([EVENTS[0], *block(0, SEARCH)], [], [SEARCH]),
    "in a server tool's result": (
        [EVENTS[0], *block(0, SEARCH), *block(1, FOUND)[:-1]],
        [],
        [SEARCH, FOUND],
    ),
    "behind a server tool's result": (
        [EVENTS[0], *block(0, SEARCH), *block(1, FOUND)],
        [SEARCH, FOUND],
        [],
    ),
    "behind thinking without a signature": (
        [EVENTS[0], *block(0, UNSIGNED), *block(1, TEXT)],
        [TEXT],
        [UNSIGNED],
    ),
    "in code that calls a tool": (
        [EVENTS[0], *block(0, CODE), *block(1, CALLED)],
        [],
        [CODE, CALLED],
    ),
}


@pytest.mark.parametrize("where", CUT)
def test_cut(where: str) -> None:
    """What may be sent again is kept, thinking only signed and with what it led to."""
    updates, blocks, notes = CUT[where]
    answer = merged(*updates)
    items = [{"role": "assistant", "content": blocks}] if blocks else []

    assert (items, notes) == (list(answer.items), [note.raw for note in answer.notes])
    assert (False, frozenset(range(len(items)))) == (answer.complete, answer.incomplete)
