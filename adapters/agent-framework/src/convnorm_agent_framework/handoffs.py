"""`Handoffs`: what the tools of one agent returned is told to the others, as quoted text."""

import json
from collections.abc import Sequence
from contextvars import Token
from types import TracebackType
from typing import Any, Self

from agent_framework import Message

from convnorm import Context, Policy, Provenance, normalize
from convnorm.passes.relabel_handoffs import RelabelHandoffs
from convnorm_agent_framework.codec import Codec
from convnorm_agent_framework.memory import digest
from convnorm_agent_framework.parts import items
from convnorm_agent_framework.turn import HANDOFFS

HANDS_OFF = "handoff_to_"
"""How the names of the tools begin by which the framework hands off."""
QUOTE = Policy(target="openai.responses", passes=(RelabelHandoffs(unnamed="relabel"),))


class Handoffs:
    """One conversation of several agents, whose handoffs strip what their tools did.

    ```python
    with Handoffs():
        await workflow.run("What is my balance?")
    ```

    Every normalized client that is asked inside of the block tells each agent once what the tools
    of the others returned, as the pass `relabel_handoffs` quotes it, behind what the agent was sent
    so far; there it stays. Who is asked outside is told nothing, so conversations do not mix.
    """

    def __init__(self) -> None:
        self._did: list[dict[str, Any]] = []
        """What was done: in whose session, and the parts of the answer, which may still grow."""
        self._told: dict[str, list[dict[str, Any]]] = {}
        """By session: the place in `_did`, and behind which message it was told."""
        self._tokens: list[Token[Any]] = []
        self._quoted: dict[tuple[int, int], str] = {}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The conversation that `to_json` wrote, in this process or another."""
        new, state = cls(), json.loads(text)
        new._did, new._told = state["did"], state["told"]
        return new

    def to_json(self) -> str:
        """What the agents did and were told, to be kept beside a checkpoint."""
        return json.dumps({"did": self._did, "told": self._told})

    def __enter__(self) -> Self:
        self._tokens.append(HANDOFFS.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        HANDOFFS.reset(self._tokens.pop())

    def began(self, session: str, agent: str | None) -> dict[str, Any]:
        """An agent begins to answer; what is returned is filled in as its answer comes."""
        answer: dict[str, Any] = {"session": session, "agent": agent, "parts": []}
        self._did.append(answer)
        return answer

    def view(self, session: str, messages: Sequence[Any], *, linked: bool) -> tuple[list[Any], Any]:
        """The messages with what this session's agent is to know of the others, and what is new.

        Behind a link the server has what was told before; a whole history has it there, too.
        """
        known = self._told.get(session, [])
        seen: set[Any] = {one["at"] for one in known}
        mark = _mark(messages[-1]) if messages else ""
        fresh: list[dict[str, Any]] = [
            {"at": at, "behind": len(messages), "mark": mark}
            for at, one in enumerate(self._did)
            if at not in seen and one["session"] != session and self._text(at)
        ]
        behind: dict[int, list[Any]] = {}
        for one in [*known, *fresh]:
            place = _place(messages, one)
            if linked and one not in fresh and place in (0, len(messages)):
                continue  # the server has it, and these messages do not tell what was before
            behind.setdefault(place, []).append(Message("user", [self._text(one["at"])]))
        told = list(behind.get(0, ()))
        for at, message in enumerate(messages, 1):
            told += [message, *behind.get(at, ())]
        return told, fresh

    def _text(self, at: int) -> str:
        """The quotation, made once for as much as there is of the answer."""
        key = (at, len(self._did[at]["parts"]))
        if key not in self._quoted:
            self._quoted[key] = quoted(self._did[at])
        return self._quoted[key]

    def tell(self, session: str, fresh: Any) -> None:
        """A request with this was answered."""
        self._told.setdefault(session, []).extend(fresh)


def quoted(answer: dict[str, Any]) -> str:
    """What the tools of an agent returned, as text; nothing if they only handed off."""
    found = items(answer["parts"])
    results = {one["call_id"] for one in found if one["type"] == "function_call_output"}
    calls = {
        one["call_id"]
        for one in found
        if one["type"] == "function_call" and not one["name"].startswith(HANDS_OFF)
    }
    kept = [one for one in found if one.get("call_id") in calls & results]
    if not kept:
        return ""
    agents = dict.fromkeys(range(len(kept)), answer["agent"]) if answer["agent"] else {}
    done = normalize(kept, QUOTE, context=Context(provenance=Provenance(agents=agents)))
    return "\n".join(_text(one["content"]) for one in done)


def _place(messages: Sequence[Any], one: dict[str, Any]) -> int:
    """Behind how many messages it was told, if these are still there."""
    at: int = one["behind"]
    if at <= len(messages) and (at == 0 or _mark(messages[at - 1]) == one["mark"]):
        return at
    marks = [_mark(message) for message in messages]
    return marks.index(one["mark"]) + 1 if one["mark"] in marks else 0


def _mark(message: Any) -> str:
    return digest([unit.element for unit in Codec([message], QUOTE.target).units])


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
