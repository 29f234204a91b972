"""Values that users write: frozen, and a wrong key or value is answered in plain words."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Self

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
        with _in_our_words(what):
            super().__init__(**values)

    @classmethod
    def model_validate(cls, obj: Any, **how: Any) -> Self:
        """The value that a mapping describes."""
        with _in_our_words(cls.__name__):
            return super().model_validate(obj, **how)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **how: Any) -> Self:
        """The value that a JSON text describes."""
        with _in_our_words(cls.__name__):
            return super().model_validate_json(json_data, **how)

    def __hash__(self) -> int:
        return hash((type(self), *(_hash(getattr(self, key)) for key in type(self).model_fields)))


@contextmanager
def _in_our_words(what: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(map(str, (what, *first["loc"])))
        raise PolicyError(f"{path}: {first['msg']}") from None


def _hash(value: Any) -> int:
    """A hash of any field: of a mapping, or of a list that holds some, only the length counts."""
    try:
        return hash(value)
    except TypeError:
        return len(value)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at what was meant."""
    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
