"""Answers of every kind in pieces of every size: whole, and as the events that stream them."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from streams import Stream

Events = list[dict[str, Any]]
texts = st.sampled_from(["It rains.", "Ja, é 🌧", "a\n\nb ", "x"])
arguments = st.sampled_from(['{"city":"Oslo","n":[1,{"a":"}"}]}', '{"q":"\\u00e9 \\"x\\""}', "{}"])
Piece = tuple[dict[str, Any], Events]
"""An item or a block, and the events between its beginning and its end."""
Draw = Any


@st.composite
def pieces(draw: Draw, text: str) -> list[str]:
    """A text in pieces, empty ones among them."""
    places = st.lists(st.integers(0, len(text)), max_size=4)
    ends = [0, *sorted(draw(places)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


@st.composite
def woven(draw: Draw, threads: list[Events]) -> Events:
    """Several runs of events as one, each in its own order."""
    left, found = [list(thread) for thread in threads if thread], Events()
    while left:
        thread = draw(st.sampled_from(left))
        found.append(thread.pop(0))
        left = [one for one in left if one]
    return found


# ---------------------------------------------------------------- Chat Completions


@st.composite
def chat_answers(draw: Draw, ids: tuple[str, ...] = ("call_1", "call_2", "call_3")) -> Stream:
    """Text, refusal, reasoning and parallel calls, beside other choices, usage and logprobs."""
    said: dict[str, Any] = {
        key: draw(texts)
        for key in draw(st.sets(st.sampled_from(["content", "refusal", "reasoning_content"])))
    }
    called = draw(st.lists(arguments, max_size=len(ids)))
    if not said and not called:
        said["content"] = ""
    threads = [[{key: one} for one in draw(pieces(text))] for key, text in said.items()]
    calls = [
        {"id": own, "type": "function", "function": {"name": "weather", "arguments": given}}
        for own, given in zip(ids, called, strict=False)
    ]
    # A call begins behind the one before it; its pieces may come behind the next one's beginning.
    begin, rest = Events(), [Events() for _ in calls]
    for at, call in enumerate(calls):
        begin.append(
            {"tool_calls": [{**call, "index": at, "function": {"name": "weather"} | NONE}]}
        )
        rest[at] = [
            {"tool_calls": [{"index": at, "function": {"arguments": one}}]}
            for one in draw(pieces(called[at]))
        ]
    deltas = draw(woven(threads))
    for at, one in enumerate(begin):
        deltas.append(one)
        if draw(st.booleans()) or at + 1 == len(begin):
            deltas += draw(woven(rest[: at + 1]))
            rest[: at + 1] = []
            rest = [[]] * (at + 1) + rest
    choices = draw(st.integers(1, 3))
    first = [{"role": "assistant", "content": None}, *deltas]
    events = [_chunk(0, delta, scored=draw(st.booleans())) for delta in first]
    events[1:1] = [_chunk(at, {"content": "other"}) for at in range(1, choices)]
    for _ in range(draw(st.integers(0, 2))):
        events.insert(draw(st.integers(1, len(events))), _chunk(0, {}))
    finish = "tool_calls" if calls else "stop"
    for at in range(choices):
        last = _chunk(at, {})
        last["choices"][0]["finish_reason"] = finish if not at else "stop"
        events.append(last)
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    events.append({**_chunk(0, {}), "choices": [], "usage": usage})
    message = {"role": "assistant", "content": None, **said} | (
        {"tool_calls": calls} if calls else {}
    )
    others = [
        {"index": at, "message": {"content": "other"}, "finish_reason": "stop"}
        for at in range(1, choices)
    ]
    mine = {"index": 0, "message": message, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion", "choices": [mine, *others], "usage": usage}, events


NONE = {"arguments": ""}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m"}


def _chunk(at: int, delta: dict[str, Any], *, scored: bool = False) -> dict[str, Any]:
    token = {"token": "x", "logprob": -0.5, "bytes": None, "top_logprobs": []}
    choice: dict[str, Any] = {"index": at, "delta": delta, "finish_reason": None}
    if scored:
        choice["logprobs"] = {"content": [token], "refusal": None}
    return {**HEAD, "object": "chat.completion.chunk", "choices": [choice]}


# ---------------------------------------------------------------- Responses

HOSTED: tuple[dict[str, Any], ...] = (
    {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "x"}},
    {"type": "file_search_call", "id": "fs", "queries": ["x"], "results": None},
    {"type": "image_generation_call", "id": "ig", "result": "AAAA"},
    {
        "type": "code_interpreter_call",
        "id": "ci",
        "code": "print(1)",
        "container_id": "cntr_1",
        "outputs": [{"type": "logs", "logs": "1"}],
    },
    {"type": "code_interpreter_call", "id": "ci", "code": "1", "container_id": "cntr_1"}
    | {"outputs": None},
    {"type": "mcp_call", "id": "mcp", "server_label": "s", "name": "f", "arguments": '{"a":1}'}
    | {"output": "1", "error": None},
    {"type": "mcp_list_tools", "id": "mcpl", "server_label": "s", "tools": []},
    {"type": "mcp_approval_request", "id": "mcpr", "server_label": "s", "name": "f"}
    | {"arguments": "{}"},
    {"type": "compaction", "id": "cmp", "encrypted_content": "gAAA"},
)
WITHOUT_STATUS = ("mcp_list_tools", "mcp_approval_request", "compaction")
RUN_BY_THE_CLIENT: tuple[dict[str, Any], ...] = (
    {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "shell_call", "action": {"commands": ["ls"]}},
    {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "x"}},
    {"type": "computer_call", "action": {"type": "screenshot"}, "pending_safety_checks": []},
)
PROGRESS: dict[str, tuple[str, ...]] = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "mcp_call": ("in_progress", "completed"),
    "mcp_list_tools": ("in_progress", "completed"),
}
STREAMED = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
    "mcp_call": ("arguments", "mcp_call_arguments"),
    "code_interpreter_call": ("code", "code_interpreter_call_code"),
}
"""By type: the key that comes in pieces, and the events that bring them."""
CITED = {"type": "url_citation", "url": "https://example.org", "title": "x"}


@st.composite
def _item(draw: Draw, at: int) -> Piece:
    """One item of any type."""
    kinds = ["message", "reasoning", "function", "custom", "hosted", "client"]
    kind = draw(st.sampled_from(kinds))
    if kind == "message":
        message: Piece = draw(_message(at))
        return message
    if kind == "reasoning":
        thought: Piece = draw(_reasoning(at))
        return thought
    if kind == "function":
        item = {"type": "function_call", "id": f"fc_{at}", "call_id": f"call_{at}"}
        item |= {"name": "weather", "arguments": draw(arguments), "status": "completed"}
    elif kind == "custom":
        item = {"type": "custom_tool_call", "id": f"ctc_{at}", "call_id": f"call_{at}"}
        item |= {"name": "sql", "input": draw(texts), "status": "completed"}
    elif kind == "client":
        item = {**draw(st.sampled_from(RUN_BY_THE_CLIENT)), "id": f"own_{at}"}
        item |= {"call_id": f"call_{at}", "status": "completed"}
    else:
        hosted = dict(draw(st.sampled_from(HOSTED)))
        item = {**hosted, "id": f"{hosted['id']}_{at}", "status": "completed"}
        if item["type"] in WITHOUT_STATUS:
            del item["status"]
    events: Events = [
        {"type": f"response.{item['type']}.{word}", "output_index": at, "item_id": item["id"]}
        for word in PROGRESS.get(item["type"], ())
    ]
    for event in events:
        if event["type"].endswith("partial_image"):
            event |= {"partial_image_b64": "AA", "partial_image_index": 0}
    if streamed := STREAMED.get(item["type"]):
        key, name = streamed
        about = {"output_index": at, "item_id": item["id"]}
        told = [
            {"type": f"response.{name}.delta", **about, "delta": one}
            for one in draw(pieces(item[key]))
        ]
        events[1:1] = [*told, {"type": f"response.{name}.done", **about, key: item[key]}]
    return item, events


@st.composite
def _message(draw: Draw, at: int) -> Piece:
    parts, events = list[Any](), Events()
    for place in range(draw(st.integers(1, 2))):
        about = {"output_index": at, "item_id": f"msg_{at}", "content_index": place}
        said = draw(texts)
        if draw(st.booleans()):
            cited = draw(st.lists(st.just({**CITED, "start_index": 0, "end_index": 1}), max_size=2))
            empty: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
            name, part = "output_text", {**empty, "text": said, "annotations": cited}
        else:
            cited, empty = [], {"type": "refusal", "refusal": ""}
            name, part = "refusal", {"type": "refusal", "refusal": said}
        told = [
            {"type": f"response.{name}.delta", **about, "delta": one} for one in draw(pieces(said))
        ]
        told += [
            {"type": "response.output_text.annotation.added", **about}
            | {"annotation_index": number, "annotation": one}
            for number, one in enumerate(cited)
        ]
        key = "text" if name == "output_text" else "refusal"
        events += [
            {"type": "response.content_part.added", **about, "part": empty},
            *told,
            {"type": f"response.{name}.done", **about, key: said},
            {"type": "response.content_part.done", **about, "part": part},
        ]
        parts.append(part)
    item = {"type": "message", "id": f"msg_{at}", "role": "assistant", "content": parts}
    return item | {"status": "completed"}, events


@st.composite
def _reasoning(draw: Draw, at: int) -> Piece:
    parts, events = list[Any](), Events()
    for place in range(draw(st.integers(0, 2))):
        about = {"output_index": at, "item_id": f"rs_{at}", "summary_index": place}
        said = draw(texts)
        part = {"type": "summary_text", "text": said}
        name = "response.reasoning_summary"
        events += [
            {"type": f"{name}_part.added", **about, "part": {**part, "text": ""}},
            *({"type": f"{name}_text.delta", **about, "delta": one} for one in draw(pieces(said))),
            {"type": f"{name}_text.done", **about, "text": said},
            {"type": f"{name}_part.done", **about, "part": part},
        ]
        parts.append(part)
    item = {"type": "reasoning", "id": f"rs_{at}", "summary": parts}
    return item | ({"encrypted_content": "gAAA"} if draw(st.booleans()) else {}), events


EMPTY: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": "", "code": ""}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it is added: what comes later is not there yet."""
    late = ("encrypted_content", "result", "results", "outputs", "output", "action", "queries")
    keys = {key: EMPTY.get(key, item[key]) for key in item if key not in late}
    return keys | ({"status": "in_progress"} if "status" in item else {})


