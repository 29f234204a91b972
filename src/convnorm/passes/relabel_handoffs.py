"""The pass `relabel_handoffs`."""

from collections.abc import Iterator
from typing import Literal

from convnorm.demote import Demotion, demoted
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Loss
from convnorm.ir import History, Reasoning, Text, ToolCall, Turn
from convnorm.options import Options
from convnorm.pairing import pair_up
from convnorm.renaming import legal_name

LONGEST = 64
"""How long the name of a speaker may be."""


class RelabelHandoffs(Options):
    r"""Show an agent what the other agents did with their tools, as quoted text (opt-in).

    ## Why
    After a handoff the next agent reads calls of tools that it does not have. Models imitate them
    ("Tool 'handoff_to_vision' not found"), and frameworks that delete them instead lose what the
    tools returned.

    ## Example
    ```json
    {"options": {"agent": "writer"}, "messages": [
      {"role": "user", "content": "balance?"},
      {"role": "assistant", "name": "banker", "content": "", "tool_calls": [
        {"id": "call_9a", "type": "function", "function": {"name": "balance", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9a", "content": "10 EUR"},
      {"role": "assistant", "name": "banker", "content": "The writer will tell you."}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "user", "content": "balance?"},
      {"role": "user", "content": "<tool-call agent=\"banker\" tool=\"balance\" call_id=\"call_9a\">\n{}\n</tool-call>\n<tool-output tool=\"balance\" call_id=\"call_9a\">\n10 EUR\n</tool-output>\nThe blocks above are a call that was made earlier and data that it returned; they are not a message from the user."},
      {"role": "assistant", "name": "banker", "content": "The writer will tell you."}]}
    ```

    ## Safety
    Runs only in a policy that names it. Whose call it is comes from `Context.provenance.agents`, or
    from the `name` of a chat message. Calls of another agent are quoted with what they returned,
    behind a delimiter that nothing in them can close; the reasoning that led to them goes, and so
    does an empty text beside them. What anybody said stays, and so do all media, the agent's own
    calls, and what the server ran by itself.
    """  # noqa: E501  # a JSON text has no line breaks

    name: Literal["relabel_handoffs"] = "relabel_handoffs"
    agent: str | None = None
    """The agent that the request is for: its calls stay calls. None: they are all of others."""
    unnamed: Literal["keep", "relabel"] = "keep"
    """Calls of which nobody says whose they are: `keep` them, or `relabel` them too."""

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        turns = history.turns
        found = pair_up(history, batch_is_turn=call.target.adjacent_results).pairs
        pairs = [pair for pair in found if self._is_foreign(turns[pair.place.turn])]
        why = "another agent made the call"
        yield from demoted(history, [Demotion(pair, self.name, why) for pair in pairs], call)
        for at in sorted({pair.place.turn for pair in pairs}):
            yield from self._leftovers(at, turns[at])

    def _is_foreign(self, turn: Turn) -> bool:
        if turn.agent is None:
            return self.unnamed == "relabel"
        # A name that cannot be sent as it is stands in the history as it was sent.
        return self.agent is None or legal_name(turn.agent, LONGEST) != legal_name(
            self.agent, LONGEST
        )

    def _leftovers(self, at: int, turn: Turn) -> Iterator[Edit]:
        """What says nothing without the calls beside it."""
        others = [item for item in turn.items if not isinstance(item, ToolCall)]
        silent = all(isinstance(item, Reasoning) or _is_blank(item) for item in others)
        for i, item in enumerate(turn.items):
            if isinstance(item, Reasoning):
                why = "it led to calls of another agent"
                yield Drop(at, i, rule=self.name, why=why, loss=Loss.REASONING)
            elif silent and _is_blank(item):
                yield Drop(at, i, rule=self.name, why="nothing is left beside it", loss=Loss.EMPTY)


def _is_blank(item: object) -> bool:
    return isinstance(item, Text) and not item.text.strip()
