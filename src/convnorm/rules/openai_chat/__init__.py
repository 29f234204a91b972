"""What OpenAI Chat Completions enforces on `messages`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Call, Scan, shown
from convnorm.wire import fields

API: Final = "openai.chat"
SPEAKING = ("tool_calls", "function_call", "refusal", "audio")
"""With one of these an assistant message needs no content."""
TYPES = "openai 3.51.0 types"
SPECIFICATION = "openai/openai-openapi openapi.json @f85dbe2"


def describe(call: Call) -> str:
    """A call as a message names it."""
    body = fields(call.raw.get("function")) or fields(call.raw.get("custom")) or call.raw
    name = body.get("name")
    said = f"call {shown(call.id)}" if call.id else "a call without an id"
    return f"{said} ({name[:64]})" if isinstance(name, str) and name else said


# Pairing.


def _unanswered(scan: Scan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        if not call.answered:
            astray = scan.pairs.astray.get(call.id or "")
            hint = "" if astray is None else f"; messages[{astray}] has its id and stands elsewhere"
            yield Finding(
                call.position,
                call.where,
                f"{describe(call)} has no tool message right behind its message{hint}",
            )


def _orphans(scan: Scan) -> Iterator[Finding]:
    if all(result.call for result in scan.pairs.results):
        return
    named = {(call.batch, call.id) for call in scan.pairs.calls if call.id}
    for result in scan.pairs.results:
        if result.call is not None or (result.batch, result.id) in named:
            continue  # it has its call, or is a second result in the right place
        what = f"the result of call {shown(result.id)}" if result.id else "a result without an id"
        yield Finding(
            result.position, "", f"{what} does not stand right behind a message that calls for it"
        )


def _second_results(scan: Scan) -> Iterator[Finding]:
    in_block: dict[tuple[int, str], int] = {}
    anywhere: dict[str, int] = {}
    for result in scan.pairs.results:
        if result.id is None:
            continue
        before = in_block.setdefault((result.batch, result.id), result.position)
        first = anywhere.setdefault(result.id, result.position)
        if result.batch < 0 or before == result.position:
            before = first if result.call is None else result.position
        if before != result.position:
            yield Finding(
                result.position,
                ".tool_call_id",
                f"messages[{before}] already answers call {shown(result.id)}",
            )


def _reused_call_ids(scan: Scan) -> Iterator[Finding]:
    seen: set[tuple[int, str]] = set()
    for call in scan.pairs.calls:
        if call.id is None:
            continue
        if (call.batch, call.id) in seen:
            yield Finding(
                call.position,
                f"{call.where}.id",
                f"two calls of one message have the id {shown(call.id)}",
            )
        seen.add((call.batch, call.id))


def _results_without_id(scan: Scan) -> Iterator[Finding]:
    for result in scan.pairs.results:
        if result.id is None:
            given = shown(result.raw.get("tool_call_id"))
            yield Finding(
                result.position, ".tool_call_id", f"the tool_call_id of a tool message is {given}"
            )


def _calls_without_id(scan: Scan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        if call.id is None:
            given = shown(call.raw.get("id"))
            yield Finding(call.position, f"{call.where}.id", f"the id of a tool call is {given}")


PAIRING = (
    Rule(
        id="chat-tool-calls-unanswered",
        api=API,
        statement="Every tool call is answered by the tool messages right behind its message.",
        error=(
            "400 An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'. The following tool_call_ids did not have response "
            "messages: call_x"
        ),
        certainty="observed",
        sources=(
            "microsoft/semantic-kernel#12663",
            "langchain-ai/langgraph#2075",
            "langgenius/dify-official-plugins#2352",
        ),
        repair="repair_tool_pairs",
        loss="nothing; the model reads a marked text where no result exists",
        remedy="add the result right behind the call, or take the call out",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "user", "content": "and?"},
            ]
        },
        find=_unanswered,
    ),
    Rule(
        id="chat-tool-message-orphan",
        api=API,
        statement="A tool message stands right behind the message whose calls name its id.",
        error=(
            "400 Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'."
        ),
        certainty="observed",
        sources=("BerriAI/litellm#4931", "n8n-io/n8n#34166", "microsoft/semantic-kernel#12708"),
        repair="repair_tool_pairs",
        loss="nothing when its call is elsewhere; else the result is sent as quoted text",
        remedy="put the call back before its result, or take the result out",
        example={
            "messages": [
                {"role": "user", "content": "balance?"},
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
            ]
        },
        find=_orphans,
    ),
    Rule(
        id="chat-duplicate-tool-result",
        api=API,
        statement="A tool_call_id is answered by one tool message.",
        error=(
            "400 Invalid parameter: Duplicate value for 'tool_call_id' of 'call_x', in messages[7] "
            "and messages[8]."
        ),
        certainty="observed",
        sources=("agno-agi/agno#5116", "neuron-core/neuron-ai#46", "fatwang2/search2ai#30"),
        repair="repair_tool_pairs",
        loss="nothing when both say the same; else one of them is sent as quoted text",
        remedy="keep one result for each call",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
            ]
        },
        find=_second_results,
    ),
    Rule(
        id="chat-duplicate-tool-call-id",
        api=API,
        statement="The ids of the calls in one message are different.",
        error="400 duplicate tool_call_id",
        certainty="observed",
        sources=("openclaw/openclaw#40897", "VicBilibily/GCMP#120", "can1357/oh-my-pi#2055"),
        repair="repair_tool_pairs",
        loss="the id of the later call and of its result",
        remedy="give each call its own id, on both sides",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "edit", "arguments": '{"file": "a"}'},
                        },
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "edit", "arguments": '{"file": "b"}'},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "a is done"},
                {"role": "tool", "tool_call_id": "call_1", "content": "b is done"},
            ]
        },
        companions=("chat-duplicate-tool-result",),
        find=_reused_call_ids,
    ),
    Rule(
        id="chat-tool-call-id-missing",
        api=API,
        statement="A tool message has a tool_call_id that is a string and not empty.",
        error=(
            "400 Missing parameter 'tool_call_id': messages with role 'tool' must have a "
            "'tool_call_id'."
        ),
        certainty="observed",
        sources=("langchain-ai/langchain#22600", "vercel/ai#2178", "MadcowD/ell#325"),
        repair="repair_tool_pairs",
        loss="nothing when one call is open; else the result is sent as quoted text",
        remedy="say which call the result answers",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "content": "10 EUR"},
            ]
        },
        find=_results_without_id,
    ),
    Rule(
        id="chat-tool-call-field-missing",
        api=API,
        statement="A tool call has an id that is a string and not empty; no other field is judged.",
        error=(
            "400 Missing required parameter: 'messages[2].tool_calls[0].id'. (wording not verified)"
        ),
        certainty="documented",
        sources=(TYPES, SPECIFICATION),
        repair="repair_tool_pairs",
        loss="nothing",
        remedy="give the call and its result an id",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"type": "function", "function": {"name": "balance", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "content": "10 EUR"},
            ]
        },
        companions=("chat-tool-call-id-missing",),
        find=_calls_without_id,
    ),
)


# Shapes.


def _empty_list(scan: Scan) -> Iterator[Finding]:
    if not scan.views:
        yield Finding(-1, "", "there is no message to send")


def _no_objects(scan: Scan) -> Iterator[Finding]:
    for at in scan.no_objects:
        yield Finding(at, "", "the message is no object")


def _odd_roles(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.odd_roles):
        yield Finding(at, ".role", f"the role is {shown(message.get('role'))}")


def _odd_contents(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.no_text):
        content = message.get("content")
        if content is not None and not isinstance(content, list | tuple):
            yield Finding(at, ".content", f"the content is {shown(content)}")


def _null_contents(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.no_text):
        role = message.get("role")
        if message.get("content") is not None or role == "function":
            continue
        if role == "assistant" and any(map(message.get, SPEAKING)):
            continue
        yield Finding(at, ".content", f"the content of a message of role {shown(role)} is null")


def _empty_contents(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.no_text):
        content = message.get("content")
        if isinstance(content, list | tuple) and not content:
            yield Finding(at, ".content", "the content is an empty list")


def _empty_calls(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.with_calls):
        calls = message.get("tool_calls")
        if isinstance(calls, list | tuple) and not calls:
            yield Finding(at, ".tool_calls", "the list of tool calls is empty")


def _odd_calls(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.with_calls):
        calls = message.get("tool_calls")
        if not isinstance(calls, list | tuple):
            yield Finding(at, ".tool_calls", f"tool_calls is {shown(calls)}, not a list")
            continue
        for index, call in enumerate(calls):
            if type(call) is not dict and fields(call) is None:
                where = f".tool_calls[{index}]"
                yield Finding(at, where, f"the tool call is {shown(call)}, not an object")


def _misplaced_calls(scan: Scan) -> Iterator[Finding]:
    for at, message in _messages(scan, scan.with_calls):
        role, calls = message.get("role"), message.get("tool_calls")
        empty = isinstance(calls, list | tuple) and not calls
        if role != "assistant" and not empty:
            yield Finding(at, ".tool_calls", f"a message of role {shown(role)} calls tools")


def _messages(scan: Scan, positions: list[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for at in positions:
        message = scan.views[at]
        if message is not None:
            yield at, message


SHAPES = (
    Rule(
        id="chat-messages-empty",
        api=API,
        statement="There is at least one message.",
        error=(
            "400 Invalid 'messages': empty array. Expected an array with minimum length 1, but got "
            "an empty array instead."
        ),
        certainty="observed",
        sources=("CopilotKit/CopilotKit#529",),
        repair=None,
        loss="",
        remedy="send at least one message",
        example={"messages": []},
        find=_empty_list,
    ),
    Rule(
        id="chat-message-type",
        api=API,
        statement="Every message is an object.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="pass messages as dicts or SDK objects, and take out what is no message",
        example={"messages": [{"role": "user", "content": "hello"}, None]},
        find=_no_objects,
    ),
    Rule(
        id="chat-role-invalid",
        api=API,
        statement=(
            "The role of a message is system, developer, user, assistant, tool or function."
        ),
        error=(
            "400 Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', "
            "'function', 'tool', and 'developer'. (wording not verified)"
        ),
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="use a role that the API has: only you know who spoke",
        example={"messages": [{"role": "model", "content": "hello"}]},
        find=_odd_roles,
    ),
    Rule(
        id="chat-content-type",
        api=API,
        statement="The content of a message is a string, a list of parts, or null.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="turn the content into a string, for example with json.dumps",
        example={"messages": [{"role": "user", "content": {"text": "hello"}}]},
        find=_odd_contents,
    ),
    Rule(
        id="chat-content-null",
        api=API,
        statement=(
            "Content is null only on an assistant message with tool_calls, function_call, refusal "
            "or audio, and on a function message."
        ),
        error="400 Invalid value for 'content': expected a string, got null.",
        certainty="observed",
        sources=("run-llama/llama_index#17555", "docker/docker-agent#63", "vercel/ai#13744"),
        repair="drop_empty",
        loss="nothing; a reply that says nothing is dropped",
        remedy="send an empty string, or leave the message out",
        example={"messages": [{"role": "user", "content": None}]},
        find=_null_contents,
    ),
    Rule(
        id="chat-content-empty-array",
        api=API,
        statement="A list of content parts has at least one part.",
        error="400 empty array: expected an array with minimum length 1 (wording not verified)",
        certainty="documented",
        sources=(SPECIFICATION, "AstrBotDevs/AstrBot#6447"),
        repair="drop_empty",
        loss="nothing; a reply that says nothing is dropped",
        remedy="send an empty string, or leave the message out",
        example={"messages": [{"role": "user", "content": []}]},
        find=_empty_contents,
    ),
    Rule(
        id="chat-tool-calls-empty-array",
        api=API,
        statement="A list of tool calls has at least one call; without calls the key is left out.",
        error=(
            "400 Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum "
            "length 1, but got an empty array instead."
        ),
        certainty="observed",
        sources=(
            "openai/openai-python#2061",
            "home-assistant/core#118577",
            "smallmain/vscode-unify-chat-provider#65",
        ),
        repair="drop_empty",
        loss="nothing",
        remedy="leave tool_calls out",
        example={"messages": [{"role": "assistant", "content": "hello", "tool_calls": []}]},
        find=_empty_calls,
    ),
    Rule(
        id="chat-tool-calls-type",
        api=API,
        statement="tool_calls is a list of objects.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="send tool_calls as a list of objects, or leave it out",
        example={"messages": [{"role": "assistant", "content": "hello", "tool_calls": "balance"}]},
        find=_odd_calls,
    ),
    Rule(
        id="chat-tool-calls-role",
        api=API,
        statement="Only assistant messages call tools.",
        error="400 (documented; no wording seen)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="move the calls to an assistant message, or leave them out",
        example={
            "messages": [
                {
                    "role": "user",
                    "content": "hello",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                }
            ]
        },
        find=_misplaced_calls,
    ),
)

RULES = PAIRING + SHAPES
