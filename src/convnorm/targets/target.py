"""A target: whose rules the request must satisfy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from convnorm.targets.anthropic_messages import AnthropicProfile
from convnorm.targets.fault import Fault
from convnorm.targets.openai_chat import ChatProfile
from convnorm.targets.openai_responses import ResponsesProfile


@dataclass(frozen=True, slots=True)
class Target:
    """One provider's API as the passes and rules see it."""

    name: str
    """The API: `openai.chat`, `openai.responses`."""
    dialect: str
    """The wire shape that comes in and goes out; by default the API's own."""
    rules: Mapping[Fault, str]
    """Which rule forbids a fault, here. A fault that is not named here is none."""
    provider: str = "openai"
    model: str | None = None
    adjacent_results: bool = False
    """Results stand directly behind the turn that made the calls."""
    unique_call_ids: Literal["turn", "history"] = "turn"
    """How far a call id must be unique."""
    unstored_ids: Literal["strip", "keep"] = "strip"
    """What becomes of item ids that the server never stored."""
    reasoning_by_value: bool = False
    """Reasoning is read from its text, so it needs neither a stored id nor a proof."""
    chat: ChatProfile = field(default_factory=ChatProfile)
    """What the rules of Chat Completions ask, for this server and model."""
    responses: ResponsesProfile = field(default_factory=ResponsesProfile)
    """The same for the Responses API."""
    anthropic: AnthropicProfile = field(default_factory=AnthropicProfile)
    """The same for Anthropic Messages."""

    @property
    def profile(self) -> ChatProfile | ResponsesProfile | AnthropicProfile:
        """What this server and model take of the API they speak."""
        return PROFILES[self.name](self)


PROFILES: Mapping[str, Callable[[Target], ChatProfile | ResponsesProfile | AnthropicProfile]] = {
    "openai.chat": lambda target: target.chat,
    "openai.responses": lambda target: target.responses,
    "anthropic.messages": lambda target: target.anthropic,
}


@dataclass(frozen=True, slots=True)
class Provider:
    """How one provider differs from the API it speaks."""

    differs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By API name: the `Target` fields that are different here."""
