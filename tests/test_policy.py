"""Policies from Python, JSON, TOML and pyproject.toml, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from builders import calls, user
from convnorm import ChangeError, Context, Policy, PolicyError, check, explain, normalize_request
from convnorm.context import Provenance
from convnorm.delivery import Ledger
from convnorm.passes import BUILTIN, DEFAULT

CHAT = "openai.chat"


def test_default_policy_has_every_pass_in_order() -> None:
    """Without a word all passes run that are not opt-in, in the one order."""
    names = [pass_.name for pass_ in Policy.for_target(CHAT).passes]

    assert [*DEFAULT] == names
    assert [name for name in BUILTIN if name not in names] == ["relabel_handoffs", "fit_budget"]


@pytest.mark.parametrize(
    "asked", [{"fit_budget": {}}, {"fit_budget": {"max_messages": 9}, "dedupe": {}}]
)
def test_opt_in_pass_runs_when_it_is_named(asked: dict[str, Any]) -> None:
    """At its place in the order, beside all that run anyway; in `passes` alone it runs alone."""
    policy = Policy.for_target(CHAT, **asked)

    assert [*DEFAULT, "fit_budget"] == [pass_.name for pass_ in policy.passes]
    assert policy == Policy(**json.loads(policy.model_dump_json()))
    alone = Policy(target=CHAT, passes=["dedupe", {"name": "fit_budget", "keep_last": 3}])
    assert ["dedupe", "fit_budget"] == [pass_.name for pass_ in alone.passes]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", '{"target": "openai.chat", "repair_tool_pairs": {"orphans": "drop"}}'),
        ("p.toml", 'target = "openai.chat"\n[repair_tool_pairs]\norphans = "drop"'),
        (
            "pyproject.toml",
            (
                '[tool.convnorm]\ntarget = "openai.chat"\n'
                '[tool.convnorm.repair_tool_pairs]\norphans = "drop"'
            ),
        ),
    ],
)
def test_policy_files(tmp_path: Path, name: str, text: str) -> None:
    """The same policy can be written in each format."""
    (tmp_path / name).write_text(text)

    expected = Policy.for_target(CHAT, repair_tool_pairs={"orphans": "drop"})
    assert expected == Policy.from_file(tmp_path / name)


def test_policy_is_json_both_ways() -> None:
    """What is dumped can be loaded again, options included."""
    policy = Policy.for_target(CHAT, provider="azure", on_change={"dedupe": "warn"}, dedupe={})
    policy = Policy(**{**policy.model_dump(), "passes": ["dedupe", {"name": "drop_empty"}]})

    assert policy == Policy(**json.loads(policy.model_dump_json()))


def test_schema_names_every_pass_and_option() -> None:
    """The published schema knows all options."""
    schema = json.dumps(Policy.model_json_schema())

    assert all(name in schema for name in (*BUILTIN, "orphans", "strategy", "keep_last"))
    assert BUILTIN.keys() <= Policy.model_json_schema()["properties"].keys()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"target": "openai.chatt"}, "no target 'openai.chatt'; did you mean 'openai.chat'"),
        ({"target": CHAT, "pases": []}, "Policy has no 'pases'; did you mean 'passes'"),
        ({"target": CHAT, "passes": ["dedup"]}, "no pass 'dedup'; did you mean 'dedupe'"),
        ({"target": CHAT, "passes": [{"name": 3}]}, "no pass 3"),
        ({"target": CHAT, "passes": [3]}, "3 is no pass"),
        (
            {"target": CHAT, "passes": ["drop_empty", "dedupe"]},
            "dedupe must come before drop_empty",
        ),
        ({"target": CHAT, "passes": ["dedupe", "dedupe"]}, "'dedupe' is in the policy twice"),
        ({"target": CHAT, "repair_tool_pairs": {"orphan": "drop"}}, "did you mean 'orphans'"),
        ({"target": CHAT, "repair_tool_pairs": {"orphans": "eat"}}, "'text', 'drop' or 'raise'"),
        ({"target": CHAT, "repair_tool_pairs": 3}, "repair_tool_pairs: a table of options"),
        ({"target": CHAT, "passes": [], "dedupe": {}}, "set dedupe in `passes`"),
        ({"target": CHAT, "on_change": "explode"}, "on_change"),
        ({"target": CHAT, "on_change": {"dedup": "fix"}}, "did you mean 'dedupe'"),
        (
            {"target": CHAT, "dialect": "openai"},
            "read in its own dialect openai.chat, not in 'openai'",
        ),
        ({}, "Policy.target: Field required"),
    ],
)
def test_mistakes_are_answered_in_plain_words(values: dict[str, Any], said: str) -> None:
    """Each mistake names what is wrong and what was probably meant."""
    with pytest.raises(PolicyError) as refused:
        Policy(**values)
    assert said in str(refused.value)


@pytest.mark.parametrize("value", [None, 5, "openai.chat", [], {}, {"target": 5}])
@pytest.mark.parametrize("kind", [Policy, Context, Ledger, BUILTIN["repair_tool_pairs"]])
def test_what_is_read_from_data_is_refused_in_plain_words(kind: Any, value: Any) -> None:
    """pydantic's own ways in answer as the constructors do."""
    if value == {} and kind is not Policy:
        assert kind() == kind.model_validate(value) == kind.model_validate_json("{}")
        return
    for read, given in (
        (kind.model_validate, value),
        (kind.model_validate_json, json.dumps(value)),
    ):
        with pytest.raises(PolicyError, match=f"^{kind.__name__}"):
            read(given)
    with pytest.raises(PolicyError, match=f"{kind.__name__}: Invalid JSON"):
        kind.model_validate_json("{")


