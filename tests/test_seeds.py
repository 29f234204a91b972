"""The histories of the demo are cured, as data."""

import json
from pathlib import Path
from typing import Any

import pytest

from convnorm import Context, Policy, check, explain

SEEDS = Path(__file__).parent.parent / "examples" / "seeds"


def situations() -> list[Any]:
    """Every request of every seed."""
    found = []
    for file in sorted(SEEDS.glob("*.json")):
        seed = json.loads(file.read_text(encoding="utf-8"))
        each = [seed] if "request" in seed else seed.get("situations", [])
        found += [
            pytest.param({"policy": seed["policy"], **one}, id=f"{file.stem} {at}")
            for at, one in enumerate(each)
        ]
    return found


@pytest.mark.parametrize("seed", situations())
def test_seed_is_cured(seed: dict[str, Any]) -> None:
    """What was refused, or read twice, is accepted and read once; a second run changes nothing."""
    policy, context = Policy(**seed["policy"]), Context(**seed.get("context", {}))
    report = explain(seed["request"], policy, context=context)
    after = context.model_copy(update={"sources": ()})

    assert report.violations
    assert report.edits
    assert check(report.request or {}, policy, context=after) == []
    assert explain(report.request or {}, policy, context=after).edits == ()


def test_every_seed_that_is_a_request_is_there() -> None:
    """Stale link, unstored ids, two sources, and an output that was never sent."""
    assert ["s0 0", "s0 1", "s1 0", "s2 0", "s4 0"] == [case.id for case in situations()]
