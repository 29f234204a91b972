"""The pass `repair_roles`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from convnorm import envelope
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Insert, Loss, Mend, Replace, SetTurn
from convnorm.facts import Fact
from convnorm.ir import INSTRUCTING, History, Item, Media, Reasoning, Text, ToolCall, Turn
from convnorm.joining import is_blank, joined
from convnorm.options import Options
from convnorm.targets import Fault

SPEAKERS = ("user", "assistant")
ROLES = (*INSTRUCTING, *SPEAKERS)
FOREIGN: Mapping[str, str] = {
    "human": "user",
    **dict.fromkeys(("ai", "bot", "chatbot", "gpt", "model"), "assistant"),
    **{role: role for role in ROLES},
}
"""What other libraries and APIs call those who speak, in small letters."""
OTHER: Mapping[str, str] = {"user": "assistant", "assistant": "user"}


class RepairRoles(Options):
    """Give every turn a role that the target takes, and the turns an order that it takes.

    ## Why
    Some models and servers know fewer roles, and the templates of some models want the speakers to
    take turns: "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']",
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "Conversation roles must alternate user/assistant/user/assistant/...", "Unexpected role 'user'
    after role 'tool'", "Expected last role to be one of: [tool, user] but got assistant".

    ## Example
    ```json
    {"model": "o1-mini", "messages": [
      {"role": "developer", "content": "Be brief."},
      {"role": "human", "content": "balance?"},
      {"role": "ai", "content": "10 EUR"},
      {"role": "user", "content": "and in dollars?"}]}
    ```
    becomes
    ```json
    {"model": "o1-mini", "messages": [
      {"role": "user", "content": "Be brief."},
      {"role": "user", "content": "balance?"},
      {"role": "assistant", "content": "10 EUR"},
      {"role": "user", "content": "and in dollars?"}]}
    ```

    ## Safety
    A developer message becomes a system message, and where the model takes none a user message:
    only its rank is lost. The roles of other libraries (human, ai, model, bot, …) are translated; a
    role that nobody knows raises, since only the caller knows who spoke. A tool message of Chat
    Completions in a Responses input becomes the output that it is. Calls in a message of
    somebody else move to an assistant message directly behind it.

    Where speakers must take turns, neighbours of one role are joined, with a blank line between
    them and, where their names differ, the name above each. Instructions at the head become one
    message; those in the middle are joined to what the user says there, at their place. Where only
    the order is asked for, instructions behind a reply or a result are sent as a user message.
    Messages with keys that a joined message could not keep, quoted data, and turns that only tools
    stand between, are not joined: there, and wherever else the target wants a turn that nobody
    took, a short marked one is put in. No text is lost or moved, and calls stay with their results.

    The last message of such a request may still change: it is joined with what comes next, and a
    turn invented behind it is not needed any more. Nothing is joined to what `Context.last_request`
    says was sent; which messages of a list of the caller's own were joined in it is found again.
    """

    name: Literal["repair_roles"] = "repair_roles"
    neighbours: Literal["join", "part"] = "join"
    """Two messages of one speaker, where the target wants turns: `join` them, or `part` them by a
    turn of the other; then what was sent stays as it is, whatever comes next."""
    reply: str = "No reply was recorded here."
    """What stands for a reply that nobody gave, where the target wants one."""
    prompt: str = "Nothing was said here. Please go on."
    """What stands for a user's turn that nobody took, where the target wants one."""

    wakes_on: ClassVar[frozenset[Fact]] = frozenset({Fact.ROLES})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        yield from _Repair(self, history, call).edits()


@dataclass(frozen=True, slots=True)
class _NewRole:
    """The role a turn gets, and why."""

    role: str
    fault: Fault
    why: str
    loss: Loss | None = None


