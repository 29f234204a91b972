"""`normalize_client`: every request of a client, repaired where it goes out."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

import agent_framework
from agent_framework import ResponseStream

from convnorm import Policy, PolicyError
from convnorm_agent_framework.normalizer import Normalizer, Outgoing
from convnorm_agent_framework.on_error import OnError
from convnorm_agent_framework.service import policy_for
from convnorm_agent_framework.turn import Caller

Client = TypeVar("Client")
MARK = "convnorm_normalizer"
"""Where a client keeps the normalizer it got."""
CALLER = "convnorm_caller"
"""The argument by which who asks is told to the place where the request goes out."""
NAMES_ARGUMENTS = hasattr(agent_framework, "HistoryProvider")
"""From 1.0.0 on arguments for the client go under a name of their own, `client_kwargs`."""


def normalize_client(
    client: Client,
    policy: Policy | str | None = None,
    *,
    on_error: OnError = "send",
    keep_links: bool = False,
) -> Client:
    """Repair every request of this client, for whatever agent or workflow; the same client.

    Without a policy the API and the provider are read from the client. An error of convnorm's own
    never kills a call: the request is sent as it was, and the log says so once. `raise` is for
    tests. `keep_links` puts back the link of a session whose `service_session_id` somebody took
    away: only for those who do not do so in order to begin anew.
    """
    if on_error not in ("send", "raise"):
        raise PolicyError(f"on_error is 'send' or 'raise', not {on_error!r}")
    if isinstance(policy, str):
        policy = Policy.for_target(policy)
    found: Any = client
    known: Normalizer | None = getattr(found, MARK, None)
    if known is not None:
        known.policy, known.on_error = policy or known.policy, on_error
        known.keep_links = keep_links
        return client
    normalizer = Normalizer(policy or policy_for(client), on_error, keep_links=keep_links)
    setattr(found, MARK, normalizer)
    # Here the agent still says which session it is; what goes out is not to be seen yet.
    asked = found.get_response
    # The one place that sees what really goes out, after every middleware and history provider,
    # in all releases: what the framework asks clients to define.
    inner = found._inner_get_response  # noqa: SLF001

    def get_response(*given: Any, **rest: Any) -> Any:
        caller = Caller()
        with normalizer.guarded("it is not known which session asks"):
            caller = Caller.of(given[0] if given else rest["messages"], _session(rest))
        answer = asked(*given, **_introduced(caller, rest))
        return answer if caller.doing is None else _told_to_others(answer, caller, normalizer)

    def inner_get_response(
        *, messages: Sequence[Any], options: Mapping[str, Any], stream: bool = False, **rest: Any
    ) -> Any:
        caller: Caller = rest.pop(CALLER, None) or Caller()
        call = normalizer.prepare(messages, options, rest, caller.here(messages))
        answer = inner(messages=call.messages, options=call.options, stream=stream, **call.rest)
        return _watched(answer, call, normalizer)

    found.get_response = get_response
    found._inner_get_response = inner_get_response  # noqa: SLF001
    return client


def _session(rest: Mapping[str, Any]) -> Any:
    """The session of the agent that asks."""
    return ((rest.get("client_kwargs") or {}) if NAMES_ARGUMENTS else rest).get("session")


def _introduced(caller: Caller, rest: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with who asks among them."""
    if not NAMES_ARGUMENTS:
        return {**rest, CALLER: caller}
    return {**rest, "client_kwargs": {**(rest.get("client_kwargs") or {}), CALLER: caller}}


def _told_to_others(answer: Any, caller: Caller, normalizer: Normalizer) -> Any:
    """The same answer; results behind which nothing more goes out are to be seen only here."""
    if isinstance(answer, ResponseStream):
        return answer.with_transform_hook(lambda update: normalizer.returned(caller, [update]))

    async def awaited() -> Any:
        response = await answer
        normalizer.returned(caller, response.messages)
        return response

    return awaited()


def _watched(answer: Any, call: Outgoing, normalizer: Normalizer) -> Any:
    """The same answer; what it says is noted on the way. What a provider refuses is its own."""
    if isinstance(answer, ResponseStream):
        return answer.with_transform_hook(lambda update: normalizer.came(call, update))
    return _awaited(answer, call, normalizer)


async def _awaited(answer: Awaitable[Any], call: Outgoing, normalizer: Normalizer) -> Any:
    response = await answer
    normalizer.answered(call, response)
    return response
