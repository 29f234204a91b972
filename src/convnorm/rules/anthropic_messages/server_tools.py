"""Server tools: what the server called and answered itself goes back as a pair."""

from collections.abc import Iterator

from convnorm.rules.anthropic_messages.common import API, SEARCH, assistant, text, user
from convnorm.rules.anthropic_messages.pairing import describe
from convnorm.rules.anthropic_messages.schema import plain_fields
from convnorm.rules.read_anthropic import SERVER_CALLS, AnthropicScan, Block
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown
from convnorm.wire import LIST

ADVICE = {"type": "advisor_result", "text": "use B"}


def _unanswered(scan: AnthropicScan) -> Iterator[Finding]:
    """A call waits through turns that only carry client results: the server goes on behind."""
    if not scan.server:
        return
    waiting: dict[str, Block] = {}
    for turn in scan.turns:
        for block in turn.blocks:
            if block.is_server and (name := block.id) is not None:
                if block.kind in SERVER_CALLS:
                    waiting[name] = block
                else:
                    waiting.pop(name, None)
        said = any(block.kind != "tool_result" and not block.is_server for block in turn.blocks)
        if turn.role == "user" and said:
            for call in waiting.values():
                yield Finding(call.position, call.where, f"{describe(call)} has no result block")
            waiting.clear()


def _orphans(scan: AnthropicScan) -> Iterator[Finding]:
    called: set[str] = set()
    for block in scan.server:
        if block.id is None or block.parent is not None:
            continue
        if block.kind in SERVER_CALLS:
            called.add(block.id)
        elif block.id not in called:
            yield Finding(
                block.position,
                block.at("tool_use_id"),
                f"no call of a server tool before has the id {shown(block.id)}",
            )


def _no_advisor(scan: AnthropicScan) -> Iterator[Finding]:
    advice = scan.of_kind("advisor_tool_result")
    if not advice or not scan.fields or scan.of_kind("tool_addition"):
        return
    tools = scan.fields.get("tools")
    if tools is not None and not isinstance(tools, LIST):
        return
    kinds = [plain_fields(tool).get("type") for tool in tools or ()]
    if any(isinstance(kind, str) and kind.startswith("advisor") for kind in kinds):
        return
    for block in advice:
        yield Finding(block.position, block.where, "the advisor is not among the tools")


SERVER_TOOLS = (
    Rule(
        id="anthropic-server-tool-use-without-result",
        api=API,
        error=(
            "400 messages.1: web_search tool use with id srvtoolu_... was found without a "
            "corresponding web_search_tool_result block"
        ),
        certainty="observed",
        sources=(
            "BerriAI/litellm#33546",
            "LibreChat-AI/agents#216",
            "pydantic-ai 2.66 _message_passes.py",
        ),
        statement="A call of a server tool has its result block, unless the server is still at it.",
        repair="repair_tool_pairs",
        loss="the call",
        remedy="keep the blocks of server tools as they came, or take the call out",
        example={"messages": [user("rates?"), assistant(SEARCH), user("and?")]},
        find=_unanswered,
    ),
    Rule(
        id="anthropic-server-tool-result-without-use",
        api=API,
        error=(
            "400 messages.7.content.0: unexpected `tool_use_id` found in `advisor_tool_result` "
            "blocks: toolu_1. Each `advisor_tool_result` block must have a corresponding "
            "`server_tool_use` block before it."
        ),
        certainty="observed",
        sources=(
            "anthropics/claude-code#64383",
            "anthropics/claude-code#80439",
            "anthropics/claude-code#84783",
        ),
        statement="A server tool's result has its call before it.",
        repair="repair_tool_pairs",
        loss="the result",
        remedy="keep the blocks of server tools as they came, or take the result out",
        example={
            "messages": [
                user("rates?"),
                assistant(
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    text("none"),
                ),
                user("and?"),
            ]
        },
        find=_orphans,
    ),
    Rule(
        id="anthropic-advisor-tool-missing",
        api=API,
        error="400 (no text is known)",
        level="model",
        certainty="documented",
        sources=("anthropics/skills tool-use-concepts.md",),
        statement="Advice in the history needs the advisor among the tools.",
        repair="repair_tool_pairs",
        loss="the advice",
        remedy="offer the advisor tool, or take its blocks out",
        example={
            "messages": [
                user("a or b?"),
                assistant(
                    SEARCH | {"name": "advisor"},
                    {
                        "type": "advisor_tool_result",
                        "tool_use_id": "srvtoolu_1",
                        "content": ADVICE,
                    },
                    text("b"),
                ),
                user("go"),
            ]
        },
        find=_no_advisor,
    ),
)
