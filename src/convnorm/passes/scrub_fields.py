"""The pass `scrub_fields`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from convnorm import envelope
from convnorm.demote import Demotion, demoted
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Loss, Mend, Move, Replace, Unrepairable
from convnorm.facts import Fact
from convnorm.ir import Flaw, History, Item, Text, ToolCall, ToolResult, Turn
from convnorm.options import Options
from convnorm.pairing import pair_up
from convnorm.targets import Fault
from convnorm.wire import SAID, fields, is_whole, text_of, whole

FLAWS: Mapping[Fault, Loss | None] = {
    Fault.KEY_UNKNOWN: Loss.FIELD,
    Fault.KEY_EMPTY: None,
    Fault.THOUGHT_KEY: Loss.REASONING,
    Fault.REFUSAL_KEY: None,
    Fault.VALUE_ODD: None,
    Fault.VALUE_LOST: Loss.FIELD,
    Fault.SPEAKER_NAME: Loss.ID,
    Fault.SPEAKER_IN_TEXT: None,
    Fault.CALL_SHAPE: None,
    Fault.CALLS_UNLISTED: None,
    Fault.CONTENT_ODD: None,
    Fault.CONTENT_LISTED: None,
    Fault.CONTENT_NULL: None,
    Fault.CONTENT_MISSING: None,
    Fault.PHASE_ODD: Loss.FIELD,
    Fault.OUTPUT_TYPE: None,
    Fault.FIELD_MISSING: None,
    Fault.ITEM_TYPE: None,
    Fault.CALLER_UNKNOWN: Loss.FIELD,
    Fault.MESSAGE_HALF: None,
    Fault.MESSAGE_CITING: Loss.FIELD,
}
"""What the dialect writes anew, and what that costs."""
DROPPED: Mapping[Fault, Loss] = {
    Fault.ITEM_EMPTY: Loss.EMPTY,
    Fault.REFERENCE_EMPTY: Loss.EMPTY,
    Fault.TRIGGER_TWICE: Loss.COPY,
}
"""What says nothing, or nothing new."""
QUOTED = (Fault.ITEM_UNKNOWN, Fault.ITEM_LACKING, Fault.ITEM_MALFORMED)
"""What cannot be written as the target takes it."""


class ScrubFields(Options):
    r"""Send only the keys, values and items that the target takes; the rest is told or left out.

    ## Why
    SDK dumps and other servers add what an API does not know, and one odd key fails the whole
    request: "Unknown parameter: 'input[1].status'.", "property 'reasoning_content' is unsupported",
    "Invalid 'messages[5].name': string does not match pattern.", "value must be a string",
    "invalid message content type: <nil>".

    ## Example
    ```json
    {"input": [
      {"role": "user", "content": "balance?"},
      {"type": "reasoning", "id": "rs_1", "summary": [], "status": null},
      {"type": "function_call", "call_id": "call_9", "name": "balance", "arguments": "{}",
       "parsed_arguments": null},
      {"type": "function_call_output", "call_id": "call_9", "output": {"EUR": 10}}]}
    ```
    becomes
    ```json
    {"input": [
      {"role": "user", "content": "balance?"},
      {"type": "reasoning", "id": "rs_1", "summary": []},
      {"type": "function_call", "call_id": "call_9", "name": "balance", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_9", "output": "{\"EUR\": 10}"}]}
    ```

    ## Safety
    A key goes only where the target is known to refuse it; where it passes over unknown keys, a
    vendor's keys stay. What a key held is named as a loss, unless it was empty. Values of a wrong
    type become the same in the right one where that can be done: an object its JSON text, parts one
    text. Words under a key that is not taken (a refusal, the transcript of a sound) move into the
    content. A speaker's name is written in legal letters, two names never as one; where nothing of
    it would be left, it stands in the text. An item that the API cannot have is quoted as data.
    Safety checks, approvals and compacted memory are never touched.
    """

    name: Literal["scrub_fields"] = "scrub_fields"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.FIELDS})

    def __call__(self, history: History, call: Call) -> Iterator[Edit | Unrepairable]:
        """Ask for the edits this history needs."""
        rules, left = call.target.rules, len(history.turns)
        unsendable: dict[int, Flaw] = {}
        for at, turn in enumerate(history.turns):
            written = {flaw.key for flaw in turn.mended}
            for flaw in turn.flaws:
                if flaw.fault not in rules or flaw.key in written:
                    continue
                rule, why = rules[flaw.fault], flaw.why
                if flaw.fault in FLAWS:
                    yield Mend(at, flaw, rule=rule, why=why, loss=FLAWS[flaw.fault])
                elif flaw.fault in DROPPED and left > 1:
                    left -= 1  # a request needs something to send
                    yield Drop(at, rule=rule, why=why, loss=DROPPED[flaw.fault])
                elif flaw.fault is Fault.KEY_CALLS:
                    yield Unrepairable(at, rule, f"{why}: send its calls as function_call items")
                elif flaw.fault is Fault.TRIGGER_EARLY:
                    yield Move(at, len(history.turns) - 1, rule=rule, why=why)
                elif flaw.fault in QUOTED or flaw.fault in DROPPED:
                    unsendable[at] = flaw
        yield from _quoted(history, unsendable, call)
        yield from _whole_texts(history, call, but=unsendable)


def _quoted(history: History, unsendable: Mapping[int, Flaw], call: Call) -> Iterator[Edit]:
    """Tell as data what cannot be sent as what it is: a call with its result, an item whole."""
    if not unsendable:
        return
    pairs = pair_up(history, batch_is_turn=call.target.adjacent_results).pairs
    paired = [
        Demotion(pair, call.target.rules[flaw.fault], flaw.why)
        for pair in pairs
        if (flaw := unsendable.get(pair.place.turn)) is not None
    ]
    yield from demoted(history, paired, call)
    called = {one.pair.place.turn for one in paired}
    for at, flaw in unsendable.items():
        if at in called:
            continue
        turn = history.turns[at]
        text = envelope.quote_item(text_of(turn.raw, call.where(turn)))
        new = Turn("user", (Text(text),), at=turn.at, source=turn.source)
        yield Replace(
            at, new, rule=call.target.rules[flaw.fault], why=f"{flaw.why}: quoted as data"
        )


def _whole_texts(history: History, call: Call, *, but: Mapping[int, Flaw]) -> Iterator[Edit]:
    """Texts that were cut in the middle of a character."""
    rule = call.target.rules.get(Fault.HALF_CHARACTER)
    for place, item in history.items if rule else ():
        new = _whole(item)
        if new is not item and place.turn not in but and rule:
            why = "a text holds half of a surrogate pair"
            yield Replace(place.turn, new, place.item, rule=rule, why=why)


def _whole(item: Item) -> Item:
    match item:
        case Text(text=text) if not is_whole(text):
            return replace(item, text=whole(text))
        case ToolCall(kind="function" | "custom", arguments=str() as text) if not is_whole(text):
            return replace(item, arguments=whole(text))
        case ToolResult(paired=True, output=str() as text) if not is_whole(text):
            return replace(item, output=whole(text))
        case ToolResult(paired=True, output=list() | tuple() as parts):
            new = [_whole_part(part) for part in parts]
            same = all(now is was for now, was in zip(new, parts, strict=True))
            return item if same else replace(item, output=new)
    return item


def _whole_part(part: object) -> object:
    if isinstance(part, str):
        return whole(part)
    keys = fields(part) or {}
    said = {key: text for key in SAID if isinstance(text := keys.get(key), str)}
    halves = {key: whole(text) for key, text in said.items() if not is_whole(text)}
    return {**keys, **halves} if halves else part