class _Repair:
    """One run: the role that each turn gets, and the order of those who speak."""

    def __init__(self, options: RepairRoles, history: History, call: Call) -> None:
        self.options, self.turns = options, history.turns
        self.rules, self.frozen = call.target.rules, call.frozen
        self.new: dict[int, _NewRole] = {}
        """By turn: the role it gets."""

    def edits(self) -> Iterator[Edit]:
        misplaced = []
        for at, turn in enumerate(self.turns):
            new = _new_role(turn, self.rules)
            if new is not None:
                self.new[at] = new
            for flaw in turn.flaws:
                if flaw.fault is Fault.FOREIGN_ROLE:
                    yield Mend(at, flaw, rule=self.rules[flaw.fault], why=flaw.why)
            if Fault.MISPLACED_CALLS in self.rules and self._role(at) in OTHERS and _calls(turn):
                misplaced.append(at)
        for at in misplaced:
            yield from self._give_calls(at)
        ordered = list(self._in_turns()) if Fault.OUT_OF_TURN in self.rules else []
        if not ordered and Fault.OUT_OF_ORDER in self.rules:
            ordered = list(self._in_order())
        for at, new in self.new.items():
            rule = self.rules[new.fault]
            yield SetTurn(at, {"role": new.role}, rule=rule, why=new.why, loss=new.loss)
        yield from ordered

    def _role(self, at: int) -> str:
        new = self.new.get(at)
        return self.turns[at].role if new is None else new.role

    def _give_calls(self, at: int) -> Iterator[Edit]:
        """Calls are the assistant's: a message that only calls is, too; else they go behind it."""
        turn, rule = self.turns[at], self.rules[Fault.MISPLACED_CALLS]
        why = f"a message of role {self._role(at)!r} calls tools"
        calls = tuple(item for item in turn.items if isinstance(item, ToolCall))
        if all(isinstance(item, ToolCall | Reasoning) or is_blank(item) for item in turn.items):
            self.new[at] = _NewRole("assistant", Fault.MISPLACED_CALLS, why)
            return
        for place, item in enumerate(turn.items):
            if isinstance(item, ToolCall):
                yield Drop(at, place, rule=rule, why=f"{why}: they go behind it")
        new = Turn("assistant", calls, at=turn.at, source=turn.source)
        yield Insert(at, new, rule=rule, why=why)

    def _in_turns(self) -> Iterator[Edit]:
        """One message of instructions, then user and assistant in turns."""
        rule = self.rules[Fault.OUT_OF_TURN]
        last = None  # who spoke last
        block: list[int] = []  # neighbours that are joined into one; empty behind calls and results
        blocks: list[list[int]] = []
        for at, turn in enumerate(self.turns):
            role = self._role(at)
            if at == self.frozen or self.options.neighbours == "part":
                block = []  # nothing is joined to what was sent
            if role in INSTRUCTING and at:
                if self._follows(block, INSTRUCTING) and _joinable(self.turns[block[-1]], turn):
                    block.append(at)
                    continue
                why = "instructions stand behind the head: sent as a user message"
                self.new[at] = _NewRole("user", Fault.OUT_OF_TURN, why, Loss.RANK)
                role = "user"
            elif role in INSTRUCTING:
                block = [at]
                blocks.append(block)
                continue
            if role not in SPEAKERS or _calls(turn):
                block = []
                continue
            if role != (last or "assistant"):
                block = [at]
                blocks.append(block)
            elif self._follows(block, (role,)) and _invented(turn):
                yield Drop(at, rule=rule, why=NOT_NEEDED)
            elif self._follows(block, (role,)) and _invented(self.turns[block[0]]):
                yield Drop(block[0], rule=rule, why=NOT_NEEDED)
                block[:] = [at]
            elif self._follows(block, (role,)) and _joinable(self.turns[block[-1]], turn):
                block.append(at)
            else:
                why = "two turns of one role" if last else "the assistant speaks first"
                yield Insert(at - 1, self._invent(OTHER[role], turn), rule=rule, why=why)
                block = [at]
                blocks.append(block)
            last = role
        for block in blocks:
            yield from self._join(block, rule)

    def _follows(self, block: list[int], roles: tuple[str, ...]) -> bool:
        """Whether a turn of one of these roles would stand directly behind one like it."""
        return bool(block) and self._role(block[0]) in roles

    def _join(self, block: list[int], rule: str) -> Iterator[Edit]:
        if len(block) < 2:
            return
        first, *others = block
        role = self._role(first)
        new = replace(joined([self.turns[at] for at in block]), role=role)
        yield Replace(first, new, rule=rule, why=f"{len(block)} messages of role {role} are joined")
        for at in others:
            loss = Loss.ID if self.turns[at].id else None
            why = "joined to the message before it"
            yield Drop(at, joined=True, rule=rule, why=why, loss=loss)

    def _in_order(self) -> Iterator[Edit]:
        """No user speaks behind a result, nobody instructs behind the model, no reply is last."""
        rule = self.rules[Fault.OUT_OF_ORDER]
        before = None
        for at, turn in enumerate(self.turns):
            role = self._role(at)
            if role in INSTRUCTING and before in ("assistant", "tool"):
                why = "instructions stand behind a reply or a result: sent as a user message"
                self.new[at] = _NewRole("user", Fault.OUT_OF_ORDER, why, Loss.RANK)
                role = "user"
            if role == "user" and before == "tool":
                why = "a user message stands right behind a result"
                yield Insert(at - 1, self._invent("assistant", turn), rule=rule, why=why)
            before = role
        if not self.turns or before in ("user", "tool"):
            return
        turn = self.turns[-1]
        if not (before == "assistant" and (_calls(turn) or turn.goes_on)):
            why = f"the last message is of role {before!r}"
            yield Insert(len(self.turns) - 1, self._invent("user", turn), rule=rule, why=why)

    def _invent(self, role: str, beside: Turn) -> Turn:
        said = self.options.reply if role == "assistant" else self.options.prompt
        return Turn(role, (Text(envelope.turn(said)),), at=beside.at, source=beside.source)


