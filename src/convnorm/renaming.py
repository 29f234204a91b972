"""New names for those that a target does not take: the same in every process, never two alike."""

import re
from collections.abc import Callable

from convnorm import envelope


class Renamer:
    """New words for those that do not fit, decided in order of appearance and never twice."""

    def __init__(self, fits: Callable[[str], bool], make: Callable[[str, int], str]) -> None:
        self.fits, self.make = fits, make
        self.chosen: dict[str, str] = {}
        self.taken: set[str] = set()

    def settle(self, old: str) -> str:
        """The word that stands for `old` from now on: itself, if it fits and is not taken."""
        if old not in self.chosen:
            new, tries = old, 0
            while not self.fits(new) or new in self.taken:
                new = self.make(old, tries)
                tries += 1
            self.chosen[old] = new
            self.taken.add(new)
        return self.chosen[old]


def legal_name(old: str, longest: int) -> str:
    """The name in legal letters, as most frameworks write it; a long one ends in its digest."""
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", old)
    return clean if len(clean) <= longest else f"{clean[: longest - 13]}_{envelope.digest(old)}"


def other_name(old: str, longest: int, tries: int) -> str:
    """The name in legal letters, and on a second try with a digest that tells it from another."""
    if not tries:
        return legal_name(old, longest)
    return f"{legal_name(old, longest - 13)}_{envelope.digest(old, str(tries))}"
