"""A tool loop by hand: whatever goes wrong, the model sees the whole conversation once."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from builders import message
from convnorm import (
    Context,
    Conversation,
    Ledger,
    LedgerError,
    Link,
    NotReadyError,
    Policy,
    PolicyError,
    UnrepairableError,
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
        self.whole: tuple[bool, list[Item]] = (False, [])
        """The last answered request that held everything: whether it was stored, and its input."""
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
        linked = {"conversation", "previous_response_id"} & sent.keys()
        self.whole = (sent["store"], [] if linked else sent["input"])
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
        stored, before = self.whole
        known = [at for at, item in enumerate(before) if "id" in item]
        self.whole = (stored, before[: min(known, default=len(before))])  # ids may have expired too
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
        stored, before = self.whole
        if before and view == sent["input"] and stored == sent["store"]:
            assert sent["input"][: len(before)] == before, "what was sent has changed"
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


# ---------------------------------------------------------------- one step at a time


def answer(own: str, *items: Item, **more: Any) -> Item:
    """The body of a response."""
    return {"id": own, "status": "completed", "output": list(items), **more}


def call(call_id: str) -> Item:
    """A function call as a response has it."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "scan",
        "arguments": "{}",
    }


def output(call_id: str, text: str = "clean") -> Item:
    """What a function returned."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def waiting() -> Conversation:
    """A conversation whose model called two tools."""
    talk = Conversation(body={"model": "gpt-5.1"})
    talk.prepare("scan both")
    talk.record(answer("resp_1", call("call_1"), call("call_2")))
    return talk


def test_the_link_moves_with_each_answer() -> None:
    """Only what is new is sent behind it."""
    talk = waiting()
    request = talk.prepare([output("call_1"), output("call_2")])

    assert request == {
        "model": "gpt-5.1",
        "previous_response_id": "resp_1",
        "input": [output("call_1"), output("call_2")],
    }
    assert talk.pending == []


def test_an_approval_in_another_process() -> None:
    """What is there waits for what is not; nothing of it is lost on the way."""
    talk = waiting()
    with pytest.raises(NotReadyError, match="call_2"):
        talk.prepare([output("call_1")])

    later = Conversation.from_json(talk.to_json())
    assert ["call_2"] == [one["call_id"] for one in later.pending]
    assert [output("call_1"), output("call_2", "no")] == later.prepare([output("call_2", "no")])[
        "input"
    ]


def test_a_call_that_the_user_goes_past() -> None:
    """It is closed as waiting, and its late result is told as data."""
    talk = waiting()
    request = talk.prepare([output("call_1"), {"role": "user", "content": "never mind"}])
    texts = [str(item.get("output", item.get("content"))) for item in request["input"]]
    assert "still waiting" in texts[0]
    assert ["clean", "never mind"] == texts[1:]

    talk.record(answer("resp_2"))
    late = talk.prepare([output("call_2", "2 threats")])["input"]
    assert ["user"] == [item["role"] for item in late]
    assert "2 threats" in late[0]["content"]


def test_a_stream_is_recorded_by_its_events() -> None:
    """Event by event or as a whole; only the last one counts."""
    started = {"id": "resp_1", "status": "in_progress", "output": []}
    events: list[Item] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_text.delta", "delta": "h"},
        {"type": "response.completed", "response": answer("resp_1")},
    ]
    one, two = Conversation(), Conversation()
    one.prepare("hello")
    for event in events:
        one.record(event)
    two.prepare("hello")
    two.record(iter(events))

    assert one.link == two.link == Link("resp_1")
    assert one.to_json() == two.to_json()


@pytest.mark.parametrize(
    "end", [[], [{"type": "error", "code": "server_error"}], [{"type": "response.failed"}]]
)
def test_a_stream_without_an_end_is_a_failure(end: list[Item]) -> None:
    """What was said goes with the next request."""
    for one in end:
        if one["type"] == "response.failed":
            one["response"] = {"id": "resp_1", "status": "failed", "output": []}
    talk = Conversation()
    talk.prepare("hello")
    talk.record(iter([{"type": "response.created"}, *end]))

    assert [{"role": "user", "content": "hello"}] == talk.prepare()["input"]


def test_a_link_that_expired_is_replaced_by_everything() -> None:
    """The error says so, in the SDK's words or the API's."""
    for error in (
        RefusedError("previous_response_not_found", 400),
        {"error": {"code": "previous_response_not_found", "message": "not found"}},
    ):
        talk = waiting()
        talk.prepare([output("call_1"), output("call_2")])
        talk.failed(error)

        request = talk.prepare()
        assert "previous_response_id" not in request
        assert 5 == len(request["input"])


def test_a_ledger_of_an_earlier_run_is_gone_on_with() -> None:
    """Who has only the ledger begins behind its last response."""
    ledger = waiting().ledger
    talk = Conversation(ledger=ledger, link=Link("resp_1"))

    assert ["call_1", "call_2"] == [one["call_id"] for one in talk.pending]


def test_a_response_of_which_only_the_name_is_known_is_gone_on_with() -> None:
    """What stands behind it is the server's; a conversation must be told of, a gone link too."""
    talk = Conversation(link=Link("resp_77"))
    assert Link("resp_77") == Link.of(talk.prepare("and in Bergen?"))
    talk.record(answer("resp_78", message("msg_1", "rain")))
    assert Link("resp_78") == Link.of(talk.prepare("thanks"))

    talk = Conversation(link=Link("resp_77"))
    talk.prepare("and in Bergen?")
    talk.failed({"error": {"code": "previous_response_not_found"}})
    with pytest.raises(UnrepairableError, match="the server has no response 'resp_77'"):
        talk.prepare()
    with pytest.raises(UnrepairableError, match="conv_1"):
        Conversation(link=Link(conversation="conv_1")).prepare("and in Bergen?")


