"""Our own advice: requests that are accepted and still go wrong."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from convnorm.rules.read_responses import OUTPUTS, ResponsesScan, answered_id, item_type
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Call, Scan, shown
from convnorm.wire import fields

BY_VALUE = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "computer_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
    }
)
"""Items that are read from what they say, so that their id adds nothing."""

QUOTED = re.compile(r"<tool-output.*not a message from the user\.", re.DOTALL)
"""An output that convnorm told as data, since its call had one already."""

COUNTER = re.compile(r"[A-Za-z_.:\-]*[0-9]{0,4}")
"""An id that anyone can mint again, like call_0, c1 or edit:22."""


def _unstored_ids(scan: Scan) -> Iterator[Finding]:
    if scan.context.store is not False or scan.target.unstored_ids != "strip":
        return
    for at, item in enumerate(scan.views):
        if item is not None and isinstance(item.get("id"), str) and item_type(item) in BY_VALUE:
            yield Finding(at, ".id", f"the server does not store {shown(item['id'])}")


def _of_another_model(scan: Scan) -> Iterator[Finding]:
    asked, made = scan.target.model, scan.context.provenance.models
    for at, item in enumerate(scan.views if asked and made else ()):
        if item is None or item_type(item) != "reasoning" or not item.get("encrypted_content"):
            continue
        if made.get(at) not in (None, asked):
            said = f"{made[at]} made this reasoning, and {asked} is asked"
            yield Finding(at, ".encrypted_content", said)


def _replays(scan: Scan) -> Iterator[Finding]:
    yield from _same_ids(scan)
    yield from _same_calls(scan)
    if len(set(scan.context.sources)) > 1:
        yield from _same_content(scan)
    if isinstance(scan, ResponsesScan) and scan.server is not None and scan.linked:
        for chain in scan.server.chains:
            yield from _held(scan, chain)


def _held(scan: Scan, chain: list[Mapping[str, Any]]) -> Iterator[Finding]:
    """What the server puts before the input, and the input says again."""
    known: dict[tuple[str, object], None] = {}
    for item in chain:
        known |= dict.fromkeys(_names(item))
    for at, view in enumerate(scan.views):
        if view is not None and any(name in known for name in _names(view)):
            yield Finding(at, "", "the server puts it before the input", repair="settle_link")
    whole = [item for item in chain if not _floats(scan, item)]
    views = (view or {} for view in scan.views)
    said = (_content(scan, view) for view in views if not _floats(scan, view))
    start = list(islice(said, len(whole)))
    end = whole[len(whole) - len(start) :]
    shared = _border([*start, None, *(_content(scan, item) for item in end)])
    if any(item.get("role", "assistant") == "assistant" for item in end[len(end) - shared :]):
        why = "the server puts this before the input, as far as words can tell"
        yield Finding(0, "", why, repair="settle_link")


def _floats(scan: Scan, item: Mapping[str, Any]) -> bool:
    """Whether it may be missing on one side, or stand elsewhere: reasoning, and what came back."""
    if item_type(item) in ("reasoning", *OUTPUTS):
        return True
    return item.get("role") == "user" and any(map(QUOTED.fullmatch, _content(scan, item)))


def _border(row: list[tuple[str, ...] | None]) -> int:
    """How much of the start of a row is its end, too."""
    ends = [0]
    for one in row[1:]:
        count = ends[-1]
        while count and one != row[count]:
            count = ends[count - 1]
        ends.append(count + (one == row[count]))
    return ends[-1]


def _names(item: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What tells that two items are one: the id, the seal, or the call it makes or answers."""
    if isinstance(own := item.get("id"), str):
        yield "id", own
    if item_type(item) == "reasoning" and isinstance(seal := item.get("encrypted_content"), str):
        yield "seal", seal
    if isinstance(call_id := answered_id(item), str):
        yield item_type(item), call_id


def _same_ids(scan: Scan) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for at, view in enumerate(scan.views):
        own = None if view is None else view.get("id")
        if isinstance(own, str) and (before := first.setdefault(own, at)) != at:
            yield Finding(at, ".id", f"{scan.key}[{before}] has the id {shown(own)} too")


