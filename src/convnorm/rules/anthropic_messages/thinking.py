"""Thinking: signed blocks go back as they came, to the model that made them, where it wants them.

Nobody but the server can verify a signature. What a request cannot show, the context can: which
messages were edited since, and which model made them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.rules.anthropic_messages.common import (
    API,
    CALL,
    RESULT,
    THOUGHT,
    assistant,
    text,
    user,
)
from convnorm.rules.anthropic_messages.schema import plain_fields
from convnorm.rules.read_anthropic import THINKING, AnthropicScan, Block, Turn
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown, usable

PROOFS = {"thinking": "signature", "redacted_thinking": "data"}
"""By block type: the key that holds the server's proof."""
SUFFIX = re.compile(r"-(?:\d{6,8}|v\d|latest)|[:@\[]")
"""Where a model's name ends and its date, version or platform begins."""


def _config(scan: AnthropicScan) -> Mapping[str, Any]:
    return plain_fields(scan.fields.get("thinking"))


def _thoughts(scan: AnthropicScan) -> list[Block]:
    return scan.of_kind(*PROOFS)


def _signed(scan: AnthropicScan) -> Iterator[Block]:
    """The thinking blocks whose proof the server will verify."""
    if scan.profile.signed_thinking:
        for block in _thoughts(scan):
            if usable(block.raw.get(PROOFS[block.kind])):
                yield block


def _starts_with_thinking(turn: Turn) -> bool:
    return bool(turn.blocks) and turn.blocks[0].kind in THINKING


