"""Calls and their outputs."""

from collections.abc import Iterator

from convnorm.rules.openai_responses.words import API, describe, is_disputed, link
from convnorm.rules.read_responses import CALLS, ResponsesScan, item_type, names_its_call
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import Call, Result, shown
from convnorm.targets.responses_items import ID_LENGTH, TYPES
from convnorm.wire import LIST, fields


def _unanswered(scan: ResponsesScan) -> Iterator[Finding]:
    for call in scan.pairs.held:
        again = scan.pairs.calls_by_id.get(call.id or "", ())
        if call.answered:
            continue
        said = f"{describe(call)} waits on the server, and the input has no output for it"
        # A call that is sent again may be taken for the one that waits.
        at, where = (again[0].position, "") if again else (-1, link(scan))
        said = f"{describe(call)} waits on the server, and is sent again" if again else said
        unsure = bool(again) or call.raw.get("async") is True
        repair = None if call.kind == "computer" and not again else "settle_link"
        yield Finding(at, where, said, repair=repair, disputed=unsure)
    for call in scan.pairs.calls:
        if call.answered:
            continue
        astray = scan.pairs.astray.get(call.id or "")
        hint = "" if astray is None else f"; input[{astray}] has its id and cannot answer it"
        message = f"{describe(call)} has no output behind it{hint}"
        if call.kind == "computer":  # its output is a screenshot, which nobody can invent
            yield Finding(call.position, "", message, repair=None)
        else:
            # A call that runs by itself may be answered later; nobody saw one refused.
            yield Finding(call.position, "", message, disputed=call.raw.get("async") is True)


def _without_call(scan: ResponsesScan) -> Iterator[Finding]:
    calls, results = scan.pairs.calls, scan.pairs.results
    if all(result.call for result in results):
        return
    waiting = {call.id for call in calls if not call.answered}
    first: dict[tuple[str, str | None], int] = {}
    for call in (*scan.pairs.held, *scan.settled, *calls):
        first.setdefault((call.kind, call.id), call.position)
    server = scan.server if scan.linked else None
    for result in results:
        at, call_id = result.position, result.id
        if result.call is not None:
            continue
        if call_id and _unseen(scan, at) and call_id not in waiting:
            continue  # the server may hold the call
        if call_id and any(first.get((kind, call_id), at) < at for kind in result.kinds):
            continue  # the call is there, and this is its second output
        what = f"the output of call {shown(call_id)}" if call_id else "an output without an id"
        where = ", nor on the server" if server else ""
        # Where a response made the call, that response can be continued.
        repair = "settle_link" if server and server.made_call(call_id) else AS_THE_RULE
        message = f"{what} has no open call of its type before it{where}"
        yield Finding(at, "", message, repair=repair)


def _unseen(scan: ResponsesScan, at: int) -> bool:
    """Whether something that nobody has seen may stand before an item."""
    if scan.server is not None:
        return scan.linked and not scan.server.whole
    return scan.linked or (scan.refers_at is not None and scan.refers_at < at)


def _second_outputs(scan: ResponsesScan) -> Iterator[Finding]:
    settled = {(call.kind, call.id) for call in scan.settled}
    for call_id, results in scan.pairs.results_by_id.items():
        first = results[0]
        if first.call is None and any((kind, call_id) in settled for kind in first.kinds):
            said = f"the server has an output of call {shown(call_id)}"
            yield Finding(first.position, "", said, repair="settle_link")
        for result in results[1:]:
            yield Finding(
                result.position,
                "",
                f"input[{first.position}] is an output of call {shown(call_id)} too",
            )


def _reused_call_ids(scan: ResponsesScan) -> Iterator[Finding]:
    for call_id, calls in scan.pairs.calls_by_id.items():
        first = calls[0].position
        for call in calls[1:]:
            yield Finding(
                call.position, ".call_id", f"input[{first}] has the call_id {shown(call_id)} too"
            )


def _empty_call_ids(scan: ResponsesScan) -> Iterator[Finding]:
    both: list[Call | Result] = [*scan.pairs.calls, *scan.pairs.results]
    for one in both:
        if one.id is None and one.raw.get("call_id") == "":
            yield Finding(one.position, ".call_id", "the call_id is an empty string")


