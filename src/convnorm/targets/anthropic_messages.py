"""What servers of Anthropic Messages differ in, for the rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from convnorm.targets.profile import Profile
from convnorm.targets.variant import variant


@dataclass(frozen=True, slots=True)
class AnthropicProfile(Profile):
    """What one server, with one model, takes in `messages`.

    The defaults are the first party's, for a model that nobody named: where models differ they
    take the lenient side.
    """

    prefill: bool = True
    """The list may end with an assistant message, which the model continues."""
    first_user: bool = True
    """The first message that is no system entry must be a user's."""
    alternate: bool = False
    """Neighbours of one role are refused, not combined: an old gateway."""
    tools_required: bool = False
    """Tool blocks are refused in a request that defines no tools: an old gateway."""
    system_role: Literal["taken", "ignored", "refused"] | None = None
    """What becomes of a message with the role system; None when nobody knows."""
    signed_thinking: bool = True
    """Thinking blocks carry a signature, and the server verifies it."""
    thinking_first: bool = True
    """With manual thinking the open tool turn must start with a thinking block."""
    thinking_must_return: bool = False
    """Unless thinking is switched off, every turn that calls a tool has its thinking block."""
    binds_thinking: bool = False
    """A thinking block is valid only behind the very messages that it was made behind."""
    known_keys_only: bool = True
    """A key that the schema does not have is refused, not ignored."""
    strict_ids: bool = True
    """Ids of calls are letters, digits, `_` and `-`."""
    max_cache_markers: int | None = 4
    """How many `cache_control` markers one request may have; None when they are ignored."""
    max_images: int | None = 600
    """How many images one request may have; None when there is no known limit."""
    many_images: int | None = 20
    """With more images than this no side may exceed `many_images_side` pixels."""
    many_images_side: int = 2000


PROVIDERS: Mapping[str, Mapping[str, Any]] = {
    # Claude on Bedrock was seen to take a leading assistant message.
    "bedrock": {"first_user": False},
    # DeepSeek's endpoint speaks the format and signs nothing; what it ignores is not a fault.
    "deepseek": {
        "first_user": False,
        "signed_thinking": False,
        "thinking_first": False,
        "thinking_must_return": True,
        "known_keys_only": False,
        "strict_ids": False,
        "max_cache_markers": None,
        "max_images": None,
        "many_images": None,
    },
    # Gateways that still do what the first party did before 2025.
    "anthropic-legacy": {"alternate": True, "tools_required": True},
}
"""By provider: the fields of the profile that are different there. Anthropic's own API, Vertex and
Google are the defaults."""

OLD = r"claude-(?:v?[1-3](?!\d)|instant)|(?:opus|sonnet|haiku)-4(?!\d)"
FROM_4_6 = r"(?:opus|sonnet|haiku)-4[-.](?:[6-9]|[1-9]\d)(?!\d)"
FROM_5 = r"(?:opus|sonnet|haiku)-(?:[5-9]|[1-9]\d)(?!\d)|fable|mythos"
TAKES_SYSTEM = (
    r"opus-4[-.]8(?!\d)|(?:fable|mythos|opus)-5(?!\d)|(?:sonnet|haiku)-5[-.]5(?!\d)"  # and 5.x
)
IGNORES_SYSTEM = r"sonnet-5(?!\d)(?![-.]\d(?!\d))"  # 5 and its dated names, not 5.5
BINDS = r"fable-5[-.]1(?!\d)|(?:opus|sonnet|haiku)-5[-.]5(?!\d)"

MODELS: tuple[tuple[str, str | None, Mapping[str, Any]], ...] = (
    (OLD, None, {"system_role": "refused", "max_images": 100}),  # a context of 200k tokens
    (FROM_4_6, None, {"prefill": False, "max_images": 600}),
    (FROM_5, None, {"prefill": False}),
    (TAKES_SYSTEM, None, {"system_role": "taken"}),
    (IGNORES_SYSTEM, None, {"system_role": "ignored"}),
    (BINDS, None, {"binds_thinking": True}),
)
"""A pattern of model names, the provider it is about (None: all), and what is different."""


@lru_cache(maxsize=256)
def profile_of(provider: str, model: str | None) -> AnthropicProfile:
    """The profile as `provider` serves `model`, for a body that names another model."""
    return variant(AnthropicProfile(), provider, model, providers=PROVIDERS, models=MODELS)
