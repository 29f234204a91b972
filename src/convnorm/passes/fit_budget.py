"""The pass `fit_budget`."""

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from convnorm import envelope
from convnorm.dialects.dialect import Call
from convnorm.edits import Assumed, Drop, Edit, Loss, Replace
from convnorm.ir import History, Item, Reasoning, Text, ToolCall, ToolResult, Turn
from convnorm.options import Options
from convnorm.units import Units
from convnorm.wire import LIST, fields, text_of


class FitBudget(Options):
    r"""Send no more than the server, or your own budget, allows: the oldest goes first (opt-in).

    ## Why
    A thread that grows for weeks reaches a limit and is refused from then on: "$.messages is too
    long. Maximum length is 2048, but got 4968 items.", "string too long. Expected a string with
    maximum length 10485760". A cut between a call and its result is refused as well.

    ## Example
    ```json
    {"options": {"max_messages": 3}, "messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "balance?"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9a", "type": "function", "function": {"name": "balance", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9a", "content": "10 EUR"},
      {"role": "assistant", "content": "10 EUR"},
      {"role": "user", "content": "thanks"}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "thanks"}]}
    ```

    ## Safety
    Runs only in a policy that names it; without options it keeps the limits that the server is
    known to have. A user's turn goes with all that answered it, the oldest first, so that what
    remains begins with a user. In the newest turn, whose question always stays, the oldest
    exchanges go. A call and its results, and reasoning and what it led to, go together or not at
    all. Instructions, compacted history and what convnorm does not look into always stay. What is
    cut off a text is replaced by a mark that says how much it was. Media are not counted as tokens.
    Each request drops a little more, so a provider's cache is lost for the rest: leave room.
    """

    name: Literal["fit_budget"] = "fit_budget"
    max_messages: int | None = Field(default=None, ge=1)
    """How many messages, or input items, are sent; by default what the server is known to take."""
    max_tokens: int | None = Field(default=None, ge=1)
    """How many tokens all messages have together, as `count` counts them."""
    count: SkipJsonSchema[Callable[[str], int]] | None = Field(default=None, exclude=True)
    """Counts the tokens of a text; only from Python. By default one for three bytes."""
    keep_last: int = Field(default=1, ge=1)
    """How many of the newest messages stay, each with its whole exchange."""
    first: Literal["turns", "tools"] = "turns"
    """What goes first: the oldest `turns`, or the oldest exchanges with `tools`."""
    max_output: int | None = Field(default=None, ge=200)
    """How many characters of a tool's output are sent; by default what the server takes."""

    def __call__(self, history: History, call: Call) -> Iterator[Edit | Assumed]:
        """Ask for the edits this history needs."""
        texts = call.target.profile.longest_text
        cut: dict[int, list[Edit]] = {}
        turns: list[Turn] = []
        for at, turn in enumerate(history.turns):
            items = [self._cut(item, texts) for item in turn.items]
            changed = [i for i, item in enumerate(items) if item is not turn.items[i]]
            if changed:
                cut[at] = [self._shortened(at, i, items[i]) for i in changed]
            turns.append(replace(turn, items=tuple(items)) if changed else turn)
        gone = yield from self._trimmed(replace(history, turns=tuple(turns)), call)
        for at, edits in cut.items():
            if at not in gone:
                yield from edits

    # ------------------------------------------------------------ texts

    def _cut(self, item: Item, most: int | None) -> Item:
        """The item with its texts no longer than allowed."""
        match item:
            case ToolResult(output=output) if _in_words(item):
                limits = [limit for limit in (most, self.max_output) if limit is not None]
                new = _shortest(output, min(limits)) if limits else output
                return item if new is output else replace(item, output=new)
            case Text(text=text) if most is not None and len(text) > most:
                return replace(item, text=envelope.cut(text, most))
            case ToolCall(arguments=str() as text) if most is not None and len(text) > most:
                return replace(item, arguments=_cut_arguments(text, most))
        return item

    def _shortened(self, at: int, i: int, item: Item) -> Edit:
        why = "the text is longer than allowed"
        return Replace(at, item, i, rule="resp-string-too-long", why=why, loss=Loss.END)

    # ------------------------------------------------------------ turns

    def _trimmed(self, history: History, call: Call) -> Generator[Edit | Assumed, None, set[int]]:
        """Drop what is too much; returns which turns go."""
        server = call.target.profile.most_messages
        messages = server if self.max_messages is None else self.max_messages
        cost = Counter({at: self._tokens(turn, call) for at, turn in enumerate(history.turns)})
        left, tokens = len(history.turns), cost.total()

        def is_over() -> bool:
            too_many = messages is not None and left > messages
            return too_many or (self.max_tokens is not None and tokens > self.max_tokens)

        rule = "chat-messages-too-many" if server and len(history.turns) > server else self.name
        gone: set[int] = set()
        if is_over():
            units = Units(history, call, keep_last=self.keep_last)
            for unit in units.oldest_first(tools=self.first == "tools"):
                if not is_over():
                    break
                gone |= unit
                left -= len(unit)
                tokens -= sum(cost[at] for at in unit)
            for at in sorted(gone):
                yield Drop(at, rule=rule, why="over the budget", loss=Loss.OLDEST)
            if is_over():
                yield Assumed(
                    f"what has to stay is over the budget: {left} messages, {tokens} tokens"
                )
        return gone

    def _tokens(self, turn: Turn, call: Call) -> int:
        if self.max_tokens is None:
            return 0
        text = "\n".join(_words(item, call.where(turn)) for item in turn.items)
        if self.count is not None:
            return self.count(text)
        return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def _in_words(result: ToolResult) -> bool:
    """Whether an output is a text, or parts of which some are."""
    return isinstance(result.output, (str, *LIST)) and not result.synthetic


def _words(item: Item, where: str) -> str:
    match item:
        case Text(text=text) | Reasoning(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            asked = arguments if isinstance(arguments, str) else text_of(arguments, where)
            return f"{name} {asked}"
        case ToolResult(output=output):
            return "" if output is None else text_of(output, where)
    return ""


def _shortest(output: Any, most: int) -> Any:
    """An output of which each text has at most so many characters."""
    if isinstance(output, str):
        return envelope.cut(output, most) if len(output) > most else output
    new = [_short_part(part, most) for part in output]
    same = all(now is was for now, was in zip(new, output, strict=True))
    return output if same else new


def _short_part(part: object, most: int) -> object:
    keys = fields(part) or {}
    long = {
        key: envelope.cut(text, most)
        for key in ("text", "stdout", "stderr")
        if isinstance(text := keys.get(key), str) and len(text) > most
    }
    return {**keys, **long} if long else part


def _cut_arguments(text: str, most: int) -> str:
    """Arguments of which the end is left out, as the JSON object that servers want there."""
    length = most
    while True:
        length = length * 9 // 10
        short = json.dumps({"unparsed_arguments": envelope.cut(text, length)}, ensure_ascii=False)
        if len(short) <= most:
            return short
