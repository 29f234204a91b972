"""What OpenAI Responses enforces on `input`."""

from collections.abc import Iterator
from typing import Final

from convnorm.rules.read_responses import OUTPUTS, answered_id, item_type
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Call, Result, Scan, shown

API: Final = "openai.responses"
TYPES = "openai 3.51.0 types"


def describe(call: Call) -> str:
    """A call as a message names it."""
    name = call.raw.get("name")
    said = f"{call.kind} call {shown(call.id)}" if call.id else f"a {call.kind} call without an id"
    return f"{said} ({name[:64]})" if isinstance(name, str) and name else said


# Pairing.


def _unanswered(scan: Scan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        if call.answered:
            continue
        astray = scan.pairs.astray.get(call.id or "")
        hint = "" if astray is None else f"; input[{astray}] has its id and cannot answer it"
        message = f"{describe(call)} has no output behind it{hint}"
        if call.kind == "computer":  # its output is a screenshot, which nobody can invent
            yield Finding(call.position, "", message, repair=None)
        else:
            yield Finding(call.position, "", message)


def _without_call(scan: Scan) -> Iterator[Finding]:
    calls, results = scan.pairs.calls, scan.pairs.results
    if all(result.call for result in results):
        return
    waiting = {call.id for call in calls if not call.answered}
    first: dict[tuple[str, str | None], int] = {}
    for call in calls:
        first.setdefault((call.kind, call.id), call.position)
    for result in results:
        at, call_id = result.position, result.id
        if result.call is not None:
            continue
        beyond = scan.linked or (scan.refers_at is not None and scan.refers_at < at)
        if call_id and beyond and call_id not in waiting:
            continue  # the server may hold the call
        if call_id and any(first.get((kind, call_id), at) < at for kind in result.kinds):
            continue  # the call is there, and this is its second output
        what = f"the output of call {shown(call_id)}" if call_id else "an output without an id"
        yield Finding(at, "", f"{what} has no open call of its type before it")


def _second_outputs(scan: Scan) -> Iterator[Finding]:
    for call_id, results in scan.pairs.results_by_id.items():
        first = results[0].position
        for result in results[1:]:
            yield Finding(
                result.position, "", f"input[{first}] is an output of call {shown(call_id)} too"
            )


def _reused_call_ids(scan: Scan) -> Iterator[Finding]:
    for call_id, calls in scan.pairs.calls_by_id.items():
        first = calls[0].position
        for call in calls[1:]:
            yield Finding(
                call.position, ".call_id", f"input[{first}] has the call_id {shown(call_id)} too"
            )


def _empty_call_ids(scan: Scan) -> Iterator[Finding]:
    both: list[Call | Result] = [*scan.pairs.calls, *scan.pairs.results]
    for one in both:
        if one.id is None and one.raw.get("call_id") == "":
            yield Finding(one.position, ".call_id", "the call_id is an empty string")


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
)


# Ids, and what the server holds.


def _repeated_ids(scan: Scan) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for at, item in enumerate(scan.views):
        own = None if item is None else item.get("id")
        if isinstance(own, str) and (before := first.setdefault(own, at)) != at:
            yield Finding(at, ".id", f"input[{before}] has the id {shown(own)} too")


def _colliding_outputs(scan: Scan) -> Iterator[Finding]:
    for result in scan.pairs.results:
        own = result.raw.get("id")
        if isinstance(own, str) and result.call and own == result.call.raw.get("id"):
            yield Finding(
                result.position,
                ".id",
                f"the output has the id {shown(own)} of its call in input[{result.call.position}]",
            )


def _not_persisted(scan: Scan) -> Iterator[Finding]:
    if scan.context.store is not False or scan.target.reasoning_by_value:
        return
    for at in scan.reasoning:
        item = scan.views[at] or {}
        own, sealed = item.get("id"), item.get("encrypted_content")
        if isinstance(own, str) and not (isinstance(sealed, str) and sealed):
            yield Finding(
                at, "", f"reasoning {shown(own)} is not stored and has no encrypted content"
            )