def _same_calls(scan: Scan) -> Iterator[Finding]:
    for call_id, calls in scan.pairs.calls_by_id.items():
        if len(calls) < 2 or (COUNTER.fullmatch(call_id) and _all_complete(scan, call_id, calls)):
            continue
        first: dict[tuple[str | None, str | None], int] = {}
        for call in calls:
            before = first.setdefault(_name_and_arguments(call), call.position)
            if before != call.position:
                yield Finding(
                    call.position,
                    call.where,
                    f"{scan.key}[{before}] makes call {shown(call_id)} with equal arguments too",
                )


def _all_complete(scan: Scan, call_id: str, calls: list[Call]) -> bool:
    """Whether each copy has its own result before the id is used again."""
    results = [result.position for result in scan.pairs.results_by_id.get(call_id, ())]
    ends = [call.position for call in calls[1:]] + [len(scan.views)]
    return all(
        call.answered and bisect_right(results, call.position) < bisect_right(results, end)
        for call, end in zip(calls, ends, strict=True)
    )


def _name_and_arguments(call: Call) -> tuple[str | None, str | None]:
    """What the call asks for, as far as it is text; other arguments count as equal."""
    body = fields(call.raw.get("function")) or fields(call.raw.get("custom")) or call.raw
    name, arguments = body.get("name"), body.get("arguments", body.get("input"))
    return (
        name if isinstance(name, str) else None,
        arguments if isinstance(arguments, str) else None,
    )


def _same_content(scan: Scan) -> Iterator[Finding]:
    """Messages that say what a message of another source said before."""
    first: dict[tuple[str, ...], tuple[int, str | None]] = {}
    for at, (view, source) in enumerate(zip(scan.views, scan.context.sources, strict=False)):
        if view is None:
            continue
        before, label = first.setdefault(_content(scan, view), (at, source))
        if label != source:
            said = f"{scan.key}[{before}] of source {label!r} says the same"
            yield Finding(at, "", said, repair="arbitrate_sources")


def _content(scan: Scan, view: Mapping[str, Any]) -> tuple[str, ...]:
    """What a message says, as far as it is ids and text: it may call equal what differs."""
    said = [view.get("role"), view.get("tool_call_id"), answered_id(view)]
    if scan.key == "input":
        said.append(item_type(view))
    for key in ("content", "output"):
        parts = view.get(key)
        said += map(_text, parts if isinstance(parts, list | tuple) else (parts,))
    return tuple(each for each in said if isinstance(each, str) and each)


def _text(part: object) -> object:
    return part if isinstance(part, str) else (fields(part) or {}).get("text")


ID_UNSTORED = Rule(
    id="id-unstored",
    api="openai.responses",
    statement=(
        "With store=false, items that are sent by value have no id, since the server knows none."
    ),
    error=(
        "accepted as a rule; where it is not: Item with id 'fc_...' not found. Items are not "
        "persisted when `store` is set to false."
    ),
    level="advisory",
    certainty="ours",
    sources=("microsoft/agent-framework#4357", "jrkropp/open-webui-developer-toolkit#715"),
    repair="strip_ids",
    loss="nothing",
    remedy="leave the id out",
    example={
        "store": False,
        "input": [{"type": "message", "id": "msg_1", "role": "assistant", "content": "hello"}],
    },
    find=_unstored_ids,
)

HISTORY_REPLAYED = Rule(
    id="history-replayed",
    api="any",
    statement="The history holds everything once: ids and source labels show no copy.",
    error="accepted; the model reads the conversation twice",
    level="advisory",
    certainty="ours",
    sources=("microsoft/agent-framework#4695", "microsoft/agent-framework#5147"),
    repair="dedupe",
    loss="nothing: the copy goes",
    remedy="let one source own the history",
    example={
        "messages": [
            {"role": "user", "id": "4f0c81aa", "content": "hello"},
            {"role": "user", "id": "4f0c81aa", "content": "hello"},
        ]
    },
    find=_replays,
)


def _undelivered(scan: ResponsesScan) -> Iterator[Finding]:
    named = scan.context.conversation
    if scan.server is not None and named is not None and scan.server.ledger.unknown(named):
        said = f"a request on {shown(named)} got no answer, and may be in it"
        yield Finding(-1, "conversation", said)