def _colliding_outputs(scan: ResponsesScan) -> Iterator[Finding]:
    for result in scan.pairs.results:
        own, call = result.raw.get("id"), result.call
        if names_its_call(result.raw):
            continue
        if isinstance(own, str) and call and call.position >= 0 and own == call.raw.get("id"):
            yield Finding(
                result.position,
                ".id",
                f"the output has the id {shown(own)} of its call in input[{call.position}]",
            )


def _referenced_calls(scan: ResponsesScan) -> Iterator[Finding]:
    if not scan.references or not scan.pairs.results:
        return
    if scan.server is None:
        orphans = any(result.call is None and result.id for result in scan.pairs.results)
        for at in scan.references if orphans else ():
            own = (scan.views[at] or {}).get("id")
            if isinstance(own, str) and own.startswith(("fc_", "ctc_")):
                yield Finding(at, "", f"a reference names call {shown(own)}, whose output is sent")
        return
    outputs = scan.pairs.results_by_id
    for at, held in scan.resolved.items():
        call_id = held.get("call_id")
        if item_type(held) in CALLS and isinstance(call_id, str) and call_id in outputs:
            said = f"a reference names call {shown(call_id)}, whose output is sent"
            yield Finding(at, "", said)


def _unknown_approvals(scan: ResponsesScan) -> Iterator[Finding]:
    if not scan.approvals or (scan.server is None and scan.linked):
        return
    if scan.server is not None and not scan.server.whole:
        return
    known = {own for view in scan.views if view and isinstance(own := view.get("id"), str)}
    if scan.server is not None:
        known |= scan.server.chain_ids
    for at in scan.approvals:
        asked = (scan.views[at] or {}).get("approval_request_id")
        if not isinstance(asked, str) or asked in known:
            continue
        if scan.server is None and scan.refers_at is not None:
            continue  # a reference may be the request
        yield Finding(
            at, ".approval_request_id", f"no approval request in sight has the id {shown(asked)}"
        )


def _unacknowledged(scan: ResponsesScan) -> Iterator[Finding]:
    for result in scan.pairs.results:
        if result.call is None or result.call.kind != "computer":
            continue
        given = _check_ids(result.raw.get("acknowledged_safety_checks"))
        for check in _check_ids(result.call.raw.get("pending_safety_checks")):
            if check not in given:
                yield Finding(
                    result.position,
                    ".acknowledged_safety_checks",
                    f"safety check {shown(check)} of {describe(result.call)} is not acknowledged",
                )


def _check_ids(checks: object) -> dict[str, None]:
    """The ids of safety checks, in their order."""
    keys = (fields(check) or {} for check in (checks if isinstance(checks, LIST) else ()))
    return {own: None for one in keys if isinstance(own := one.get("id"), str)}


def _unknown_programs(scan: ResponsesScan) -> Iterator[Finding]:
    if not scan.callers and not scan.program_outputs:
        return
    if (scan.server is None and scan.linked) or (scan.server and not scan.server.whole):
        return
    # What only the server has may be the program of what stands behind it.
    end = len(scan.views) if scan.server or scan.refers_at is None else scan.refers_at
    views = [scan.views[at] or {} for at in scan.programs]
    views += scan.resolved.values()
    views += scan.server.chain if scan.server else ()
    programs = [view.get("call_id") for view in views if view.get("type") == "program"]
    known = {one for one in programs if isinstance(one, str)}
    for at in [at for at in scan.callers if at < end]:
        caller = fields((scan.views[at] or {}).get("caller")) or {}
        owner = caller.get("caller_id")
        if caller.get("type") == "program" and isinstance(owner, str) and owner not in known:
            yield Finding(at, ".caller", f"no program in sight has the call_id {shown(owner)}")
    for at in [at for at in scan.program_outputs if at < end]:
        owner = (scan.views[at] or {}).get("call_id")
        if isinstance(owner, str) and owner not in known:
            said = f"no program in sight has the call_id {shown(owner)}"
            yield Finding(at, ".call_id", said, disputed=True)


