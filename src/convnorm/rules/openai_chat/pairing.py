"""Calls and their results."""

from collections.abc import Iterator

from convnorm.rules.openai_chat.common import API, SPECIFICATION, TYPES, describe
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Scan, repair_of_id, shown, usable


def _unanswered(scan: Scan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        if not call.answered:
            astray = scan.pairs.astray.get(call.id or "")
            hint = "" if astray is None else f"; messages[{astray}] has its id and stands elsewhere"
            yield Finding(
                call.position,
                call.where,
                f"{describe(call)} has no tool message right behind its message{hint}",
            )


def _orphans(scan: Scan) -> Iterator[Finding]:
    if all(result.call for result in scan.pairs.results):
        return
    named = {(call.batch, call.id) for call in scan.pairs.calls if call.id}
    for result in scan.pairs.results:
        if result.call is not None or (result.batch, result.id) in named:
            continue  # it has its call, or is a second result in the right place
        what = f"the result of call {shown(result.id)}" if result.id else "a result without an id"
        yield Finding(
            result.position, "", f"{what} does not stand right behind a message that calls for it"
        )


def _second_results(scan: Scan) -> Iterator[Finding]:
    in_block: dict[tuple[int, str], int] = {}
    anywhere: dict[str, int] = {}
    for result in scan.pairs.results:
        if result.id is None:
            continue
        before = in_block.setdefault((result.batch, result.id), result.position)
        first = anywhere.setdefault(result.id, result.position)
        if result.batch < 0 or before == result.position:
            before = first if result.call is None else result.position
        if before != result.position:
            yield Finding(
                result.position,
                ".tool_call_id",
                f"messages[{before}] already answers call {shown(result.id)}",
            )


def _reused_call_ids(scan: Scan) -> Iterator[Finding]:
    seen: set[tuple[int, str]] = set()
    for call in scan.pairs.calls:
        if call.id is None:
            continue
        if (call.batch, call.id) in seen:
            yield Finding(
                call.position,
                f"{call.where}.id",
                f"two calls of one message have the id {shown(call.id)}",
            )
        seen.add((call.batch, call.id))


def _results_without_id(scan: Scan) -> Iterator[Finding]:
    for result in scan.pairs.results:
        given = result.raw.get("tool_call_id")
        if usable(given) is None:
            said = f"the tool_call_id of a tool message is {shown(given)}"
            yield Finding(result.position, ".tool_call_id", said, repair_of_id(given))


def _incomplete_calls(scan: Scan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        given = call.raw.get("id")
        if usable(given) is None:
            said = f"the id of a tool call is {shown(given)}"
            yield Finding(call.position, f"{call.where}.id", said, repair_of_id(given))
    for at, where, name in scan.no_body:
        why = "the tool call has neither a function nor a custom tool"
        # What is said beside the name is the body; without a name nothing can be called.
        repair = "legalise_ids" if usable(name) is None else "scrub_fields"
        yield Finding(at, where, why, repair=repair)
    for at, where, kind in scan.no_kind:
        why = f"the type of the tool call is {shown(kind)}"
        # Many servers fill it in, and a word that is not known here may be a new one.
        new_word = isinstance(kind, str) and kind not in ("", "function", "custom")
        disputed = new_word or scan.target.chat.odd_parts != "refused"
        yield Finding(at, f"{where}.type", why, repair="scrub_fields", disputed=disputed)


PAIRING = (
    Rule(
        id="chat-tool-calls-unanswered",
        api=API,
        statement="Every tool call is answered by the tool messages right behind its message.",
        error=(
            "400 An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'. The following tool_call_ids did not have response "
            "messages: call_x"
        ),
        certainty="observed",
        sources=(
            "microsoft/semantic-kernel#12663",
            "langchain-ai/langgraph#2075",
            "langgenius/dify-official-plugins#2352",
        ),
        repair="repair_tool_pairs",
        loss="nothing; the model reads a marked text where no result exists",
        remedy="add the result right behind the call, or take the call out",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "user", "content": "and?"},
            ]
        },
        find=_unanswered,
    ),
    Rule(
        id="chat-tool-message-orphan",
        api=API,
        statement="A tool message stands right behind the message whose calls name its id.",
        error=(
            "400 Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'."
        ),
        certainty="observed",
        sources=("BerriAI/litellm#4931", "n8n-io/n8n#34166", "microsoft/semantic-kernel#12708"),
        repair="repair_tool_pairs",
        loss="nothing when its call is elsewhere; else the result is sent as quoted text",
        remedy="put the call back before its result, or take the result out",
        example={
            "messages": [
                {"role": "user", "content": "balance?"},
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
            ]
        },
        find=_orphans,
    ),
    Rule(
        id="chat-duplicate-tool-result",
        api=API,
        statement="A tool_call_id is answered by one tool message.",
        error=(
            "400 Invalid parameter: Duplicate value for 'tool_call_id' of 'call_x', in messages[7] "
            "and messages[8]."
        ),
        certainty="observed",
        sources=("agno-agi/agno#5116", "neuron-core/neuron-ai#46", "fatwang2/search2ai#30"),
        repair="repair_tool_pairs",
        loss="nothing when both say the same; else one of them is sent as quoted text",
        remedy="keep one result for each call",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
                {"role": "tool", "tool_call_id": "call_1", "content": "10 EUR"},
            ]
        },
        find=_second_results,
    ),
    Rule(
        id="chat-duplicate-tool-call-id",
        api=API,
        statement="The ids of the calls in one message are different.",
        error="400 duplicate tool_call_id",
        certainty="observed",
        sources=("openclaw/openclaw#40897", "VicBilibily/GCMP#120", "can1357/oh-my-pi#2055"),
        repair="repair_tool_pairs",
        loss="the id of the later call and of its result",
        remedy="give each call its own id, on both sides",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "edit", "arguments": '{"file": "a"}'},
                        },
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "edit", "arguments": '{"file": "b"}'},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "a is done"},
                {"role": "tool", "tool_call_id": "call_1", "content": "b is done"},
            ]
        },
        companions=("chat-duplicate-tool-result",),
        find=_reused_call_ids,
    ),
    Rule(
        id="chat-tool-call-id-missing",
        api=API,
        statement="A tool message has a tool_call_id that is a string and not empty.",
        error=(
            "400 Missing parameter 'tool_call_id': messages with role 'tool' must have a "
            "'tool_call_id'."
        ),
        certainty="observed",
        sources=("langchain-ai/langchain#22600", "vercel/ai#2178", "MadcowD/ell#325"),
        repair="repair_tool_pairs",
        loss="nothing when one call is open; else the result is sent as quoted text",
        remedy="say which call the result answers",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "content": "10 EUR"},
            ]
        },
        find=_results_without_id,
    ),
    Rule(
        id="chat-tool-call-field-missing",
        api=API,
        statement=(
            "A tool call has an id that is a string and not empty, a type, and the function or "
            "custom tool that it calls."
        ),
        error=(
            "400 Missing required parameter: 'messages[2].tool_calls[0].type'. (wording not "
            "verified)"
        ),
        certainty="documented",
        sources=(TYPES, SPECIFICATION),
        repair="repair_tool_pairs",
        loss="nothing",
        remedy="give the call and its result an id",
        example={
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"type": "function", "function": {"name": "balance", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "content": "10 EUR"},
            ]
        },
        companions=("chat-tool-call-id-missing",),
        find=_incomplete_calls,
    ),
)
