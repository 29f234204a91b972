"""Texts: none is empty, none is blank, and a text to be continued does not end in a space."""

from collections.abc import Iterator

from convnorm.rules.anthropic_messages.common import API, CALL, RESULT, assistant, text, user
from convnorm.rules.anthropic_messages.schema import plain_fields
from convnorm.rules.read_anthropic import AnthropicScan, is_directive
from convnorm.rules.rule import Finding, Rule
from convnorm.wire import LIST


def system_texts(scan: AnthropicScan) -> Iterator[tuple[str, str, bool]]:
    """The text blocks of `system`: the path, the text, and whether it has a cache marker."""
    system = scan.fields.get("system")
    for index, element in enumerate(system if isinstance(system, LIST) else ()):
        raw = plain_fields(element)
        said = raw.get("text")
        if isinstance(said, str) and raw.get("type") == "text":
            yield f"system[{index}].text", said, raw.get("cache_control") is not None


def _empty_messages(scan: AnthropicScan) -> Iterator[Finding]:
    last = len(scan.views) - 1
    for at in scan.empty:
        role = scan.roles[at]
        if (at == last and role == "assistant") or (
            role == "system" and is_directive(scan.views[at] or {})
        ):
            continue
        yield Finding(at, ".content", "the message has no content")


def _empty_texts(scan: AnthropicScan) -> Iterator[Finding]:
    for block in scan.blank:
        if not block.raw.get("text"):
            yield Finding(block.position, block.at("text"), "the text is empty")
    for path, said, _ in system_texts(scan):
        if not said:
            yield Finding(-1, path, "the text is empty")


def _blank_texts(scan: AnthropicScan) -> Iterator[Finding]:
    for block in scan.blank:
        if block.raw.get("text"):
            # Beside a text that says something a blank one was measured to pass.
            tolerated = block.parent is not None or block.position in scan.speaking
            yield Finding(
                block.position,
                block.at("text"),
                "the text has no visible character",
                disputed=tolerated,
            )
    for path, said, _ in system_texts(scan):
        if said and said.isspace():
            yield Finding(-1, path, "the text has no visible character", disputed=True)


def _trailing_space(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.last is None or not scan.turns[-1].blocks:
        return
    block = scan.turns[-1].blocks[-1]
    said = block.raw.get("text") if block.kind == "text" else None
    if block.position == len(scan.views) - 1 and isinstance(said, str) and said[-1:].isspace():
        yield Finding(
            block.position, block.at("text"), "the last text of the list ends in whitespace"
        )


TEXTS = (
    Rule(
        id="anthropic-message-content-empty",
        api=API,
        error=(
            "400 messages.0: all messages must have non-empty content except for the optional "
            "final assistant message"
        ),
        certainty="observed",
        sources=(
            "anthropics/claude-code#3196",
            "corespeed-io/zypher-agent#122",
            "dspinellis/ai-cli-lib#16",
        ),
        statement="A message has content, unless it is the assistant's and the last.",
        repair="drop_empty",
        loss="nothing; the message says nothing",
        remedy="leave the message out",
        example={"messages": [user("hi"), assistant(), user("hello?")]},
        find=_empty_messages,
    ),
    Rule(
        id="anthropic-text-block-empty",
        api=API,
        error="400 messages: text content blocks must be non-empty",
        certainty="observed",
        sources=(
            "anthropics/anthropic-sdk-python#461",
            "miurla/morphic#83",
            "aliasrobotics/cai#182",
        ),
        statement="A text block has a text.",
        repair="drop_empty",
        loss="nothing; the block says nothing",
        remedy="leave empty text blocks out",
        example={"messages": [user("?"), assistant(text(""), CALL), user(RESULT)]},
        find=_empty_texts,
    ),
    Rule(
        id="anthropic-text-block-whitespace",
        api=API,
        error="400 messages: text content blocks must contain non-whitespace text",
        certainty="observed",
        sources=(
            "anthropics/claude-code#23440",
            "continuedev/continue#9605",
            "NousResearch/hermes-agent#67978",
            "LibreChat-AI/agents#124 (beside a visible text it passes)",
        ),
        statement="A text block has a character that is no whitespace.",
        repair="drop_empty",
        loss="whitespace",
        remedy="leave blank text blocks out; a space is no placeholder",
        example={"messages": [user("?"), assistant(text("\n"), CALL), user(RESULT)]},
        find=_blank_texts,
    ),
    Rule(
        id="anthropic-final-assistant-trailing-whitespace",
        api=API,
        error="400 messages: final assistant content cannot end with trailing whitespace",
        certainty="observed",
        sources=(
            "langchain-ai/langchain#35072",
            "aaif-goose/goose#5967",
            "crewAIInc/crewAI#4538",
        ),
        statement="An assistant's text at the end of the list does not end in whitespace.",
        repair="drop_empty",
        loss="the whitespace at the end",
        remedy="strip the end of the text that the model is to continue",
        example={
            "model": "claude-haiku-4-5",
            "messages": [user("sun?"), assistant("The answer is ")],
        },
        find=_trailing_space,
    ),
)
