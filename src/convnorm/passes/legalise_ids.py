"""The pass `legalise_ids`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Literal, TypeGuard

from convnorm import envelope
from convnorm.demote import Demotion, demoted
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Loss, Mend, Replace
from convnorm.facts import Fact
from convnorm.ir import GONE, History, Item, Opaque, Reasoning, Text, ToolCall, ToolResult, Turn
from convnorm.options import Options
from convnorm.pairing import Pair, pair_up
from convnorm.renaming import Renamer, legal_name
from convnorm.targets import Fault
from convnorm.wire import text_of

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
NINE = re.compile(r"[a-zA-Z0-9]{9}")
CHECKED = ("function", "legacy_function")
"""Kinds of call whose name is checked."""
NAMELESS: Mapping[str | None, Fault] = {None: Fault.NAME_MISSING, "": Fault.NAME_EMPTY}
"""What is wrong with no name at all; any other name that is blank has the wrong form."""
NUMBERS = (Fault.CALL_ID_MISSING, Fault.RESULT_ID_MISSING)
"""What a server says of a call id that is a number: it takes texts."""
ITEM_IDS = (
    Fault.ITEM_ID_LONG,
    Fault.ITEM_ID_LETTERS,
    Fault.ITEM_ID_PREFIX,
    Fault.HOSTED_ID_MISSING,
)


class LegaliseIds(Options):
    """Give calls ids and names that the target takes, the same on both sides of a pair.

    ## Why
    Another provider's ids are too long or have the wrong letters: "Invalid
    'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but
    got a string with length 43 instead.", "Tool call id was call_x but must be a-z, A-Z, 0-9, with
    a length of 9.", "Invalid 'input[1].id': '__fake_id__'. Expected an ID that begins with 'fc'."

    ## Example
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "fc_0123456789abcdef0123456789abcdef012345678", "type": "function",
         "function": {"name": "crm.balance", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "fc_0123456789abcdef0123456789abcdef012345678",
       "content": "10 EUR"}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_251fc9c8ee84", "type": "function",
         "function": {"name": "crm_balance", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_251fc9c8ee84", "content": "10 EUR"}]}
    ```

    ## Safety
    A new id is made from the old one alone, so every run and every process makes the same, and two
    old ones never become one. What the target takes is left as it is. Letters that a name cannot
    have become underscores, as most frameworks write them. A call id that is a number becomes its
    digits, and a message of the old role function gets the name of the call before it, or is
    quoted. The id of an item that the server could not have made is left out; reasoning that has
    nothing else goes with it. A hosted item without its id cannot be sent and is quoted as data,
    and so are a call without a name and its result. Texts, arguments and results are never touched.
    """

    name: Literal["legalise_ids"] = "legalise_ids"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.IDS})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        yield from _item_ids(history, call)
        yield from _written_anew(history, call)
        nameless = list(_nameless(history, call))
        why = "a call without a name cannot be sent"
        told = [Demotion(pair, call.target.rules[fault], why) for pair, fault in nameless]
        yield from demoted(history, told, call)
        yield from _calls(history, call, but={pair.call.call_id for pair, _ in nameless})


def _item_ids(history: History, call: Call) -> Iterator[Edit]:
    """Take out the ids that no server made."""
    rules = call.target.rules
    for at, turn in enumerate(history.turns):
        for flaw in turn.flaws:
            if flaw.fault not in ITEM_IDS:
                continue
            rule = rules[flaw.fault]
            match turn.items:
                case (Opaque(refers=True),):
                    yield Drop(at, rule=rule, why=flaw.why, loss=Loss.ID)
                case (item,) if turn.needs_id:
                    text = text_of(item.raw, call.where(turn))
                    quoted = envelope.quote(text, call_id=None, name=getattr(item, "kind", None))
                    new = Turn("user", (Text(quoted),), at=turn.at, source=turn.source)
                    yield Replace(at, new, rule=rule, why=f"{flaw.why}: quoted as data")
                case (Reasoning(proof=None),) if not call.target.reasoning_by_value:
                    yield Drop(at, rule=rule, why=flaw.why, loss=Loss.REASONING)
                case _:
                    yield Mend(at, flaw, rule=rule, why=flaw.why, loss=Loss.ID)
            break  # one id, one edit


def _written_anew(history: History, call: Call) -> Iterator[Edit]:
    """Write ids of calls that are numbers as text, and names that stand in the message before; what
    an old function returned whose name nobody knows is told as data.
    """
    for at, turn in enumerate(history.turns):
        for flaw in turn.flaws:
            if flaw.fault not in (*NUMBERS, Fault.FUNCTION_UNNAMED):
                continue
            rule = call.target.rules[flaw.fault]
            if flaw.value is not GONE:
                yield Mend(at, flaw, rule=rule, why=flaw.why)
                continue
            outputs = [item.output or "" for item in turn.items if _is_result(item)]
            output = "".join(text_of(each, call.where(turn)) for each in outputs)
            told = Text(envelope.quote(output, call_id=None, name=None))
            new = Turn("user", (told,), at=turn.at, source=turn.source)
            yield Replace(at, new, rule=rule, why=f"{flaw.why}: quoted as data")


def _is_result(item: Item) -> TypeGuard[ToolResult]:
    return isinstance(item, ToolResult)


def _nameless(history: History, call: Call) -> Iterator[tuple[Pair, Fault]]:
    """The calls that name no function, and which fault that is."""
    rules = call.target.rules
    if all(item.name and item.name.strip() for _, item in history.items if _is_named(item)):
        return
    for pair in pair_up(history, batch_is_turn=call.target.adjacent_results).pairs:
        name = pair.call.name
        if _is_named(pair.call) and not (name and name.strip()):
            fault = NAMELESS.get(name, Fault.NAME_FORM)
            if fault in rules:
                yield pair, fault


def _is_named(item: Item) -> TypeGuard[ToolCall]:
    return isinstance(item, ToolCall) and item.kind == "function"


def _calls(history: History, call: Call, *, but: set[str | None]) -> Iterator[Edit]:
    """Rename calls and what answers them; those that go are passed over."""
    profile, rules = call.target.profile, call.target.rules
    most, nine = profile.call_id_length, profile.nine_character_ids == "refused"
    if nine:
        ids = Renamer(lambda old: NINE.fullmatch(old) is not None, _nine)
        fault = Fault.CALL_ID_FORM
    else:
        ids = Renamer(lambda old: most is None or len(old) <= most, _call_id)
        fault = Fault.CALL_ID_LONG
    called = {item.call_id for _, item in history.items if isinstance(item, ToolCall)} - but
    for place, item in history.items:
        if not isinstance(item, ToolCall | ToolResult):
            continue
        new: ToolCall | ToolResult = item
        whys: list[tuple[Fault, str]] = []
        if item.call_id and item.call_id in called:  # else its call is on the server
            call_id = ids.settle(item.call_id)
            if call_id != item.call_id:
                new = _renamed(new, call_id)
                whys.append((fault, f"the id {_short(item.call_id)} cannot be sent"))
        if isinstance(new, ToolCall) and new.kind in CHECKED and (bare := (new.name or "").strip()):
            name = (
                legal_name(bare, profile.name_length or len(bare))
                if Fault.NAME_FORM in rules
                else new.name
            )
            if name != new.name:
                whys.append((Fault.NAME_FORM, f"the name {_short(new.name or '')} cannot be sent"))
                new = replace(new, name=name)
        if whys:
            first, _ = whys[0]
            why = ", ".join(why for _, why in whys)
            yield Replace(place.turn, new, place.item, rule=rules[first], why=why, loss=Loss.ID)


def _renamed(item: ToolCall | ToolResult, call_id: str) -> ToolCall | ToolResult:
    if isinstance(item, ToolResult) and item.synthetic and isinstance(item.output, str):
        # Its envelope names the call.
        return replace(item, call_id=call_id, output=envelope.rename(item.output, call_id))
    return replace(item, call_id=call_id)


def _call_id(old: str, tries: int) -> str:
    return f"call_{_digest(old, tries)}"


def _nine(old: str, tries: int) -> str:
    number = int(_digest(old, tries), 16)
    letters = []
    for _ in range(9):
        number, digit = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[digit])
    return "".join(letters)


def _digest(old: str, tries: int) -> str:
    return envelope.digest(old, str(tries)) if tries else envelope.digest(old)


def _short(text: str) -> str:
    return repr(text if len(text) <= 64 else f"{text[:61]}...")
