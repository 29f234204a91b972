"""What items say: their content, arguments and outputs."""

from collections.abc import Iterator

from convnorm.rules.openai_responses.words import API, is_disputed
from convnorm.rules.read_responses import ResponsesScan, item_type
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import shown
from convnorm.targets.responses_items import TEXT_LENGTH, TYPES
from convnorm.wire import fields


def _no_input(scan: ResponsesScan) -> Iterator[Finding]:
    given = scan.fields.get("input")
    if scan.no_list and given is not None and not isinstance(given, str):
        yield Finding(-1, "", f"the input is {shown(given)}, neither a text nor a list")
    elif not scan.views and not scan.linked and scan.fields.get("prompt") is None:
        yield Finding(-1, "", "there is nothing to send")


def _no_objects(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.no_objects:
        yield Finding(at, "", "the input item is no object")


def _odd_types(scan: ResponsesScan) -> Iterator[Finding]:
    verdict = scan.target.responses.schema
    for at in scan.odd_types:
        kind = (scan.views[at] or {}).get("type")
        # Another server may have types of its own, though none that are no text.
        unsure = isinstance(kind, str) and is_disputed(verdict)
        yield Finding(at, ".type", f"there is no item type {shown(kind)}", disputed=unsure)


def _odd_roles(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.odd_roles:
        item = scan.views[at] or {}
        role = item.get("role")
        known = isinstance(role, str) and role.casefold() in SPEAKERS
        if role == "tool":  # a message of Chat Completions is an output, if it names its call
            named = isinstance(item.get("tool_call_id", item.get("call_id")), str)
            known = named and isinstance(item.get("content"), str | list | tuple)
        repair = AS_THE_RULE if known else None  # only the user knows who spoke
        yield Finding(at, ".role", f"the role of a message is {shown(role)}", repair=repair)


SPEAKERS = frozenset(
    {"system", "developer", "user", "assistant", "human", "ai", "model", "bot", "chatbot", "gpt"}
)
"""Roles that say who spoke, in small letters: the API's own, and those of other libraries."""


def _odd_parts(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.odd_contents:
        content = (scan.views[at] or {}).get("content")
        said = f"the content is {shown(content)}, neither a text nor a list of parts"
        yield Finding(at, ".content", said)
    verdict = scan.target.responses.assistant_input
    for at, index, keys in scan.odd_content_parts:
        role = (scan.views[at] or {}).get("role")
        kind = None if keys is None else keys.get("type")
        where = f".content[{index}]"
        if not isinstance(kind, str):
            what = "no object" if keys is None else f"of type {shown(kind)}"
            yield Finding(at, where, f"a part of the content is {what}")
            continue
        said = f"the {role} message has a part of type {shown(kind)}"
        if not kind.startswith("input_"):
            yield Finding(at, where, said)
        elif role != "assistant":  # a kind of input that came after these tables
            yield Finding(at, where, said, disputed=True)
        elif verdict != "accepted":
            # Whose text is no text, of that only the user knows what it says.
            readable = kind != "input_text" or isinstance((keys or {}).get("text"), str)
            repair = AS_THE_RULE if readable else None
            yield Finding(at, where, said, repair=repair, disputed=is_disputed(verdict))


def _odd_phases(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.odd_phases:
        phase = (scan.views[at] or {}).get("phase")
        yield Finding(at, ".phase", f"the phase of a message is {shown(phase)}")


def _odd_arguments(scan: ResponsesScan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        key = ARGUMENTS.get(call.kind)
        if key is None or call.position in scan.resolved:
            continue
        given = call.raw.get(key)
        if given is not None and not isinstance(given, str):
            yield Finding(call.position, f".{key}", f"the {key} of a call is {shown(given)}")
    for at in scan.hosted:
        item = scan.views[at] or {}
        given = item.get("arguments")
        if given is not None and not isinstance(given, str):
            said = f"the arguments of a {item_type(item)} are {shown(given)}"
            yield Finding(at, ".arguments", said, repair=None)  # the server's own record of a call


ARGUMENTS = {"function": "arguments", "custom": "input"}
"""By kind of call: where it says what it asks for."""


def _odd_outputs(scan: ResponsesScan) -> Iterator[Finding]:
    for at, where, value in scan.odd_outputs:
        kind = (fields(value) or {}).get("type")
        said = f"a part of type {shown(kind)}" if isinstance(kind, str) else shown(value)
        what = item_type(scan.views[at] or {})
        # No part of an output is a screenshot, and nothing else can stand for one.
        repair = None if what == "computer_call_output" else "scrub_fields"
        yield Finding(at, where, f"the output of a {what} holds {said}", repair=repair)


def _long_texts(scan: ResponsesScan) -> Iterator[Finding]:
    verdict = scan.target.responses.schema
    for at, where, length, limit in scan.long_texts if verdict != "accepted" else ():
        said = f"{length} characters, {length - limit} more than allowed"
        yield Finding(at, where, said, disputed=is_disputed(verdict))


def _malformed(scan: ResponsesScan) -> Iterator[Finding]:
    # A server that lets unknown keys pass still wants the right types under those it knows.
    verdict = scan.target.responses.schema
    for at, where, said, unsure in scan.malformed:
        # What is acknowledged, approved or remembered nobody puts right in another's place.
        repair = None if item_type(scan.views[at] or {}) in JUDGED else AS_THE_RULE
        disputed = unsure or verdict == "disputed"
        yield Finding(at, where, said, repair=repair, disputed=disputed)


JUDGED = frozenset(
    {
        "computer_call",
        "computer_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "compaction",
    }
)
"""Items whose values only the user can put right."""


def _late_items(scan: ResponsesScan) -> Iterator[Finding]:
    last = len(scan.views) - 1
    for at in scan.triggers:
        if at != last:
            yield Finding(at, "", "a compaction_trigger is not the last item")


class Oversized(str):
    """A text that says it is one character too long, so that the example need not be."""

    __slots__ = ()

    def __len__(self) -> int:
        return TEXT_LENGTH + 1


SHAPES = (
    Rule(
        id="resp-input-required",
        api=API,
        statement=(
            "The input is a text or a list, and empty only where a prompt or stored state stands "
            "in."
        ),
        error="400 (no wording seen)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="send at least one item",
        example={"input": []},
        find=_no_input,
    ),
    Rule(
        id="resp-item-type",
        api=API,
        statement="Every input item is an object.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="pass items as dicts or SDK objects, and take out what is no item",
        example={"input": [{"role": "user", "content": "hello"}, None]},
        find=_no_objects,
    ),
    Rule(
        id="resp-item-type-unknown",
        api=API,
        statement="The type of an input item is one that the API has.",
        error=(
            "400 Invalid value: 'context_compaction'. Supported values are: 'apply_patch_call', ..."
        ),
        certainty="observed",
        sources=("router-for-me/CLIProxyAPI#3414",),
        repair="scrub_fields",
        loss="the item",
        remedy="leave the item out, or send what it means as an item that the API has",
        example={
            "input": [
                {"type": "context_compaction", "summary": "so far"},
                {"role": "user", "content": "go on"},
            ]
        },
        find=_odd_types,
    ),
    Rule(
        id="resp-role-invalid",
        api=API,
        statement="The role of a message is assistant, system, developer or user.",
        error=(
            "400 Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', "
            "and 'user'. (wording not verified)"
        ),
        certainty="documented",
        sources=(TYPES,),
        repair="repair_roles",
        loss="nothing; a role that no API is known for is not repaired",
        remedy="use a role that the API has; send a tool message as a function_call_output",
        example={"input": [{"role": "tool", "content": "10 EUR"}]},
        find=_odd_roles,
    ),
    Rule(
        id="resp-content-part-type",
        api=API,
        statement=(
            "An assistant message is made of output_text and refusal parts, every other message "
            "of input parts."
        ),
        error="400 Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
        certainty="observed",
        sources=(
            "jeremychone/rust-genai#119",
            "tinyhumansai/openhuman#3624",
            "BerriAI/litellm#17507",
        ),
        repair="fit_media",
        loss="nothing; an image of an assistant message becomes a user message or a mark",
        remedy="name the parts by the role of their message",
        example={
            "input": [{"role": "assistant", "content": [{"type": "input_text", "text": "hello"}]}]
        },
        find=_odd_parts,
    ),
    Rule(
        id="resp-phase-invalid",
        api=API,
        statement="The phase of a message is commentary or final_answer.",
        error="400 (documented: commentary, final_answer)",
        certainty="documented",
        sources=(TYPES, "microsoft/vscode-copilot-chat#3582"),
        repair="scrub_fields",
        loss="the phase, which the API does not know",
        remedy="send one of the two, or leave the phase out",
        example={"input": [{"role": "assistant", "content": "hello", "phase": "thinking"}]},
        find=_odd_phases,
    ),
    Rule(
        id="resp-arguments-not-string",
        api=API,
        statement="The arguments of a call, or the input of a custom one, are a text.",
        error="400 (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="repair_arguments",
        loss="nothing",
        remedy="send the arguments as JSON text",
        example={
            "input": [
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "balance",
                    "arguments": {"account": 1},
                },
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
            ]
        },
        find=_odd_arguments,
    ),
    Rule(
        id="resp-output-type",
        api=API,
        statement=(
            "An output is a text or a list of input parts; that of a computer call is a "
            "screenshot, that of a shell call a list of chunks."
        ),
        error="400 (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="scrub_fields",
        loss="nothing",
        remedy="send the output as a text, or as input_text, input_image and input_file parts",
        example={
            "input": [
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "balance",
                    "arguments": "{}",
                },
                {"type": "function_call_output", "call_id": "call_1", "output": {"EUR": 10}},
            ]
        },
        find=_odd_outputs,
    ),
    Rule(
        id="resp-malformed",
        api=API,
        statement="Every value has the JSON type that the schema gives it.",
        error="400 Invalid type for 'input[0].content[0].text': expected a string (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="scrub_fields",
        loss="the value that has no right type",
        remedy="send a value of the right type, or leave the key out",
        example={"input": [{"role": "user", "content": [{"type": "input_text", "text": None}]}]},
        find=_malformed,
    ),
    Rule(
        id="resp-string-too-long",
        api=API,
        statement=(
            "Texts, outputs and arguments have at most 10485760 characters, images and encrypted "
            "content 20971520."
        ),
        error=(
            "400 string too long. Expected a string with maximum length 10485760 (wording not "
            "verified)"
        ),
        certainty="documented",
        sources=(
            "openai/openai-openapi openapi.json @f85dbe2 (2026-08-21)",
            "openai/codex#13270",
            "openai/codex#10506",
        ),
        repair="fit_budget",
        loss="the end of the text",
        remedy="shorten the text",
        example={
            "input": [{"role": "user", "content": Oversized("(one character more than allowed)")}]
        },
        code="string_above_max_length",
        find=_long_texts,
    ),
    Rule(
        id="resp-compaction-trigger-not-last",
        api=API,
        statement="A compaction_trigger is the last item of the input.",
        error="400 (documented: Must be the final input item)",
        certainty="documented",
        sources=(TYPES,),
        repair="scrub_fields",
        loss="nothing",
        remedy="move the trigger to the end, or leave it out",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "compaction_trigger"},
                {"role": "user", "content": "and?"},
            ]
        },
        find=_late_items,
    ),
)
"""What OpenAI asks of what items say."""
