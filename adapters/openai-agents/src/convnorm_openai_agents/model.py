"""A model that repairs what it is sent."""

import operator
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents import Model, OpenAIResponsesModel

from convnorm import Context, ConvnormError, Policy, normalize_request
from convnorm.delivery import Ledger, Link
from convnorm_openai_agents.call_ids import CallIds, as_the_server_knows
from convnorm_openai_agents.chat import for_apart, for_chat, is_apart
from convnorm_openai_agents.ledger_keeper import LedgerKeeper
from convnorm_openai_agents.omitted import for_omitted, is_omitted
from convnorm_openai_agents.on_error import OnError, guarded
from convnorm_openai_agents.placeholders import named, restored, shown

OURS = frozenset({"input", "previous_response_id", "conversation"})
"""What of a request can be changed here."""
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""The events of a stream that hold the whole response."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it is sent."""

    input: Any
    link: Link
    body: Mapping[str, Any]
    """The same as the body of an API call."""
    given: Sequence[Any]
    """The input before the repair."""
    speaker: Hashable
    """Whose history it is: each agent of a conversation may have one of its own."""
    repaired: bool = False

    @property
    def link_names(self) -> dict[str, str | None]:
        """The link, under the names that the SDK has for it."""
        previous, conversation = self.link
        return {"previous_response_id": previous, "conversation_id": conversation}


