"""Who may speak."""

from collections.abc import Iterator

from convnorm.rules.openai_chat.common import API, TYPES, messages, user
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import Scan, shown

FOREIGN = frozenset({"human", "ai", "model", "bot", "chatbot", "gpt"})
"""Roles of other APIs and libraries that say who spoke, in small letters."""
SPEAKERS = frozenset({"system", "developer", "user", "assistant"})


def says_who(role: object) -> bool:
    """Whether a role says who spoke, though this API does not have it."""
    return isinstance(role, str) and role.casefold() in FOREIGN | SPEAKERS


def _odd_roles(scan: Scan) -> Iterator[Finding]:
    for at, message in messages(scan, scan.odd_roles):
        role = message.get("role")
        repair = AS_THE_RULE if says_who(role) else None  # only the user knows who spoke
        yield Finding(at, ".role", f"the role is {shown(role)}", repair=repair)


def _system_roles(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.system_role
    if verdict != "accepted":
        for at, message in messages(scan, scan.instructing):
            if message.get("role") == "system":
                why = "this model takes no system message"
                yield Finding(at, ".role", why, disputed=verdict == "disputed")


def _developer_roles(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.developer_role
    if verdict != "accepted":
        for at, message in messages(scan, scan.instructing):
            if message.get("role") == "developer":
                why = "this server or model takes no developer message"
                yield Finding(at, ".role", why, disputed=verdict == "disputed")


ROLES = (
    Rule(
        id="chat-role-invalid",
        api=API,
        statement=(
            "The role of a message is system, developer, user, assistant, tool or function."
        ),
        error=(
            "400 Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', "
            "'function', 'tool', and 'developer'. (wording not verified)"
        ),
        certainty="documented",
        # Where other roles come from: langchain's message types, Cohere's old chat history,
        # Gemini's contents and ShareGPT's files.
        sources=(
            TYPES,
            "langchain_core.messages (human, ai)",
            "docs.cohere.com/v1/reference/chat (USER, CHATBOT, SYSTEM)",
            "ai.google.dev/api/caching#Content (model)",
            "lm-sys/FastChat (ShareGPT: human, gpt)",
        ),
        repair="repair_roles",
        loss="nothing; a role that no API is known for is not repaired",
        remedy="use a role that the API has: only you know who spoke",
        example={"messages": [{"role": "model", "content": "hello"}]},
        find=_odd_roles,
    ),
    Rule(
        id="chat-system-role-unsupported",
        api=API,
        statement="o1-mini and o1-preview take no system message.",
        error=(
            "400 Unsupported value: 'messages[0].role' does not support 'system' with this model."
        ),
        level="model",
        certainty="observed",
        sources=("microsoft/agent-framework#1077", "janhq/jan#4392"),
        repair="repair_roles",
        loss="the weight of the instructions: they are sent as a user message",
        remedy="send the instructions as a user message",
        example={"messages": [{"role": "system", "content": "Be brief."}, user("hello")]},
        setting={"model": "o1-mini"},
        find=_system_roles,
    ),
    Rule(
        id="chat-developer-role-unsupported",
        api=API,
        statement="Older models and many compatible servers take no developer message.",
        error=(
            "400 developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - "
            "'messages.['0].role'"
        ),
        level="model",
        certainty="observed",
        sources=(
            "agno-agi/agno#1770",
            "haru/redmine_ai_helper#242",
            "agno-agi/agno#6697",
            "run-llama/llama_index#17748 (Azure, o1-mini)",
            "learn.microsoft.com/azure/ai-services/openai/how-to/reasoning (which models take it)",
        ),
        repair="repair_roles",
        loss="nothing; it is sent as a system message",
        remedy="send it as a system message",
        example={"messages": [{"role": "developer", "content": "Be brief."}, user("hello")]},
        setting={"provider": "dashscope"},
        find=_developer_roles,
    ),
)