def _long_call_ids(scan: ResponsesScan) -> Iterator[Finding]:
    verdict = scan.target.responses.schema
    if verdict == "accepted":
        return
    both: list[Call | Result] = [*scan.pairs.calls, *scan.pairs.results]
    for one in both:
        if one.id is not None and len(one.id) > ID_LENGTH and one.position not in scan.resolved:
            where = ".call_id" if one.raw.get("call_id") == one.id else ".id"
            said = f"the call_id {shown(one.id)} has {len(one.id)} characters"
            # The server knows the call by this id, if any call has it.
            repair = AS_THE_RULE if one.id in scan.pairs.calls_by_id else None
            unsure = is_disputed(verdict)
            yield Finding(one.position, where, said, repair=repair, disputed=unsure)


PAIRING = (
    Rule(
        id="resp-call-output-missing",
        api=API,
        statement="Every call that the client runs has an output of its type behind it.",
        error="400 No tool output found for function call call_x.",
        certainty="observed",
        sources=(
            "microsoft/agent-framework#4053",
            "openai/openai-agents-python#3004",
            "Soju06/codex-lb#1168",
            "openai/codex#825",
        ),
        repair="repair_tool_pairs",
        loss="nothing; the model reads a marked text where no output exists",
        remedy="add the output, or take the call out; a computer call needs its screenshot",
        example={
            "input": [
                {"role": "user", "content": "balance?"},
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "balance",
                    "arguments": "{}",
                },
                {"role": "user", "content": "and?"},
            ]
        },
        find=_unanswered,
    ),
    Rule(
        id="resp-output-without-call",
        api=API,
        statement=(
            "Every output follows a call with its call_id and of its type, here or on the server."
        ),
        error="400 No tool call found for function call output with call_id call_x.",
        certainty="observed",
        sources=(
            "continuedev/continue#10092",
            "n8n-io/n8n#33431",
            "microsoft/agent-framework#5546",
            "vercel/ai#18543",
        ),
        repair="repair_tool_pairs",
        loss="nothing when its call is elsewhere; else the output is sent as quoted text",
        remedy="put the call back before its output, or take the output out",
        example={
            "input": [
                {"role": "user", "content": "balance?"},
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
            ]
        },
        find=_without_call,
    ),
    Rule(
        id="resp-duplicate-call-id",
        api=API,
        statement="No two calls of the input have the same call_id.",
        error="400 Duplicate 'call_id': undefined",
        certainty="observed",
        sources=("earendil-works/pi#9057",),
        repair="repair_tool_pairs",
        loss="the id of the later call and of its output",
        remedy="give each call its own call_id, on both sides",
        example={
            "input": [
                {"type": "function_call", "call_id": "call_1", "name": "one", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "1"},
                {"type": "function_call", "call_id": "call_1", "name": "two", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "2"},
            ]
        },
        companions=("resp-duplicate-output",),
        find=_reused_call_ids,
    ),
    Rule(
        id="resp-duplicate-output",
        api=API,
        statement="A call_id has one output.",
        error="no public error text is known",
        certainty="disputed",
        sources=("agno-agi/agno#5116 (the same in Chat Completions)",),
        repair="repair_tool_pairs",
        loss="nothing when both say the same; else one of them is sent as quoted text",
        remedy="keep one output for each call",
        example={
            "input": [
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "balance",
                    "arguments": "{}",
                },
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
            ]
        },
        find=_second_outputs,
    ),
    Rule(
        id="resp-call-id-empty",
        api=API,
        statement="A call_id is not an empty string.",
        error=(
            "400 Invalid 'input[4].call_id': empty string. Expected a string with minimum length "
            "1, but got an empty string instead."
        ),
        certainty="observed",
        sources=("BigPizzaV3/CodexPlusPlus#315",),
        repair="repair_tool_pairs",
        loss="nothing",
        remedy="give the call and its output a call_id",
        example={
            "input": [
                {"type": "function_call", "call_id": "", "name": "balance", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "", "output": "10 EUR"},
            ]
        },
        find=_empty_call_ids,
    ),
    Rule(
        id="resp-output-id-collides",
        api=API,
        statement="A tool output does not have the item id of its call.",
        error="400 No tool output found for function call call_XXX.",
        certainty="observed",
        sources=("tjardoo/openai-client#124",),
        repair="dedupe",
        loss="the id of the output",
        remedy="leave the id of the output out",
        example={
            "input": [
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "call_1",
                    "name": "balance",
                    "arguments": "{}",
                },
                {
                    "type": "function_call_output",
                    "id": "fc_1",
                    "call_id": "call_1",
                    "output": "10 EUR",
                },
            ]
        },
        companions=("history-replayed", "resp-duplicate-item-id", "resp-id-prefix"),
        find=_colliding_outputs,
    ),
    Rule(
        id="resp-call-id-too-long",
        api=API,
        statement="A call_id has at most 64 characters.",
        error=(
            "400 Invalid 'input[4].call_id': string too long. Expected a string with maximum "
            "length 64, but got a string with length 1324 instead."
        ),
        certainty="observed",
        sources=("openai/codex#14355", "RooCodeInc/Roo-Code#10763", "decolua/9router#393"),
        repair="legalise_ids",
        loss="the old id of the call and of its output",
        remedy="shorten the call_id, on both sides alike",
        example={
            "input": [
                {
                    "type": "function_call",
                    "call_id": f"call_{'x' * 60}",
                    "name": "balance",
                    "arguments": "{}",
                },
                {
                    "type": "function_call_output",
                    "call_id": f"call_{'x' * 60}",
                    "output": "10 EUR",
                },
            ]
        },
        code="string_above_max_length",
        find=_long_call_ids,
    ),
    Rule(
        id="resp-item-reference-call-pairing",
        api=API,
        statement="A call whose output is sent is sent in full, not by reference.",
        error="400 No tool call found for function call output with call_id call_x.",
        certainty="disputed",
        sources=(
            "vercel/ai#8216",
            "vercel/ai packages/openai/src/responses/convert-to-openai-responses-input.ts",
        ),
        repair="settle_link",
        loss="nothing",
        remedy="send the call itself instead of a reference to it",
        example={
            "input": [
                {"type": "item_reference", "id": "fc_1"},
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
            ]
        },
        find=_referenced_calls,
    ),
    Rule(
        id="resp-mcp-approval-unknown",
        api=API,
        statement="An approval answers a request for it that the server sees.",
        error="400 (exact text not seen)",
        certainty="documented",
        sources=("microsoft/agent-framework#7452",),
        repair=None,  # nobody approves in the user's name
        loss="",
        remedy="send the approval request before its answer, or take the answer out",
        example={
            "input": [
                {"role": "user", "content": "go on"},
                {
                    "type": "mcp_approval_response",
                    "approval_request_id": "mcpr_1",
                    "approve": True,
                },
            ]
        },
        find=_unknown_approvals,
    ),
    Rule(
        id="resp-computer-safety-unacknowledged",
        api=API,
        statement="The output of a computer call acknowledges its pending safety checks.",
        error="400 Computer tool has unacknowledged safety check for ['cu_sc_xxx']",
        certainty="observed",
        sources=("openai/openai-agents-python#843",),
        repair=None,  # acknowledging is the user's decision
        loss="",
        remedy="let the user decide, and send acknowledged_safety_checks with the output",
        example={
            "input": [
                {
                    "type": "computer_call",
                    "id": "cu_1",
                    "call_id": "call_1",
                    "status": "completed",
                    "action": {"type": "screenshot"},
                    "pending_safety_checks": [{"id": "cu_sc_1"}],
                },
                {
                    "type": "computer_call_output",
                    "call_id": "call_1",
                    "output": {
                        "type": "computer_screenshot",
                        "image_url": "data:image/png;base64,",
                    },
                },
            ]
        },
        find=_unacknowledged,
    ),
    Rule(
        id="resp-program-caller-unknown",
        api=API,
        statement="What a program called comes together with the program.",
        error="no public error text is known",
        certainty="documented",
        sources=(f"{TYPES} (Program, caller.program)",),
        repair="scrub_fields",
        loss="that the program made the call",
        remedy="send the program, its calls and their outputs as one group",
        example={
            "input": [
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "balance",
                    "arguments": "{}",
                    "caller": {"type": "program", "caller_id": "p1"},
                },
                {"type": "function_call_output", "call_id": "call_1", "output": "10 EUR"},
            ]
        },
        find=_unknown_programs,
    ),
)
"""What OpenAI asks of calls and outputs."""
