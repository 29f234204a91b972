"""Item ids and names."""

from collections.abc import Iterator, Mapping
from typing import Any

from convnorm.rules.openai_responses.words import API, is_disputed
from convnorm.rules.read_responses import ResponsesScan, item_type
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import shown
from convnorm.targets.responses_items import ID, ID_LENGTH, ITEMS, NAME, SURE_PREFIXES


def _odd_ids(scan: ResponsesScan) -> Iterator[tuple[int, Mapping[str, Any], Any, bool]]:
    """Ids of the wrong shape: where, on which item, the id, and whether that is disputed."""
    verdict = scan.target.responses.schema
    for at in scan.odd_ids if verdict != "accepted" else ():
        item = scan.views[at] or {}
        yield at, item, item.get("id"), is_disputed(verdict)


def _repair(item: Mapping[str, Any]) -> str | None:
    """Approvals and screens are never rewritten silently."""
    return None if item_type(item) in JUDGED else AS_THE_RULE


JUDGED = frozenset(
    {"computer_call", "computer_call_output", "mcp_approval_request", "mcp_approval_response"}
)


def _long(scan: ResponsesScan) -> Iterator[Finding]:
    for at, item, own, disputed in _odd_ids(scan):
        if isinstance(own, str) and len(own) > ID_LENGTH:
            said = f"the id {shown(own)} has {len(own)} characters"
            yield Finding(at, ".id", said, repair=_repair(item), disputed=disputed)


def _charset(scan: ResponsesScan) -> Iterator[Finding]:
    for at, item, own, disputed in _odd_ids(scan):
        if not isinstance(own, str) or not ID.fullmatch(own[:ID_LENGTH]):
            said = f"the id is {shown(own)}, not letters, digits, underscores and dashes"
            yield Finding(at, ".id", said, repair=_repair(item), disputed=disputed)


def _prefix(scan: ResponsesScan) -> Iterator[Finding]:
    for at, item, own, disputed in _odd_ids(scan):
        if not isinstance(own, str) or not ID.fullmatch(own[:ID_LENGTH]):
            continue  # then it has no beginning to speak of
        kind = item_type(item)
        prefix = ITEMS[kind].prefix
        if not own.startswith(prefix):
            said = f"the id {shown(own)} of a {kind} does not begin with {prefix!r}"
            unsure = disputed or kind not in SURE_PREFIXES
            yield Finding(at, ".id", said, repair=_repair(item), disputed=unsure)


def _hosted(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.hosted:
        item = scan.views[at] or {}
        if item.get("id") is None:
            yield Finding(at, ".id", f"a {item_type(item)} has no id", repair=_repair(item))


def _names(scan: ResponsesScan) -> Iterator[Finding]:
    verdict = scan.target.responses.schema
    for call in scan.pairs.calls if verdict != "accepted" else ():
        name = call.raw.get("name")
        if call.kind not in ("function", "custom") or call.position in scan.resolved:
            continue
        if isinstance(name, str) and not NAME.fullmatch(name):
            said = f"the name {shown(name)} is not up to 128 letters, digits, underscores, dashes"
            # The spec has the pattern for functions; nobody wrote of custom tools.
            unsure = is_disputed(verdict) or call.kind == "custom"
            yield Finding(call.position, ".name", said, disputed=unsure)


IDS = (
    Rule(
        id="resp-id-prefix",
        api=API,
        statement="An item id begins as ids of its type do.",
        error="400 Invalid 'input[1].id': '__fake_id__'. Expected an ID that begins with 'fc'.",
        certainty="observed",
        sources=(
            "openai/openai-cs-agents-demo#34",
            "BerriAI/litellm#27333",
            "microsoft/vscode#316536",
            "openai/codex#33176",
        ),
        repair="legalise_ids",
        loss="the id; reasoning that another server made goes with it",
        remedy="leave the id out",
        example={
            "input": [
                {"type": "message", "id": "chatcmpl-1", "role": "assistant", "content": "hello"}
            ]
        },
        code="invalid_value",
        find=_prefix,
    ),
    Rule(
        id="resp-id-charset",
        api=API,
        statement="An item id is made of letters, digits, underscores and dashes.",
        error=(
            "400 Invalid 'input[N].id': ''. Expected an ID that contains letters, numbers, "
            "underscores, or dashes, but this value contained additional characters."
        ),
        certainty="observed",
        sources=("microsoft/agent-framework-go#783",),
        repair="legalise_ids",
        loss="the id",
        remedy="leave the id out",
        example={"input": [{"type": "message", "id": "", "role": "assistant", "content": "hello"}]},
        find=_charset,
    ),
    Rule(
        id="resp-id-too-long",
        api=API,
        statement="An item id has at most 64 characters.",
        error=(
            "400 Invalid 'input[2].id': string too long. Expected a string with maximum length "
            "64, but got a string with length 416 instead."
        ),
        certainty="observed",
        sources=("can1357/oh-my-pi#284", "github/app#499"),
        repair="legalise_ids",
        loss="the id",
        remedy="leave the id out: a shortened one names nothing",
        example={
            "input": [
                {
                    "type": "message",
                    "id": f"msg_{'x' * 61}",
                    "role": "assistant",
                    "content": "hello",
                }
            ]
        },
        find=_long,
    ),
    Rule(
        id="resp-hosted-item-id-missing",
        api=API,
        statement="What the server did by itself is sent with its id.",
        error="400 Missing required parameter: 'input[42].id'.",
        certainty="observed",
        sources=("openai/codex#6926", "openai/codex#6934", "openai/codex#6700"),
        repair="legalise_ids",
        loss="the reasoning that led to it; the item is quoted as data",
        remedy="keep the id of hosted items, or leave the whole item out",
        example={
            "input": [
                {
                    "type": "web_search_call",
                    "status": "completed",
                    "action": {"type": "search", "query": "rates"},
                }
            ]
        },
        find=_hosted,
    ),
    Rule(
        id="resp-name-invalid",
        api=API,
        statement=(
            "The name of a called function is 1 to 128 letters, digits, underscores and dashes."
        ),
        error="400 pattern ^[a-zA-Z0-9_-]+$, at most 128 characters (documented)",
        certainty="documented",
        sources=("openai/openai-openapi openapi.json @f85dbe2 (2026-08-21)",),
        repair="legalise_ids",
        loss="the spelling of the name",
        remedy="use a name that fits the pattern",
        example={
            "input": [
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "get balance",
                    "arguments": "{}",
                },
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
            ]
        },
        find=_names,
    ),
)
"""What OpenAI asks of ids and names."""
