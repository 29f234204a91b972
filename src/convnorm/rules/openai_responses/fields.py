"""Which keys an item has; the tables are in `responses_items`."""

from collections.abc import Iterator, Mapping

from convnorm.rules.openai_responses.words import API, is_disputed
from convnorm.rules.read_responses import ResponsesScan, answered_id, item_type
from convnorm.rules.rule import AS_THE_RULE, Finding, Rule
from convnorm.rules.scan import key_name, repair_of_id, shown, usable
from convnorm.targets.responses_items import DISPUTED_KEYS, HOSTED, ITEMS, PART_KEYS, TYPES

REPAIRS: Mapping[str, str | None] = {
    "arguments": "repair_arguments",
    "input": "repair_arguments",
    "name": "legalise_ids",
    # Nobody approves, or remembers, in the place of someone else.
    "approval_request_id": None,
    "approve": None,
    "encrypted_content": None,
}
"""By key: what repairs an item that lacks it."""


CALLING = ("tool_calls", "function_call")
"""Keys under which a message of Chat Completions makes its calls."""


def _missing_fields(scan: ResponsesScan) -> Iterator[Finding]:
    for call in scan.pairs.calls:
        given = call.raw.get("call_id")
        if not isinstance(given, str):
            message = f"the call_id of a call is {shown(given)}"
            yield Finding(call.position, ".call_id", message, repair_of_id(given))
    for result in scan.pairs.results:
        given = answered_id(result.raw)
        if given == "" and result.call and result.call.id is None:
            continue  # neither has a name, and they belong together: `resp-call-id-empty` says it
        if usable(given) is None:
            message = f"the call_id of an output is {shown(given)}"
            yield Finding(result.position, ".call_id", message, repair_of_id(given))
    for at in scan.no_output:
        yield Finding(at, ".output", "the output is null", repair="drop_empty")
    for at in scan.no_text:
        yield Finding(at, ".content", "the content is null", repair="drop_empty")
    for at, key in scan.lacking:
        kind = item_type(scan.views[at] or {})
        repair = REPAIRS.get(key, "scrub_fields")
        if kind == "computer_call_output" or (kind, key) == ("custom_tool_call", "name"):
            repair = None  # its output is a screenshot, which nobody can invent
        elif kind == "tool_search_call":
            repair = "scrub_fields"
        yield Finding(at, f".{key}", f"the {key} of a {kind} is null", repair=repair)
    for at, key in scan.asked:
        item = scan.views[at] or {}
        kind = item_type(item)
        if kind in HOSTED and item.get("id") is None:
            continue  # `resp-hosted-item-id-missing` says what matters
        said = f"a {kind} has no {key}"
        yield Finding(at, f".{key}", said, repair="scrub_fields", disputed=True)


def _unknown_fields(scan: ResponsesScan) -> Iterator[Finding]:
    verdict = scan.target.responses.schema
    if verdict == "accepted":
        return
    unsure = is_disputed(verdict)
    for at in scan.odd_keys:
        item = scan.views[at] or {}
        kind = item_type(item)
        allowed, doubtful = ITEMS[kind].keys, DISPUTED_KEYS.get(kind, ())
        # A tool message of Chat Completions has its keys, and becomes an output with them.
        repaired = "repair_roles" if item.get("role") == "tool" else AS_THE_RULE
        for key in item:
            if key not in allowed:
                said = f"a {kind} has no {shown(key)}"
                # Nobody drops calls that were made in the shape of another API.
                repair = None if key in CALLING and item[key] else repaired
                yield Finding(at, f".{key_name(key)}", said, repair=repair, disputed=unsure)
            elif key in doubtful:
                said = f"a {kind} with {shown(key)} was refused by some servers"
                yield Finding(at, f".{key}", said, disputed=True)
    for at, where, part in scan.odd_part_keys:
        kind = part["type"]
        for key in part:
            if key not in PART_KEYS[kind]:
                said = f"a part of type {kind} has no {shown(key)}"
                yield Finding(at, f"{where}.{key_name(key)}", said, disputed=unsure)


FIELDS = (
    Rule(
        id="resp-required-field-missing",
        api=API,
        statement="Every item has what its type requires, as a call its call_id.",
        error="400 Missing required parameter: 'input[2].call_id'.",
        certainty="documented",
        sources=(TYPES, "esengine/DeepSeek-Reasonix#8359"),
        repair="repair_tool_pairs",
        loss="nothing; a reply that says nothing is dropped",
        remedy="add the field",
        example={"input": [{"role": "user", "content": None}]},
        find=_missing_fields,
    ),
    Rule(
        id="resp-unknown-field",
        api=API,
        statement="An item has no keys that its type does not have, not even with null in them.",
        error="400 Unknown parameter: 'input[1].status'.",
        certainty="observed",
        sources=(
            "BerriAI/litellm#13420",
            "openai/openai-python#3008",
            "1jehuang/jcode#1028",
            "Yeachan-Heo/gajae-code#1688",
        ),
        repair="scrub_fields",
        loss="the field, which the API does not know",
        remedy="leave the field out",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {
                    "type": "reasoning",
                    "summary": [],
                    "encrypted_content": "gAAAAAB1",
                    "status": "completed",
                },
                {"role": "assistant", "content": "hi"},
            ]
        },
        code="unknown_parameter",
        find=_unknown_fields,
    ),
)
"""What OpenAI asks of the keys of items."""
