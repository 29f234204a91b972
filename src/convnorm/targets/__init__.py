"""What each provider accepts, as data: passes and rules read it, nothing branches on names."""

import logging
from dataclasses import replace
from functools import lru_cache

from convnorm.errors import PolicyError
from convnorm.options import nearest
from convnorm.targets import anthropic_messages, openai_chat, openai_responses
from convnorm.targets.apis import APIS
from convnorm.targets.fault import Fault
from convnorm.targets.profile import Profile
from convnorm.targets.providers import PROVIDERS
from convnorm.targets.target import Target
from convnorm.targets.variant import asked, variant

__all__ = ["Fault", "Profile", "Target", "find_target"]

logger = logging.getLogger("convnorm")


@lru_cache(maxsize=256)  # requests name models, too, and may name any
def find_target(
    name: str, *, provider: str | None = None, model: str | None = None, dialect: str | None = None
) -> Target:
    """The target called `name`, as `provider` serves it."""
    if name not in APIS:
        raise PolicyError(f"there is no target {name!r}; {nearest(name, APIS)}")
    target = replace(APIS[name], model=model)
    if dialect not in (None, target.dialect):
        raise PolicyError(f"{name} is read in its own dialect {target.dialect}, not in {dialect!r}")
    if provider is not None:
        known = PROVIDERS.get(provider)
        if known is None:
            logger.warning(
                "no profile for provider %r: using the generic one of %s", provider, name
            )
        target = replace(
            target, provider=provider, **(known.differs.get(name, {}) if known else {})
        )
    served = (target.provider, model)
    target = replace(
        target,
        chat=variant(
            target.chat, *served, providers=openai_chat.PROVIDERS, models=openai_chat.MODELS
        ),
        responses=variant(
            target.responses,
            *served,
            providers=openai_responses.PROVIDERS,
            models=openai_responses.MODELS,
        ),
        anthropic=variant(
            target.anthropic,
            *served,
            providers=anthropic_messages.PROVIDERS,
            models=anthropic_messages.MODELS,
        ),
    )
    return replace(target, rules={**target.rules, **asked(target.profile)})