@st.composite
def responses_answers(draw: Draw) -> Stream:
    """Items of every type, one after the other; the last is something that was said."""
    items, threads = list[Any](), list[Events]()
    for at in range(draw(st.integers(0, 3))):
        item, events = draw(_item(at))
        items.append(item)
        threads.append(events)
    item, events = draw(_message(len(items)))
    items, threads = [*items, item], [*threads, events]
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "tools": [],
        "status": "completed",
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "store": True,
        "usage": None,
    }
    begun = {**whole, "status": "in_progress", "output": []}
    told: Events = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for at, (item, events) in enumerate(zip(items, threads, strict=True)):
        added = {"type": "response.output_item.added", "output_index": at, "item": _begun(item)}
        done = {"type": "response.output_item.done", "output_index": at, "item": item}
        told += [added, *events, done]
    told.append({"type": "response.completed", "response": whole})
    return whole, [{**event, "sequence_number": at} for at, event in enumerate(told)]


# ---------------------------------------------------------------- Anthropic Messages

SERVER_TOOLS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        {"type": "server_tool_use", "name": "web_search"},
        {"type": "web_search_tool_result", "content": []},
    ),
    (
        {"type": "server_tool_use", "name": "bash_code_execution"},
        {
            "type": "bash_code_execution_tool_result",
            "content": {
                "type": "bash_code_execution_result",
                "stdout": "1",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        },
    ),
    (
        {"type": "mcp_tool_use", "name": "f", "server_name": "s"},
        {"type": "mcp_tool_result", "is_error": False, "content": []},
    ),
)
LOCATION = {
    "type": "char_location",
    "cited_text": "x",
    "document_index": 0,
    "document_title": "x",
    "start_char_index": 0,
    "end_char_index": 1,
    "file_id": None,
}