NOT_NEEDED = "a turn that stood in for another is not needed"
OTHERS = ("user", *INSTRUCTING)
"""Who calls no tools, and whose messages can be told from calls."""


def _new_role(turn: Turn, rules: Mapping[Fault, str]) -> _NewRole | None:
    """The role that the turn gets here, if its own is not taken."""
    new = None
    role = turn.role
    if role not in ROLES and role.casefold() in FOREIGN and Fault.FOREIGN_ROLE in rules:
        role = FOREIGN[role.casefold()]
        new = _NewRole(role, Fault.FOREIGN_ROLE, f"the role {turn.role!r} is {role!r} here")
    fault = {"developer": Fault.DEVELOPER_REFUSED, "system": Fault.SYSTEM_REFUSED}.get(role)
    if fault is None or fault not in rules:
        return new
    if Fault.SYSTEM_REFUSED in rules:
        return _NewRole("user", fault, f"no {role} message is taken: sent by the user", Loss.RANK)
    return _NewRole("system", fault, "a developer message is a system message here")


def _calls(turn: Turn) -> bool:
    """Whether the turn makes calls that a result answers."""
    return any(isinstance(item, ToolCall) and item.answered_by for item in turn.items)


def _invented(turn: Turn) -> bool:
    """Whether the turn is one that an earlier run put in."""
    match turn.items:
        case (Text(text=text),):
            return envelope.is_turn(text)
    return False


def _joinable(one: Turn, other: Turn) -> bool:
    """Whether one message can say what both say, with nothing left over."""
    items = (*one.items, *other.items)
    return not (one.has_more or other.has_more) and all(
        isinstance(item, Text | Media) and item.slot == "content" and not _is_quote(item)
        for item in items
    )


def _is_quote(item: Item) -> bool:
    """Whether it quotes what somebody else said, and so stays apart from the user's own words."""
    if not isinstance(item, Text):
        return False
    return envelope.is_quote(item.text) or envelope.quoted_call(item.text) is not None
