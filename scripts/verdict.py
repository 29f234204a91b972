"""The last word of `make test`: one test per step, so that pytest's closing line is the truth."""

import os

import pytest

from lanes import Step, groups, problems

STEPS = [step for group in groups(os.environ["CONVNORM_PROFILE"]) for step in group]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_step(step: Step) -> None:
    """The step ran, passed, skipped nothing and had the versions it is about."""
    found = problems(step)
    if found:
        pytest.fail("\n".join([f"{step.name}:", *found, f"see {step.file('.log')}"]), pytrace=False)