def _without_following(scan: Scan) -> Iterator[Finding]:
    if scan.target.reasoning_by_value:
        return
    for at in scan.reasoning:
        item = scan.views[at] or {}
        if not isinstance(item.get("id"), str):
            continue
        if at + 1 == len(scan.views):
            follower = "nothing"
        else:
            after = scan.views[at + 1] or {}
            kind, role = item_type(after), after.get("role")
            if kind in OUTPUTS:
                follower = "a tool output"
            elif kind == "message" and role in ("user", "system", "developer"):
                follower = f"a {role} message"
            else:
                continue
        yield Finding(
            at,
            "",
            f"reasoning {shown(item['id'])} is followed by {follower}, not by what it led to",
        )


STATE = (
    Rule(
        id="resp-duplicate-item-id",
        api=API,
        statement="No two items of the input have the same id, references included.",
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
        companions=("history-replayed", "resp-duplicate-item-id"),
        find=_colliding_outputs,
    ),
    Rule(
        id="resp-item-not-persisted",
        api=API,
        statement=(
            "With store=false a reasoning item with an id carries its encrypted content; no other "
            "item is judged."
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
        companions=("id-unstored",),
        find=_not_persisted,
    ),
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
        repair="repair_reasoning",  # not built yet: until then the fault is only reported
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
)


# Shapes.


def _empty_input(scan: Scan) -> Iterator[Finding]:
    if not scan.views and not scan.linked and scan.fields.get("prompt") is None:
        yield Finding(-1, "", "there is nothing to send")


def _no_objects(scan: Scan) -> Iterator[Finding]:
    for at in scan.no_objects:
        yield Finding(at, "", "the input item is no object")


def _odd_roles(scan: Scan) -> Iterator[Finding]:
    for at in scan.odd_roles:
        role = (scan.views[at] or {}).get("role")
        yield Finding(at, ".role", f"the role of a message is {shown(role)}")


def _missing_fields(scan: Scan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        if call.id is None and call.raw.get("call_id") != "":
            message = f"the call_id of a call is {shown(call.raw.get('call_id'))}"
            yield Finding(call.position, ".call_id", message)
    for result in scan.pairs.results:
        given = answered_id(result.raw)
        if given == "" and result.call and result.call.id is None:
            continue  # neither has a name, and they belong together: `resp-call-id-empty` says it
        if result.id is None:
            message = f"the call_id of an output is {shown(given)}"
            yield Finding(result.position, ".call_id", message)
    for at in scan.no_output:
        yield Finding(at, ".output", "the output is null", repair="drop_empty")
    for at in scan.no_text:
        yield Finding(at, ".content", "the content is null", repair="drop_empty")


SHAPES = (
    Rule(
        id="resp-input-required",
        api=API,
        statement="The input holds at least one item, unless a prompt or stored state stands in.",
        error="400 (no wording seen)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="send at least one item",
        example={"input": []},
        find=_empty_input,
    ),
    Rule(
        id="resp-item-type",
        api=API,
        statement="Every input item is an object.",
        error="400 type error (documented)",
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="pass items as dicts or SDK objects, and take out what is no item",
        example={"input": [{"role": "user", "content": "hello"}, None]},
        find=_no_objects,
    ),
    Rule(
        id="resp-role-invalid",
        api=API,
        statement="The role of a message is assistant, system, developer or user.",
        error=(
            "400 Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', "
            "and 'user'. (wording not verified)"
        ),
        certainty="documented",
        sources=(TYPES,),
        repair=None,
        loss="",
        remedy="use a role that the API has; send a tool message as a function_call_output",
        example={"input": [{"role": "tool", "content": "10 EUR"}]},
        find=_odd_roles,
    ),
    Rule(
        id="resp-required-field-missing",
        api=API,
        statement=(
            "Calls and outputs have a call_id, function and custom outputs an output, and messages "
            "a content; no other field is judged."
        ),
        error="400 Missing required parameter: 'input[2].call_id'.",
        certainty="documented",
        sources=(TYPES, "esengine/DeepSeek-Reasonix#8359"),
        repair="repair_tool_pairs",
        loss="nothing; a reply that says nothing is dropped",
        remedy="add the field",
        example={"input": [{"role": "user", "content": None}]},
        find=_missing_fields,
    ),
)

RULES = PAIRING + STATE + SHAPES