@st.composite
def _spoken(draw: Draw) -> list[Piece]:
    """A block or two that belong together, each with its deltas."""
    match draw(st.sampled_from(["text", "cited", "thinking", "redacted", "server"])):
        case "thinking":
            said = draw(texts)
            block = {"type": "thinking", "thinking": said, "signature": "sig"}
            told = [{"type": "thinking_delta", "thinking": one} for one in draw(pieces(said))]
            return [(block, [*told, {"type": "signature_delta", "signature": "sig"}])]
        case "redacted":
            return [({"type": "redacted_thinking", "data": "xyz"}, [])]
        case "server":
            use, result = draw(st.sampled_from(SERVER_TOOLS))
            own = f"srvtoolu_{draw(st.uuids()).hex[:8]}"
            called = draw(_called({**use, "id": own}))
            return [called, ({**result, "tool_use_id": own}, [])]
        case kind:
            said = draw(texts.filter(str.strip))
            block = {"type": "text", "text": said}
            told = [{"type": "text_delta", "text": one} for one in draw(pieces(said))]
            if kind == "cited":
                block["citations"] = [LOCATION]
                told.insert(
                    draw(st.integers(0, len(told))),
                    {"type": "citations_delta", "citation": LOCATION},
                )
            return [(block, told)]


@st.composite
def _called(draw: Draw, call: dict[str, Any]) -> Piece:
    given = draw(st.sampled_from(['{"city":"Oslo","n":[1,{"a":"}"}]}', "{}", ""]))
    told = [{"type": "input_json_delta", "partial_json": one} for one in draw(pieces(given))]
    return {**call, "input": json.loads(given or "{}")}, told


