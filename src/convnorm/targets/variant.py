"""Profiles from records of differences: by provider, then by model."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

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
