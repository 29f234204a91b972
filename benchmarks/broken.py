"""Seeded random histories that are broken the way histories break, and what must survive in them.

A history is a list of entries, written out in two wire formats. Every text, and the argument of
every call, is a mark that occurs nowhere else: what is missing from an output was lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: its id, which may be that of an earlier call, and its mark."""

    id: str
    mark: str


@dataclass(frozen=True, slots=True)
class User:
    """What the user said."""

    text: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """What the model said, or nothing, and the tools it called."""

    text: str | None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned."""

    call_id: str
    text: str


Entry = User | Assistant | Result
History = tuple[Entry, ...]


def wild(seed: int, number: int) -> History:
    """Two to nine steps in any order: results are missing, late, there twice, or without a call."""
    pen = _Pen(Random(f"wild {seed} {number}"))
    pen.user()
    for _ in range(pen.random.randint(2, 9)):
        luck = pen.random.random()
        if luck < 0.25:
            pen.user()
        elif luck < 0.40:
            pen.assistant(calls=0, text=True)
        elif luck < 0.70:
            calls = pen.random.choice((1, 1, 1, 2, 2, 3))
            pen.assistant(calls, text=pen.random.random() < 0.5, reuse=0.12)
        else:
            pen.any_result()
    pen.user()
    return tuple(pen.entries)


def late(seed: int, number: int) -> History:
    """Two to five turns; half of the calls are answered at once, others after the next request.

    At least one result is late: it comes when its call was already sent without it.
    """
    random = Random(f"late {seed} {number}")
    while True:
        pen = _Pen(random)
        pen.user()
        came_late = False
        waiting: list[str] = []
        for _ in range(random.randint(2, 5)):
            coming = [call_id for call_id in waiting if random.random() < 0.7]
            came_late = came_late or bool(coming)
            before_the_reply = random.random() < 0.5
            if before_the_reply:
                pen.results(coming)
            made = pen.assistant(random.randint(1, 2), text=random.random() < 0.5)
            at_once = [call_id for call_id in made if random.random() < 0.5]
            pen.results(at_once)
            if not before_the_reply:
                pen.results(coming)
            waiting = [
                call_id for call_id in (*waiting, *made) if call_id not in {*coming, *at_once}
            ]
            pen.user()
        if came_late:
            return tuple(pen.entries)


class _Pen:
    """Writes entries, and remembers which calls there were and which wait for a result."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.entries: list[Entry] = []
        self.marks = 0
        self.called: list[str] = []
        self.open: list[str] = []

    def mark(self, what: str) -> str:
        self.marks += 1
        return f"{what}-{self.marks:04}"  # of one width, so that none is part of another

    def user(self) -> None:
        self.entries.append(User(self.mark("user")))

    def assistant(self, calls: int, *, text: bool, reuse: float = 0.0) -> list[str]:
        said = self.mark("assistant") if text else None
        made = []
        for _ in range(calls):
            old = self.called and self.random.random() < reuse
            call_id = self.random.choice(self.called) if old else self.mark("call_id")
            made.append(Call(call_id, self.mark("call")))
        self.entries.append(Assistant(said, tuple(made)))
        ids = [call.id for call in made]
        self.called += ids
        self.open += ids
        return ids

    def results(self, call_ids: list[str]) -> None:
        self.entries += [Result(call_id, self.mark("result")) for call_id in call_ids]

    def any_result(self) -> None:
        """For an open call in four of five cases; else for any call, or for one that never was."""
        if self.open and self.random.random() < 0.8:
            call_id = self.open.pop(self.random.randrange(len(self.open)))
        elif self.called and self.random.random() < 0.5:
            call_id = self.random.choice(self.called)
        else:
            call_id = self.mark("lost_id")
        self.results([call_id])


# ---------------------------------------------------------------- on the wire


def chat(history: History) -> Messages:
    """The history as Chat Completions messages."""
    messages: Messages = []
    for entry in history:
        match entry:
            case User(text):
                messages.append({"role": "user", "content": text})
            case Assistant(text, calls):
                message: dict[str, Any] = {"role": "assistant", "content": text}
                if calls:
                    message["tool_calls"] = [
                        {"id": call.id, "type": "function", "function": _function(call)}
                        for call in calls
                    ]
                messages.append(message)
            case Result(call_id, text):
                messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
    return messages


def responses(history: History) -> Messages:
    """The history as Responses input items, without item ids."""
    items: Messages = []
    for entry in history:
        match entry:
            case User(text):
                items.append({"role": "user", "content": text})
            case Assistant(text, calls):
                if text is not None:
                    items.append({"role": "assistant", "content": text})
                items += [
                    {"type": "function_call", "call_id": call.id, **_function(call)}
                    for call in calls
                ]
            case Result(call_id, text):
                output = {"type": "function_call_output", "call_id": call_id, "output": text}
                items.append(output)
    return items


def _function(call: Call) -> dict[str, str]:
    return {"name": "look", "arguments": f'{{"q": "{call.mark}"}}'}


def requests(history: History) -> list[History]:
    """Each state in which the history would be sent: whenever the user has spoken."""
    ends = [at for at, entry in enumerate(history, start=1) if isinstance(entry, User)]
    return [history[:end] for end in ends]


# ---------------------------------------------------------------- what must survive


def reuses_ids(history: History) -> bool:
    """Whether two calls have one id."""
    ids = [call.id for _, call in _calls(history)]
    return len(ids) > len(set(ids))


def answers(history: History) -> list[set[str]]:
    """For each call with results behind it, their texts; meant for ids that are never reused."""
    found = (
        {
            entry.text
            for entry in history[at + 1 :]
            if isinstance(entry, Result) and entry.call_id == call.id
        }
        for at, call in _calls(history)
    )
    return [texts for texts in found if texts]


def said_by_the_model(history: History) -> set[str]:
    """The marks of the model's texts and of its calls."""
    texts = {entry.text for entry in history if isinstance(entry, Assistant) and entry.text}
    return texts | {call.mark for _, call in _calls(history)}


def texts_of(history: History, kind: type[User | Result]) -> set[str]:
    """Everything the user said, or everything that tools returned."""
    return {entry.text for entry in history if isinstance(entry, kind)}


def _calls(history: History) -> Iterator[tuple[int, Call]]:
    for at, entry in enumerate(history):
        if isinstance(entry, Assistant):
            yield from ((at, call) for call in entry.calls)
