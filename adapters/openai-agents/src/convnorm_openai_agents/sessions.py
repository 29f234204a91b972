"""Sessions that are repaired when they are read, and never when they are written."""

import inspect
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from agents import OpenAIConversationsSession
from agents.memory import Session

from convnorm import Policy
from convnorm_openai_agents.on_error import OnError, guarded
from convnorm_openai_agents.reading import WHOLE, repaired

METHODS = ("get_items", "add_items", "pop_item", "clear_session")
AS_STORED = ContextVar("AS_STORED", default=False)
"""Whether a session is being read to find what it stores."""


class NormalizingSession:
    """Reads the session `inner` repaired; what is stored stays as it is."""

    def __init__(
        self, inner: Session, policy: Policy | str | None = None, *, on_error: OnError = "send"
    ) -> None:
        if isinstance(inner, OpenAIConversationsSession):
            raise TypeError(
                "the SDK knows an OpenAIConversationsSession by its class: "
                "use NormalizingConversationsSession in its place"
            )
        self.inner = inner
        self._policy = policy
        self._on_error: OnError = on_error
        self._forwards = all(_accepts_wrapper(getattr(inner, name)) for name in METHODS)

    @property
    def session_id(self) -> str:
        """The id of the inner session."""
        return str(self.inner.session_id)

    @property
    def session_settings(self) -> Any:
        """The settings of the inner session."""
        return getattr(self.inner, "session_settings", None)

    @session_settings.setter
    def session_settings(self, settings: Any) -> None:
        self.inner.session_settings = settings

    def __getattr__(self, name: str) -> Any:
        """What else the inner session can do, such as compaction."""
        if name == "inner":  # a copy that is not filled yet has no inner session to ask
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        """The items, repaired; with a limit, the last ones."""
        asked = {} if limit is None else {"limit": limit}
        items = await self.inner.get_items(**asked, **self._more(wrapper))
        return read(items, self._policy, self._on_error)

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        """Store items as they are."""
        await self.inner.add_items(items, **self._more(wrapper))

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Take the last item away, as it is stored."""
        return await self.inner.pop_item(**self._more(wrapper))

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Forget everything."""
        await self.inner.clear_session(**self._more(wrapper))

    def _more(self, wrapper: Any) -> dict[str, Any]:
        return {"wrapper": wrapper} if wrapper is not None and self._forwards else {}


class NormalizingConversationsSession(OpenAIConversationsSession):
    """A session in OpenAI's Conversations that is read repaired."""

    def __init__(
        self, policy: Policy | str | None = None, *, on_error: OnError = "send", **options: Any
    ) -> None:
        super().__init__(**options)
        self._policy = policy
        self._on_error: OnError = on_error

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, repaired; with a limit, the last ones."""
        items = list(await super().get_items(limit))
        return items if AS_STORED.get() else read(items, self._policy, self._on_error)

    async def pop_item(self) -> Any:
        """Take the last item away, as it is stored: older SDKs read it first, and need its id."""
        token = AS_STORED.set(True)
        try:
            return await super().pop_item()
        finally:
            AS_STORED.reset(token)


def read(items: Sequence[Any], policy: Policy | str | None, on_error: OnError) -> list[Any]:
    """The items of a session, repaired up to the first call that may still be answered."""
    end = len(items)
    with guarded(on_error, "a session is read as it is"):
        end = _first_open_call(items)
    return [*repaired(items[:end], policy, WHOLE, on_error, "a session"), *items[end:]]


def _first_open_call(items: Sequence[Any]) -> int:
    """The first call behind the last words of the user that has no output: it may be approved."""
    answered = {item.get("call_id") for item in items if _kind(item).endswith("_output")}
    start = max((at for at, item in enumerate(items) if _role(item) == "user"), default=-1) + 1
    for at in range(start, len(items)):
        if _kind(items[at]).endswith("_call") and items[at].get("call_id") not in answered:
            return at
    return len(items)


def _kind(item: Any) -> str:
    return str(item.get("type") or "message") if isinstance(item, Mapping) else ""


def _role(item: Any) -> Any:
    return item.get("role") if isinstance(item, Mapping) else None


def _accepts_wrapper(method: Any) -> bool:
    """Whether a method of a session takes the keyword by which the SDK hands on its context."""
    found = inspect.signature(method).parameters.get("wrapper")
    return found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)
