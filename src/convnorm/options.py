"""Values that users write: frozen, and a wrong key or value is answered in plain words."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from convnorm.errors import PolicyError


class Options(BaseModel):
    """A frozen value with named fields; unknown keys are refused with the nearest right name."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def __init__(self, /, **values: Any) -> None:
        known, what = type(self).model_fields, type(self).__name__
        for key in values:
            if key not in known:
                raise PolicyError(f"{what} has no {key!r}; {nearest(key, known)}")
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(map(str, first["loc"]))
            raise PolicyError(f"{what}.{path}: {first['msg']}") from None


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at what was meant."""
    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
