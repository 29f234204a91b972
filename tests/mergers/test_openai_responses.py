from typing import Any

import pytest

from convnorm.mergers import Answer, merger_for
from convnorm.testing.strict_server import Reply, call, reasoning
from streams import responses_stream

WHOLE, EVENTS = responses_stream(
    Reply(reasoning("Hm."), "It rains.", call("weather", city="Oslo"), call("weather"))
)
REASONING, MESSAGE, FIRST, SECOND = WHOLE["output"]


def merged(*updates: Any) -> Answer:
    merger = merger_for(updates[0])
    for update in updates:
        merger.add(update)
    return merger.answer(over=True)


def until(kind: str, number: int = 1) -> list[Any]:
    """The events up to the given one of its kind."""
    places = [at for at, event in enumerate(EVENTS) if event["type"] == f"response.{kind}"]
    return EVENTS[: places[number - 1] + 1]


def test_the_last_event_has_the_last_word() -> None:
    """The items are those of the whole response, with usage and id."""
    answer = merged(*EVENTS)

    assert (WHOLE["output"], WHOLE["usage"], "resp_1") == (
        list(answer.items),
        answer.usage,
        answer.response_id,
    )
    assert answer == merged(WHOLE)


@pytest.mark.parametrize("output", [[], None])
def test_a_last_event_without_items(output: Any) -> None:
    """Some servers leave the output out there; then the items are those that were streamed."""
    last = {**EVENTS[-1], "response": {**EVENTS[-1]["response"], "output": output}}

    assert merged(*EVENTS) == merged(*EVENTS[:-1], last)


def test_events_alone_make_the_same_items() -> None:
    """From the pieces too, without the events that repeat them whole."""
    pieces = [event for event in EVENTS if event["type"].endswith((".added", ".delta"))]
    made = merged(EVENTS[0], *pieces, {**EVENTS[-1], "response": {"id": "resp_1", "output": []}})

    assert [{**item, "status": "completed"} for item in WHOLE["output"][1:]] == [
        {**item, "status": "completed"} for item in made.items[1:]
    ]
    assert REASONING["summary"] == made.items[0]["summary"]


REPEATED = {
    "response.output_text.done": "text",
    "response.reasoning_summary_text.done": "text",
    "response.function_call_arguments.done": "arguments",
}


def test_wholes_without_pieces() -> None:
    """Some servers send a text once and whole, without its pieces or the part it is in."""
    told = [
        event
        for event in EVENTS
        if (event["type"].endswith(".added") and "part" not in event["type"])
        or event["type"] in REPEATED
    ]
    answer = merged(EVENTS[0], *told)

    assert ["reasoning"] == [note.kind for note in answer.notes]
    assert REASONING["summary"] == answer.notes[0].raw["summary"]
    said = {**MESSAGE["content"][0]}
    assert [{"type": "output_text", "text": said["text"]}] == answer.items[0]["content"]
    assert [bare(FIRST), bare(SECOND)] == list(answer.items[1:])


@pytest.mark.parametrize(
    "piece, key, kind",
    [
        ("response.refusal.delta", "refusal", "refusal"),
        ("response.reasoning_text.delta", "text", "reasoning_text"),
    ],
)
def test_pieces_without_their_part(piece: str, key: str, kind: str) -> None:
    """Some servers tell of no parts; a part says what it is all the same."""
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    answer = merged(
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": piece, "output_index": 0, "content_index": 0, "delta": one} for one in "No"),
    )
    assert [{"type": kind, key: "No"}] == answer.items[0]["content"]


def test_citations_of_a_text_that_was_cut() -> None:
    """They come by themselves, in order, and are kept with the text."""
    cited = [{"type": "url_citation", "url": url} for url in ("one", "two")]
    added = "response.output_text.annotation.added"
    answer = merged(
        *until("output_text.delta"),
        *(
            {"type": added, "output_index": 1, "content_index": 0, "annotation": one}
            for one in cited
        ),
    )
    assert cited == answer.items[1]["content"][0]["annotations"]


def test_an_incomplete_response_is_whole() -> None:
    """The model stopped by itself; the same response that is not streamed says so too."""
    response = {**WHOLE, "status": "incomplete"}
    last = {"type": "response.incomplete", "response": response}

    assert merged(*EVENTS[:-1], last) == merged(response)
    assert merged(response).complete


def test_a_failed_response_is_not() -> None:
    """The error is a note."""
    response = {**WHOLE, "status": "failed", "output": [], "error": {"code": "server_error"}}
    last = {"type": "response.failed", "response": response}
    answers = merged(*until("output_text.delta"), last), merged(response)

    for answer in answers:
        assert ("update", {"code": "server_error"}) == (answer.notes[0].kind, answer.notes[0].raw)
        assert not answer.complete
    assert "It" == answers[0].items[-1]["content"][0]["text"]


