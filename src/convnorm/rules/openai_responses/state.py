"""What the server holds, and how a request names it."""

from collections.abc import Iterator

from convnorm.rules.openai_responses.words import API
from convnorm.rules.read_responses import ResponsesScan, item_type, names_its_call
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import shown
from convnorm.targets.responses_items import BY_ID, TYPES


def _unknown_response(scan: ResponsesScan) -> Iterator[Finding]:
    named = scan.context.previous_response_id
    if scan.server is not None and named is not None and not scan.server.knows_response:
        said = f"the server has no response {shown(named)}"
        known = scan.server.can_replay(scan.views) or scan.server.ledger.last() is not None
        # What nobody knows any more cannot be sent, and must not be left out without a word.
        repair = AS_THE_RULE if known else None
        yield Finding(-1, "previous_response_id", said, repair=repair)


def _zero_retention(scan: ResponsesScan) -> Iterator[Finding]:
    named = scan.context.previous_response_id
    if scan.server is not None and named is not None and scan.server.ledger.zero_data_retention:
        said = f"the server may not keep responses, and the request continues {shown(named)}"
        repair = AS_THE_RULE if scan.server.can_replay(scan.views) else None
        yield Finding(-1, "previous_response_id", said, repair=repair)


def _two_links(scan: ResponsesScan) -> Iterator[Finding]:
    named, held = scan.context.previous_response_id, scan.context.conversation
    if named is not None and held is not None:
        said = f"the request continues both response {shown(named)} and conversation {shown(held)}"
        yield Finding(-1, "conversation", said)


def _unknown_conversation(scan: ResponsesScan) -> Iterator[Finding]:
    named = scan.context.conversation
    if scan.server is not None and named is not None and not scan.server.knows_conversation:
        said = f"the server has no conversation {shown(named)}"
        repair = AS_THE_RULE if scan.server.can_replay(scan.views) else None
        yield Finding(-1, "conversation", said, repair=repair)


def _locked_conversation(scan: ResponsesScan) -> Iterator[Finding]:
    named = scan.context.conversation
    if scan.server is not None and named in scan.server.ledger.locked:
        yield Finding(-1, "conversation", f"another request is using {shown(named)}")


def _repeated_ids(scan: ResponsesScan) -> Iterator[Finding]:
    first: dict[str, int] = {}
    before = scan.server.chain_ids if scan.server else ()
    for at, item in enumerate(scan.views):
        own = None if item is None or names_its_call(item) else item.get("id")
        if not isinstance(own, str):
            continue
        if own in before:
            said = f"the server puts an item with the id {shown(own)} before the input"
            yield Finding(at, ".id", said, repair="settle_link")
        elif (earlier := first.setdefault(own, at)) != at:
            yield Finding(at, ".id", f"input[{earlier}] has the id {shown(own)} too")


def _not_persisted(scan: ResponsesScan) -> Iterator[Finding]:
    if scan.server is not None:
        yield from _not_held(scan)
    elif scan.context.store is False and not scan.target.reasoning_by_value:
        for at in scan.reasoning:
            if (own := _bare_reasoning(scan, at)) is not None:
                said = f"reasoning {shown(own)} is not stored and has no encrypted content"
                yield Finding(at, "", said)


def _bare_reasoning(scan: ResponsesScan, at: int) -> str | None:
    """The id of reasoning that can only be looked up."""
    item = scan.views[at] or {}
    own, sealed = item.get("id"), item.get("encrypted_content")
    return own if isinstance(own, str) and not (isinstance(sealed, str) and sealed) else None


def _not_held(scan: ResponsesScan) -> Iterator[Finding]:
    """What only an id says, and what the ledger does not have."""
    assert scan.server is not None
    stored, unstored = scan.server.stored, scan.server.unstored
    # What is not stored can be stripped only where the request says so; else nobody knows it.
    repair = "strip_ids" if scan.context.store is False else "repair_reasoning"
    for at in () if scan.target.reasoning_by_value else scan.reasoning:
        own = _bare_reasoning(scan, at)
        if own is not None and own not in stored:
            said = f"the server does not have reasoning {shown(own)}, nor is its content sent"
            yield Finding(at, "", said, repair=repair)
    inline = {
        own
        for view in scan.views
        if view and item_type(view) != "item_reference" and isinstance(own := view.get("id"), str)
    }
    for at in scan.references:
        own = (scan.views[at] or {}).get("id")
        if isinstance(own, str) and own not in stored and own not in inline:
            yield Finding(at, "", f"the server has no item {shown(own)}", repair="settle_link")
    for at in scan.hosted:
        item = scan.views[at] or {}
        own = item.get("id")
        if isinstance(own, str) and own not in stored and BY_ID.issuperset(item):
            yield Finding(at, "", f"the server has no item {shown(own)}", repair="settle_link")
    for at, view in enumerate(scan.views) if unstored else ():
        own = None if view is None else view.get("id")
        if isinstance(own, str) and own in unstored and item_type(view or {}) in SAID:
            said = f"the server gave out {shown(own)} and did not store it"
            yield Finding(at, ".id", said, repair="legalise_ids", disputed=True)


SAID = frozenset({"message", "function_call"})
"""Items that are read from what they say: whether their id is looked up is not settled."""


def _expired_containers(scan: ResponsesScan) -> Iterator[Finding]:
    expired = scan.server.ledger.expired_containers if scan.server else ()
    for at in scan.hosted if expired else ():
        named = (scan.views[at] or {}).get("container_id")
        if isinstance(named, str) and named in expired:
            yield Finding(at, ".container_id", f"container {shown(named)} is gone")


