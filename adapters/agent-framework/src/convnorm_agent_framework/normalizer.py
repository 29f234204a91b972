"""What a client that was normalized knows, and what it does to each request."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import agent_framework

from convnorm import Context, Policy, normalize_request
from convnorm.delivery import Ledger, Link
from convnorm_agent_framework.codec import Codec, without_ids
from convnorm_agent_framework.growth import has_all_of, is_invented
from convnorm_agent_framework.memory import Memory, begins, digest
from convnorm_agent_framework.on_error import Complaints, OnError
from convnorm_agent_framework.parts import take
from convnorm_agent_framework.sources import without_replays
from convnorm_agent_framework.turn import LAST, LEDGER, OPEN, Caller

REPEATS_INSTRUCTIONS = not hasattr(agent_framework, "HistoryProvider")
"""Clients before 1.0.0 put the instructions before the input of every request, linked or not."""
ENDS = ("response.completed", "response.incomplete")


@dataclass(slots=True)
class Outgoing:
    """One request on its way."""

    messages: Sequence[Any]
    options: Mapping[str, Any]
    rest: Mapping[str, Any]
    caller: Caller
    body: dict[str, Any] | None = None
    """What is sent, as it is noted; None where nothing could be made of the request."""
    ledger: Ledger | None = None
    """What the server held before; None for an API that holds nothing."""
    instructions: str | None = None
    speaker: str = ""
    repaired: list[Any] | None = None
    """The history as it is sent, where it is not what the framework has."""
    news: Any = None
    """What the agent is told of other agents, and was not told before."""
    is_answered: bool = False


class Normalizer:
    """What a client that was normalized knows between its calls."""

    def __init__(self, policy: Policy, on_error: OnError, *, keep_links: bool = False) -> None:
        self.policy = policy
        self.on_error: OnError = on_error
        self.keep_links = keep_links
        self.memory = Memory()
        self._complaints = Complaints()

    def guarded(self, what: str) -> AbstractContextManager[None]:
        """Go on behind an error of ours in the block; `what` says what that means."""
        return self._complaints.guarded(self.on_error, what)

    # ------------------------------------------------------------ out

    def prepare(
        self,
        messages: Sequence[Any],
        options: Mapping[str, Any],
        rest: Mapping[str, Any],
        caller: Caller,
    ) -> Outgoing:
        """The request as it should go out."""
        call = Outgoing(messages, options, rest, caller)
        if options.get("continuation_token") is not None:
            return call  # it asks for an answer that was begun before, and sends no messages
        with self.guarded("the request is sent as it was"):
            call = self._prepare(call)
        with self.guarded("a turn that is left is not kept"):
            _keep(call.caller, _results(call.messages), speaker=None, whole=True)
        return call

    def _prepare(self, call: Outgoing) -> Outgoing:
        messages, options, rest, caller = call.messages, call.options, call.rest, call.caller
        responses = self.policy.target == "openai.responses"
        key = "input" if responses else "messages"
        said = options.get("instructions")
        body: dict[str, Any] = {}
        if model := options.get("model") or options.get("model_id"):
            body["model"] = model
        link = rest.get("conversation_id") or options.get("conversation_id")
        ledger = None
        if responses:
            if options.get("store") is not None:
                body["store"] = options["store"]
            if link is None and (link := self._link_that_was_lost(caller, options)):
                options = {**options, "conversation_id": link}
            if link:
                body[_link_key(link)] = link
                ledger = self.memory.ledger(link)
        messages, news = without_replays(messages), None
        name, handoffs = caller.session_id, caller.handoffs
        if handoffs is not None and name is not None:
            messages, news = handoffs.view(name, messages, linked=bool(link))
        codec = Codec(messages, self.policy.target)
        if responses and not link and (bereft := self.memory.bereft(codec.elements)):
            codec = Codec(without_ids(messages, bereft), self.policy.target)
        body[key] = codec.elements
        who = digest(name, model, said, None if name else begins(codec.elements))
        last = None if link else self.memory.last_request(who)
        if last is not None and not has_all_of(codec.elements, last):
            last = None
        context = Context(ledger=ledger, last_request=last)
        done = normalize_request(body, self.policy, context=context)
        sent = codec.messages_of(done[key])
        kept = Link.of(done)
        if link and not kept:
            options, rest = _without(options, "conversation_id"), _without(rest, "conversation_id")
        if REPEATS_INSTRUCTIONS and kept and said and self.memory.instructions(str(link)) == said:
            options = _without(options, "instructions")
        is_repaired = not kept and not codec.are_own(done[key])
        return Outgoing(
            sent,
            options,
            rest,
            caller,
            body=done,
            ledger=(ledger or Ledger()) if responses else None,
            instructions=said,
            speaker=who,
            repaired=list(done[key]) if is_repaired else None,
            news=news,
        )

    def _link_that_was_lost(self, caller: Caller, options: Mapping[str, Any]) -> str | None:
        """Where the session was continued last, if somebody took that away from it."""
        if not self.keep_links or options.get("store") is False or caller.session_id is None:
            return None
        if getattr(caller.session, "service_session_id", None) is not None:
            return None
        return self.memory.link_of(caller.session_id)

    # ------------------------------------------------------------ back

    def came(self, call: Outgoing, update: Any) -> None:
        """A part of an answer came."""
        with self.guarded("the answer was not noted"):
            self._accepted(call)
            _keep(call.caller, update.contents, speaker=update.response_id, whole=False)
            raw = update.raw_representation
            if getattr(raw, "type", None) in ENDS:
                self._note(call, raw.response)

    def answered(self, call: Outgoing, response: Any) -> None:
        """A whole answer came."""
        with self.guarded("the answer was not noted"):
            self._accepted(call)
            for message in response.messages:
                _keep(call.caller, message.contents, speaker=response.response_id, whole=True)
            self._note(call, response.raw_representation)

    def returned(self, caller: Caller, messages: Sequence[Any]) -> None:
        """Tools returned something, perhaps at the end of an agent's run."""
        with self.guarded("what a tool returned is not told to other agents"):
            _keep(caller, _results(messages), speaker=None, whole=True)

    def _accepted(self, call: Outgoing) -> None:
        """The request was answered: what it sent was sent."""
        if call.body is None or call.is_answered:
            return
        call.is_answered = True
        self.memory.remember(call.speaker, call.repaired)
        if call.news and call.caller.handoffs is not None:
            call.caller.handoffs.tell(call.caller.session_id, call.news)
        if call.caller.ledger is not None:
            state = call.caller.ledger.state
            # Everything else another process makes of the history in the same way.
            if call.repaired is None or not any(map(is_invented, call.repaired)):
                state.pop(LAST, None)
            else:
                # As text: sessions take a mapping with the type "message" for one of their own.
                state[LAST] = {"speaker": call.speaker, "sent": json.dumps(call.repaired)}

    def _note(self, call: Outgoing, response: Any) -> None:
        """Note what the server holds now."""
        if call.body is None or call.ledger is None:
            return
        self.memory.thought(response.output)
        link = self.memory.note(call.ledger, call.body, response, call.instructions)
        if call.caller.session_id is not None and call.body.get("store") is not False:
            self.memory.linked(call.caller.session_id, link)
        if call.caller.ledger is not None and (known := self.memory.ledger(link)):
            call.caller.ledger.state[LEDGER] = {"link": link, "ledger": known.to_json()}


def _results(messages: Sequence[Any]) -> list[Any]:
    contents = (content for message in messages for content in message.contents)
    return [content for content in contents if content.type == "function_result"]


def _keep(caller: Caller, contents: Sequence[Any], *, speaker: Any, whole: bool) -> None:
    """Keep what came, in case that the turn is left or another agent is to know of it."""
    opened = caller.history.state.get(OPEN) if caller.history is not None else None
    for kept in (opened and opened["answer"], caller.doing and caller.doing["parts"]):
        if isinstance(kept, list):
            take(kept, contents, speaker=speaker, whole=whole)


def _without(options: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != key}


def _link_key(link: str) -> str:
    """As the framework's client reads it: what is no conversation is a response."""
    return "conversation" if link.startswith("conv_") else "previous_response_id"
