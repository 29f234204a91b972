"""Turns: who speaks first, who last, who next to whom, and where the system may speak."""

from collections.abc import Iterator

from convnorm.rules.anthropic_messages.common import API, assistant, text, user
from convnorm.rules.read_anthropic import AnthropicScan, is_directive
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown
from convnorm.wire import LIST, fields

SYSTEM_BLOCKS = frozenset({"text", "tool_addition", "tool_removal"})
NOTE = {"role": "system", "content": "be brief"}


def _first(scan: AnthropicScan) -> Iterator[Finding]:
    first = next((at for at, role in enumerate(scan.roles) if role != "system"), None)
    if scan.profile.first_user and first is not None and scan.roles[first] == "assistant":
        content = (scan.views[first] or {}).get("content")
        blocks = [fields(block) or {} for block in content] if isinstance(content, LIST) else []
        if any(block.get("type") == "compaction" and block.get("content") for block in blocks):
            return  # what was compacted may be left out
        yield Finding(first, "", "the first message is an assistant's")


def _neighbours(scan: AnthropicScan) -> Iterator[Finding]:
    if not scan.profile.alternate:
        return
    for at, role in enumerate(scan.roles[1:], start=1):
        if role == scan.roles[at - 1] in ("user", "assistant"):
            yield Finding(at, "", f"the message before has the role {role}, too")


