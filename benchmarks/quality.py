"""What convnorm and other libraries make of the same broken histories.

`make quality` cleans 1,500 random histories and 300 growing ones with each of them, counts what
would be accepted and what was lost, prints the tables and writes them into `docs/quality.md`, where
the measures and their limits are described. Each library runs in its own environment.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from platform import python_version
from typing import Any

import broken
from broken import History, Messages
from convnorm import Context, check, normalize
from convnorm.passes import BUILTIN

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quality.md"
MEASURED = "<!-- everything below is written by make quality -->\n"

SEED = 20261118
WILD = 1500
LATE = 300

Grown = Sequence[Messages]
"""The same history each time it is sent."""
WRITERS = {"openai.chat": broken.chat, "openai.responses": broken.responses}
KEYS = {"openai.chat": "messages", "openai.responses": "input"}


# ---------------------------------------------------------------- who cleans


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Somebody who cleans histories of one API, and the versions of what does it."""

    name: str
    api: str
    clean: Callable[[Sequence[Grown]], list[Grown]]
    versions: Callable[[], str] = lambda: ""


def ours(api: str, *, remember: bool) -> Cleaner:
    """Convnorm with its defaults; it may remember the last request."""

    def clean(conversations: Sequence[Grown]) -> list[Grown]:
        return [sent(grown) for grown in conversations]

    def sent(grown: Grown) -> Grown:
        outputs: list[Messages] = []
        for messages in grown:
            known = {"last_request": {KEYS[api]: outputs[-1]}} if remember and outputs else {}
            outputs.append(normalize(messages, api, context=Context.model_validate(known)))
        return outputs

    name = "convnorm, with last_request" if remember else "convnorm"
    return Cleaner(name, api, clean, lambda: f"convnorm {version('convnorm')}")


def peer(name: str, api: str, lane: str, key: str) -> Cleaner:
    """Another library, asked in its own environment, which is installed on first use."""
    in_lane = (sys.executable, "scripts/lanes.py", "run", lane)
    seen: dict[str, str] = {}

    def clean(conversations: Sequence[Grown]) -> list[Grown]:
        lines = [json.dumps(messages) for grown in conversations for messages in grown]
        # One hash seed, since the order in which some libraries add messages depends on it.
        done = subprocess.run(  # noqa: S603 - our own script
            [*in_lane, "python", "-P", "benchmarks/peer.py", key],
            input="\n".join(lines),
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{name} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        found, *answers = map(json.loads, done.stdout.splitlines())
        errors = [answer["error"] for answer in answers if "error" in answer]
        if errors or len(answers) != len(lines):
            # Whose fault that is must be looked at before it is counted.
            sys.exit(f"{name}: {len(answers)} of {len(lines)} answers, errors: {errors[:3]}")
        seen.update(found)
        rest = iter(answers)
        return [[next(rest)["messages"] for _ in grown] for grown in conversations]

    return Cleaner(name, api, clean, lambda: ", ".join(f"{k} {v}" for k, v in seen.items()))


def own_cleaners() -> list[Cleaner]:
    """Nobody, for comparison, and convnorm in each way it can be called."""
    return [
        cleaner
        for api in WRITERS
        for cleaner in (
            Cleaner("as it is", api, list),
            ours(api, remember=False),
            ours(api, remember=True),
        )
    ]


PEERS = [
    peer("litellm, message sanitizer", "openai.chat", "peer-litellm", "litellm"),
    peer("langchain, create_agent", "openai.chat", "peer-langchain", "langchain"),
    peer("deepagents on langchain", "openai.chat", "peer-langchain", "deepagents"),
    *(
        peer(name, "openai.responses", "peer-openai-agents", key)
        for name, key in (
            ("openai-agents, session", "openai-agents"),
            ("openai-agents, session with a limit", "openai-agents-limit"),
        )
    ),
]


# ---------------------------------------------------------------- what is counted


@dataclass(frozen=True, slots=True)
class Scores:
    """How many of the histories, for one cleaner; the names are the columns."""

    wild: Counter[str]
    late: Counter[str]
    broken_rules: Counter[str]


def measure(cleaner: Cleaner, wild: Sequence[History], late: Sequence[History]) -> Scores:
    """Let it clean everything, and count."""
    write = WRITERS[cleaner.api]
    states = [broken.requests(history) for history in late]
    outputs = cleaner.clean(
        [[write(history)] for history in wild]
        + [[write(each) for each in grown] for grown in states]
    )
    scores = Scores(Counter(), Counter(), Counter())
    for history, (output,) in zip(wild, outputs[: len(wild)], strict=True):
        rules = {violation.rule for violation in check(output, cleaner.api)}
        scores.broken_rules.update(rules)
        scores.wild.update(wild_columns(history, output, valid=not rules))
    for history, grown in zip(late, outputs[len(wild) :], strict=True):
        scores.late["prefix kept"] += all(
            after[: len(before)] == before for before, after in pairwise(grown)
        )
        scores.late["valid"] += sum(not check(output, cleaner.api) for output in grown)
        scores.late["result lost"] += bool(lost(broken.texts_of(history, broken.Result), grown[-1]))
    return scores


def wild_columns(history: History, output: Messages, *, valid: bool) -> dict[str, bool]:
    """Which columns one history counts in."""
    unique = not broken.reuses_ids(history)
    spoken = [message for message in output if message.get("role") == "user"]
    return {
        "valid": valid,
        "valid, ids never reused": valid and unique,
        "user text lost": bool(lost(broken.texts_of(history, broken.User), spoken)),
        "answer lost": unique
        and any(texts == lost(texts, output) for texts in broken.answers(history)),
        "any result lost": bool(lost(broken.texts_of(history, broken.Result), output)),
        "text or call of the model lost": bool(lost(broken.said_by_the_model(history), output)),
    }


def lost(marks: Iterable[str], output: Messages) -> set[str]:
    """The marks that are nowhere in the output."""
    text = json.dumps(output)
    return {mark for mark in marks if mark not in text}


# ---------------------------------------------------------------- tables


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows, the first one with the names of the columns, as Markdown that is aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells)