def bare(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in item if key != "id"}


HALF = {**MESSAGE, "status": "incomplete"}
HALF["content"] = [{**MESSAGE["content"][0], "text": "It"}]
CUT: dict[str, tuple[list[Any], list[Any], list[str], list[int]]] = {
    "before anything": (until("in_progress"), [], [], []),
    "in the reasoning": (until("reasoning_summary_text.delta"), [], ["reasoning"], []),
    "behind the reasoning": (until("output_item.done"), [], ["reasoning"], []),
    "before the first word": (until("content_part.added"), [], ["reasoning", "item"], []),
    "in the text": (until("output_text.delta"), [REASONING, bare(HALF)], [], [1]),
    "behind the text": (until("output_item.done", 2), [REASONING, bare(MESSAGE)], [], []),
    "in a call": (
        until("function_call_arguments.delta"),
        [REASONING, bare(MESSAGE)],
        ["call"],
        [],
    ),
    "behind its arguments": (
        until("function_call_arguments.done"),
        [REASONING, bare(MESSAGE), bare(FIRST)],
        [],
        [],
    ),
    "in the second call": (
        until("output_item.added", 4),
        [REASONING, bare(MESSAGE), bare(FIRST)],
        ["call"],
        [],
    ),
    "before the end": (EVENTS[:-1], [REASONING, *map(bare, WHOLE["output"][1:])], [], []),
}


@pytest.mark.parametrize("where", CUT)
def test_cut(where: str) -> None:
    """What may be sent again is kept without ids that name nothing; the rest is a note."""
    updates, items, notes, cut = CUT[where]
    answer = merged(*updates)

    assert (items, notes) == (list(answer.items), [note.kind for note in answer.notes])
    assert (False, frozenset(cut)) == (answer.complete, answer.incomplete)


def test_cut_without_encrypted_content() -> None:
    """Reasoning that only the server could show goes: it did not keep it."""
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": bare_reasoning()},
        {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
    ]
    answer = merged(EVENTS[0], *events)

    assert ([bare(MESSAGE)], ["reasoning"]) == (
        list(answer.items),
        [note.kind for note in answer.notes],
    )


def bare_reasoning() -> dict[str, Any]:
    return {key: REASONING[key] for key in REASONING if key != "encrypted_content"}


@pytest.mark.parametrize(
    "item, kept",
    [
        ({"type": "code_interpreter_call", "code": None, "outputs": None}, ("code", "outputs")),
        ({"type": "image_generation_call", "result": None, "action": None}, ("result",)),
        ({"type": "reasoning", "summary": [], "encrypted_content": None}, ("summary",)),
    ],
)
def test_keys_without_a_value(item: dict[str, Any], kept: tuple[str, ...]) -> None:
    """They are left out, but for those that an item must have to be taken back."""
    [found] = merged({**WHOLE, "output": [item]}).items

    assert {"type": item["type"], **{key: item[key] for key in kept}} == found


def test_cut_behind_a_computer_call() -> None:
    """No output of it can be invented, so it is a note; in a whole answer it is an item."""
    item = {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "status": "completed"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    cut = merged(EVENTS[0], done)

    assert ([], [("call", item)]) == (list(cut.items), [(one.kind, one.raw) for one in cut.notes])
    assert (item,) == merged({**WHOLE, "output": [item]}).items


def test_notes_have_their_places() -> None:
    """Each says behind how many of the kept items it would stand."""
    answer = merged(*until("output_item.added", 4))

    assert [("call", 3, "only a part of the function_call arrived")] == [
        (note.kind, note.at, note.why) for note in answer.notes
    ]


def test_other_items() -> None:
    """A custom call goes on in pieces; a hosted item counts once it is done; citations stay."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    custom = {"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": ""}
    added = "response.output_item.added"
    updates = [
        {"type": added, "output_index": 0, "item": search},
        {"type": "response.web_search_call.searching", "output_index": 0},
        {"type": added, "output_index": 1, "item": custom},
        {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": "SELECT 1"},
    ]
    half = merged(*updates)
    whole = merged(*updates, {"type": "response.custom_tool_call_input.done", "output_index": 1})

    assert ([], [search, {**custom, "input": "SELECT 1"}]) == (
        list(half.items),
        [note.raw for note in half.notes],
    )
    assert [{**custom, "input": "SELECT 1", "status": "completed"}] == list(whole.items)
