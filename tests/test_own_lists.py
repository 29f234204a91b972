"""A caller who keeps his own list, without what was sent besides, and sends it again and again."""

import json
from collections import Counter
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import call, message, output, reasoning, said, user
from convnorm import Context, Ledger, check, explain
from convnorm.testing import laws
from convnorm.testing.strategies import Sample
from responses_model import Item, ModelServer

EXAMPLES = settings().max_examples * 3
ENOUGH = settings().max_examples // 5
FORMS = ("as they came", "without ids", "role and content")
INPUTS = ("whole", "new", "end")
PLACES = ("last", "behind its call")


class Caller:
    """One conversation: what the caller has, and what the model should have seen by now."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw, self.server, self.ledger = data.draw, ModelServer(), Ledger()
        self.form = self.draw(st.sampled_from(FORMS))
        self.place = self.draw(st.sampled_from(PLACES))
        self.local: list[Item] = []
        self.waiting: list[str] = []
        self.told: list[str] = []
        self.results: dict[str, str] = {}
        self.link: Item = {}
        if self.draw(st.booleans()):
            self.server.conversations["conv_1"] = []
            self.ledger = self.ledger.observed_conversation("conv_1")
            self.link = {"conversation": "conv_1"}

    def text(self, who: str) -> str:
        """Something that is said: the same again, or not."""
        own = who if self.draw(st.booleans()) else self.server.new_id(who)
        self.told.append(own)
        return own

    def request(self) -> Item:
        """What came since the last answer, and how much of the list the caller sends with it."""
        before = list(self.local)
        new: list[Item] = []
        for own in list(self.waiting):
            if self.draw(st.booleans()):
                self.waiting.remove(own)
                self.results[own] = self.server.new_id("result")
                new.append(output(own, self.results[own]))
        if not new or self.draw(st.booleans()):
            new.append(user(self.text("go on")))
        moved = 0
        for item in new:
            at = self._behind(item, before) if self.place == "behind its call" else None
            moved += at is not None and at < len(self.local)
            self.local.insert(len(self.local) if at is None else at, item)
        how = self.draw(st.sampled_from(INPUTS))
        start = {"whole": 0, "new": len(before)}.get(how)
        start = self.draw(st.integers(0, len(before))) if start is None else start
        sent = self.local if moved else [*before, *new][start:]
        return {"model": "gpt-5.1", "input": deepcopy(sent), **self.link}

    def _behind(self, item: Item, before: list[Item]) -> int | None:
        """Where a framework puts a result that has a list of calls, each with its result."""
        own = item.get("call_id")
        places = [at for at, one in enumerate(self.local) if own and one.get("call_id") == own]
        return places[-1] + 1 if places and own in {one.get("call_id") for one in before} else None

    def answered(self, sent: Item) -> None:
        """The model answers, and the caller writes that down in his own way."""
        made: list[Item] = []
        if self.draw(st.booleans()):
            made.append(reasoning(self.server.new_id("rs"), "sealed"))
        for _ in range(self.draw(st.integers(0, 2))):
            self.waiting.append(self.server.new_id("call"))
            made.append(call(self.waiting[-1], id=self.server.new_id("fc")))
        if not made or made[-1]["type"] == "reasoning" or self.draw(st.booleans()):
            made.append(message(self.server.new_id("msg"), self.text("ok")))
        answer = self.server.answer(sent, made)
        self.ledger = self.ledger.accepted(sent, answer)
        if "conversation" not in self.link:
            self.link = {"previous_response_id": answer["id"]}
        self.local += [one for item in made for one in self._written(item)]

    def _written(self, item: Item) -> list[Item]:
        if self.form == "as they came":
            return [item]
        if item["type"] == "reasoning":
            return []
        if self.form == "role and content" and item["type"] == "message":
            return [said(item["content"][0]["text"])]
        return [{key: value for key, value in item.items() if key != "id"}]


def spoken(view: list[Item]) -> list[str]:
    """What the user and the model said, without quoted results."""
    found: list[str] = []
    for item in view:
        parts = item.get("content") or []
        found += [parts] if isinstance(parts, str) else [part["text"] for part in parts]
    return [text for text in found if not text.startswith("<tool-output")]


def test_everything_is_seen_once_from_a_list_of_ones_own() -> None:
    """Calls are closed on the server, and their results come late: the list shows neither."""
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        caller = Caller(data)
        for _ in range(data.draw(st.integers(3, 7))):
            body = caller.request()
            sample = Sample(body, Context(ledger=caller.ledger))
            for law in (laws.pure, laws.sound, laws.untouched, laws.idempotent):
                law(sample)
            sent = explain(body, context=sample.context).request or {}
            view = caller.server.view(sent)
            assert caller.told == spoken(view), (body, sent)
            shown = json.dumps(view)
            counts = {text: shown.count(text) for text in caller.results.values()}
            assert set(counts.values()) <= {1}, (counts, body, sent)
            state = Ledger.from_state(caller.server.state())
            assert check(sent, context=Context(ledger=state)) == []
            quoted = "<tool-output" in json.dumps(caller.server.before(sent))
            dropped = len(body["input"]) > len(sent["input"])
            kind = "conversation" if "conversation" in sent else "response"
            seen[f"dropped behind a quotation on a {kind}"] += quoted and dropped
            caller.answered(sent)

    holds()
    for kind in ("response", "conversation"):
        assert seen[f"dropped behind a quotation on a {kind}"] >= ENOUGH, seen