def _first_required(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.profile.thinking_first or _config(scan).get("type") != "enabled":
        return
    turns = [turn for turn in scan.turns if turn.role]
    disputed = False
    if turns and turns[-1].role == "user":
        answers = turns.pop()
        if not answers.results:
            return
        disputed = not answers.only_results  # new words may have closed the turn
    elif turns and turns[-1].blocks:
        disputed = turns[-1].blocks[-1].is_server  # paused, not prefilled
    loop: list[Turn] = []
    while turns and turns[-1].role == "assistant":
        loop.append(turns.pop())
        if turns and turns[-1].only_results:
            turns.pop()
    if loop and loop[-1].blocks and not _starts_with_thinking(loop[-1]):
        block = loop[-1].blocks[0]
        yield Finding(
            block.position,
            block.at("type"),
            f"the open turn starts with {shown(block.kind)}, and thinking is enabled",
            disputed=disputed or any(_starts_with_thinking(turn) for turn in loop),
        )


def _unsigned(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.profile.signed_thinking:
        return
    for block in _thoughts(scan):
        key = PROOFS[block.kind]
        if usable(proof := block.raw.get(key)) is None:
            yield Finding(
                block.position,
                block.at(key),
                f"the {key} of a {block.kind} block is {shown(proof)}",
            )


def _edited(scan: AnthropicScan, *, latest: bool) -> Iterator[Block]:
    """Signed blocks of edited messages, in the last assistant turn or in those before."""
    edited = scan.context.provenance.edited
    if not edited:
        return
    last = next((turn for turn in reversed(scan.turns) if turn.role == "assistant"), None)
    final = {block.position for block in last.blocks} if last else set()
    for block in _signed(scan):
        if block.position in edited and (block.position in final) is latest:
            yield block


def _invalid(scan: AnthropicScan) -> Iterator[Finding]:
    for block in _edited(scan, latest=False):
        yield Finding(block.position, block.where, "the message was edited since it was signed")


def _modified(scan: AnthropicScan) -> Iterator[Finding]:
    for block in _edited(scan, latest=True):
        yield Finding(
            block.position, block.where, "the latest assistant message was edited since it came"
        )


def _foreign(scan: AnthropicScan) -> Iterator[Finding]:
    made = scan.context.provenance.models
    if not made or scan.model is None:
        return
    own = _plain_name(scan.model)
    for block in _signed(scan):
        maker = made.get(block.position)
        if maker and _plain_name(maker) != own:
            yield Finding(
                block.position,
                block.where,
                f"{shown(maker)} made this thinking, and {shown(scan.model)} would get it",
            )


def _plain_name(model: str) -> str:
    """A model's name without the platform before it and the date behind it."""
    name = model.lower().replace(".", "-")
    start = name.find("claude")
    return SUFFIX.split(name[max(start, 0) :], maxsplit=1)[0].removesuffix("-0")


def _bound(scan: AnthropicScan) -> Iterator[Finding]:
    edited = scan.context.provenance.edited
    if not edited or not scan.profile.binds_thinking:
        return
    binding = plain_fields(_config(scan).get("block_binding"))
    wish = binding.get("prefix_mismatch_behavior")
    if wish == "drop_block":
        return
    first = min((at for at in edited if at >= 0), default=len(scan.views))
    for block in _signed(scan):
        if block.position > first:
            yield Finding(
                block.position,
                block.where,
                f"messages[{first}] before this thinking was edited since",
                disputed=wish != "error",  # older accounts are checked only if they ask for it
            )


def _final_thinking(scan: AnthropicScan) -> Iterator[Finding]:
    for turn in scan.turns:
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind in THINKING:
            block = turn.blocks[-1]
            yield Finding(
                block.position,
                block.where,
                "the turn ends with thinking",
                disputed=block.kind != "thinking",
            )


def _disabled_final(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.last is None or not scan.fields:
        return
    mode = _config(scan).get("type")
    if mode != "disabled" and scan.fields.get("thinking") is not None:
        return
    for block in scan.turns[-1].blocks:
        if block.kind in THINKING:
            yield Finding(
                block.position,
                block.where,
                "the last message has thinking, and the request has it switched off",
                disputed=mode != "disabled",  # without the key some models think
            )


def _must_return(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.profile.thinking_must_return:
        return
    if _config(scan).get("type") == "disabled":
        return
    for turn in scan.turns:
        if turn.role == "assistant" and turn.calls:
            if any(block.kind in THINKING for block in turn.blocks):
                continue
            call = next(iter(turn.calls.values()))
            yield Finding(
                call.position, call.where, f"call {shown(call.id)} has no thinking in its message"
            )


MANUAL = {"type": "enabled", "budget_tokens": 2048}

THINKING_RULES = (
    Rule(
        id="anthropic-thinking-first-required",
        api=API,
        error=(
            "400 messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but "
            "found `tool_use`. When `thinking` is enabled, a final `assistant` message must "
            "start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks)."
        ),
        level="model",
        certainty="documented",
        sources=(
            "openai/openai-agents-python#1704",
            "pydantic/pydantic-ai#2075",
            "run-llama/llama_index#20072",
        ),
        statement="With manual thinking the assistant turn in progress starts with thinking.",
        repair="repair_reasoning",
        loss="the reasoning of this step: thinking is switched off for the call",
        remedy="send the thinking block back, or switch thinking off for this call",
        example={
            "model": "claude-sonnet-4-5",
            "thinking": MANUAL,
            "messages": [user("?"), assistant(CALL), user(RESULT)],
        },
        find=_first_required,
    ),
    Rule(
        id="anthropic-thinking-signature-missing",
        api=API,
        error="400 messages.1.content.0.thinking.signature: Field required",
        certainty="observed",
        sources=(
            "openclaw/openclaw#84430",
            "langchain-ai/langchain#29971",
            "weave-os/router#860",
        ),
        statement="A thinking block has its signature, a redacted one its data.",
        repair="repair_reasoning",
        loss="that reasoning",
        remedy="keep the signature with the thinking, or drop the block in finished turns",
        example={
            "messages": [
                user("?"),
                assistant({"type": "thinking", "thinking": "hm"}, text("10 EUR")),
                user("and?"),
            ]
        },
        find=_unsigned,
    ),
    Rule(
        id="anthropic-thinking-signature-invalid",
        api=API,
        error="400 messages.7.content.0: Invalid `signature` in `thinking` block",
        certainty="observed",
        sources=(
            "openclaw/openclaw#94534",
            "kaitranntt/ccs#415",
            "NousResearch/hermes-agent#17890",
        ),
        statement="The signature of a thinking block fits its text.",
        repair="drop_stale_proofs",
        loss="that reasoning",
        remedy="never edit thinking; drop the block in finished turns",
        example={
            "messages": [
                user("?"),
                assistant(THOUGHT, text("10 EUR")),
                user("and?"),
                assistant("20 EUR"),
                user("and?"),
            ]
        },
        setting={"provenance": {"edited": [1]}},
        find=_invalid,
    ),
    Rule(
        id="anthropic-thinking-foreign-signature",
        api=API,
        error="400 Invalid `signature` in `thinking` block",
        level="model",
        certainty="observed",
        sources=(
            "openclaw/openclaw#107221",
            "vybestack/llxprt-code#2335",
            "anthropics/skills model-migration.md (contrary)",
        ),
        statement="Thinking goes back only to the model that made it.",
        repair="drop_stale_proofs",
        loss="that reasoning",
        remedy="drop the thinking of other models in finished turns",
        example={
            "model": "claude-opus-4-8",
            "messages": [user("?"), assistant(THOUGHT, text("10 EUR")), user("and?")],
        },
        setting={"provenance": {"models": {1: "claude-fable-5"}}},
        find=_foreign,
    ),
    Rule(
        id="anthropic-thinking-modified",
        api=API,
        error=(
            "400 messages.3.content.11: `thinking` or `redacted_thinking` blocks in the latest "
            "assistant message cannot be modified. These blocks must remain as they were in "
            "the original response."
        ),
        certainty="documented",
        sources=(
            "anthropics/claude-code#63203",
            "anthropics/claude-code#26684",
            "anomalyco/opencode#31188",
        ),
        statement="The latest assistant message has all its thinking, unchanged and in order.",
        repair="repair_reasoning",
        loss="the thinking of that message",
        remedy="send the message as it came, or drop all its thinking and switch thinking off",
        example={"messages": [user("?"), assistant(THOUGHT, CALL), user(RESULT)]},
        setting={"provenance": {"edited": [1]}},
        find=_modified,
    ),
    Rule(
        id="anthropic-thinking-prefix-binding",
        api=API,
        error="400 The block is bound to a different conversation",
        level="model",
        certainty="documented",
        sources=(
            "pydantic-ai 2.66 _thinking_binding.py",
            "strands-agents 1.62 _thinking_binding.py",
            "earendil-works/pi#9391",
            "anthropic 2.10.0 beta_thinking_block_binding_param.py",
        ),
        statement="On some models thinking is valid only behind the very messages it came behind.",
        repair="drop_stale_proofs",
        loss="that reasoning",
        remedy="do not edit earlier messages, or set prefix_mismatch_behavior to drop_block",
        retroactive=True,
        example={
            "model": "claude-opus-5-5",
            "messages": [user("?"), assistant(THOUGHT, text("10 EUR")), user("and?")],
        },
        setting={"provenance": {"edited": [0]}},
        find=_bound,
    ),
    Rule(
        id="anthropic-thinking-final-block",
        api=API,
        error="400 messages.1: The final block in an assistant message cannot be `thinking`.",
        certainty="observed",
        sources=(
            "tailcallhq/forgecode#2107",
            "NousResearch/hermes-agent#13010",
        ),
        statement="An assistant turn does not end with thinking.",
        repair="repair_reasoning",
        loss="that reasoning",
        remedy="drop a message that is thinking only",
        example={"messages": [user("?"), assistant(THOUGHT), user("hello?")]},
        find=_final_thinking,
    ),
    Rule(
        id="anthropic-thinking-disabled-final",
        api=API,
        error=(
            "400 messages.1.content.0: When thinking is disabled, an `assistant` message in "
            "the final position cannot contain `thinking`. To use thinking blocks, enable "
            "`thinking` in your request."
        ),
        level="model",
        certainty="reported",
        sources=("tailcallhq/forgecode#1853",),
        statement="With thinking switched off an assistant message at the end holds no thinking.",
        repair="repair_reasoning",
        loss="that reasoning",
        remedy="drop the thinking of the last message, or enable thinking",
        example={
            "model": "claude-haiku-4-5",
            "thinking": {"type": "disabled"},
            "messages": [user("?"), assistant(THOUGHT, text("It is"))],
        },
        find=_disabled_final,
    ),
    Rule(
        id="deepseek-thinking-must-return",
        api=API,
        error="400 The `content[].thinking` in the thinking mode must be passed back to the API.",
        level="model",
        certainty="observed",
        sources=(
            "decolua/9router#2397",
            "SuperJJ007/CSSwitch#72",
            "omnimind-ai/OmniBot#307",
        ),
        statement="DeepSeek wants the thinking back with every message that calls a tool.",
        repair="repair_reasoning",
        loss="nothing when the thinking is stored; else the reasoning of this call",
        remedy="send the thinking block back, or switch thinking off",
        example={"model": "deepseek-chat", "messages": [user("?"), assistant(CALL), user(RESULT)]},
        setting={"provider": "deepseek"},
        find=_must_return,
    ),
)