class NormalizingModel(Model):
    """Sends what `inner` is given, repaired, and keeps the ledger."""

    def __init__(
        self,
        inner: Model,
        policy: Policy | str | None = None,
        *,
        keeper: LedgerKeeper | None = None,
        on_error: OnError = "send",
    ) -> None:
        self.inner = inner
        self.keeper = keeper or LedgerKeeper()
        self.stored = isinstance(inner, OpenAIResponsesModel)
        """Whether the server can hold a part of the history."""
        self._on_error: OnError = on_error
        policy = policy or "openai.responses"
        policy = Policy.for_target(policy) if isinstance(policy, str) else policy
        if on_error == "send":
            policy = policy.model_copy(update={"unrepairable": "send"})
        self._policy = policy if self.stored else for_chat(policy)
        self._more = for_omitted(policy) if self.stored else for_apart(self._policy)
        """With a pass that most histories do not need."""

    def __getattr__(self, name: str) -> Any:
        """What else the inner model has, such as `model`."""
        if name == "inner":  # a copy that is not filled yet has no inner model to ask
            raise AttributeError(name)
        return getattr(self.inner, name)

    # What the base class has itself, `__getattr__` is never asked for.

    async def close(self) -> None:
        """Close the inner model."""
        await self.inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        """What the inner model advises."""
        return self.inner.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        """Let the inner model clean up, in SDKs that ask for it."""
        cleanup = getattr(self.inner, "_cleanup_on_run_end", None)
        if cleanup is not None:
            await cleanup(owner)

    # By name or by place, what is not named here is handed on as it came.

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the SDK's name, and it calls by name
        model_settings: Any,
        *rest: Any,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        **more: Any,
    ) -> Any:
        """The inner model's response to the repaired request."""
        link = Link(previous_response_id, conversation_id)
        sent = self._repaired(input, link, model_settings, system_instructions)
        calls = self._calls(sent)
        response = await self.inner.get_response(
            system_instructions, sent.input, model_settings, *rest, **sent.link_names, **more
        )
        response = self._told(calls.of_response, response)
        self._answered(sent, {"id": response.response_id, "output": response.output})
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the SDK's name
        model_settings: Any,
        *rest: Any,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """The inner model's stream for the repaired request."""
        link = Link(previous_response_id, conversation_id)
        sent = self._repaired(input, link, model_settings, system_instructions)
        calls = self._calls(sent)
        stream = self.inner.stream_response(
            system_instructions, sent.input, model_settings, *rest, **sent.link_names, **more
        )
        try:
            async for event in stream:
                told = self._told(calls.of_event, event)
                if getattr(told, "type", None) in ENDS:
                    self._answered(sent, told.response)
                yield told
        finally:  # a stream that is left early is closed now, not when it is collected
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    # ------------------------------------------------------------ inside

    def _repaired(self, given: Any, link: Link, settings: Any, instructions: str | None) -> Sent:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        body = {"input": items, **self._known(link, settings)}
        view = shown(items)
        # Conversations of one agent are told apart by how they begin.
        speaker = (body.get("model"), instructions, hash(repr(view[:1])))
        with guarded(self._on_error, "the request is sent as it was"):
            ledger = self.keeper.about(link, view)
            last = None if link else self.keeper.last_request(speaker, view)
            context = Context(ledger=ledger, last_request=last)
            asks = is_omitted if self.stored else is_apart
            policy = self._more if last is not None or asks(view) else self._policy
            fixed = normalize_request(body | {"input": view}, policy, context=context)
            rest = (body.keys() | fixed.keys()) - OURS
            if changed := sorted(key for key in rest if body.get(key) != fixed.get(key)):
                raise ConvnormError(
                    f"the repair changes {', '.join(changed)}, which only the agent's settings can"
                )
            if self.stored:  # without the placeholder, which the server refuses
                _keep(link, Link.of(fixed), ledger)
                link = Link.of(fixed)
                sent = restored(fixed["input"], view, view)
                sent = as_the_server_knows(sent, ledger, link) if link else sent
            else:
                sent = named(restored(fixed["input"], view, items))
            same = _same(sent, items)
            repaired = not _same(fixed["input"], view)
            return Sent(given if same else sent, link, fixed, view, speaker, repaired=repaired)
        bare = as_the_server_knows(items, None, link) if link else given
        return Sent(bare, link, body, view, speaker)

    def _known(self, link: Link, settings: Any) -> dict[str, Any]:
        """What the body of the call will say beside its input, as far as it is of interest."""
        known = {"model": getattr(self.inner, "model", None)}
        if self.stored:
            known |= {
                "store": settings.store,
                "include": settings.response_include,
                "previous_response_id": link.previous_response_id,
                "conversation": link.conversation,
            }
        return {key: value for key, value in known.items() if value is not None}

    def _calls(self, sent: Sent) -> CallIds:
        """How the calls of the answer are told from those before it."""
        ledger = self.keeper.about(sent.link, sent.given) if sent.link else None
        return CallIds(sent.given, ledger, sent.link)

    def _told(self, tell: Callable[[Any], Any], answer: Any) -> Any:
        """An answer, or a part of it, as the SDK can take it."""
        with guarded(self._on_error, "an answer is told as it was"):
            return tell(answer)
        return answer

    def _answered(self, sent: Sent, response: object) -> None:
        with guarded(self._on_error, "the ledger does not know of an answer"):
            if self.stored and sent.body.get("store") is not False:
                self.keeper.accepted(sent.body, response, sent.given)
            # What was sent as it was the SDK may send in other words: that is its own affair.
            self.keeper.remember(
                sent.speaker, sent.body["input"] if sent.repaired and not sent.link else None
            )


def _keep(link: Link, new: Link, ledger: Ledger | None) -> None:
    """Refuse to leave a link, unless nothing is lost: in a conversation others may have spoken."""
    whole = ledger is not None and link.conversation is None and ledger.whole(link)
    if link and not new and not whole:
        name = link.conversation or link.previous_response_id
        raise ConvnormError(f"the repair leaves {name}, and what else it holds is unknown")


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


def normalize_model(
    model: Model,
    policy: Policy | str | None = None,
    *,
    keeper: LedgerKeeper | None = None,
    on_error: OnError = "send",
) -> NormalizingModel:
    """A model instance that repairs what it is sent."""
    return NormalizingModel(model, policy, keeper=keeper, on_error=on_error)
