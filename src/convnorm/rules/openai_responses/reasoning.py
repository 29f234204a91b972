"""Reasoning, and what it led to."""

from collections.abc import Iterator

from convnorm.rules.openai_responses.words import API, is_disputed, link
from convnorm.rules.read_responses import OUTPUTS, ResponsesScan, item_type
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown
from convnorm.wire import LIST


def _without_following(scan: ResponsesScan) -> Iterator[Finding]:
    if scan.target.reasoning_by_value:
        return
    server = scan.server
    if server is not None and scan.linked and server.ends_in_reasoning is not None:
        said = f"what the server holds ends with reasoning {shown(server.ends_in_reasoning)}"
        yield Finding(-1, link(scan), said, repair="settle_link")
    for at in (*scan.reasoning, *scan.thoughts):
        own = (scan.views[at] or {}).get("id")
        if not isinstance(own, str):
            continue
        follower, disputed = _wrong_follower(scan, at, own)
        if follower:
            said = f"reasoning {shown(own)} is followed by {follower}, not by what it led to"
            yield Finding(at, "", said, disputed=disputed)


def _wrong_follower(scan: ResponsesScan, at: int, own: str) -> tuple[str, bool]:
    """What stands behind reasoning instead of what it led to, and whether that is disputed."""
    if at + 1 == len(scan.views):
        return "nothing", False
    after = scan.views[at + 1] or {}
    kind, role = item_type(after), after.get("role")
    if kind in OUTPUTS:
        return "a tool output", False
    if kind == "message" and role in ("user", "system", "developer"):
        return f"a {role} message", False
    if kind == "compaction_trigger":  # no model makes one, and nobody tried this
        return "a compaction_trigger", True
    led = scan.server.followers.get(own) if scan.server else None
    other = after.get("id")
    if scan.server is None or led is None or led == other:
        return "", False
    if isinstance(other, str) and other in scan.server.stored:
        return f"item {shown(other)}", False
    # The same turn typed again, without the id that the server gave it.
    return "an item that the server does not know", True


def _without_reasoning(scan: ResponsesScan) -> Iterator[Finding]:
    if scan.server is None or scan.target.reasoning_by_value or not scan.server.leads:
        return
    before: dict[str, int] = {}
    for at, view in enumerate(scan.views):
        own = None if view is None else view.get("id")
        if not isinstance(own, str):
            continue
        before.setdefault(own, at)
        lead = scan.server.leads.get(own)
        if lead is None or lead in scan.server.chain_ids or before.get(lead) == at - 1:
            continue
        kind = item_type(scan.server.stored[own])
        if lead in before:
            said = f"the reasoning {shown(lead)} of item {shown(own)} is not right before it"
        else:
            said = f"the reasoning {shown(lead)} that led to item {shown(own)} is not there"
        # Only calls of functions and messages were ever named in this error.
        disputed = lead in before or kind not in ("function_call", "message")
        yield Finding(at, ".id", said, disputed=disputed)


def _no_reasoning_model(scan: ResponsesScan) -> Iterator[Finding]:
    if scan.target.responses.no_reasoning:
        for at in (*scan.reasoning, *scan.thoughts):
            yield Finding(at, "", f"{scan.target.model} takes no reasoning")


def _plain_content(scan: ResponsesScan) -> Iterator[Finding]:
    verdict = scan.target.responses.reasoning_content
    for at in scan.reasoning if verdict != "accepted" else ():
        content = (scan.views[at] or {}).get("content")
        if content is not None and not (isinstance(content, LIST) and not content):
            said = "reasoning is sent with its plain text"
            yield Finding(at, ".content", said, disputed=is_disputed(verdict))


