"""What becomes of an error inside convnorm: by default the request is sent as it was."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

from convnorm import ChangeError

OnError = Literal["send", "raise"]

logger = logging.getLogger("convnorm")


@contextmanager
def guarded(on_error: OnError, what: str) -> Iterator[None]:
    """Keep an error of ours from ending a run; `what` is what was not done."""
    try:
        yield
    except ChangeError:
        raise  # the policy says that a change is an error: that is no failure of ours
    except Exception as error:
        if on_error == "raise":
            raise
        _log_once(what, f"{type(error).__name__}: {error}")


@lru_cache(maxsize=256)
def _log_once(what: str, error: str) -> None:
    """Every turn sends the whole history again, and the same error is worth one line."""
    logger.warning("%s: %s", what, error)
