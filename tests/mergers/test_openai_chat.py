from typing import Any

import pytest

from convnorm.mergers import Answer, merger_for

HALF = {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"ci'}}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def calling(index: int | None, arguments: str, **rest: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": rest.pop("name")} if "name" in rest else {})
    entry = {"function": function, **rest} | ({} if index is None else {"index": index})
    return chunk(tool_calls=[entry])


def merged(*updates: Any) -> Answer:
    merger = merger_for(updates[0])
    for update in updates:
        merger.add(update)
    return merger.answer(over=True)


def message(*updates: Any) -> dict[str, Any]:
    """The message of a stream that came to its end."""
    answer = merged(*updates, chunk("stop"))
    assert (True, (), frozenset()) == (answer.complete, answer.notes, answer.incomplete)
    [item] = answer.items
    assert isinstance(item, dict)
    return item


def arguments(*updates: Any) -> list[tuple[str, str]]:
    """Id and arguments of each call."""
    calls = message(*updates)["tool_calls"]
    return [(one["id"], one["function"]["arguments"]) for one in calls]


TWO_CALLS = {
    "by index": [
        calling(0, "", id="a", name="f", type="function"),
        calling(0, '{"x":'),
        calling(1, "", id="b", name="f", type="function"),
        calling(0, "1}"),
        calling(1, "{}"),
    ],
    "all as the first, told apart by their ids": [
        calling(0, '{"x":1}', id="a", name="f"),
        calling(0, "{}", id="b", name="f"),
    ],
    "without an index": [
        calling(None, '{"x":', id="a", name="f"),
        calling(None, "1}"),
        calling(None, "{}", id="b", name="f"),
    ],
    "in any order": [
        calling(1, "", id="b", name="f", type="function"),
        calling(0, '{"x":', id="a", name="f", type="function"),
        calling(1, "{}"),
        calling(0, "1}"),
    ],
    "with a name and an id that come late": [
        calling(0, "", id="", name="", type="function"),
        calling(0, '{"x":1}', id="a", name="f"),
        calling(1, "{}", id="b", name="f"),
    ],
    "with name and id in every piece": [
        calling(0, '{"x":', id="a", name="f"),
        calling(0, "1}", id="a", name="f"),
        calling(1, "{}", id="b", name="f"),
    ],
    "both in one chunk": [
        chunk(
            tool_calls=[
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"index": 1, "id": "b", "function": {"name": "f", "arguments": "{}"}},
            ]
        )
    ],
}


@pytest.mark.parametrize("server", TWO_CALLS)
def test_calls_in_pieces(server: str) -> None:
    """Servers number the pieces of parallel calls in several ways, and some not at all."""
    assert [("a", '{"x":1}'), ("b", "{}")] == arguments(*TWO_CALLS[server])


def test_what_servers_repeat() -> None:
    """Role, type and name come in every chunk of some servers, and are said once."""
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    updates = [chunk(role="assistant", content="", tool_calls=[call])] * 2
    assert message(*updates) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
    }


def test_keys_of_vendors() -> None:
    """Texts go on, lists grow, values stay, in one order of keys; what is null is left out."""
    assert message(
        chunk(role="assistant", content="", refusal=None, zeta="a", reasoning_content="Hm"),
        chunk(content="yes", zeta="b", reasoning_content=".", score=1),
        chunk(annotations=[{"type": "url_citation"}], score=2, extra={"k": "v"}),
        chunk(annotations=[{"type": "url_citation"}], extra={"k": "w"}),
    ) == {
        "role": "assistant",
        "content": "yes",
        "reasoning_content": "Hm.",
        "annotations": [{"type": "url_citation"}, {"type": "url_citation"}],
        "extra": {"k": "vw"},
        "score": 2,
        "zeta": "ab",
    }


