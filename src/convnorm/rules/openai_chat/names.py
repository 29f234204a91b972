"""Ids, names and arguments."""

import re
from collections.abc import Iterator

from convnorm.rules.openai_chat.common import (
    API,
    TYPES,
    call,
    calling,
    messages,
    result,
    user,
)
from convnorm.rules.read_chat import NAME
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import Scan, shown

BARRED = re.compile(r"[\s<|\\/>]")
"""What no server was seen to take in the name of a speaker."""
NINE = re.compile(r"[a-zA-Z0-9]{9}")


def _long_ids(scan: Scan) -> Iterator[Finding]:
    most = scan.target.chat.call_id_length
    if most is None:
        return
    for at, where, given in _ids(scan):
        if len(given) > most:
            why = f"the id {shown(given)} has {len(given)} characters, and {most} are allowed"
            yield Finding(at, where, why)


def _odd_ids(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.nine_character_ids
    if verdict == "accepted":
        return
    for at, where, given in _ids(scan):
        if not NINE.fullmatch(given):
            why = f"the id {shown(given)} is not made of nine letters and digits"
            yield Finding(at, where, why, disputed=verdict == "disputed")


def _ids(scan: Scan) -> Iterator[tuple[int, str, str]]:
    """Every id that names a call, on both sides: message, path and id."""
    for one in scan.pairs.calls:
        if one.id is not None:
            yield one.position, f"{one.where}.id", one.id
    for answer in scan.pairs.results:
        if answer.id is not None:
            yield answer.position, ".tool_call_id", answer.id


def _function_names(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.names
    if verdict == "accepted":
        return
    for at, where, name in scan.odd_names:
        # A function without any name is wrong everywhere.
        disputed = verdict == "disputed" and bool(name)
        # Nothing joins an old call to its answer but the order.
        named = isinstance(name, str) and name
        repair = None if where == ".function_call" and not named else AS_THE_RULE
        why = f"the name of the function is {shown(name)}"
        yield Finding(at, f"{where}.name", why, repair=repair, disputed=disputed)


def _speaker_names(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.names
    if verdict == "accepted":
        return
    for at, message in messages(scan, scan.named):
        name, role = message.get("name"), message.get("role")
        if isinstance(name, str) and (NAME.fullmatch(name) or (role == "function" and not name)):
            continue
        barred = isinstance(name, str) and BARRED.search(name) is not None
        # A tool message has no name by its type: who sends one may get by with any.
        disputed = verdict == "disputed" or role == "tool" or not barred
        yield Finding(at, ".name", f"the name of the message is {shown(name)}", disputed=disputed)


def _nameless_functions(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.functions):
        name = message.get("name")
        if not isinstance(name, str) or not name:
            yield Finding(at, ".name", f"the name of a function message is {shown(name)}")


def _raw_arguments(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.raw_arguments
    if verdict == "accepted":
        return
    for at, where, arguments in scan.odd_arguments:
        yield Finding(
            at,
            f"{where}.arguments",
            f"the arguments are {shown(arguments)}, not a string",
            disputed=verdict == "disputed",
        )


_LONG = "fc_0123456789abcdef0123456789abcdef012345678"

NAMES = (
    Rule(
        id="chat-tool-call-id-too-long",
        api=API,
        statement="A tool call id has at most 40 characters on OpenAI, Azure and Copilot.",
        error=(
            "400 Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with "
            "maximum length 40, but got a string with length 43 instead."
        ),
        level="model",
        certainty="observed",
        sources=("vercel/ai#5171", "BerriAI/litellm#11392", "agno-agi/agno#5382"),
        repair="legalise_ids",
        loss="the wording of the id",
        remedy="give the call a shorter id, on both sides; cutting can make two ids equal",
        example={"messages": [calling(call(_LONG)), result(_LONG)]},
        code="string_above_max_length",
        find=_long_ids,
    ),
    Rule(
        id="mistral-tool-call-id-format",
        api=API,
        statement=(
            "A tool call id is nine letters and digits; newer tokenizers (v13 and later) take any."
        ),
        error="400 Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.",
        level="model",
        certainty="observed",
        sources=(
            "anomalyco/opencode#1680",
            "nearai/ironclaw#1241",
            "langchain-ai/langchain#24668",
            "mistral-common 1.13.0 validator",
        ),
        repair="legalise_ids",
        loss="the wording of the id",
        remedy="give the call an id of nine letters and digits, on both sides",
        example={"messages": [user(), calling(), result()]},
        setting={"provider": "mistral"},
        code="3280",
        find=_odd_ids,
    ),
    Rule(
        id="chat-function-name-invalid",
        api=API,
        statement=(
            "The name of a called function has 1 to 64 letters, digits, underscores and dashes."
        ),
        error=(
            "400 Invalid 'messages[9].tool_calls[0].function.name': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        ),
        certainty="observed",
        sources=("mcp-use/mcp-use#90", "continuedev/continue#11645", "langgenius/dify#22867"),
        repair="legalise_ids",
        loss="the exact name; a call without any name and its result are quoted as data",
        remedy="use the name under which the tool is declared",
        example={"messages": [calling(call(name="crm.balance")), result()]},
        find=_function_names,
    ),
    Rule(
        id="chat-message-name-pattern",
        api=API,
        statement="The name of a message has no spaces and no special characters.",
        error=(
            "400 Invalid 'messages[5].name': string does not match pattern. Expected a string that "
            "matches the pattern '^[a-zA-Z0-9_-]+$'."
        ),
        certainty="observed",
        sources=("FlowiseAI/Flowise#2948",),
        repair="scrub_fields",
        loss="the exact name",
        remedy="put underscores into the name, or leave it out",
        example={"messages": [{"role": "user", "name": "Ann Lee", "content": "hello"}]},
        find=_speaker_names,
    ),
    Rule(
        id="chat-function-name-missing",
        api=API,
        statement="A message of the old role function says which function answers.",
        error="400 (documented; no wording seen)",
        certainty="documented",
        sources=(TYPES,),
        repair="legalise_ids",
        loss="nothing; without a call before it, the message is sent as quoted text",
        remedy="repeat the name of the function_call before it",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "function_call": {"name": "balance", "arguments": "{}"},
                },
                {"role": "function", "content": "10 EUR"},
            ]
        },
        find=_nameless_functions,
    ),
    Rule(
        id="chat-arguments-not-string",
        api=API,
        statement="The arguments of a called function are a string, with JSON in it.",
        error=(
            "400 Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a "
            "string, but got an object instead. (wording not verified)"
        ),
        certainty="documented",
        sources=(TYPES,),
        repair="repair_arguments",
        loss="nothing",
        remedy="send the arguments as json.dumps writes them",
        example={"messages": [calling(call(arguments={"currency": "EUR"})), result()]},
        find=_raw_arguments,
    ),
)