def _no_summary(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.reasoning:
        summary = (scan.views[at] or {}).get("summary")
        if not isinstance(summary, LIST):
            yield Finding(at, ".summary", f"the summary of reasoning is {shown(summary)}")


def _unusable(scan: ResponsesScan) -> Iterator[Finding]:
    if scan.target.reasoning_by_value:
        return
    for at in scan.reasoning:
        item = scan.views[at] or {}
        if item.get("id") is None and not item.get("encrypted_content"):
            yield Finding(
                at,
                "",
                "reasoning has neither an id nor encrypted content",
                disputed=scan.context.conversation is None,
            )


def _unreadable(scan: ResponsesScan) -> Iterator[Finding]:
    odd = scan.target.responses.schema == "refused"
    for at in (*scan.reasoning, *scan.compactions):
        item = scan.views[at] or {}
        sealed, kind = item.get("encrypted_content"), item_type(item)
        if not isinstance(sealed, str) or not sealed:
            continue
        what = f"the encrypted content of {kind} {shown(item.get('id'))}"
        # Without the sealed text everything before a compaction is lost.
        repair = "repair_reasoning" if kind == "reasoning" else None
        if scan.server is not None and scan.server.refuses(kind, sealed):
            yield Finding(at, ".encrypted_content", f"{what} is not this server's", repair=repair)
        elif odd and " " in sealed[:256]:
            said = f"{what} is plain text"
            yield Finding(at, ".encrypted_content", said, repair=repair)


REASONING = (
    Rule(
        id="resp-reasoning-without-following",
        api=API,
        statement="A reasoning item with an id is followed at once by the item it led to.",
        error=(
            "400 Item 'rs_...' of type 'reasoning' was provided without its required following "
            "item."
        ),
        certainty="observed",
        sources=(
            "openai/openai-agents-python#2503",
            "earendil-works/pi#886",
            "vercel/ai#7099",
            "openai/openai-node#1567",
        ),
        repair="repair_reasoning",
        loss="the reasoning",
        remedy="put back what the reasoning led to, or leave the reasoning out",
        example={
            "input": [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"role": "user", "content": "hello"},
            ]
        },
        find=_without_following,
    ),
    Rule(
        id="resp-item-without-reasoning",
        api=API,
        statement=(
            "An item that is sent under the id the server gave it follows the reasoning that led "
            "to it."
        ),
        error=(
            "400 Item 'fc_...' of type 'function_call' was provided without its required "
            "'reasoning' item: 'rs_...'."
        ),
        certainty="observed",
        sources=(
            "omnigent-ai/omnigent#5066",
            "VRSEN/agency-swarm#367",
            "pydantic/pydantic-ai#3230",
            "continuedev/continue#11994",
        ),
        repair="repair_reasoning",
        loss="the id of the item; the reasoning is lost already",
        remedy="put the reasoning back right before the item, or leave the item's id out",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "message", "id": "msg_1", "role": "assistant", "content": "hi"},
            ]
        },
        setting={
            "state": {
                "responses": {
                    "resp_1": {
                        "output": [
                            {"type": "reasoning", "id": "rs_1", "summary": []},
                            {
                                "type": "message",
                                "id": "msg_1",
                                "role": "assistant",
                                "content": [],
                            },
                        ]
                    }
                }
            }
        },
        find=_without_reasoning,
    ),
    Rule(
        id="resp-reasoning-nonreasoning-model",
        api=API,
        statement="Reasoning items are sent to models that reason.",
        error=(
            "400 Reasoning input items can only be provided to a reasoning or computer use model. "
            "Remove reasoning items from your input and try again."
        ),
        level="model",
        certainty="observed",
        sources=("openai/openai-agents-python#569", "openai/openai-agents-python#2602"),
        repair="repair_reasoning",
        loss="the reasoning, and the ids of what it led to",
        remedy="leave the reasoning out, or use a model that reasons",
        example={
            "model": "gpt-4o",
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB1"},
                {"role": "assistant", "content": "hi"},
            ],
        },
        setting={"model": "gpt-4o"},
        find=_no_reasoning_model,
    ),
    Rule(
        id="resp-reasoning-content-not-allowed",
        api=API,
        statement="Reasoning is sent without its plain text to servers of OpenAI.",
        error=(
            "400 Invalid 'input[39].content': array too long. Expected an array with maximum "
            "length 0, but got an array with length 1 instead."
        ),
        level="model",
        certainty="observed",
        sources=("musistudio/claude-code-router#1783", "querymt/querymt#976"),
        repair="repair_reasoning",
        loss="the plain text of the reasoning",
        remedy="leave the content out, or move it into the summary",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [],
                    "content": [{"type": "reasoning_text", "text": "greet"}],
                },
                {"role": "assistant", "content": "hi"},
            ]
        },
        code="array_above_max_length",
        find=_plain_content,
    ),
    Rule(
        id="resp-reasoning-summary-missing",
        api=API,
        statement="A reasoning item has a summary, if only an empty one.",
        error="400 Missing required parameter: 'input[N].summary'.",
        certainty="observed",
        sources=(
            "lidge-jun/opencodex#4673",
            "newo-ether/Agora#141",
            "microsoft/agent-framework-go#783",
        ),
        repair="repair_reasoning",
        loss="nothing",
        remedy="add an empty list as the summary",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "encrypted_content": "gAAAAAB1"},
                {"role": "assistant", "content": "hi"},
            ]
        },
        find=_no_summary,
    ),
    Rule(
        id="resp-reasoning-unusable",
        api=API,
        statement=(
            "In a conversation a reasoning item has an id or encrypted content; elsewhere it says "
            "nothing without them."
        ),
        error="400 Invalid item",
        certainty="observed",
        sources=("openai/openai-agents-python#3268", "openai/openai-agents-python#1709"),
        repair="repair_reasoning",
        loss="the summary of the reasoning",
        remedy="leave the reasoning out",
        example={
            "conversation": "conv_1",
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "summary": []},
                {"role": "assistant", "content": "hi"},
            ],
        },
        code="invalid_item",
        find=_unusable,
    ),
    Rule(
        id="resp-encrypted-content-invalid",
        api=API,
        statement="Encrypted content was sealed by this server for this organization.",
        error=(
            "400 The encrypted content for item rs_... could not be verified. Reason: Encrypted "
            "content could not be decrypted or parsed."
        ),
        certainty="observed",
        sources=("openai/codex#8145", "openai/codex#35334", "edison7009/EchoBird#255"),
        repair="repair_reasoning",
        loss="the reasoning, and the ids of what it led to",
        remedy="leave the reasoning out; in place of a compaction send what it stands for",
        example={
            "store": False,
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB1"},
                {"role": "assistant", "content": "hi"},
            ],
        },
        setting={
            "state": {
                "organization": "org_a",
                "encrypted_content": {"gAAAAAB1": {"organization": "org_b"}},
            }
        },
        code="invalid_encrypted_content",
        find=_unreadable,
    ),
)
"""What OpenAI asks of reasoning."""
