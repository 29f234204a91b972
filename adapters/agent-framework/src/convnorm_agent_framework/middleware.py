"""`NormalizingMiddleware`: the same as `normalize_client`, for `middleware=[…]`."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import ChatMiddleware

from convnorm import Policy
from convnorm_agent_framework.client import MARK, normalize_client
from convnorm_agent_framework.on_error import Complaints, OnError


class NormalizingMiddleware(ChatMiddleware):
    """Repair every request of the client that it first runs in.

    Middleware cannot see what goes out: histories are loaded behind it. So it normalizes the
    client of the call, once, and lets the call go on. Agents that share the client share that.
    Give it to the client: some releases lose the middleware of agents in a handoff.
    """

    def __init__(self, policy: Policy | str | None = None, *, on_error: OnError = "send") -> None:
        self.policy = policy
        self.on_error: OnError = on_error
        self._complaints = Complaints()

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        """Normalize the client of this call, and go on."""
        client = context.client
        if getattr(client, MARK, None) is None:
            with self._complaints.guarded(self.on_error, "the client is left as it is"):
                normalize_client(client, self.policy, on_error=self.on_error)
        await call_next()
