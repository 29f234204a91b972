"""Pairing: every call is answered in the next turn, and every answer has its call before it."""

from collections.abc import Iterator
from itertools import pairwise

from convnorm.rules.anthropic_messages.common import API, CALL, RESULT, assistant, text, user
from convnorm.rules.read_anthropic import AnthropicScan, Block, Turn
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown

NOBODY = Turn("")


def describe(call: Block) -> str:
    """A call as a message names it."""
    name = call.raw.get("name")
    said = f"call {shown(call.id)}"
    return f"{said} ({name[:64]})" if isinstance(name, str) and name else said


def _answering(scan: AnthropicScan) -> Iterator[tuple[Turn, Turn]]:
    """Every user turn that has results, behind the turn it answers."""
    before = NOBODY
    for turn in scan.turns:
        if turn.role == "user" and turn.results:
            yield before if before.role == "assistant" else NOBODY, turn
        before = turn


def _unanswered(scan: AnthropicScan) -> Iterator[Finding]:
    results: dict[str, int] | None = None
    for turn, following in pairwise([*scan.turns, NOBODY]):
        if turn.role != "assistant" or not turn.calls:
            continue
        answers = following.results if following.role == "user" else ()
        answered = {result.id for result in answers}
        for name, call in turn.calls.items():
            if name in answered:
                continue
            if results is None:
                results = {one.id: one.position for one in scan.of_kind("tool_result") if one.id}
            astray = results.get(name)
            hint = "" if astray is None else f"; messages[{astray}] has its id and stands elsewhere"
            yield Finding(
                call.position,
                call.where,
                f"{describe(call)} has no tool_result in the next user turn{hint}",
            )


def _orphans(scan: AnthropicScan) -> Iterator[Finding]:
    for before, turn in _answering(scan):
        for result in turn.results:
            if result.id is not None and result.id not in before.calls:
                yield Finding(
                    result.position,
                    result.at("tool_use_id"),
                    f"the assistant turn before has no call {shown(result.id)}",
                )


def _second_results(scan: AnthropicScan) -> Iterator[Finding]:
    for before, turn in _answering(scan):
        seen: dict[str, Block] = {}
        for result in turn.results:
            if result.id is None or result.id not in before.calls:
                continue
            first = seen.setdefault(result.id, result)
            if first is not result:
                yield Finding(
                    result.position,
                    result.at("tool_use_id"),
                    f"messages[{first.position}]{first.where} already answers "
                    f"call {shown(result.id)}",
                )


def _late_results(scan: AnthropicScan) -> Iterator[Finding]:
    for before, turn in _answering(scan):
        other = False
        for block in turn.blocks:
            if block.kind != "tool_result":
                other = True
            elif other and block.id is not None and block.id in before.calls:
                yield Finding(
                    block.position,
                    block.where,
                    f"the result of call {shown(block.id)} stands behind other content of its turn",
                )


def _not_trailing(scan: AnthropicScan) -> Iterator[Finding]:
    for turn in scan.turns:
        if turn.role != "assistant" or not turn.calls:
            continue
        called = False
        for block in turn.blocks:
            if block.kind == "tool_use":
                called = True
            elif called:
                yield Finding(
                    block.position,
                    block.where,
                    f"a block of the type {shown(block.kind)} stands behind a tool call",
                    disputed=block.is_server,  # the server may run its own tools beside
                )


def _reused_ids(scan: AnthropicScan) -> Iterator[Finding]:
    seen: dict[str, Block] = {}
    for call in scan.of_kind("tool_use"):
        if call.id is None:
            continue
        first = seen.setdefault(call.id, call)
        if first is not call:
            yield Finding(
                call.position,
                call.at("id"),
                f"messages[{first.position}]{first.where} has the id {shown(call.id)}, too",
            )


def _astray(scan: AnthropicScan, kind: str, role: str) -> Iterator[Finding]:
    for block in scan.of_kind(kind):
        if scan.roles[block.position] == role and block.parent is None:
            yield Finding(
                block.position,
                block.where,
                f"the {role} message holds a {kind} block ({shown(block.id)})",
            )


def _assistant_results(scan: AnthropicScan) -> Iterator[Finding]:
    return _astray(scan, "tool_result", "assistant")


def _user_calls(scan: AnthropicScan) -> Iterator[Finding]:
    return _astray(scan, "tool_use", "user")


