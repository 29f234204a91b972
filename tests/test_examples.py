"""The example in every pass's docstring, which is also its docs page, is true."""

import json
import re

import pytest

from convnorm import Context, Policy, explain
from convnorm.passes import BUILTIN

BLOCK = re.compile(r"```json\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("name", BUILTIN)
def test_example_of_pass(name: str) -> None:
    """The first block of the example becomes the second, by this pass alone."""
    before, after = map(json.loads, BLOCK.findall(BUILTIN[name].__doc__ or ""))
    context, options = Context(**before.pop("context", {})), before.pop("options", {})
    target = "openai.chat" if "messages" in before else "openai.responses"

    report = explain(
        before, Policy(target=target, passes=[{**options, "name": name}]), context=context
    )
    assert (after, {name}) == (report.request, {edit.by for edit in report.edits})


@pytest.mark.parametrize("name", BUILTIN)
def test_docstring_has_its_sections(name: str) -> None:
    """A pass says what, why with the provider's words, by example, and what is safe."""
    doc = BUILTIN[name].__doc__ or ""

    assert ["Why", "Example", "Safety"] == re.findall(r"^\s*## (\w+)$", doc, re.MULTILINE)


@pytest.mark.parametrize("name", BUILTIN)
def test_one_name_for_one_thing(name: str) -> None:
    """File, class and policy key of a pass have one name."""
    kind = BUILTIN[name]

    assert kind.__module__ == f"convnorm.passes.{name}"
    assert kind.__name__ == "".join(word.capitalize() for word in name.split("_"))
