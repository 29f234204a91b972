"""Profiles from records of differences, by provider, then by model; and the faults they name."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from convnorm.targets.fault import Fault

Profile = TypeVar("Profile", bound=Any)


def variant(
    profile: Profile,
    provider: str,
    model: str | None,
    *,
    providers: Mapping[str, Mapping[str, Any]],
    models: tuple[tuple[str, str | None, Mapping[str, Any]], ...],
) -> Profile:
    """The profile as `provider` serves `model`; later records win over earlier ones."""
    found = dict(providers.get(provider, {}))
    for pattern, only, differs in models if model else ():
        if only in (None, provider) and re.search(pattern, model or "", re.IGNORECASE):
            found |= differs
    changed: Profile = replace(profile, **found)
    return changed


NOTHING_ASKED: tuple[object, ...] = ("accepted", None, False, frozenset())
"""Values of a profile's field by which a server asks for nothing."""


def asked(profile: Any) -> dict[Fault, str]:
    """What only some servers or models refuse, as far as this one does: the fault and its rule."""
    return {
        fault: rule
        for fault, (name, rule) in profile.ASKS.items()
        if getattr(profile, name) not in NOTHING_ASKED
    }
