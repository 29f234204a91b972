"""The search of the docs: who pastes an error text finds its rule.

The site is built, and its own scripts are run as a browser would: the paste goes through ours, and
what that puts into the field goes to the theme's search.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from py_mini_racer import MiniRacer

from convnorm.rules import CATALOGUE, Rule

BROWSER = """
var self = globalThis, listeners = {}, answer
console = {warn() {}}
document = {addEventListener: (name, listener) => { listeners[name] = listener }}
addEventListener = document.addEventListener
postMessage = message => { answer = message }
Event = class {}
"""
PASTE = """
const field = {
  value: "", selectionStart: 0, selectionEnd: 0,
  matches: selector => selector === "[data-md-component=search-query]",
  setRangeText(text) { this.value = text },
  dispatchEvent() { listeners.message({data: {type: 2, data: this.value}}) },
}
paste = text => listeners.paste({
  target: field, preventDefault() {}, clipboardData: {getData: () => text},
})
"""
FOUND = """
JSON.stringify(answer.data.items.flat().filter(each => each.score > 0)
  .sort((one, other) => other.score - one.score).map(each => each.location))
"""

Search = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """What the search shows for a text that is pasted, best first."""
    site = tmp_path_factory.mktemp("site")
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    subprocess.run(command, cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)  # noqa: S603 - our own docs
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    scripts = [site / "search.js", *(site / "assets/javascripts/workers").glob("search.*.js")]
    engine = MiniRacer()
    engine.eval(BROWSER)
    for script in scripts:
        engine.eval(script.read_text(encoding="utf-8"))
    engine.eval(PASTE)
    told = {"type": 0, "data": {**index, "options": {"suggest": False}}}
    engine.eval(f"listeners.message({{data: {json.dumps(told)}}})")

    def searched(text: str) -> list[str]:
        engine.eval(f"paste({json.dumps(text)})")
        found: list[str] = json.loads(str(engine.eval(FOUND)))
        return found

    return searched


def wordings(rule: Rule) -> str:
    """What the API says, without the status and without our remarks in parentheses."""
    said = re.sub(r"\((?:text|wording|documented|no |exact|the ).*", "", rule.error)
    return re.sub(r"^\d+ ", "", said).strip()


RULES = {f"rules/{api}/#{rule.id}": rule for api, rules in CATALOGUE.items() for rule in rules}
WORDED = {at: rule for at, rule in RULES.items() if len(wordings(rule)) > 12}
"""Those whose error text is known."""


def test_texts_are_known_for_most_rules() -> None:
    """Few rules are left out of what follows."""
    assert len(WORDED) > len(RULES) * 0.8


@pytest.mark.parametrize("place", WORDED)
def test_an_error_text_finds_its_rule(place: str, search: Search) -> None:
    """It is among the first of what is found; several rules can have nearly the same words."""
    assert place in search(wordings(WORDED[place]))[:10]


def test_most_are_at_the_top(search: Search) -> None:
    """Nine of ten rules are among the first three."""
    ranks = [search(wordings(rule)).index(place) for place, rule in WORDED.items()]
    assert sum(rank < 3 for rank in ranks) > len(ranks) * 0.9


def test_a_whole_error_is_read_for_its_message(search: Search) -> None:
    """People paste what the client prints."""
    message = (
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    )
    printed = f'Error code: 400 - {{"error": {{"message": "{message}", "code": None}}}}'
    assert search(printed) == search(message)
    assert "rules/openai.chat/#chat-tool-message-orphan" in search(printed)[:3]


def test_a_name_is_still_found(search: Search) -> None:
    """Who looks for a pass or a rule by its name gets its page first."""
    assert search("settle_link")[0].startswith("passes/settle_link/")
    assert search("resp-id-prefix")[0] == "rules/openai.responses/#resp-id-prefix"
