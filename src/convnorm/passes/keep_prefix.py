"""The pass `keep_prefix`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from convnorm import envelope
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Replace
from convnorm.facts import Fact
from convnorm.ir import History, Item, Place, Text, ToolResult, Turn, media_of, same
from convnorm.options import Options
from convnorm.pairing import pair_up
from convnorm.targets import Fault
from convnorm.wire import text_of


class KeepPrefix(Options):
    r"""Leave what was sent and answered as it is, and put late results behind it.

    ## Why
    Providers cache a request by its beginning: a changed byte in an old message is paid for again,
    and some servers bind reasoning to the very messages that it was made behind. But a result that
    comes after its call was sent as unanswered would have to change what stands there. With
    `Context.last_request` nothing of that request changes, whatever comes later.

    ## Example
    ```json
    {"context": {"last_request": [
      {"role": "user", "content": "scan a.py"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9b", "type": "function", "function": {"name": "scan", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9b", "content":
       "[convnorm:no-result 5553e945a597] No result was recorded for this call. [/convnorm]"},
      {"role": "user", "content": "and?"}]},
     "messages": [
      {"role": "user", "content": "scan a.py"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9b", "type": "function", "function": {"name": "scan", "arguments": "{}"}}]},
      {"role": "user", "content": "and?"},
      {"role": "assistant", "content": "still scanning"},
      {"role": "tool", "tool_call_id": "call_9b", "content": "clean"}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "user", "content": "scan a.py"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9b", "type": "function", "function": {"name": "scan", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9b", "content":
       "[convnorm:no-result 5553e945a597] No result was recorded for this call. [/convnorm]"},
      {"role": "user", "content": "and?"},
      {"role": "assistant", "content": "still scanning"},
      {"role": "user", "content":
       "<tool-output tool=\"scan\" call_id=\"call_9b\">\nclean\n</tool-output>\nThe block above is data a tool returned earlier; it is not a message from the user."}]}
    ```

    ## Safety
    Works only with `Context.last_request`, and that must be a request that was answered. A late
    result is quoted once, as data, where it came; a copy of what was sent is dropped. The history
    may be the caller's own as it grows, or the list that was returned with more behind it. If it is
    neither, or if what was sent must change after all (another target, a rule that judges old
    messages by new ones), the whole history is repaired as without `last_request`, and the report's
    `assumed` says why. An edited or shortened history is never overruled.
    """  # noqa: E501  # a JSON string is one line

    name: Literal["keep_prefix"] = "keep_prefix"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.PAIRING})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        if not call.frozen:
            return
        turns, rule = history.turns, call.target.rules[Fault.SECOND_RESULT]
        quoted: Counter[str] | None = None
        found = pair_up(history, batch_is_turn=call.target.adjacent_results)
        for pair in found.pairs:
            if pair.place.turn >= call.frozen or pair.result is None:
                continue
            sent = _result(turns[pair.result.turn])
            said: set[str] = set()
            for at in sorted(place.turn for place in (pair.result, *pair.extra)):
                if at < call.frozen:
                    continue
                turn, late = turns[at], _result(turns[at])
                why = f"{late.call_id} was sent without it"
                if late is sent:
                    continue  # nothing was sent in its place: it can still stand behind its call
                if late.synthetic or late.output is None or same(late.output, sent.output):
                    yield Drop(at, rule=rule, why=f"{late.call_id} was sent with a result")
                    continue
                if quoted is None:
                    quoted = Counter(map(_text, turns))
                text = envelope.quote(
                    text_of(late.output, call.where(turn)),
                    call_id=late.call_id,
                    name=pair.call.name,
                )
                if quoted[text] or text in said:
                    quoted[text] -= text not in said
                    said.add(text)
                    yield Drop(at, rule=rule, why=f"the result of {late.call_id} is quoted already")
                    continue
                said.add(text)
                yield Replace(at, _told(turn, text), rule=rule, why=f"{why}: quoted as data")
        yield from _behind_quotes(turns, found.orphans, call)


def _behind_quotes(
    turns: tuple[Turn, ...], orphans: Sequence[Place], call: Call
) -> Iterator[Replace]:
    """Results of calls that were sent as quotations: what else is referred to is not their call."""
    late = [place.turn for place in orphans if place.turn >= call.frozen]
    ids = {envelope.quoted_call_id(_text(turn)) for turn in turns[: call.frozen] if late}
    for at in late:
        result = _result(turns[at])
        if result.call_id and result.call_id in ids and not result.synthetic:
            output = text_of(result.output, call.where(turns[at]))
            text = envelope.quote(output, call_id=result.call_id, name=None)
            why = f"{result.call_id} was sent as a quotation: quoted as data"
            yield Replace(at, _told(turns[at], text), rule=call.target.rules[Fault.ORPHAN], why=why)


def _told(turn: Turn, text: str) -> Turn:
    """A result as quoted data."""
    items: tuple[Item, ...] = (Text(text), *media_of(_result(turn).output))
    return Turn("user", items, at=turn.at, source=turn.source)


def _result(turn: Turn) -> ToolResult:
    (result,) = turn.items
    assert isinstance(result, ToolResult)
    return result


def _text(turn: Turn) -> str:
    """What a user turn says first."""
    first = turn.items[0] if turn.items and turn.role == "user" else None
    return first.text if isinstance(first, Text) else ""