def test_reasoning_details_in_pieces() -> None:
    """Pieces of one index and type are one, and the signature comes last."""
    details = [
        {"index": 0, "type": "reasoning.text", "text": "Let ", "format": "anthropic-claude-v1"},
        {"index": 0, "type": "reasoning.text", "text": "me.", "format": "anthropic-claude-v1"},
        {"index": 0, "type": "reasoning.text", "signature": "sig", "text": ""},
        {"index": 1, "type": "reasoning.encrypted", "data": "xyz"},
    ]
    assert [
        {
            "index": 0,
            "type": "reasoning.text",
            "text": "Let me.",
            "format": "anthropic-claude-v1",
            "signature": "sig",
        },
        details[3],
    ] == message(*[chunk(reasoning_details=[one]) for one in details])["reasoning_details"]


def test_thinking_blocks_in_pieces() -> None:
    """Unsigned pieces belong together; a signature ends a block."""
    blocks = [
        {"type": "thinking", "thinking": "Let "},
        {"type": "thinking", "thinking": "me.", "signature": "sig"},
        {"type": "thinking", "thinking": "More", "signature": "sig2"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]
    assert [
        {"type": "thinking", "thinking": "Let me.", "signature": "sig"},
        *blocks[2:],
    ] == message(*[chunk(thinking_blocks=[one]) for one in blocks])["thinking_blocks"]


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me."}]}


@pytest.mark.parametrize("first", ["", None])
def test_content_in_parts(first: str | None) -> None:
    """Texts and lists of parts go on with each other; neighbours of a kind are one part."""
    pieces = [
        *([{"type": "thinking", "thinking": [{"type": "text", "text": one}]}] for one in THOUGHTS),
        *("It ", [{"type": "text", "text": "rains"}], None, "."),
        [THOUGHT],
    ]
    parts = [THOUGHT, {"type": "text", "text": "It rains."}, THOUGHT]
    updates = [chunk(content=piece) for piece in pieces]

    assert {"role": "assistant", "content": parts} == message(chunk(content=first), *updates)
    said = [{"type": "text", "text": "Well."}, *parts]
    assert said == message(chunk(content="Well"), chunk(content="."), *updates)["content"]


THOUGHTS = ("Let ", "me.")


def test_other_kinds_of_speech() -> None:
    """A refusal, an old function call and a custom tool need no content."""
    assert {"role": "assistant", "content": None, "refusal": "I will not."} == message(
        chunk(refusal="I will "), chunk(refusal="not.")
    )
    old = {"name": "f", "arguments": "{}"}
    assert {"role": "assistant", "content": None, "function_call": old} == message(
        chunk(function_call={"name": "f", "arguments": "{"}),
        chunk(function_call={"arguments": "}"}),
    )
    piece = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT "}}
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    assert [custom] == message(
        chunk(tool_calls=[piece]), chunk(tool_calls=[{"index": 0, "custom": {"input": "1"}}])
    )["tool_calls"]


def test_other_choices_are_noted() -> None:
    """One message goes on with the conversation: the first."""
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}
    answer = merged(chunk(content="yes"), {"choices": [other]}, chunk("stop"))

    assert [{"role": "assistant", "content": "yes"}] == list(answer.items)
    assert ["only the first choice is kept, not choice 1"] == [one.why for one in answer.notes]


def test_usage_and_id() -> None:
    """Usage comes in a chunk without choices."""
    answer = merged(chunk(content="yes"), chunk("stop"), {"choices": [], "usage": {"total": 7}})

    assert ({"total": 7}, "c1") == (answer.usage, answer.response_id)
    for beside in ({"choices": None}, {}):  # some servers
        assert answer == merged(
            chunk(content="yes"), chunk("stop"), {**beside, "usage": {"total": 7}}
        )


