"""The pass `repair_reasoning`."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from convnorm.demote import Demotion, demoted
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Loss, Mend, SetTurn
from convnorm.facts import Fact
from convnorm.groups import is_reasoning
from convnorm.ir import History, Reasoning, ToolResult, Turn
from convnorm.options import Options
from convnorm.pairing import pair_up
from convnorm.seals import Seals
from convnorm.targets import Fault

FLAWS: Mapping[Fault, Loss | None] = {
    Fault.SUMMARY_MISSING: None,
    Fault.REASONING_TEXT: Loss.REASONING,
    Fault.REASONING_OF_CALLS: None,
    Fault.REASONING_OF_TURNS: None,
    Fault.REASONING_TWICE: None,
}
"""What the dialect writes anew, and what that costs."""
SPEAKERS = ("user", "system", "developer")


class RepairReasoning(Options):
    """Send reasoning where it is taken, whole and with what it led to, and nowhere else.

    ## Why
    Reasoning is bound to the item it led to, to the server that sealed it, and to models that
    reason: "Item 'rs_...' of type 'reasoning' was provided without its required following item.",
    "The encrypted content for item rs_... could not be verified.", "Reasoning input items can only
    be provided to a reasoning or computer use model.", "The `reasoning_content` in the thinking
    mode must be passed back to the API."

    ## Example
    ```json
    {"input": [
      {"role": "user", "content": "balance?"},
      {"type": "reasoning", "id": "rs_1", "summary": []},
      {"role": "user", "content": "hello?"},
      {"type": "reasoning", "id": "rs_2", "encrypted_content": "gAAAA"},
      {"role": "assistant", "content": "10 EUR"}]}
    ```
    becomes
    ```json
    {"input": [
      {"role": "user", "content": "balance?"},
      {"role": "user", "content": "hello?"},
      {"type": "reasoning", "id": "rs_2", "encrypted_content": "gAAAA", "summary": []},
      {"role": "assistant", "content": "10 EUR"}]}
    ```

    ## Safety
    Only reasoning goes, and only where it would be refused: when what it led to is gone, when the
    model or the server does not take it, when it was sealed for someone else. What it led loses its
    id with it, since the server would ask for the reasoning; texts, calls and results stay. Where a
    server wants reasoning back that nobody kept, a blank stands for it, never an invented thought.
    A call that Gemini would refuse without its signature is quoted as data, with its result.
    """

    name: Literal["repair_reasoning"] = "repair_reasoning"

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.REASONING})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        rules, turns = call.target.rules, history.turns
        judge = _Judge(history, call)
        unsigned: set[int] = set()
        led_by_dropped = False
        for at, turn in enumerate(turns):
            if is_reasoning(turn):
                fault, why = judge.fault(at, turn)
                if fault is not None and fault in rules:
                    led_by_dropped = True
                    loss = None if fault is Fault.REASONING_EMPTY else Loss.REASONING
                    yield Drop(at, rule=rules[fault], why=why, loss=loss)
                    because = rules[fault]
                    continue
            elif turn.role != "assistant":
                led_by_dropped = False
            elif turn.id is not None and not turn.needs_id:
                if led_by_dropped:
                    why = "the reasoning that led to it goes"
                    yield SetTurn(at, {"id": None}, rule=because, why=why, loss=Loss.ID)
                elif missing := judge.missing_lead(at, turn):
                    rule = rules[Fault.LEAD_MISSING]
                    why = f"the reasoning {missing} that led to it is not right before it"
                    yield SetTurn(at, {"id": None}, rule=rule, why=why, loss=Loss.ID)
            for flaw in turn.flaws:
                if flaw.fault in FLAWS and flaw.fault in rules:
                    loss = FLAWS[flaw.fault]
                    yield Mend(at, flaw, rule=rules[flaw.fault], why=flaw.why, loss=loss)
                elif flaw.fault is Fault.UNSIGNED_CALLS and flaw.fault in rules:
                    unsigned.add(at)
        if unsigned:
            found = pair_up(history, batch_is_turn=call.target.adjacent_results).pairs
            pairs = [pair for pair in found if pair.place.turn in unsigned]
            rule, why = rules[Fault.UNSIGNED_CALLS], "the call has no signature"
            yield from demoted(history, [Demotion(pair, rule, why) for pair in pairs], call)


class _Judge:
    """What is wrong with one reasoning item, as far as this history and the context tell."""

    def __init__(self, history: History, call: Call) -> None:
        self.turns, self.target, self.context = history.turns, call.target, call.context
        profile = call.target.responses
        self.refused, self.needs_id = profile.no_reasoning, profile.reasoning_id
        self.seals = Seals(call.context.ledger, call.context)
        self.sealed_before = self._newest_response() if profile.one_sealed_response else 0
        """Sealed reasoning before this turn is that of older responses."""

    def fault(self, at: int, turn: Turn) -> tuple[Fault | None, str]:
        (item,) = turn.items
        assert isinstance(item, Reasoning)
        if self.refused:
            return Fault.REASONING_REFUSED, f"{self.target.model} takes no reasoning"
        model = self.target.model
        if item.proof and turn.model and model and turn.model != model:
            return Fault.REASONING_OF_ANOTHER, f"{turn.model} made it, and {model} is asked"
        if item.proof and (self._is_plain(item.proof) or self.seals.refused(item.proof)):
            return Fault.SEALED_ELSEWHERE, "its encrypted content was not sealed by this server"
        if self.needs_id and turn.id is None:
            return Fault.REASONING_ID_LOST, "its id is lost, and this server wants it"
        if item.proof and at < self.sealed_before:
            return Fault.OTHER_RESPONSE, "only the newest response's reasoning may be sent"
        if self.target.reasoning_by_value:
            return None, ""
        if self.seals.lost(turn.id) and not item.proof:
            return Fault.UNSTORED_REASONING, f"the server does not have {turn.id}"
        if turn.id is None and not item.proof:
            said = "it has neither an id nor encrypted content"
            if self.context.conversation is not None:
                return Fault.REASONING_UNUSABLE, said
            return (None, "") if item.text else (Fault.REASONING_EMPTY, f"{said}, and says nothing")
        if turn.id is not None and (follower := self._wrong_follower(at, turn.id)):
            return Fault.UNFOLLOWED, f"{turn.id} is followed by {follower}, not by what it led to"
        return None, ""

    def _is_plain(self, proof: str) -> bool:
        """Whether a seal is plain text, which some servers take and nobody sealed."""
        return self.target.responses.schema == "refused" and " " in proof[:256]

    def _wrong_follower(self, at: int, own: str) -> str:
        if at + 1 == len(self.turns):
            return "nothing"
        after = self.turns[at + 1]
        if after.role in SPEAKERS:
            return f"a {after.role} message"
        if after.items and isinstance(result := after.items[0], ToolResult) and result.answers:
            return "a tool output"
        led = self.seals.followers.get(own)
        if led is None or led == after.id or after.id not in self.seals.stored:
            return ""
        return f"item {after.id}"

    def missing_lead(self, at: int, turn: Turn) -> str | None:
        """The reasoning that a stored item wants right before it, when it is not there."""
        lead = self.seals.leads.get(turn.id or "")
        if self.target.reasoning_by_value or lead is None or lead in self.seals.chain:
            return None
        return None if at and self.turns[at - 1].id == lead else lead

    def _newest_response(self) -> int:
        """Where the turn begins that the newest sealed reasoning belongs to."""
        sealed = [at for at, turn in enumerate(self.turns) if _is_sealed(turn)]
        for at in range(sealed[-1] if sealed else 0, -1, -1):
            if self.turns[at].role in SPEAKERS:
                return at
        return 0


def _is_sealed(turn: Turn) -> bool:
    return is_reasoning(turn) and bool(getattr(turn.items[0], "proof", None))
