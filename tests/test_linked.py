"""Whatever the server holds and the input repeats: the model sees the whole conversation once."""

from collections import Counter
from typing import Any

from hypothesis import given, settings

from convnorm import Link, UnrepairableError, explain
from convnorm.testing import laws
from convnorm.testing.linked import LOCALS, SERVERS, Linked, linked
from convnorm.testing.reading import read

EXAMPLES = settings().max_examples * 10
ENOUGH = settings().max_examples // 10


def view(request: dict[str, Any], sample: Linked) -> list[Any]:
    """What the model sees of a request: what the server puts before it, and the input."""
    ledger = sample.sample.context.ledger
    assert ledger is not None
    return [*ledger.holds(Link.of(request)), *request["input"]]


def told(items: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Everything that was said, asked and really returned; reasoning may go."""
    found = read({"input": items})
    said = [one.what for one in found.said if one.role != "reasoning"]
    results = [(one.id, one.output) for one in found.results if not one.invented]
    return said, [one.what for one in found.calls], sorted(results, key=str)


def test_the_laws_hold_behind_a_link() -> None:
    """The whole conversation is seen exactly once, in order, and the request is accepted."""
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES)
    @given(linked())
    def holds(case: Linked) -> None:
        sample = case.sample
        seen.update(sample.applied)
        laws.pure(sample)
        laws.sound(sample)
        laws.untouched(sample)
        laws.deterministic(sample)
        laws.surveyed(sample)
        laws.idempotent(sample)
        try:
            sent = explain(sample.request, context=sample.context).request or {}
        except UnrepairableError:
            return
        assert told(case.truth) == told(view(sent, case)), (sample, sent)

    holds()
    assert min(seen[name] for name in (*SERVERS, *LOCALS)) >= ENOUGH, seen