def test_policies_and_contexts_are_values() -> None:
    """Equal ones hash alike, whatever they hold."""
    held = {"responses": {"resp_1": {"input": [{"role": "user", "content": ["a", {}]}]}}}
    for make in (
        lambda: Policy.for_target(CHAT, on_change={"dedupe": "warn"}),
        lambda: Context(provenance=Provenance(models={0: "m"}), ledger=Ledger.from_state(held)),
    ):
        assert 1 == len({make(), make()})
    assert hash(Context(store=True)) != hash(Context(store=False))


@pytest.mark.parametrize("text", ["{", "[]", "tool = 1"])
def test_broken_files_are_refused(tmp_path: Path, text: str) -> None:
    """A file that is no policy says so with its name."""
    for name in ("p.json", "pyproject.toml"):
        (tmp_path / name).write_text(text)
        with pytest.raises(PolicyError, match=name):
            Policy.from_file(tmp_path / name)
    with pytest.raises(PolicyError, match="cannot be read"):
        Policy.from_file(tmp_path / "nowhere.toml")


def test_unknown_provider_warns_and_uses_the_generic_profile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A new server is served, and its user is told."""
    policy = Policy.for_target(CHAT, provider="newcomer")

    assert "no profile for provider 'newcomer'" in caplog.text
    assert check([user("hi")], policy) == []


def test_raise_refuses_and_changes_nothing() -> None:
    """`on_change: raise` names the pass, the position and the rule."""
    policy = Policy.for_target(CHAT, on_change={"repair_tool_pairs": "raise"})

    with pytest.raises(ChangeError, match=r"repair_tool_pairs.*messages\[0\].*unanswered"):
        explain([calls("a"), user("b")], policy)


def test_warn_applies_and_logs_each_fault_once(caplog: pytest.LogCaptureFixture) -> None:
    """A history is normalized before every call; one fault is worth one line."""
    policy = Policy.for_target(CHAT, on_change="warn")
    history = [calls("once-only"), user("b")]

    lengths = {len(explain(history, policy).messages) for _ in range(3)}
    assert ({3}, 1) == (lengths, caplog.text.count("once-only"))


def test_body_beats_context_only_if_they_agree() -> None:
    """A request that contradicts its context is refused, and store is never added."""
    body = {"input": [user("hi")], "store": True}

    with pytest.raises(PolicyError, match="store is True in the request and False in the context"):
        normalize_request(body, "openai.responses", context=Context(store=False))
    bare = {"input": [user("hi")]}
    assert bare == normalize_request(bare, "openai.responses", context=Context(store=False))


def test_context_refuses_what_it_does_not_know() -> None:
    """A misspelt fact is a mistake, not silence."""
    with pytest.raises(PolicyError, match="Context has no 'live_call'; did you mean 'live_calls'"):
        Context.model_validate({"live_call": ["a"]})


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed package that offers the pass `shout`."""
    package = tmp_path / "shouting.py"
    package.write_text(
        "from dataclasses import dataclass, replace\n"
        "from convnorm.edits import Replace\n"
        "from convnorm.ir import Text\n"
        "@dataclass(frozen=True)\n"
        "class Shout:\n"
        "    mark: str = '!'\n"
        "    name = 'shout'\n"
        "    def __call__(self, history, call):\n"
        "        for place, item in history.items:\n"
        "            if isinstance(item, Text) and not item.text.endswith(self.mark):\n"
        "                new = replace(item, text=item.text + self.mark)\n"
        "                yield Replace(place.turn, new, place.item, rule='loud', why='shout')\n"
    )
    info = tmp_path / "shouting-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[convnorm.passes]\nshout = shouting:Shout\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("offered")
def test_passes_of_other_packages_by_entry_point() -> None:
    """Any callable with a name is a pass, found by its entry point, with its options."""
    policy = Policy(target=CHAT, passes=["dedupe", {"name": "shout", "mark": "?"}])

    report = explain([user("hi")], policy)
    assert ([user("hi?")], ["shout"]) == (report.messages, [edit.by for edit in report.edits])


@pytest.mark.usefixtures("offered")
def test_options_other_packages_do_not_have_are_refused() -> None:
    """A wrong option of a foreign pass is a PolicyError too."""
    with pytest.raises(PolicyError, match="shout"):
        Policy(target=CHAT, passes=[{"name": "shout", "volume": 11}])