STATE = (
    Rule(
        id="resp-previous-response-not-found",
        api=API,
        statement="The response that a request continues is stored.",
        error="400 Previous response with id 'resp_x' not found.",
        certainty="observed",
        sources=(
            "maximhq/bifrost#2441",
            "dotnet/extensions#7704",
            "microsoft/agent-framework#4376",
        ),
        repair="settle_link",
        loss="nothing when the whole history is sent instead",
        remedy="leave previous_response_id out, and send the whole history",
        example={
            "previous_response_id": "resp_1",
            "input": [{"role": "user", "content": "and tomorrow?"}],
        },
        setting={"state": {"responses": {"resp_1": {"input": "weather?", "stored": False}}}},
        code="previous_response_not_found",
        find=_unknown_response,
    ),
    Rule(
        id="resp-zero-data-retention",
        api=API,
        statement="An organization with zero data retention continues no response.",
        error=(
            "400 Previous response cannot be used for this organization due to Zero Data "
            "Retention. (wording not verified)"
        ),
        certainty="documented",
        sources=("microsoft/vscode#317158",),
        repair="settle_link",
        loss="nothing when the whole history is sent instead",
        remedy="send the whole history with store=false and encrypted reasoning",
        example={
            "previous_response_id": "resp_1",
            "input": [{"role": "user", "content": "and tomorrow?"}],
        },
        setting={
            "state": {
                "zero_data_retention": True,
                "responses": {"resp_1": {"input": "weather?"}},
            }
        },
        find=_zero_retention,
    ),
    Rule(
        id="resp-previous-and-conversation",
        api=API,
        statement="A request continues a response or a conversation, not both.",
        error="400 (documented: Cannot be used in conjunction with conversation)",
        certainty="documented",
        sources=(TYPES,),
        repair="settle_link",
        loss="nothing when the one with the newer turn is kept",
        remedy="leave one of previous_response_id and conversation out",
        example={
            "previous_response_id": "resp_1",
            "conversation": "conv_1",
            "input": [{"role": "user", "content": "and tomorrow?"}],
        },
        find=_two_links,
    ),
    Rule(
        id="resp-conversation-not-found",
        api=API,
        statement="The conversation that a request continues exists.",
        error="404 (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair="settle_link",
        loss="nothing when the whole history is sent instead",
        remedy="create the conversation, or send the whole history without one",
        example={
            "conversation": "conv_1",
            "input": [
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": "sun"},
                {"role": "user", "content": "and tomorrow?"},
            ],
        },
        setting={"state": {"conversations": {}}},
        status=404,
        find=_unknown_conversation,
    ),
    Rule(
        id="resp-conversation-locked",
        api=API,
        statement="A conversation takes one request at a time.",
        error=(
            "400 Another process is currently operating on this conversation. Please retry in a "
            "few seconds."
        ),
        certainty="observed",
        sources=("paulgmiller/careme#379",),
        repair=None,
        loss="",
        remedy="wait for the other request, and try again",
        example={
            "conversation": "conv_1",
            "input": [{"role": "user", "content": "and tomorrow?"}],
        },
        setting={"state": {"conversations": {"conv_1": []}, "locked": ["conv_1"]}},
        code="conversation_locked",
        find=_locked_conversation,
    ),
    Rule(
        id="resp-duplicate-item-id",
        api=API,
        statement="No two items that the server sees have the same id, references included.",
        error=(
            "400 Duplicate item found with id fc_xxx. Remove duplicate items from your input and "
            "try again."
        ),
        certainty="observed",
        sources=(
            "microsoft/agent-framework#3295",
            "continuedev/continue#10723",
            "vercel/ai#18605",
            "microsoft/vscode#321977",
        ),
        repair="dedupe",
        loss="nothing when both say the same; else the id of the later item",
        remedy="send each item once, and take the id off what is another item",
        example={
            "input": [
                {"type": "message", "role": "assistant", "id": "msg_1", "content": "one"},
                {"type": "message", "role": "assistant", "id": "msg_1", "content": "two"},
            ]
        },
        companions=("history-replayed",),
        find=_repeated_ids,
    ),
    Rule(
        id="resp-item-not-persisted",
        api=API,
        statement=(
            "What is sent by its id alone is stored; with store=false reasoning carries its "
            "encrypted content."
        ),
        error=(
            "404 Item with id 'rs_...' not found. Items are not persisted when `store` is set to "
            "false. Try again with `store` set to true, or remove this item from your input."
        ),
        certainty="observed",
        sources=(
            "microsoft/agent-framework#4357",
            "anomalyco/opencode#7724",
            "earendil-works/pi#6409",
            "agentscope-ai/agentscope#2420",
        ),
        repair="strip_ids",
        loss="the reasoning",
        remedy="ask for include=['reasoning.encrypted_content'], or leave the reasoning out",
        example={
            "store": False,
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"role": "assistant", "content": "hi"},
            ],
        },
        status=404,
        status_elsewhere={"azure": 400, "azure-foundry": 400},
        companions=("id-unstored",),
        find=_not_persisted,
    ),
    Rule(
        id="resp-container-expired",
        api=API,
        statement="The container of a code interpreter call that is sent again still lives.",
        error="400 Expected container_id: cntr_...",
        certainty="observed",
        sources=("pydantic/pydantic-ai#7461",),
        repair="settle_link",
        loss="the call, its code and its files; what was said stays",
        remedy="leave the call out, with the reasoning that led to it",
        example={
            "input": [
                {
                    "type": "code_interpreter_call",
                    "id": "ci_1",
                    "container_id": "cntr_1",
                    "code": "1+1",
                    "outputs": None,
                    "status": "completed",
                }
            ]
        },
        setting={"state": {"expired_containers": ["cntr_1"]}},
        find=_expired_containers,
    ),
)
"""What OpenAI asks of links and of what it looks up."""
