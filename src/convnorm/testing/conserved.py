"""Whether all that was said, called and returned is still there."""

from collections import Counter
from dataclasses import replace

from convnorm.edits import Loss
from convnorm.pipeline import Change
from convnorm.testing.made import CALL, COPIERS, Made, dropped_copies, fail, places
from convnorm.testing.reading import SPEAKERS, Reading, Returned, Said, dump, read, words_in
from convnorm.testing.strategies import Sample


def conserve(sample: Sample, report: Made, earlier: tuple[Change, ...] = ()) -> None:
    """Nothing is lost; `earlier`: what was changed before in what is kept of the last request."""
    report = replace(report, edits=(*earlier, *report.edits))
    before, after = read(sample.request), read(report.request)
    if sample.copied is False:
        taken = [each for each in report.edits if each.by in COPIERS and each.what == "drop"]
        if taken:
            fail(f"nothing was there twice, and copies were dropped: {taken}", sample)
    copies = dropped_copies(report)
    _conserve_said(before, after, copies, sample, report)
    _conserve_media(before, after, copies, sample, report)
    _conserve_calls(before, after, copies, sample, report)
    _conserve_results(before, after, copies, sample, report)


def _loses_reasoning(edit: Change) -> bool:
    """Whether reasoning goes whole; of an item that stays, only its plain text may go."""
    whole = edit.what == "drop" or edit.where.startswith("messages")
    return whole and edit.loss == Loss.REASONING


def _conserve_said(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    ids = {said.id for said in after.said if said.id}
    unusable = {
        "reasoning": places(report, _loses_reasoning),
        "item": places(report, lambda edit: edit.what == "drop" and edit.loss == Loss.EMPTY),
        # A sound is named by an id under a key of its own, which not every server takes.
        "audio": places(report, lambda edit: edit.loss == Loss.FIELD),
    }
    dropped = {said.what for said in before.said if said.at in unusable.get(said.role, ())}
    rules = {edit.rule for edit in report.edits}
    for said in before.said:
        if said.at not in copies or said.id in ids:
            continue
        if said.what not in dropped and not Told(after.said, rules).goes_on_with(said):
            fail(f"dropped as a copy, and no other is left: {said}", sample, report.request)
    told = Told(after.said, rules)
    for said in before.said:
        if said.at in unusable.get(said.role, ()):
            continue
        if said.at not in copies and not told.goes_on_with(said):
            fail(f"lost or out of order: {said}", sample, report.request)


def _conserve_media(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    """Every medium is still there, if only quoted; those in messages in their order."""
    there = Counter(medium.text for medium in after.media)
    words = "\n".join(said.text for said in after.said)
    results = {result.at for result in before.results}
    told = iter([medium.text for medium in after.media])
    for medium in before.media:
        if medium.at in copies or medium.text in words:
            continue
        there[medium.text] -= 1
        if there[medium.text] < 0:
            fail(f"lost: {medium}", sample, report.request)
        if medium.at not in results and medium.text not in told:
            fail(f"out of order: {medium}", sample, report.request)


JOINED = "template-roles-alternate"
"""Under this rule several messages may be told as one, each on lines of its own."""
RANKED = (
    JOINED,
    "mistral-message-order",
    "chat-system-role-unsupported",
    "chat-developer-role-unsupported",
)
"""Under these rules instructions may be told under their other name, or under a lower rank."""
LOWER = {"developer": ("system", "user"), "system": ("developer", "user")}


class Told:
    """What was said afterwards, read once from its beginning to its end."""

    def __init__(self, said: list[Said], rules: set[str]) -> None:
        self.said, self.joined = said, JOINED in rules
        self.lower = LOWER if not rules.isdisjoint(RANKED) else {}
        self.at, self.start = 0, 0

    def goes_on_with(self, one: Said) -> bool:
        """Whether `one` is told somewhere from here on; then the reading goes on behind it."""
        while self.at < len(self.said):
            end = self._end_of(one, self.said[self.at])
            if end is not None:
                self.start = end
                return True
            self.at, self.start = self.at + 1, 0
        return False

    def _end_of(self, one: Said, other: Said) -> int | None:
        """Where in the text of `other` it ends, if it is told there."""
        whole = len(other.text) + 1
        if one.role == "item":
            # A server knows its item by the id; one that cannot be sent is quoted whole.
            same = other.role == "item" and one.id is not None and one.id == other.id
            quoted = other.role == "user" and one.text in words_in(other)
            return whole if same or quoted or one.what == other.what else None
        if other.role not in (one.role, *self.lower.get(one.role, ())):
            return None
        if not self.joined or one.role not in SPEAKERS:
            # Who speaks under a name that cannot be sent is told in the text.
            told = (one.text, one.text if one.name is None else f"{one.name}: {one.text}")
            return whole if other.text in told and not self.start else None
        lines, start = f"\n{other.text}\n", self.start
        found = lines.find(f"\n{one.text}\n", start)
        return None if found < 0 else found + len(one.text) + 1


def _conserve_calls(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    late = sample.context.last_request is not None
    quotes = [words_in(said) for said in after.said] if late else _new_quotes(before, after)
    for group in {call.what for call in before.calls}:
        asked = [call for call in before.calls if call.what == group]
        needed = [call.at for call in asked if call.at not in copies]
        found = sum(call.what == group for call in after.calls)
        # A call that cannot be sent is quoted whole.
        found += sum(CALL in quote and group[1] in quote for quote in quotes)
        if found < max(len(needed), 1):
            fail(f"a call is lost: {group}", sample, report.request)


def _conserve_results(
    before: Reading, after: Reading, copies: set[int], sample: Sample, report: Made
) -> None:
    """Each real result answers its own call, or is quoted in a turn that was not there before."""
    answers = [result for result in after.results if not result.invented]
    late = sample.context.last_request is not None  # it may have come when its call was sent
    unclaimed = list(answers)
    # With a last request a quotation may repeat one that was sent.
    quotes = [words_in(said) for said in after.said] if late else _new_quotes(before, after)
    answered = {result.call.what for result in answers if result.call}
    # Those that answer a call come first, and of these whoever can answer the fewest: a second
    # result must not take their place.
    for result in sorted(before.results, key=lambda each: (each.call is None, len(each.could))):
        if result.invented:
            continue
        copied = result.at in copies
        candidates = answers if copied else unclaimed
        found = next((each for each in candidates if _answers(each, result, copied=copied)), None)
        if found is not None:
            if not copied:
                unclaimed.remove(found)
        elif any(CALL in quote and _quotes(quote, result) for quote in quotes):
            continue  # together with its call, which cannot be sent
        elif result.call and not (copied or late or result.could & answered):
            fail(f"no longer answers its call: {result}", sample, report.request)
        elif any(result.texts) and not any(_quotes(quote, result) for quote in quotes):
            fail(f"a real result is lost: {result}", sample, report.request)


def _new_quotes(before: Reading, after: Reading) -> list[str]:
    """What user turns say that were not there before."""
    old = {said.what for said in before.said}
    return [words_in(said) for said in after.said if said.what not in old and said.role == "user"]


def _quotes(quote: str, result: Returned) -> bool:
    """Whether the words stand there, as they are or as JSON."""
    return all(word in quote or dump(word)[1:-1] in quote for word in result.texts)


def _answers(found: Returned, result: Returned, *, copied: bool) -> bool:
    if found.output != result.output:
        return False
    if found.call is None:  # the server has the call; a copy may stand behind one by chance
        return (copied or result.call is None) and found.id == result.id
    return found.call.what in result.could
