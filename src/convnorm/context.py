"""The facts of one call that no list of messages shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from convnorm.delivery import Ledger, Link
from convnorm.errors import PolicyError
from convnorm.options import Options


class Provenance(Options):
    """Where single messages came from, by their index in the list."""

    edited: frozenset[int] = frozenset()
    """Messages changed since the model made them: never taken for a copy of anything."""
    models: dict[int, str] = Field(default_factory=dict)
    """Which model made a message: two messages of different models are never copies."""
    agents: dict[int, str] = Field(default_factory=dict)
    """Which of several agents made a message; of a chat message, else the one of its `name`."""

    def moved(self, places: Sequence[int | None]) -> "Provenance":
        """The same when each message stands elsewhere; `places` says where it stood."""
        was = [*enumerate(places)]
        return Provenance(
            edited=frozenset(at for at, old in was if old in self.edited),
            models={at: self.models[old] for at, old in was if old in self.models},
            agents={at: self.agents[old] for at, old in was if old in self.agents},
        )


class Context(Options):
    """What is known of this call beside its body; the body wins only where both agree."""

    store: bool | None = None
    """Whether the server stores what it is sent; unknown when neither body nor context says."""
    previous_response_id: str | None = None
    """The stored response this call continues."""
    conversation: str | None = None
    """The stored conversation this call continues."""
    ledger: Ledger | None = None
    """What the server holds; without it nothing is assumed of what it stored."""
    live_calls: frozenset[str] = frozenset()
    """Ids of calls that are still being answered, for example waiting for an approval."""
    last_request: Mapping[str, Any] | list[Any] | tuple[Any, ...] | None = None
    """The body, or the list, of the last request that was answered: what is sent now begins with
    it, byte for byte. A request that failed was not answered."""
    sources: tuple[str | None, ...] = ()
    """One label per message: which history source (store, executor, …) it was replayed from."""
    provenance: Provenance = Provenance()
    """Where single messages came from."""

    @property
    def link(self) -> Link:
        """What the call continues."""
        return Link(self.previous_response_id, self.conversation)

    @property
    def linked(self) -> bool:
        """Whether the server puts a history of its own before this call's."""
        return self.previous_response_id is not None or self.conversation is not None

    def with_body(self, body: Mapping[str, Any]) -> "Context":
        """Take over what the request body says; a body that contradicts the context is refused."""
        facts: dict[str, Any] = {}
        for key, kind in FACTS.items():
            said, known = _plain(body.get(key)), getattr(self, key)
            if said is None:
                continue
            if not isinstance(said, kind):
                raise PolicyError(f"{key} in the request is {said!r}, not a {kind.__name__}")
            if known is not None and known != said:
                raise PolicyError(
                    f"{key} is {said!r} in the request and {known!r} in the context: "
                    "leave it out of the context, or make both agree"
                )
            facts[key] = said
        return self.model_copy(update=facts) if facts else self


FACTS: dict[str, type] = {"store": bool, "previous_response_id": str, "conversation": str}
"""What a body may say of the call."""


def usable_fact(key: str, said: object) -> bool:
    """Whether what a body says under `key` has the type it must have."""
    return isinstance(_plain(said), FACTS[key] | None)


def _plain(said: object) -> object:
    """A conversation can be named by an object, too: `{"id": "conv_…"}`."""
    return said.get("id") if isinstance(said, Mapping) else said