def report(wild: Sequence[History], late: Sequence[History], cleaners: Sequence[Cleaner]) -> str:
    """Measure, and say what was measured with what."""
    scores = {(each.api, each.name): measure(each, wild, late) for each in cleaners}
    unique = sum(not broken.reuses_ids(history) for history in wild)
    sent = sum(len(broken.requests(history)) for history in late)
    of = {"valid, ids never reused": unique, "answer lost": unique}
    today = datetime.now(UTC).date()
    versions = sorted({each.versions() for each in cleaners} - {""})
    parts = [
        f"Measured on {today} with Python {python_version()}, seed {SEED}: {'; '.join(versions)}.",
        f"Passes of convnorm: {', '.join(BUILTIN)}.",
    ]
    for api in WRITERS:
        mine = {name: score for (its_api, name), score in scores.items() if its_api == api}
        columns = list(mine["as it is"].wild)
        heads = [f"{column} /{of.get(column, len(wild))}" for column in columns]
        parts += [
            f"### {api}: {len(wild):,} random histories",
            table([["", *heads]] + [[n, *(s.wild[c] for c in columns)] for n, s in mine.items()]),
            f"### {api}: {len(late)} histories with late results",
            table(
                [["", f"prefix kept /{len(late)}", f"valid /{sent}", f"result lost /{len(late)}"]]
                + [
                    [name, *(score.late[c] for c in ("prefix kept", "valid", "result lost"))]
                    for name, score in mine.items()
                ]
            ),
            f"### {api}: rules still broken, by number of random histories",
            table(
                [["", "rules"]]
                + [
                    [name, ", ".join(f"{rule} {n}" for rule, n in ranked(score)) or "none"]
                    for name, score in mine.items()
                ]
            ),
        ]
    return "\n\n".join(parts)


def ranked(score: Scores) -> list[tuple[str, int]]:
    """The rules that are still broken, the most frequent first."""
    return sorted(score.broken_rules.items(), key=lambda found: (-found[1], found[0]))


def main() -> None:
    """Print everything, and write it into the page."""
    measured = report(
        [broken.wild(SEED, number) for number in range(WILD)],
        [broken.late(SEED, number) for number in range(LATE)],
        [*own_cleaners(), *PEERS],
    )
    print(measured)
    prose, _, _ = PAGE.read_text().partition(MEASURED)
    PAGE.write_text(f"{prose}{MEASURED}\n{measured}\n")


if __name__ == "__main__":
    main()