def _prefill(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.prefill or scan.last is None:
        return
    blocks = scan.turns[-1].blocks
    if blocks and (blocks[-1].is_server or blocks[-1].kind == "compaction"):
        return  # the server paused here, and goes on when it gets the turn back
    yield Finding(
        len(scan.views) - 1,
        "",
        f"the last message is an assistant's, and {shown(scan.model)} continues none",
        disputed=any(block.is_server for block in blocks),
    )


def _refused_system(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.system_role in ("taken", "ignored"):
        return
    known = scan.profile.system_role == "refused"
    who = f"{shown(scan.model)} takes" if known else "most models take"
    for at in scan.system:
        yield Finding(at, ".role", f"{who} no system messages in the list", disputed=not known)


def _ignored_system(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.system_role == "ignored":
        for at in scan.system:
            yield Finding(at, ".role", f"{shown(scan.model)} does not read this system message")


def _first_system(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.system_role == "taken" and scan.roles[:1] == ["system"]:
        message = scan.views[0] or {}
        if not is_directive(message):
            yield Finding(0, "", "the list starts with a system message")


def _system_place(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.system_role != "taken" or not scan.system:
        return
    ends = {turn.blocks[-1].position: turn.blocks[-1] for turn in scan.turns if turn.blocks}
    behind = _next_roles(scan.roles)
    before, at_before = "nobody", -1
    for at, role in enumerate(scan.roles):
        if role != "system":
            before, at_before = role, at
            continue
        if is_directive(scan.views[at] or {}):
            continue
        after_server = at_before in ends and ends[at_before].is_server
        if before == "nobody" or (before == "assistant" and not after_server):
            yield Finding(at, "", "a system message stands behind no user message")
        elif behind[at] == "user":
            yield Finding(at, "", "a system message stands before a user message")


def _next_roles(roles: list[str]) -> list[str]:
    """For every message the role of the next one that is no system message."""
    found: list[str] = []
    following = "nobody"
    for role in reversed(roles):
        found.append(following)
        if role != "system":
            following = role
    return found[::-1]


def _system_blocks(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.system_role != "taken" or not scan.system:
        return
    for block in scan.blocks:
        if (
            scan.roles[block.position] == "system"
            and block.parent is None
            and block.kind not in SYSTEM_BLOCKS
        ):
            yield Finding(
                block.position,
                block.where,
                f"a system message holds a block of the type {shown(block.kind)}",
            )


TURNS = (
    Rule(
        id="anthropic-first-message-user",
        api=API,
        error=(
            "400 messages.2: `tool_use` ids were found without `tool_result` blocks "
            "immediately after: toolu_1 (the text misleads)"
        ),
        certainty="observed",
        sources=(
            "NousResearch/hermes-agent#52160",
            "stephenschoettler/hermes-lcm#280",
            "anthropics/skills error-codes.md",
        ),
        statement="The first message that is no system entry is a user's.",
        repair="repair_roles",
        loss="nothing; one marked user message is added",
        remedy="start the list with a user message",
        retroactive=True,
        example={"messages": [assistant("Summary: the balance is 10 EUR"), user("and now?")]},
        find=_first,
    ),
    Rule(
        id="anthropic-roles-must-alternate",
        api=API,
        error=(
            '400 messages: roles must alternate between "user" and "assistant", but found '
            'multiple "user" roles in a row'
        ),
        level="legacy",
        certainty="documented",
        sources=(
            "modelcontextprotocol/quickstart-resources#20",
            "FlowiseAI/Flowise#2006",
            'anthropic 2.10.0 message_create_params docstring ("will be combined")',
        ),
        statement="User and assistant alternate, on gateways that combine no neighbours.",
        repair="repair_roles",
        loss="the boundary between the messages",
        remedy="make one message of neighbours",
        example={"messages": [user("hi"), user("are you there?")]},
        setting={"provider": "anthropic-legacy"},
        find=_neighbours,
    ),
    Rule(
        id="anthropic-prefill-unsupported",
        api=API,
        error=(
            "400 This model does not support assistant message prefill. The conversation must "
            "end with a user message."
        ),
        level="model",
        certainty="documented",
        sources=(
            "aaif-goose/goose#7425",
            "vybestack/llxprt-code#3695",
            "anthropics/skills model-migration.md",
        ),
        statement="From Claude 4.6 on the list does not end with an assistant message.",
        repair="repair_roles",
        loss="nothing; one marked user message is added",
        remedy="end the list with a user message",
        example={"model": "claude-opus-4-8", "messages": [user("sun?"), assistant("It is")]},
        find=_prefill,
    ),
    Rule(
        id="anthropic-system-role-unsupported",
        api=API,
        error=(
            '400 messages: Unexpected role "system". The Messages API accepts a top-level '
            '`system` parameter, not "system" as an input message role.'
        ),
        level="model",
        certainty="documented",
        sources=(
            "anthropics/claude-agent-sdk-typescript#350",
            "UKGovernmentBEIS/inspect_ai#4221",
            "pydantic-ai 2.66 profiles/anthropic.py",
        ),
        statement="Only some models take messages with the role system.",
        repair="repair_roles",
        loss="its place in the list, and what was cached behind it",
        remedy="put the text into the request's `system`",
        example={"model": "claude-sonnet-4-5", "messages": [user("hi"), NOTE]},
        find=_refused_system,
    ),
    Rule(
        id="anthropic-system-role-ignored",
        api=API,
        error="200 (no error: the model does not see the message)",
        level="advisory",
        certainty="reported",
        sources=("pydantic-ai 2.66 profiles/anthropic.py (measured)",),
        statement="Claude Sonnet 5 takes messages with the role system and does not read them.",
        status=200,
        repair="repair_roles",
        loss="its place in the list, and what was cached behind it",
        remedy="put the text into the request's `system`",
        example={"model": "claude-sonnet-5", "messages": [user("hi"), NOTE]},
        find=_ignored_system,
    ),
    Rule(
        id="anthropic-system-role-first",
        api=API,
        error=(
            "400 messages.0: use the top-level 'system' parameter for the initial system "
            "prompt; the directive-only form (content: [] with output_config) is accepted at "
            "any position"
        ),
        level="model",
        certainty="observed",
        sources=(
            "LeenHawk/gproxy#209",
            "anthropics/skills prompt-caching.md",
        ),
        statement="The list does not start with a system message that says something.",
        repair="repair_roles",
        loss="nothing; the text goes into the request's `system`",
        remedy="put the text into the request's `system`",
        companions=("anthropic-system-role-placement",),
        example={"model": "claude-opus-4-8", "messages": [NOTE, user("hi")]},
        find=_first_system,
    ),
    Rule(
        id="anthropic-system-role-placement",
        api=API,
        error=(
            "400 messages.67: role 'system' must precede an 'assistant' message or end the array"
        ),
        level="model",
        certainty="documented",
        sources=(
            "anthropics/claude-code#73821",
            "anthropics/skills prompt-caching.md",
            "pydantic-ai 2.66 _message_passes.py",
        ),
        statement="A system message follows a user turn, and an assistant turn or nothing follows.",
        repair="repair_roles",
        loss="its place in the list",
        remedy="put the system message behind the user messages that it stands among",
        retroactive=True,
        example={"model": "claude-opus-5", "messages": [user("hi"), NOTE, user("hello?")]},
        find=_system_place,
    ),
    Rule(
        id="anthropic-system-role-content",
        api=API,
        error="400 (no text is known)",
        level="model",
        certainty="documented",
        sources=(
            "anthropics/skills prompt-caching.md",
            "anthropic 2.10.0 system_message_param.py",
        ),
        statement="A system message holds text, or adds and removes tools.",
        repair="repair_roles",
        loss="the authority of what moves into a user message",
        remedy="send images and documents in a user message",
        example={
            "model": "claude-opus-5",
            "messages": [
                user("hi"),
                {
                    "role": "system",
                    "content": [
                        text("read this"),
                        {
                            "type": "image",
                            "source": {"type": "url", "url": "https://example.org/a.png"},
                        },
                    ],
                },
            ],
        },
        find=_system_blocks,
    ),
)
