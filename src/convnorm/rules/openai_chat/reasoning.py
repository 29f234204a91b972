"""Reasoning that a server wants back."""

from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.rules.openai_chat.common import (
    API,
    all_messages,
    calling,
    messages,
    result,
    user,
)
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Scan, shown
from convnorm.wire import LIST, fields

FIELD = "reasoning_content"


def thinking(scan: Scan) -> bool:
    """Whether the model thinks: as the request says, else as the model does by itself."""
    for body in (scan.fields, fields(scan.fields.get("extra_body")) or {}):
        kind = (fields(body.get("thinking")) or {}).get("type")
        if kind == "disabled" or body.get("reasoning_effort") == "none":
            return False
        if kind == "enabled":
            return True
    return scan.target.chat.thinks


def _of_tool_turns(scan: Scan) -> Iterator[Finding]:
    """Every reply between two user messages, if one of them calls a tool.

    Of the others the documents say that they need none, and users saw them refused without.
    """
    asked = scan.target.chat.reasoning_returned
    if asked not in ("tool turns", "last tool turn") or not thinking(scan):
        return
    turns: list[tuple[bool, list[Finding]]] = []
    tools, lacking = False, list[Finding]()
    for at, message in all_messages(scan):
        match message.get("role"):
            case "user":
                turns.append((tools, lacking))
                tools, lacking = False, []
            case "assistant":
                tools = tools or bool(message.get("tool_calls"))
                lacking += _lacking(at, message)
    for called, each in turns:
        for one in each:
            if asked == "tool turns":
                yield one if called else _unsure(one)
            elif called:
                yield _unsure(one)
    if tools:
        yield from lacking
    elif asked == "tool turns":
        yield from map(_unsure, lacking)


def _lacking(at: int, message: Mapping[str, Any]) -> Iterator[Finding]:
    given = message.get(FIELD)
    if given is None:
        yield Finding(at, f".{FIELD}", "the reply has no reasoning_content")
    elif given == "":  # some send it and pass
        why = "the reasoning_content of the reply is empty"
        yield Finding(at, f".{FIELD}", why, disputed=True)


def _of_calls(scan: Scan) -> Iterator[Finding]:
    if scan.target.chat.reasoning_returned != "calls" or not thinking(scan):
        return
    for at, message in _calling(scan):
        if message.get(FIELD) is None:
            yield Finding(at, f".{FIELD}", "a message that calls tools has no reasoning_content")


def _unsigned_calls(scan: Scan) -> Iterator[Finding]:
    """Calls without any details; only those behind the last user message are surely looked at."""
    if not scan.target.chat.signed_calls:
        return
    last = -1
    for at, message in all_messages(scan):
        if message.get("role") == "user":
            last = at
    for at, message in _calling(scan):
        if not message.get("reasoning_details"):
            why = "a message that calls tools has no reasoning_details with its signature"
            yield Finding(at, ".reasoning_details", why, disputed=at < last)


def _repeated_details(scan: Scan) -> Iterator[Finding]:
    if not scan.target.chat.unique_reasoning_ids:
        return
    first: dict[str, int] = {}
    for at, message in all_messages(scan):
        details = message.get("reasoning_details")
        for index, detail in enumerate(details if isinstance(details, LIST) else ()):
            own = (fields(detail) or {}).get("id")
            if isinstance(own, str) and own and (before := first.setdefault(own, at)) != at:
                why = f"messages[{before}] has the reasoning {shown(own)} too"
                yield Finding(at, f".reasoning_details[{index}].id", why)


def _calling(scan: Scan) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for at, message in messages(scan, scan.with_calls):
        if message.get("role") == "assistant" and message.get("tool_calls"):
            yield at, message


def _unsure(one: Finding) -> Finding:
    return Finding(one.position, one.where, one.message, disputed=True)


_DETAILS = [{"type": "reasoning.encrypted", "id": "rs_1", "data": "AAAA"}]

REASONING = (
    Rule(
        id="deepseek-reasoning-content-missing",
        api=API,
        retroactive=True,
        statement=(
            "While the model thinks, every assistant message of a turn that calls tools carries "
            "its reasoning_content, the final answer too."
        ),
        error=(
            "400 The `reasoning_content` in the thinking mode must be passed back to the API. / "
            "Missing `reasoning_content` field in the assistant message at message index 2."
        ),
        level="model",
        certainty="observed",
        sources=(
            "openai/openai-agents-python#2155",
            "openclaw/openclaw#73417",
            "NousResearch/hermes-agent#15353",
            "litellm llms/deepseek/chat/transformation.py",
            "api-docs.deepseek.com/guides/thinking_mode (ignored where no tool was called)",
            "Hmbown/Codewhale v0.5.0 (wanted on every reply)",
        ),
        repair="repair_reasoning",
        loss="nothing where the text is known; else a blank stands for the reasoning",
        remedy="keep reasoning_content with each reply, or turn thinking off",
        example={"messages": [user(), calling(), result()]},
        setting={"provider": "deepseek", "model": "deepseek-v4-pro"},
        find=_of_tool_turns,
    ),
    Rule(
        id="moonshot-reasoning-content-missing",
        api=API,
        statement=(
            "While the model thinks, an assistant message that calls tools carries its "
            "reasoning_content."
        ),
        error=(
            "400 thinking is enabled but reasoning_content is missing in assistant tool call "
            "message at index 2"
        ),
        level="model",
        certainty="observed",
        sources=(
            "mastra-ai/mastra#12592",
            "continuedev/continue#11600",
            "continuedev/continue#11806",
        ),
        repair="repair_reasoning",
        loss="nothing where the text is known; else an empty text stands for the reasoning",
        remedy="keep reasoning_content with each reply, or turn thinking off",
        example={"messages": [user(), calling(), result()]},
        setting={"provider": "moonshot", "model": "kimi-k2.5"},
        find=_of_calls,
    ),
    Rule(
        id="openrouter-gemini-thought-signature",
        api=API,
        statement="A message by which Gemini 3 calls tools carries its reasoning_details.",
        error=(
            "400 Function call is missing a thought_signature in functionCall parts. This is "
            "required for tools to work correctly"
        ),
        level="model",
        certainty="observed",
        sources=(
            "earendil-works/pi#260",
            "UKGovernmentBEIS/inspect_ai#4979",
            "OpenRouterTeam/ai-sdk-provider#491",
        ),
        repair="repair_reasoning",
        loss="nothing where the details are known; else call and result are sent as text",
        remedy="keep reasoning_details with each reply, unchanged",
        example={"messages": [user(), calling(), result()]},
        setting={"provider": "openrouter", "model": "google/gemini-3-pro-preview"},
        find=_unsigned_calls,
    ),
    Rule(
        id="openrouter-duplicate-reasoning-id",
        api=API,
        statement="An entry of reasoning_details stands in one message only, by its id.",
        error=(
            "400 Duplicate item found with id rs_x. Remove duplicate items from your input and try "
            "again."
        ),
        level="model",
        certainty="observed",
        sources=("OpenRouterTeam/ai-sdk-provider#254",),
        repair="repair_reasoning",
        loss="nothing; the first message keeps it",
        remedy="keep each entry on the message it came with",
        example={
            "messages": [
                calling(reasoning_details=_DETAILS),
                result(),
                {"role": "assistant", "content": "10 EUR.", "reasoning_details": _DETAILS},
            ]
        },
        setting={"provider": "openrouter", "model": "openai/gpt-5-codex"},
        find=_repeated_details,
    ),
)