def _no_tools(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.tools_required and scan.fields and not scan.fields.get("tools"):
        blocks = scan.of_kind("tool_use", "tool_result")
        if blocks:
            yield Finding(-1, "tools", f"{len(blocks)} tool blocks, and no tool is defined")


PAIRING = (
    Rule(
        id="anthropic-tool-use-without-result",
        api=API,
        error=(
            "400 messages.1: `tool_use` ids were found without `tool_result` blocks "
            "immediately after: toolu_1. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        ),
        certainty="documented",
        sources=(
            "OpenHands/OpenHands#7512",
            "anthropics/claude-code#5989",
            "anthropics/anthropic-sdk-typescript#653 (staff)",
        ),
        statement="Every tool call is answered in the next user turn.",
        repair="repair_tool_pairs",
        loss="nothing; the model reads a marked text where no result exists",
        remedy="add the result to the next user message, or take the call out",
        example={"messages": [user("balance?"), assistant(CALL), user("and?")]},
        find=_unanswered,
    ),
    Rule(
        id="anthropic-tool-result-without-use",
        api=API,
        error=(
            "400 messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
            "toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in "
            "the previous message."
        ),
        certainty="observed",
        sources=(
            "router-for-me/CLIProxyAPI#497",
            "decocms/studio#1803",
            "langchain-ai/langgraphjs#1423",
        ),
        statement="Every tool result answers a call of the assistant turn before.",
        repair="repair_tool_pairs",
        loss="nothing when its call is elsewhere; else the result is sent as quoted text",
        remedy="put the call back before its result, or take the result out",
        example={"messages": [user("balance?"), assistant("a moment"), user(RESULT)]},
        find=_orphans,
    ),
    Rule(
        id="anthropic-tool-use-id-duplicate",
        api=API,
        error="400 messages.1.content.1: `tool_use` ids must be unique",
        certainty="observed",
        sources=(
            "BerriAI/litellm#23510",
            "anthropics/claude-code#21317",
            "trycua/cua#524",
        ),
        statement="No two tool calls of a request have the same id.",
        repair="repair_tool_pairs",
        loss="the original id of the later call",
        remedy="give every call an id of its own",
        example={
            "messages": [user("?"), assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)]
        },
        find=_reused_ids,
    ),
    Rule(
        id="anthropic-tool-result-duplicate",
        api=API,
        error=(
            "400 messages.52.content.1: each tool_use must have a single result. Found "
            "multiple `tool_result` blocks with id: toolu_1"
        ),
        certainty="observed",
        sources=(
            "router-for-me/CLIProxyAPI#4998",
            "RooCodeInc/Roo-Code#9248",
            "QwenLM/qwen-code#8163",
        ),
        statement="A tool call has one result.",
        repair="repair_tool_pairs",
        loss="the other result",
        remedy="keep one result of the call",
        example={
            "messages": [user("?"), assistant(CALL), user(RESULT, RESULT | {"content": "20 EUR"})]
        },
        find=_second_results,
    ),
    Rule(
        id="anthropic-tool-result-not-first",
        api=API,
        error=(
            "400 messages.1: `tool_use` ids were found without `tool_result` blocks "
            "immediately after: toolu_1"
        ),
        certainty="observed",
        sources=(
            "NousResearch/hermes-agent#65369",
            "QwenLM/qwen-code#8161 (live test, outcome not seen)",
            "contrary claim ogx-ai/ogx#6367",
        ),
        statement="The results of a turn's calls come first in the next user turn, and together.",
        repair="repair_tool_pairs",
        loss="the order of results and text",
        remedy="put the results before anything else",
        example={"messages": [user("?"), assistant(CALL), user(text("hurry"), RESULT)]},
        find=_late_results,
    ),
    Rule(
        id="anthropic-tool-use-not-trailing",
        api=API,
        error=(
            "400 messages.1: `tool_use` ids were found without `tool_result` blocks "
            "immediately after: toolu_1"
        ),
        certainty="observed",
        sources=(
            "anthropics/claude-code#15205",
            "can1357/oh-my-pi#4781",
            "vercel/ai#13013",
        ),
        statement="Behind a tool call a turn holds only more tool calls.",
        repair="repair_tool_pairs",
        loss="the order of calls and text",
        remedy="put text before the calls, or behind their results",
        example={"messages": [user("?"), assistant(CALL, text("a moment")), user(RESULT)]},
        find=_not_trailing,
    ),
    Rule(
        id="anthropic-tool-result-in-assistant",
        api=API,
        error="400 `tool_result` blocks can only be in `user` messages",
        certainty="reported",
        sources=("tghamm/Anthropic.SDK#128",),
        statement="Tool results stand in user messages.",
        repair="repair_tool_pairs",
        loss="nothing; the message is split",
        remedy="send the result in a user message behind the call",
        example={"messages": [user("?"), assistant(RESULT, text("10 EUR")), user("thanks")]},
        find=_assistant_results,
    ),
    Rule(
        id="anthropic-tool-use-in-user",
        api=API,
        error="400 `tool_use` blocks can only be in `assistant` messages",
        certainty="reported",
        sources=("microsoft/agent-framework#4328",),
        statement="Tool calls stand in assistant messages.",
        repair="repair_tool_pairs",
        loss="the boundary between the messages",
        remedy="send the call in an assistant message before its result",
        example={"messages": [user(text("?"), CALL)]},
        find=_user_calls,
    ),
    Rule(
        id="anthropic-tools-undefined",
        api=API,
        error="400 Requests which include `tool_use` or `tool_result` blocks must define tools.",
        level="legacy",
        certainty="documented",
        sources=(
            "anthropics/anthropic-sdk-python#494",
            "anthropics/anthropic-sdk-python#849 (staff)",
        ),
        statement="A history with tool blocks needs tools, on old gateways.",
        repair="repair_tool_pairs",
        loss="the structure: calls and results become text",
        remedy="define the tools and forbid their use with tool_choice none",
        example={"messages": [user("?"), assistant(CALL), user(RESULT)]},
        setting={"provider": "anthropic-legacy"},
        find=_no_tools,
    ),
)
