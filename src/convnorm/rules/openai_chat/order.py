"""The order in which single servers and templates want the turns."""

from collections.abc import Iterator

from convnorm.rules.openai_chat.common import API, all_messages, user
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Scan, shown
from convnorm.wire import LIST

SPEAKERS = ("user", "assistant")
INSTRUCTING = ("system", "developer")


def _not_in_turns(scan: Scan) -> Iterator[Finding]:
    """Calls and their results stand outside: the templates pass over them."""
    if not scan.target.chat.alternating:
        return
    last = None
    for at, message in all_messages(scan):
        role = message.get("role")
        if role in INSTRUCTING:
            if at:
                why = f"a message of role {shown(role)} stands behind the head"
                yield Finding(at, ".role", why)
        elif role in SPEAKERS and not message.get("tool_calls"):
            if role == (last or "assistant"):
                why = "the assistant speaks first" if last is None else f"two turns of role {role}"
                yield Finding(at, ".role", why)
            last = role


def _out_of_order(scan: Scan) -> Iterator[Finding]:
    if not scan.target.chat.strict_order:
        return
    calls: tuple[int, int] | None = None  # where the last reply stands, and how many it makes
    results, before = 0, None
    for at, message in all_messages(scan):
        role, made = message.get("role"), message.get("tool_calls")
        if role == "assistant":
            yield from _miscounted(calls, results)
            calls, results = (at, len(made) if isinstance(made, LIST) else 0), 0
        elif role == "tool":
            results += 1
        elif role == "user" and before == "tool":
            why = "a user message stands right behind a tool message"
            yield Finding(at, ".role", why)
        elif role in INSTRUCTING and before in ("assistant", "tool"):
            why = f"a message of role {shown(role)} stands behind one of role {shown(before)}"
            yield Finding(at, ".role", why)
        before = role
    yield from _miscounted(calls, results)
    yield from _last(scan)


def _miscounted(calls: tuple[int, int] | None, results: int) -> Iterator[Finding]:
    if calls is not None and calls[1] != results:
        why = f"the message makes {calls[1]} calls, and {results} results follow"
        yield Finding(calls[0], "", why, repair="repair_tool_pairs")


def _last(scan: Scan) -> Iterator[Finding]:
    message = scan.views[-1] if scan.views else None
    role = None if message is None else message.get("role")
    if message is None or role in ("user", "tool"):
        return
    if role == "assistant" and (message.get("prefix") is True or message.get("tool_calls")):
        return  # it is to be continued, or its results are missed already
    why = f"the last message is of role {shown(role)}"
    # Only a reply at the end was seen to be refused.
    disputed = role != "assistant"
    yield Finding(len(scan.views) - 1, ".role", why, disputed=disputed)


ORDER = (
    Rule(
        id="template-roles-alternate",
        api=API,
        statement=(
            "With the templates of Mistral, Gemma and Llama 2, user and assistant take turns after "
            "one optional system message."
        ),
        error=(
            "400 After the optional system message, conversation roles must alternate "
            "user/assistant/user/assistant/..."
        ),
        level="model",
        certainty="observed",
        sources=(
            "vllm-project/vllm#6862",
            "microsoft/autogen#3597",
            "suitenumerique/conversations#197",
        ),
        repair="repair_roles",
        loss="where one message ends and the next begins",
        remedy="join messages of the same role, and put all instructions into the first message",
        example={"messages": [user("hello"), user("are you there?")]},
        setting={"provider": "vllm", "model": "mistralai/Mistral-7B-Instruct-v0.3"},
        find=_not_in_turns,
    ),
    Rule(
        id="mistral-message-order",
        api=API,
        statement=(
            "Calls and results are equal in number, no user message follows a tool message, "
            "instructions stand at the head or behind the user, and the last message is of the "
            "user or a tool, or a reply marked as prefix."
        ),
        error=(
            "400 Expected last role to be one of: [tool, user] but got assistant / Unexpected role "
            "'user' after role 'tool' / Not the same number of function calls and responses"
        ),
        level="model",
        certainty="observed",
        sources=(
            "NousResearch/hermes-agent#11722",
            "nicholasgriffintn/ai-platform#414",
            "microsoft/autogen#5044",
            "mistral-common 1.13.0 validator (instructions)",
        ),
        repair="repair_roles",
        loss="the rank of later instructions; else nothing, though a short turn may be put between",
        remedy="answer every call, put a reply between results and user, and end with the user",
        example={"messages": [user("hello"), {"role": "assistant", "content": "I will."}]},
        setting={"provider": "mistral"},
        code="3230",
        find=_out_of_order,
    ),
)
