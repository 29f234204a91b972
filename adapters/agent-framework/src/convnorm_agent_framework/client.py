"""`normalize_client`: every request of a client, repaired where it goes out."""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import agent_framework
from agent_framework import ResponseStream

from convnorm import ChangeError, Context, Policy, PolicyError, normalize_request
from convnorm.delivery import Ledger, Link
from convnorm_agent_framework.codec import Codec
from convnorm_agent_framework.memory import Memory
from convnorm_agent_framework.service import policy_for
from convnorm_agent_framework.sources import without_replays
from convnorm_agent_framework.turn import (
    HISTORY_TURN,
    LEDGER,
    LEDGER_TURN,
    OPEN,
    Turn,
    turn_of,
)

logger = logging.getLogger("convnorm")

OnError = Literal["send", "raise"]
Client = TypeVar("Client")
MARK = "convnorm_normalizer"
"""Where a client keeps the normalizer it got."""
REPEATS_INSTRUCTIONS = not hasattr(agent_framework, "HistoryProvider")
"""Clients before 1.0.0 put the instructions before the input of every request, linked or not."""


def normalize_client(
    client: Client, policy: Policy | str | None = None, *, on_error: OnError = "send"
) -> Client:
    """Repair every request of this client, for whatever agent or workflow; the same client.

    Without a policy the API and the provider are read from the client. An error of convnorm's own
    never kills a call: the request is sent as it was, and the log says so once. `raise` is for
    tests.
    """
    if on_error not in ("send", "raise"):
        raise PolicyError(f"on_error is 'send' or 'raise', not {on_error!r}")
    if isinstance(policy, str):
        policy = Policy.for_target(policy)
    found: Any = client
    known = getattr(found, MARK, None)
    if known is not None:
        known.policy, known.on_error = policy or known.policy, on_error
        return client
    normalizer = Normalizer(policy or policy_for(client), on_error)
    setattr(found, MARK, normalizer)
    # The one place that sees what really goes out, after every middleware and history provider,
    # in all releases: what the framework asks clients to define.
    inner = found._inner_get_response  # noqa: SLF001

    def get_response(
        *, messages: Sequence[Any], options: Mapping[str, Any], stream: bool = False, **rest: Any
    ) -> Any:
        call = normalizer.prepare(messages, options, rest)
        call.history_turn = turn_of(HISTORY_TURN, messages)
        call.ledger_turn = turn_of(LEDGER_TURN, messages)
        answer = inner(messages=call.messages, options=call.options, stream=stream, **call.rest)
        return normalizer.watched(answer, call)

    found._inner_get_response = get_response  # noqa: SLF001
    return client


@dataclass(slots=True)
class Outgoing:
    """One request on its way."""

    messages: Sequence[Any]
    options: Mapping[str, Any]
    rest: Mapping[str, Any]
    body: dict[str, Any] | None = None
    """What is sent, as the ledger notes it; None where no ledger is kept."""
    ledger: Ledger | None = None
    instructions: str | None = None
    history_turn: Turn | None = None
    ledger_turn: Turn | None = None


class Normalizer:
    """What a client that was normalized knows between its calls."""

    def __init__(self, policy: Policy, on_error: OnError) -> None:
        self.policy = policy
        self.on_error = on_error
        self.memory = Memory()
        """What the server holds, by the id that a request continues."""
        self._said: set[str] = set()

    def prepare(
        self, messages: Sequence[Any], options: Mapping[str, Any], rest: Mapping[str, Any]
    ) -> Outgoing:
        """The request as it should go out."""
        untouched = Outgoing(messages, options, rest)
        if options.get("continuation_token") is not None:
            return untouched  # it asks for an answer that was begun before, and sends no messages
        try:
            return self._prepare(messages, options, rest)
        except ChangeError:
            raise  # the policy says that a change is an error: that is no failure of ours
        except Exception as error:
            if self.on_error == "raise":
                raise
            self._log_once("the request is sent as it was", error)
            return untouched

    def _prepare(
        self, messages: Sequence[Any], options: Mapping[str, Any], rest: Mapping[str, Any]
    ) -> Outgoing:
        responses = self.policy.target == "openai.responses"
        codec = Codec(without_replays(messages), self.policy.target)
        key = "input" if responses else "messages"
        body: dict[str, Any] = {key: codec.elements}
        if model := options.get("model") or options.get("model_id"):
            body["model"] = model
        link = rest.get("conversation_id") or options.get("conversation_id")
        ledger = None
        if responses:
            if options.get("store") is not None:
                body["store"] = options["store"]
            if link:
                body[_link_key(link)] = link
                ledger = self.memory.ledger(link)
        done = normalize_request(body, self.policy, context=Context(ledger=ledger))
        sent = codec.messages_of(done[key])
        kept = Link.of(done)
        if link and not kept:
            options, rest = _without(options, "conversation_id"), _without(rest, "conversation_id")
        if not responses:
            return Outgoing(sent, options, rest)
        said = options.get("instructions")
        if REPEATS_INSTRUCTIONS and kept and said and self.memory.instructions(str(link)) == said:
            options = _without(options, "instructions")
        return Outgoing(sent, options, rest, done, ledger or Ledger(), instructions=said)

    def watched(self, answer: Any, call: Outgoing) -> Any:
        """The same answer; what it says is noted on the way."""
        if isinstance(answer, ResponseStream):

            def note(update: Any) -> None:
                if call.history_turn is not None and update.text:
                    open_turn = call.history_turn.state.get(OPEN)
                    if open_turn is not None:
                        open_turn["said"] += update.text
                raw = update.raw_representation
                if getattr(raw, "type", None) in ("response.completed", "response.incomplete"):
                    self._note(call, raw.response)

            return answer.with_transform_hook(note)
        return answer if call.body is None else self._awaited(answer, call)

    async def _awaited(self, answer: Awaitable[Any], call: Outgoing) -> Any:
        response = await answer
        self._note(call, response.raw_representation)
        return response

    def _note(self, call: Outgoing, response: Any) -> None:
        if call.body is None or call.ledger is None:
            return
        try:
            link = self.memory.note(call.ledger, call.body, response, call.instructions)
            if call.ledger_turn is not None and (known := self.memory.ledger(link)):
                call.ledger_turn.state[LEDGER] = {"link": link, "ledger": known.to_json()}
        except Exception as error:
            if self.on_error == "raise":
                raise
            self._log_once("the answer was not noted", error)

    def _log_once(self, what: str, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}"
        if said not in self._said:
            self._said.add(said)
            logger.error("convnorm failed, and %s: %s", what, said, exc_info=error)


def _without(options: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != key}


def _link_key(link: str) -> str:
    """As the framework's client reads it: what is no conversation is a response."""
    return "conversation" if link.startswith("conv_") else "previous_response_id"