def test_what_is_refused_is_handed_over_again() -> None:
    """An output that cannot be sent does not stand in the way of the one that can."""
    checks = [{"id": "cu_sc_1", "code": "x", "message": "m"}]
    made = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_c",
        "action": {"type": "screenshot"},
        "status": "completed",
        "pending_safety_checks": checks,
    }
    picture = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    shot = {"type": "computer_call_output", "call_id": "call_c", "output": picture}
    talk = Conversation(body={"model": "computer-use-preview"})
    talk.prepare("look")
    talk.record(answer("resp_1", made))

    with pytest.raises(UnrepairableError, match="acknowledged_safety_checks"):
        talk.prepare([shot])
    acknowledged = shot | {"acknowledged_safety_checks": checks}
    assert [acknowledged] == talk.prepare([acknowledged])["input"]


def test_size_of_the_state_is_linear() -> None:
    """Each item is kept once, also where every request holds everything."""
    for store in (True, False):
        sizes = []
        talk = Conversation(body={"store": store})
        for turn in range(40):
            talk.prepare(f"question {turn} " + "x" * 50)
            text = {"type": "output_text", "text": f"answer {turn}", "annotations": []}
            said = {"type": "message", "role": "assistant", "content": [text]}
            talk.record(answer(f"resp_{turn}", {**said, "id": f"msg_{turn}"}))
            sizes.append(len(talk.to_json()))
        assert sizes[39] < 2.3 * sizes[19]


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "no JSON"),
    "no object": ("[]", "no schema"),
    "newer": ('{"schema": 99}', "newer convnorm"),
    "cut off": ('{"schema": 1}', "cut off"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_state_that_cannot_be_read(name: str) -> None:
    """A newer, cut off or mistyped state is answered in plain words."""
    text, words = BROKEN[name]

    with pytest.raises(LedgerError, match=words):
        Conversation.from_json(text)


def test_misuse_is_answered_in_plain_words() -> None:
    """Another API, fields that change with each request, an answer to nothing."""
    with pytest.raises(PolicyError, match="Responses API"):
        Conversation("openai.chat")
    with pytest.raises(PolicyError, match="input is not for every request"):
        Conversation(body={"input": []})
    with pytest.raises(LedgerError, match="call prepare first"):
        Conversation().record(answer("resp_1"))
    with pytest.raises(LedgerError, match="a list or a text"):
        Conversation(Policy.for_target("openai.responses")).prepare(7)  # type: ignore[arg-type]  # the point
    with pytest.raises(PolicyError, match=r"link is a Link\(\.\.\.\), not 'resp_1'"):
        Conversation(link="resp_1")  # type: ignore[arg-type]  # the point
    for key in ("input", "previous_response_id", "conversation"):
        with pytest.raises(PolicyError, match=f"{key} is set by the conversation"):
            Conversation().prepare("hi", **{key: "resp_9"})
    talk = Conversation()
    talk.prepare("hi")
    chat = {"id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": "a"}}]}
    with pytest.raises(LedgerError, match="chatcmpl-1 has no list of output"):
        talk.record(chat)
    talk = waiting()
    talk.failed()  # nothing was sent: nothing failed
    assert ["call_1", "call_2"] == [one["call_id"] for one in talk.pending]