DELIVERY_UNKNOWN = Rule(
    id="delivery-unknown",
    api="openai.responses",
    statement="A conversation is continued once it is known what it holds.",
    error="accepted; the model may read the unanswered request twice",
    level="advisory",
    certainty="ours",
    sources=("openai/openai-agents-python#3852",),
    repair="settle_link",
    loss="nothing: the whole history is sent instead",
    remedy="ask the server for the items of the conversation, and tell observed_conversation",
    example={
        "conversation": "conv_1",
        "input": [{"role": "user", "content": "and tomorrow?"}],
    },
    setting={
        "state": {
            "conversations": {"conv_1": [{"role": "user", "content": "weather?"}]},
            "attempts": {"a1": {"input": "and tomorrow?", "conversation": "conv_1"}},
        }
    },
    find=_undelivered,
)

REASONING_OF_ANOTHER_MODEL = Rule(
    id="reasoning-of-another-model",
    api="openai.responses",
    statement="Sealed reasoning is sent to the model that made it.",
    error=(
        "often accepted; where it is not: The encrypted content for item rs_... could not be "
        "verified."
    ),
    level="advisory",
    certainty="ours",
    sources=("openclaw embedded-agent-helpers/openai.ts dropStaleOpenAIReasoning",),
    repair="repair_reasoning",
    loss="the reasoning, and the ids of what it led to",
    remedy="leave the reasoning of other models out",
    example={
        "input": [
            {"role": "user", "content": "hello"},
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB1"},
            {"role": "assistant", "content": "hi"},
        ]
    },
    setting={"model": "gpt-5.1", "provenance": {"models": {1: "o3"}}},
    find=_of_another_model,
)


def _half_characters(scan: Scan) -> Iterator[Finding]:
    texts = _chat_texts if scan.key == "messages" else _item_texts
    for at, view in enumerate(scan.views):
        for where, text in texts(view or {}):
            if HALF.search(text):
                yield Finding(at, where, "the text holds half of a surrogate pair")


HALF = re.compile("[\ud800-\udfff]")
ASKING = {"function_call": "arguments", "custom_tool_call": "input"}


def _chat_texts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a message says, asks for or returns, and where."""
    if message.get("role") == "function":
        return
    yield from _said("content", message.get("content"))
    if message.get("role") != "assistant":
        return
    yield from _said("refusal", message.get("refusal"))
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list | tuple) else ()):
        keys = fields(call) or {}
        for kind, name in (("function", "arguments"), ("custom", "input")):
            asked = (fields(keys.get(kind)) or {}).get(name)
            if isinstance(asked, str):
                yield f".tool_calls[{index}].{kind}.{name}", asked


def _item_texts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The same of an input item, as far as its client says it."""
    kind = item_type(item)
    if kind == "message":
        yield from _said("content", item.get("content"))
    elif kind in ASKING:
        asked = item.get(ASKING[kind])
        yield from _said(ASKING[kind], asked if isinstance(asked, str) else None)
    elif kind in OUTPUTS:
        yield from _said("output", item.get("output"))


def _said(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield f".{key}", value
    for index, part in enumerate(value if isinstance(value, list | tuple) else ()):
        yield from _texts_of_part(f".{key}[{index}]", part)


def _texts_of_part(where: str, part: object) -> Iterator[tuple[str, str]]:
    if isinstance(part, str):
        yield where, part
        return
    keys = fields(part) or {}
    for key in ("text", "refusal", "stdout", "stderr"):
        if isinstance(keys.get(key), str):
            yield f"{where}.{key}", keys[key]


TEXT_HALF_CHARACTER = Rule(
    id="text-half-character",
    api="any",
    statement="No text holds half of a surrogate pair, which UTF-8 cannot write.",
    error=(
        "nothing is sent: UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud83d' in "
        "position 6: surrogates not allowed. Clients that escape it send it, and nobody says what "
        "becomes of it"
    ),
    level="advisory",
    certainty="ours",
    sources=("anomalyco/opencode packages/opencode/test/provider/transform.test.ts",),
    repair="scrub_fields",
    loss="nothing: half a character is none",
    remedy="cut texts between characters, not between UTF-16 units",
    example={"messages": [{"role": "user", "content": "smile \ud83d"}]},
    find=_half_characters,
)
