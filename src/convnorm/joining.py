"""Several turns of one speaker as one, and the parts of such a turn again."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from convnorm.ir import Item, Text, Turn, same_item

GAP = "\n\n"
"""What stands between two texts that are joined."""


def joined(turns: Sequence[Turn]) -> Turn:
    """The turns as one: the first one's, saying what all say, under their names if they differ."""
    names = {turn.name for turn in turns}
    items: list[Item] = []
    for turn in turns:
        said = _labelled(turn) if turn.name and len(names) > 1 else _said(turn)
        if items and said and _is_plain(items[-1]) and _is_plain(said[0]):
            items[-1] = replace(items[-1], text=f"{items[-1].text}{GAP}{said[0].text}")
            said = said[1:]
        items += said
    name = turns[0].name if len(names) == 1 else None
    # What was wrong with the parts of one is read anew in the whole.
    return replace(turns[0], items=tuple(items) or turns[0].items, name=name, flaws=())


class Apart:
    """What may be a joined turn, read from its beginning, part by part."""

    def __init__(self, whole: Turn) -> None:
        self.whole = whole
        self.at = self.start = 0
        """The item that is read next, and where in its text."""

    def done(self) -> bool:
        """Whether all of it was read."""
        return self.at == len(self.whole.items)

    def goes_on_with(self, part: Turn) -> bool:
        """Whether the next that is said is all that `part` says; then it is read."""
        for said in (_said(part), _labelled(part) if part.name else []):
            if said and (end := self._behind(said)) is not None:
                self.at, self.start = end
                return True
        return False

    def _behind(self, said: Sequence[Item]) -> tuple[int, int] | None:
        at, start = self.at, self.start
        for part in said:
            if at == len(self.whole.items):
                return None
            item = self.whole.items[at]
            if not (_is_plain(item) and _is_plain(part)):
                if start or not same_item(item, part):
                    return None
                at += 1
                continue
            if not item.text.startswith(part.text, start):
                return None
            start += len(part.text)
            if start == len(item.text):
                at, start = at + 1, 0
            elif item.text.startswith(GAP, start):
                start += len(GAP)
            else:
                return None
        return at, start


def is_blank(item: Item) -> bool:
    """Whether it is a text without a letter."""
    return isinstance(item, Text) and not item.text


def _said(turn: Turn) -> list[Item]:
    return [item for item in turn.items if not is_blank(item)]


def _labelled(turn: Turn) -> list[Item]:
    """What the turn says, under the name of who says it."""
    name, said = " ".join((turn.name or "").split()), _said(turn)
    if said and _is_plain(said[0]):
        return [replace(said[0], text=f"{name}:\n{said[0].text}"), *said[1:]]
    return [Text(f"{name}:"), *said]


def _is_plain(item: Item) -> TypeGuard[Text]:
    return isinstance(item, Text) and item.kind == "text"
