"""A tool loop by hand: whatever goes wrong, the model sees the whole conversation once."""

import json
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from convnorm import (
    Context,
    Conversation,
    Ledger,
    Link,
    NotReadyError,
    check,
)
from responses_model import Item, ModelServer

OUTCOMES = ("answered", "answered", "answered", "refused", "lost before", "lost after", "failed")


class RandomRun(RuleBasedStateMachine):
    """Random runs with calls, approvals, cancels, lost answers, expiry, restarts and branches."""

    @initialize(kind=st.sampled_from(["chain", "conversation", "value"]), counters=st.booleans())
    def begin(self, kind: str, counters: bool) -> None:
        """A server without anything, and a client that calls its tools by number or by name."""
        self.server = ModelServer()
        self.counters = counters
        self.numbers = 0
        self.said: list[str] = []
        """What users and the model said, in order, as far as an answer came."""
        self.calls: list[str] = []
        """The marks of the calls that the model made, in order."""
        self.results: dict[str, str] = {}
        """By the mark of a call: what its tool returned."""
        self.open: list[tuple[str, str]] = []
        """Calls that no tool answered yet: their call id and mark."""
        self.unsent: list[str] = []
        """What users said since the last answer."""
        self.new: list[Item] = []
        ledger, link = Ledger(), Link()
        if kind == "conversation":
            self.server.conversations["conv_1"] = []
            ledger = ledger.observed_conversation("conv_1")
            link = Link(conversation="conv_1")
        body: Item = {"model": "gpt-5.1", "store": kind != "value"}
        if kind == "value":
            body["include"] = ["reasoning.encrypted_content"]
        self.talk = Conversation(body=body, ledger=ledger, link=link)

    def number(self) -> int:
        """The next number of the run."""
        self.numbers += 1
        return self.numbers

    @rule()
    def user_speaks(self) -> None:
        """The user says something new."""
        text = f"user {self.number()}."
        self.unsent.append(text)
        self.new.append({"role": "user", "content": text})

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def tool_returns(self, data: st.DataObject) -> None:
        """A tool is done, or somebody approved it, in any order and however late."""
        call_id, mark = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        self.results[mark] = f"result {self.number()} of {mark}"
        made = {"type": "function_call_output", "call_id": call_id, "output": self.results[mark]}
        self.new.append(made)

    @rule()
    def restart(self) -> None:
        """Another process goes on."""
        self.talk = Conversation.from_json(self.talk.to_json())

    @rule(store=st.booleans())
    def switch_store(self, store: bool) -> None:  # hypothesis draws it
        """The server stores from now on, or no more."""
        self.talk.body["store"] = store

    @rule(
        outcome=st.sampled_from(OUTCOMES),
        reply=st.sampled_from(["text", "calls", "both"]),
        count=st.integers(1, 3),
        expires=st.integers(0, 5),
    )
    def request(self, outcome: str, reply: str, count: int, expires: int) -> None:
        """A request is prepared, sent, and answered or not."""
        new, self.new = self.new, []
        if not new and not self.talk.waiting:
            return
        try:
            sent = self.talk.prepare(new)
        except NotReadyError:
            assert self.open
            return
        if expires == 5:  # one in six
            self.expire(sent)
            return
        self.judge(sent)
        if outcome in ("lost before", "refused", "failed"):
            self.not_answered(outcome)
            return
        output, calls, text = self.reply(reply, count)
        answer = self.server.answer(sent, output)
        if outcome == "lost after":
            self.talk.failed(TimeoutError())
            return
        self.talk.record(answer)
        self.said += [*self.unsent, *text]
        self.unsent = []
        self.calls += [mark for _, mark in calls]
        self.open += calls

    def not_answered(self, outcome: str) -> None:
        """The server refuses, fails, or is never reached."""
        if outcome == "failed":
            self.talk.record({"id": self.server.new_id("resp"), "status": "failed", "output": []})
        else:
            self.talk.failed(
                RefusedError("rate_limit_exceeded", 429) if outcome == "refused" else None
            )

    def expire(self, sent: Item) -> None:
        """What the request continues is gone."""
        if not ({"conversation", "previous_response_id"} & sent.keys()):
            self.talk.failed()
            return
        self.server.forget(sent)
        self.talk.failed(
            RefusedError("previous_response_not_found", 400)
            if "previous_response_id" in sent
            else RefusedError("conversation_not_found", 404)
        )

    def reply(self, kind: str, count: int) -> tuple[list[Item], list[tuple[str, str]], list[str]]:
        """What the model says and calls."""
        output: list[Item] = []
        text: list[str] = []
        calls: list[tuple[str, str]] = []
        if self.counters or kind != "text":
            thought: Item = {"type": "reasoning", "id": self.server.new_id("rs"), "summary": []}
            if self.talk.body["store"] is False:
                thought["encrypted_content"] = self.server.new_id("gAAAAA")
            output.append(thought)
        if kind != "calls":
            text = [f"model {self.number()}."]
            part = {"type": "output_text", "text": text[0], "annotations": []}
            own = self.server.new_id("msg")
            message = {"type": "message", "id": own, "role": "assistant", "content": [part]}
            output.append({**message, "status": "completed"})
        for at in range(count if kind != "text" else 0):
            mark = f"mark {self.number()}."
            call_id = f"call_{at}" if self.counters else self.server.new_id("call")
            if call_id in {other for other, _ in self.open}:
                call_id = self.server.new_id("call")  # two that wait cannot have one name
            calls.append((call_id, mark))
            item = {"type": "function_call", "id": self.server.new_id("fc"), "call_id": call_id}
            arguments = json.dumps({"mark": mark})
            output.append({**item, "name": "scan", "arguments": arguments, "status": "completed"})
        return output, calls, text

    def judge(self, sent: Item) -> None:
        """The request is accepted, and the model sees everything once, in order."""
        context = Context(ledger=Ledger.from_state(self.server.state()))
        assert check(sent, "openai.responses", context=context) == []
        view = self.server.view(sent)
        texts = [text for item in view for text in said_in(item) if not text.startswith("<")]
        assert texts == [*self.said, *self.unsent]
        marks = [json.loads(item["arguments"])["mark"] for item in view if "arguments" in item]
        assert marks == self.calls
        wire = json.dumps(view)
        told = Counter({mark: wire.count(result) for mark, result in self.results.items()})
        assert told == Counter(dict.fromkeys(self.results, 1))
        outputs = [item for item in view if item.get("type") == "function_call_output"]
        assert len(outputs) == len(marks)


def said_in(item: Item) -> list[str]:
    """The texts of a message."""
    content = item.get("content", ())
    return [content] if isinstance(content, str) else [part["text"] for part in content]


class RefusedError(Exception):
    """An error as the SDKs raise it."""

    def __init__(self, code: str, status_code: int) -> None:
        super().__init__(code)
        self.code, self.status_code = code, status_code


TestRandomRun = RandomRun.TestCase
TestRandomRun.settings = settings(max_examples=settings().max_examples, stateful_step_count=30)