def test_sound_in_pieces() -> None:
    """Id, transcript and data come in pieces, and the date last; a sound that was cut is text."""
    sound = {"id": "audio_1", "transcript": "It rains.", "data": "AAAABBBB"}
    pieces = (
        chunk(audio={"id": "audio_1", "transcript": "It "}),
        chunk(audio={"transcript": "rains.", "data": "AAAA"}),
        chunk(audio={"data": "BBBB"}),
    )
    expires = {"expires_at": 1700000000}
    assert {**sound, **expires} == message(*pieces, chunk(audio=expires))["audio"]
    cut = merged(*pieces)

    assert [{"role": "assistant", "content": "It rains."}] == list(cut.items)
    assert [("item", sound)] == [(note.kind, note.raw) for note in cut.notes]
    whole = merged(*pieces, chunk(audio=expires))
    assert ({**sound, **expires}, False) == (whole.items[0]["audio"], whole.complete)


WHOLE = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
NUMBER = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "1"}}
CUT: dict[str, tuple[list[Any], list[Any], list[tuple[str, Any]]]] = {
    "in the text": ([chunk(content="It r")], [{"role": "assistant", "content": "It r"}], []),
    "before anything": ([chunk(role="assistant", content="")], [], []),
    "in the second call": (
        [chunk(tool_calls=[{"index": 0, **WHOLE}]), chunk(tool_calls=[{"index": 1, **HALF}])],
        [{"role": "assistant", "content": None, "tool_calls": [WHOLE]}],
        [("call", HALF)],
    ),
    "before the arguments of either call": (
        [
            chunk(
                tool_calls=[{"index": at, "id": name, "function": {"name": "f", "arguments": ""}}]
            )
            for at, name in enumerate("ab")
        ],
        [],
        [
            ("call", {"id": name, "type": "function", "function": {"name": "f", "arguments": ""}})
            for name in "ab"
        ],
    ),
    "in arguments that are JSON already": (
        [chunk(tool_calls=[{"index": 0, **NUMBER}])],
        [],
        [("call", NUMBER)],
    ),
    "in the only call": ([chunk(tool_calls=[{"index": 0, **HALF}])], [], [("call", HALF)]),
    "in the only call, after a text": (
        [chunk(content="Well"), chunk(tool_calls=[{"index": 0, **HALF}])],
        [{"role": "assistant", "content": "Well"}],
        [("call", HALF)],
    ),
    "in an old function call": (
        [chunk(function_call={"name": "f", "arguments": "{"})],
        [],
        [("call", {"name": "f", "arguments": "{"})],
    ),
    "in a custom tool's input, which can always go on": (
        [chunk(tool_calls=[{"index": 0, "id": "a", "custom": {"name": "sql", "input": "{}"}}])],
        [],
        [("call", {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "{}"}})],
    ),
    "in the reasoning": (
        [chunk(reasoning_content="Hm")],
        [],
        [("reasoning", {"reasoning_content": "Hm"})],
    ),
    "before the signature": (
        [
            chunk(reasoning_details=[{"index": 0, "type": "reasoning.text", "text": "Hm"}]),
            chunk(content="Well"),
        ],
        [{"role": "assistant", "content": "Well"}],
        [("reasoning", {"index": 0, "type": "reasoning.text", "text": "Hm"})],
    ),
    "behind the signature": (
        [
            chunk(thinking_blocks=[{"type": "thinking", "thinking": "Hm", "signature": "s"}]),
            chunk(content="Well"),
        ],
        [
            {
                "role": "assistant",
                "content": "Well",
                "thinking_blocks": [{"type": "thinking", "thinking": "Hm", "signature": "s"}],
            }
        ],
        [],
    ),
}


@pytest.mark.parametrize("where", CUT)
def test_cut(where: str) -> None:
    """What may be sent again is kept and marked; the rest is a note."""
    updates, items, notes = CUT[where]
    answer = merged(*updates)

    assert (items, notes) == (list(answer.items), [(one.kind, one.raw) for one in answer.notes])
    assert (False, frozenset(range(len(items)))) == (answer.complete, answer.incomplete)
