"""What becomes of an error of convnorm's own."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from convnorm import ChangeError

OnError = Literal["send", "raise"]
logger = logging.getLogger("convnorm")


class Complaints:
    """The errors that the log has already heard of."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    @contextmanager
    def guarded(self, on_error: OnError, what: str) -> Iterator[None]:
        """Go on behind an error in the block, or raise it; `what` says what that means.

        A policy that says that a change is an error means it.
        """
        try:
            yield
        except ChangeError:
            raise
        except Exception as error:
            if on_error == "raise":
                raise
            said = f"{type(error).__name__}: {error}"
            if said not in self._said:
                self._said.add(said)
                logger.exception("convnorm failed, and %s: %s", what, said)
