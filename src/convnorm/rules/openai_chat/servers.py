"""What single compatible servers ask of contents and keys."""

from collections.abc import Iterator

from convnorm.rules.openai_chat.common import (
    API,
    all_messages,
    calling,
    messages,
    result,
    speaks_otherwise,
    user,
)
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import Scan, key_name, shown
from convnorm.wire import LIST


def _unknown_keys(scan: Scan) -> Iterator[Finding]:
    known = scan.target.chat.message_keys
    if known is None:
        return
    unsure = scan.target.chat.disputed_keys
    for at, message in all_messages(scan):
        for key in message:
            if key not in known:
                why = f"the message has the key {shown(key)}"
                yield Finding(at, f".{key_name(key)}", why, disputed=key in unsure)


def _listed_contents(scan: Scan) -> Iterator[Finding]:
    roles = scan.target.chat.text_only
    for at, message in messages(scan, scan.no_text) if roles else ():
        role, content = message.get("role"), message.get("content")
        if isinstance(content, LIST) and isinstance(role, str) and role in roles:
            why = f"the content of a message of role {role} is a list"
            yield Finding(at, ".content", why, disputed=role != "assistant")


def _null_contents(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.null_content
    if verdict == "accepted":
        return
    for at, message in messages(scan, scan.no_text):
        if "content" in message and message.get("content") is None:
            yield Finding(at, ".content", "the content is null", disputed=verdict == "disputed")


def _no_contents(scan: Scan) -> Iterator[Finding]:
    if scan.target.chat.content_required:
        for at, message in messages(scan, scan.no_text):
            content = message.get("content")
            if content is None or (isinstance(content, LIST) and not content):
                # What says nothing can go; what calls tools is given an empty text.
                kept = content is None and speaks_otherwise(message)
                repair = "scrub_fields" if kept else AS_THE_RULE
                yield Finding(at, ".content", "the message has no content at all", repair=repair)


SERVERS = (
    Rule(
        id="groq-unknown-field",
        api=API,
        statement="A message has no key beyond the schema, not even one that is null.",
        error=(
            "400 'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' "
            ": property 'reasoning_content' is unsupported)]"
        ),
        level="model",
        certainty="observed",
        sources=(
            "AstrBotDevs/AstrBot#5946",
            "ed-donner/llm_engineering#1130",
            "tashfeenahmed/freellmapi#1070",
        ),
        repair="scrub_fields",
        loss="what stood under the key, such as the reasoning of another model",
        remedy="leave the key out",
        example={
            "messages": [user(), {"role": "assistant", "content": "yes", "reasoning_content": "t"}]
        },
        setting={"provider": "groq"},
        find=_unknown_keys,
    ),
    Rule(
        id="groq-assistant-content-string",
        api=API,
        statement=(
            "The content of an assistant message is one string, and perhaps that of system and "
            "tool messages; Groq's types have had lists of parts since July 2025."
        ),
        error=(
            "400 'messages.4' : for 'role:assistant' the following must be satisfied"
            "[('messages.4.content' : value must be a string)]"
        ),
        level="model",
        certainty="observed",
        sources=(
            "tidyverse/ellmer#162",
            "CherryHQ/cherry-studio#3307 (tool)",
            "OpenHands/OpenHands#4643 (system)",
            "groq/groq-python @c7d9156 (types with parts)",
        ),
        repair="scrub_fields",
        loss="where one part ends and the next begins",
        remedy="join the text parts",
        example={
            "messages": [
                user(),
                {"role": "assistant", "content": [{"type": "text", "text": "yes"}]},
            ]
        },
        setting={"provider": "groq"},
        find=_listed_contents,
    ),
    Rule(
        id="ollama-content-nil",
        api=API,
        statement="Content is not null, even on a message that calls tools; an empty text will do.",
        error="400 invalid message content type: <nil>",
        level="model",
        certainty="observed",
        sources=("pydantic/pydantic-ai#5206", "SAIL-Research-Lab/cheetahclaws#72"),
        repair="scrub_fields",
        loss="nothing",
        remedy="send an empty string, or leave the key out beside calls",
        example={"messages": [user(), calling(content=None), result()]},
        setting={"provider": "ollama"},
        find=_null_contents,
    ),
    Rule(
        id="xai-content-required",
        api=API,
        statement="Every message has a content: a text, which may be empty, or at least one part.",
        error="400 Invalid request content: Each message must have at least one content element.",
        level="model",
        certainty="observed",
        sources=(
            "AstrBotDevs/AstrBot#6447",
            "langchain-ai/langchain#34140",
            "langbot-app/LangBot#1205",
        ),
        repair="drop_empty",
        loss="nothing; a reply that says nothing is dropped",
        remedy="send an empty string beside calls, and leave out a message that only thinks",
        example={"messages": [user(), calling(content=None), result()]},
        setting={"provider": "xai"},
        find=_no_contents,
    ),
)