@st.composite
def messages_answers(draw: Draw) -> Stream:
    """Blocks of every type, the client's calls last."""
    spoken = draw(st.lists(_spoken(), max_size=3))
    blocks = [block for several in spoken for block in several]
    blocks.append(({"type": "text", "text": "So:"}, [{"type": "text_delta", "text": "So:"}]))
    blocks += [
        draw(_called({"type": "tool_use", "id": f"toolu_{number}", "name": "weather"}))
        for number in range(draw(st.integers(0, 2)))
    ]
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": [block for block, _ in blocks],
        "stop_sequence": None,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }
    begun = {**whole, "content": [], "stop_reason": None}
    begun["usage"] = {"input_tokens": 3, "output_tokens": 0}
    told: Events = [{"type": "message_start", "message": begun}]
    for at, (block, deltas) in enumerate(blocks):
        start = {key: BEGUN.get(key, block[key]) for key in block if key != "citations"}
        if block["type"] not in IN_PIECES:
            start = block
        told += [
            {"type": "content_block_start", "index": at, "content_block": start},
            *({"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": at},
        ]
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    told.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}})
    told.append({"type": "message_stop"})
    for _ in range(draw(st.integers(0, 2))):
        told.insert(draw(st.integers(0, len(told))), {"type": "ping"})
    return whole, told


BEGUN: dict[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
IN_PIECES = ("text", "thinking", "tool_use", "server_tool_use", "mcp_tool_use")

ANSWERS = {
    "openai.chat": chat_answers(),
    "openai.responses": responses_answers(),
    "anthropic.messages": messages_answers(),
}
"""By target: what can come."""
