"""What the profiles of all APIs have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from convnorm.targets.fault import Fault

Verdict = Literal["refused", "disputed", "accepted"]
"""What a server does with something: `disputed` where nobody knows, or sources disagree."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What every API asks of calls, as one server, with one model, takes them."""

    ASKS: ClassVar[Mapping[Fault, tuple[str, str]]] = {}
    """What only some servers or models refuse: the field that says so, and the rule."""

    call_id_length: int | None = None
    """How long a tool call id may be."""
    nine_character_ids: Verdict = "accepted"
    """What becomes of tool call ids that are not nine letters and digits."""
    name_length: int | None = None
    """How long the name of a function may be, where its letters are checked."""
    raw_arguments: Verdict = "refused"
    """What becomes of arguments that are no string."""
    parsed_arguments: Verdict = "disputed"
    """What becomes of old calls whose arguments do not parse as a JSON object; where that is
    disputed, of those that were cut off."""

    @property
    def most_messages(self) -> int | None:
        """How many messages the server is known to take."""
        return None

    @property
    def longest_text(self) -> int | None:
        """How many characters a text, an output or arguments may have, where it is known."""
        return None
