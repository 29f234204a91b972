"""Shapes: every message, block and value is of the type that the schema gives it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.rules.anthropic_messages.common import API, CALL, RESULT, assistant, text, user
from convnorm.rules.anthropic_messages.schema import (
    BLOCKS,
    FOREIGN,
    INSIDE,
    MESSAGE_KEYS,
    SYSTEM_KEYS,
    SYSTEM_VALUES,
    TEXT,
    THINKING_TYPES,
    plain_fields,
)
from convnorm.rules.read_anthropic import CACHED, THINKING, AnthropicScan, Block
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown
from convnorm.rules.schema import CHECKS, flaws
from convnorm.targets.schema import OBJECT, STRING
from convnorm.wire import LIST, fields

ID = re.compile(r"[a-zA-Z0-9_-]+")


def _malformed(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.no_list:
        yield Finding(-1, "", "messages is no list")
    for at in scan.no_objects:
        yield Finding(at, "", "the message is no object")
    for block in scan.blocks:
        if block.index < 0:
            continue  # a string
        known = INSIDE if block.parent else BLOCKS
        if (shape := known.get(block.kind)) is None:
            yield _unknown(block)
            continue
        for path, said, unsure in flaws(shape, block.raw, block.where):
            yield Finding(block.position, path, said, disputed=unsure)
    for at in scan.system:
        message = scan.views[at] or {}
        for key, wanted in SYSTEM_VALUES.items():
            for path, said, unsure in flaws(wanted, message.get(key), f".{key}"):
                yield Finding(at, path, said, disputed=unsure)
    yield from _malformed_outside(scan)


def _unknown(block: Block) -> Finding:
    inside = "a tool_result" if block.parent else "a message"
    return Finding(
        block.position,
        block.at("type"),
        f"{inside} has no blocks of the type {shown(block.kind)}",
        disputed=block.kind not in FOREIGN | BLOCKS.keys() | INSIDE.keys(),
    )


def _malformed_outside(scan: AnthropicScan) -> Iterator[Finding]:
    """What stands beside the messages: system, tools and thinking."""
    system = scan.fields.get("system")
    if system is not None and not isinstance(system, str | list | tuple):
        yield Finding(-1, "system", f"system is {shown(system)}, not a string or a list")
    for index, element in enumerate(system if isinstance(system, LIST) else ()):
        raw = fields(element)
        if raw is None or raw.get("type") != "text":
            yield Finding(-1, f"system[{index}]", "system holds something that is no text block")
            continue
        for path, said, unsure in flaws(TEXT, raw, f"system[{index}]"):
            yield Finding(-1, path, said, disputed=unsure)
    tools = scan.fields.get("tools")
    if tools is not None and not isinstance(tools, LIST):
        yield Finding(-1, "tools", f"tools is {shown(tools)}, not a list")
    for index, tool in enumerate(tools if isinstance(tools, LIST) else ()):
        yield from _malformed_tool(f"tools[{index}]", tool)
    thinking = scan.fields.get("thinking")
    if thinking is not None:
        mode = plain_fields(thinking).get("type")
        if not isinstance(mode, str):
            yield Finding(-1, "thinking", "thinking is no object with a type")
        elif mode not in THINKING_TYPES:
            yield Finding(
                -1, "thinking.type", f"thinking is of the type {shown(mode)}", disputed=True
            )


def _malformed_tool(path: str, tool: object) -> Iterator[Finding]:
    raw = fields(tool)
    if raw is None:
        if tool is None or isinstance(tool, str | int | float | list | tuple):
            yield Finding(-1, path, f"a tool is {shown(tool)}, not an object")
        return  # SDKs have tool objects that only they can write out
    kind = raw.get("type")
    if kind is not None and kind != "custom":
        return  # a tool of the server's own, by its type
    for key, wanted in (("name", STRING), ("input_schema", OBJECT)):
        if not CHECKS[wanted](raw.get(key)):
            found = shown(raw.get(key))
            yield Finding(-1, f"{path}.{key}", f"the {key} of a tool is {found}, not a {wanted}")


def _empty(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.views and not scan.no_list:
        yield Finding(-1, "", "there are no messages")


def _odd_roles(scan: AnthropicScan) -> Iterator[Finding]:
    for at in scan.odd_roles:
        role = (scan.views[at] or {}).get("role")
        yield Finding(at, ".role", f"{shown(role)} is no role of this API")


def _no_content(scan: AnthropicScan) -> Iterator[Finding]:
    for at, where, value in scan.no_content:
        if where == ".content":
            yield Finding(at, where, f"the content is {shown(value)}, not a string or a list")
        elif value is None or not isinstance(value, str):
            yield Finding(at, where, "the content holds something that is no block with a type")
        else:
            yield Finding(at, where, f"the content holds {shown(value)} where a block belongs")


def _extra_keys(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.profile.known_keys_only:
        return
    for at, (message, role) in enumerate(zip(scan.views, scan.roles, strict=True)):
        if message is not None and role:
            known = SYSTEM_KEYS if role == "system" else MESSAGE_KEYS
            for key in _strangers(message, known):
                yield Finding(at, f".{key}", f"a message has no key {shown(key)}")
    for block in scan.blocks:
        shape = (INSIDE if block.parent else BLOCKS).get(block.kind)
        if shape is None or block.index < 0:
            continue
        for key in _strangers(block.raw, shape.keys):
            if key == CACHED and block.kind in THINKING:
                continue  # a rule of its own
            yield Finding(
                block.position, block.at(key), f"a {block.kind} block has no key {shown(key)}"
            )
    system = scan.fields.get("system")
    for index, element in enumerate(system if isinstance(system, LIST) else ()):
        raw = plain_fields(element)
        if raw.get("type") == "text":
            for key in _strangers(raw, TEXT.keys):
                yield Finding(-1, f"system[{index}].{key}", f"a text block has no key {shown(key)}")


def _strangers(raw: Mapping[Any, Any], known: frozenset[str]) -> list[str]:
    """The keys of an object that its schema does not have."""
    if raw.keys() <= known:
        return []
    return [key[:64] if isinstance(key, str) else "?" for key in raw if key not in known]


def _inputs(scan: AnthropicScan) -> Iterator[Finding]:
    for block in scan.of_kind("tool_use"):
        given = block.raw.get("input")
        if fields(given) is None:
            yield Finding(
                block.position, block.at("input"), f"the input of a call is {shown(given)}"
            )


def _names(scan: AnthropicScan) -> Iterator[Finding]:
    for block in scan.of_kind("tool_use"):
        name = block.raw.get("name")
        if not isinstance(name, str) or not name:
            yield Finding(block.position, block.at("name"), f"the name of a call is {shown(name)}")


def _ids(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.profile.strict_ids:
        return
    for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        for block in scan.of_kind(kind):
            given = block.raw.get(key)
            if isinstance(given, str) and not ID.fullmatch(given):
                yield Finding(
                    block.position,
                    block.at(key),
                    f"the id {shown(given)} has characters other than letters, digits, _ and -"
                    if given
                    else "the id is empty",
                )


def _errors_with_media(scan: AnthropicScan) -> Iterator[Finding]:
    for block in scan.blocks:
        if block.parent and block.kind != "text" and block.parent.raw.get("is_error") is True:
            yield Finding(
                block.position,
                block.where,
                f"a result with is_error holds a block of the type {shown(block.kind)}",
            )


def _empty_compactions(scan: AnthropicScan) -> Iterator[Finding]:
    for block in scan.of_kind("compaction"):
        if block.raw.get("content") == "":
            yield Finding(block.position, block.at("content"), "a compaction block is empty")


SHAPES = (
    Rule(
        id="anthropic-malformed",
        api=API,
        error="400 messages.1...: Input should be a valid ...",
        certainty="documented",
        sources=("anthropic 2.10.0 types",),
        statement="Every value has the JSON type of the schema.",
        repair="scrub_fields",
        loss="the value that has no right type",
        remedy="send a value of the right type, or leave the key out",
        example={"messages": [user({"type": "image", "source": "https://example.org/a.png"})]},
        find=_malformed,
    ),
    Rule(
        id="anthropic-messages-empty",
        api=API,
        error="400 (no text is known: an empty list is refused)",
        certainty="observed",
        sources=(
            "coder/coder#22819",
            "anthropics/skills error-codes.md",
        ),
        statement="There is at least one message.",
        repair=None,
        loss="",
        remedy="send at least one user message",
        example={"system": "Summary: the balance is 10 EUR", "messages": []},
        find=_empty,
    ),
    Rule(
        id="anthropic-role-invalid",
        api=API,
        error='400 messages: Unexpected role "tool" (text unverified)',
        certainty="reasoned",
        sources=("anthropic 2.10.0 message_param.py",),
        statement="A message has the role user, assistant or system.",
        repair="repair_roles",
        loss="nothing; the message goes in under a role that the API has",
        remedy="send a tool's answer as a tool_result block of a user message",
        example={"messages": [user("balance?"), {"role": "tool", "content": "10 EUR"}]},
        find=_odd_roles,
    ),
    Rule(
        id="anthropic-content-type",
        api=API,
        error="400 messages.1.content: Input should be a valid list",
        certainty="documented",
        sources=("anthropic 2.10.0 types",),
        statement="The content of a message is a string or a list of blocks that have a type.",
        repair="drop_empty",
        loss="nothing; there is no content to lose",
        remedy="leave out messages without content",
        example={"messages": [user("hi"), {"role": "user", "content": None}]},
        find=_no_content,
    ),
    Rule(
        id="anthropic-extra-field",
        api=API,
        error="400 messages.0.name: Extra inputs are not permitted",
        certainty="observed",
        sources=(
            "microsoft/autogen#3034",
            "cortexkit/anthropic-auth#50 (messages.N.cache_control)",
        ),
        statement="Messages and blocks have only the keys that the schema knows.",
        repair="scrub_fields",
        loss="the key",
        remedy="keep bookkeeping out of what is sent; write a speaker's name into the text",
        example={"messages": [user("hi") | {"name": "Ada"}]},
        find=_extra_keys,
    ),
    Rule(
        id="anthropic-tool-input-not-object",
        api=API,
        error="400 messages.61.content.0.tool_use.input: Input should be a valid dictionary",
        certainty="observed",
        sources=(
            "prism-php/prism#659",
            "anthropics/claude-code#6696",
        ),
        statement="The input of a tool call is an object.",
        repair="repair_arguments",
        loss="nothing; a text that is no JSON is sent inside an object",
        remedy="parse the arguments before the call is stored",
        example={"messages": [user("?"), assistant(CALL | {"input": "{}"}), user(RESULT)]},
        find=_inputs,
    ),
    Rule(
        id="anthropic-tool-name-empty",
        api=API,
        error="400 tool_use.name: String should have at least 1 character (text unverified)",
        certainty="reasoned",
        sources=("anthropic 2.10.0 types",),
        statement="The name of a tool call is a string with something in it.",
        repair="repair_arguments",
        loss="nothing when only one tool can be meant; else the call and its result become text",
        remedy="store the name together with the call",
        example={"messages": [user("?"), assistant(CALL | {"name": ""}), user(RESULT)]},
        find=_names,
    ),
    Rule(
        id="anthropic-tool-id-pattern",
        api=API,
        error=(
            "400 messages.2.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        ),
        certainty="observed",
        sources=(
            "maximhq/bifrost#5097",
            "HKUDS/nanobot#4356",
            "screenpipe/screenpipe#3252",
        ),
        statement="The ids of calls and results are letters, digits, underscores and hyphens.",
        repair="legalise_ids",
        loss="the original id",
        remedy="rewrite the id of a call and of its result alike",
        example={
            "messages": [
                user("?"),
                assistant(CALL | {"id": "call_1|fc_1"}),
                user(RESULT | {"tool_use_id": "call_1|fc_1"}),
            ]
        },
        find=_ids,
    ),
    Rule(
        id="anthropic-tool-result-error-nontext",
        api=API,
        error='400 all content must be type "text" if "is_error" is true',
        certainty="reported",
        sources=("vellum-ai/vellum-assistant#18387",),
        statement="A tool result that reports an error holds text only.",
        repair="fit_media",
        loss="the tie between the call and its image, which moves behind the result",
        remedy="put images behind the result, as blocks of the user message",
        example={
            "messages": [
                user("?"),
                assistant(CALL),
                user(
                    RESULT
                    | {
                        "is_error": True,
                        "content": [
                            text("it broke"),
                            {
                                "type": "image",
                                "source": {"type": "url", "url": "https://example.org/a.png"},
                            },
                        ],
                    }
                ),
            ]
        },
        find=_errors_with_media,
    ),
    Rule(
        id="anthropic-compaction-empty",
        api=API,
        error="400 (the SDK says: empty string content is not allowed)",
        certainty="documented",
        sources=("anthropic 2.10.0 beta_compaction_block_param.py",),
        statement="The content of a compaction block is null or has something in it.",
        repair="drop_empty",
        loss="nothing; the block says nothing",
        remedy="send compaction blocks back as they came",
        example={
            "messages": [
                user("hi"),
                assistant({"type": "compaction", "content": ""}, text("hello")),
                user("and?"),
            ]
        },
        find=_empty_compactions,
    ),
)
