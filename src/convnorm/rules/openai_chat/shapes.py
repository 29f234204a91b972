"""The list, and what a message is made of."""

import json
from collections.abc import Iterator

from convnorm.rules.openai_chat.common import (
    API,
    SPECIFICATION,
    TYPES,
    messages,
    speaks_otherwise,
    user,
)
from convnorm.rules.openai_chat.roles import says_who
from convnorm.rules.read_chat import as_said, read_calls
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import Scan, shown
from convnorm.wire import LIST, fields


def _no_list(scan: Scan) -> Iterator[Finding]:
    if scan.no_list:
        yield Finding(-1, "", "messages is missing, or is no list")


def _empty_list(scan: Scan) -> Iterator[Finding]:
    if not scan.views and not scan.no_list:
        yield Finding(-1, "", "there is no message to send")


def _long_list(scan: Scan) -> Iterator[Finding]:
    profile = scan.target.chat
    count, most = len(scan.views), profile.message_limit
    if count > most and profile.too_many != "accepted":
        why = f"there are {count} messages, and {most} may be sent"
        yield Finding(-1, "", why, disputed=profile.too_many == "disputed")


def _no_objects(scan: Scan) -> Iterator[Finding]:
    for at in scan.no_objects:
        yield Finding(at, "", "the message is no object")


def _odd_contents(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.no_text):
        content = message.get("content")
        if content is not None and not isinstance(content, LIST):
            repair = AS_THE_RULE if _is_json(content) else None
            yield Finding(at, ".content", f"the content is {shown(content)}", repair=repair)


def _is_json(value: object) -> bool:
    """Whether a value can be written as text."""
    try:
        json.dumps(value, default=lambda other: dict(fields(other) or {}))
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _null_contents(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.no_text):
        if message.get("content") is None and not speaks_otherwise(message):
            role = shown(message.get("role"))
            yield Finding(at, ".content", f"the content of a message of role {role} is null")


def _empty_contents(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.no_text):
        content = message.get("content")
        if isinstance(content, LIST) and not content:
            yield Finding(at, ".content", "the content is an empty list")


def _empty_calls(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.with_calls):
        calls = message.get("tool_calls")
        if isinstance(calls, LIST) and not calls:
            yield Finding(at, ".tool_calls", "the list of tool calls is empty")


def _odd_calls(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.with_calls):
        given = message.get("tool_calls")
        calls = read_calls(given)
        # A null says nothing beside a call; of what is no object nobody knows what it calls.
        readable = [call is None or fields(as_said(call)) is not None for call in calls or ()]
        alone = all(call is None for call in calls or ())
        if not isinstance(given, LIST):
            repair = AS_THE_RULE if all(readable) and not alone else None
            why = f"tool_calls is {shown(given)}, not a list"
            yield Finding(at, ".tool_calls", why, repair=repair)
            continue
        for index, call in enumerate(given):
            if type(call) is not dict and fields(call) is None:
                where = f".tool_calls[{index}]"
                why = f"the tool call is {shown(call)}, not an object"
                repair = AS_THE_RULE if all(readable) and not alone else None
                yield Finding(at, where, why, repair=repair)


def _misplaced_calls(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.with_calls):
        role, calls = message.get("role"), message.get("tool_calls")
        empty = isinstance(calls, LIST) and not calls
        if role != "assistant" and not empty:
            # A tool does not call tools, and of an unknown role only the user knows who it is.
            readable = read_calls(calls) is not None
            repair = AS_THE_RULE if says_who(role) and readable else None
            why = f"a message of role {shown(role)} calls tools"
            yield Finding(at, ".tool_calls", why, repair=repair)


def _malformed(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.odd_parts
    for at, where, said, unsure in scan.malformed if verdict != "accepted" else ():
        # A name cannot be made up, and only functions are quoted instead.
        repair = None if where.endswith(".custom.name") else AS_THE_RULE
        yield Finding(at, where, said, repair=repair, disputed=unsure or verdict == "disputed")


SHAPES = (
    Rule(
        id="chat-messages-required",
        api=API,
        statement="messages is a list.",
        error="400 (documented; no wording seen)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="send the history as a list of messages, under the key messages",
        example={"messages": "hello"},
        find=_no_list,
    ),
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
        id="chat-messages-too-many",
        api=API,
        statement="There are at most 2048 messages; observed on Azure, unverified on OpenAI.",
        error="400 $.messages is too long. Maximum length is 2048, but got 4968 items.",
        level="model",
        certainty="observed",
        sources=("portkey.ai/error-library/length-limit-error-10026",),
        repair="fit_budget",
        loss="the oldest turns",
        remedy="leave out the oldest turns, each call with its results, and keep the instructions",
        example={"messages": [user("hello")] * 2049},
        setting={"provider": "azure"},
        find=_long_list,
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
        id="chat-content-type",
        api=API,
        statement="The content of a message is a string, a list of parts, or null.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="scrub_fields",
        loss="nothing",
        remedy="turn the content into a string, for example with json.dumps",
        example={"messages": [{"role": "user", "content": {"text": "hello"}}]},
        find=_odd_contents,
    ),
    Rule(
        id="chat-malformed",
        api=API,
        statement="Every value of a part, a call or an assistant message has its JSON type.",
        error="400 Invalid type for 'messages[0].content[0].text': expected a string (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="scrub_fields",
        loss="the value that has no right type",
        remedy="send a value of the right type, or leave the key out",
        example={"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]},
        find=_malformed,
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
        code="empty_array",
        find=_empty_calls,
    ),
    Rule(
        id="chat-tool-calls-type",
        api=API,
        statement="tool_calls is a list of objects.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="scrub_fields",
        loss="nothing",
        remedy="send tool_calls as a list of objects, or leave it out",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": "hello",
                    "tool_calls": {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "balance", "arguments": "{}"},
                    },
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
            ]
        },
        find=_odd_calls,
    ),
    Rule(
        id="chat-tool-calls-role",
        api=API,
        statement="Only assistant messages call tools.",
        error="400 (documented; no wording seen)",
        certainty="documented",
        sources=(TYPES,),
        repair="repair_roles",
        loss="nothing: the calls move to an assistant message directly behind",
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
