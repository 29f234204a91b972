"""The histories convnorm was built for: each shown broken, cured and checked."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from rich.console import Console
from rich.markup import escape

from convnorm import Context, Link, Policy, Violation, explain
from convnorm.cli.show import show_edits, show_violations
from convnorm.recorder import Recorder
from convnorm.rules import RULES
from convnorm.stores import Snapshot, SqliteStore

SEEDS = Path(__file__).parent / "seeds"


def main() -> int:
    """Show every seed; exit with 1 if one that should be cured is not."""
    console = Console(highlight=False, soft_wrap=True)
    uncured = 0
    for file in sorted(SEEDS.glob("*.json")):
        seed = json.loads(file.read_text(encoding="utf-8"))
        console.rule(f"[bold]{file.stem.upper()}[/] {escape(seed['title'])}")
        console.print(f"[dim]{escape(seed['from'])}[/]")
        if "stream" in seed:
            uncured += not record(console, seed)
        elif "needs" in seed:
            console.print(f"[yellow]not yet[/]: it needs {escape(seed['needs'])}\n")
        else:
            for situation in seed.get("situations", [seed]):
                uncured += not cure(console, {"policy": seed["policy"], **situation})
    return 1 if uncured else 0


def cure(console: Console, seed: dict[str, Any]) -> bool:
    """Show one history before and after; whether nothing is wrong with it any more."""
    policy, context = Policy(**seed["policy"]), Context(**seed.get("context", {}))
    report = explain(seed["request"], policy, context=context)
    key = "messages" if "messages" in seed["request"] else "input"
    if "situation" in seed:
        console.print(f"\n[italic]{escape(seed['situation'])}[/]")
    console.print(f"\n[bold]before[/]{named(seed['request'])}")
    for element in seen_first(context, seed["request"]):
        console.print(f"  [dim]the server has {escape(line('', element, console.width - 15))}[/]")
    for at, element in enumerate(seed["request"][key]):
        label = f"{context.sources[at]} " if context.sources else ""
        console.print(f"  {at} {escape(line(label, element, console.width))}")
    console.print("\n[bold]what is wrong[/]")
    for rule, paths in by_rule(report.violations).items():
        console.print(f"  [red]{rule}[/] at {escape(', '.join(paths))}")
        console.print(f"    {escape(RULES[rule].error)}", style="dim")
    console.print("\n[bold]edits[/]")
    show_edits(console, report)
    console.print(f"\n[bold]after[/]{named(report.request or {})}")
    for element in report.messages:
        console.print(f"  {escape(line('', element, console.width))}")
    console.print("\n[bold]checked again[/]")
    show_violations(console, report.remaining)
    console.print()
    return bool(report.edits) and not report.remaining


def seen_first(context: Context, request: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """What the server puts before the input."""
    return context.ledger.holds(Link.of(request)) if context.ledger else ()


def named(request: dict[str, Any]) -> str:
    """The link that a request names, if it has one."""
    link = Link.of(request)
    return f", behind {link.previous_response_id or link.conversation}" if link else ""


def record(console: Console, seed: dict[str, Any]) -> bool:
    """Leave a stream early, with a list that is written at its end and with the recorder."""
    left_after, question = seed["left_after"], seed["input"]
    console.print(f"\nThe consumer leaves after {left_after} of {len(seed['stream'])} updates.")
    console.print("\n[bold]a history that is written when the stream is over[/]")
    console.print(
        f"  {written_at_the_end(seed)}, and whoever counts updates has a bookmark at {left_after}"
    )
    console.print("\n[bold]the recorder's history, loaded anew[/]")
    with TemporaryDirectory() as folder, closing(SqliteStore(Path(folder) / "demo.db")) as store:
        found = anyio.run(leave, store, seed)
        delivered = anyio.run(store.deliver_since, "demo", 0)
    for at, item in enumerate(found.items):
        mark = "[yellow]incomplete[/] " if at in found.incomplete else ""
        console.print(f"  {at} {mark}{escape(line('', item, console.width - 12))}")
    for note in found.notes:
        raw = "" if note.raw is None else f": {json.dumps(note.raw)}"
        console.print(f"  [dim]note at {note.at}: {note.kind}: {escape(note.why + raw)}[/]")
    console.print(f"  bookmark {found.bookmark}, checkpoint {json.dumps(found.checkpoint)}")
    console.print("\n[bold]the next request[/]")
    report = explain([*found.items, seed["next"]], seed["target"])
    for element in report.messages:
        console.print(f"  {escape(line('', element, console.width))}")
    console.print("\n[bold]checked again[/]")
    show_violations(console, report.remaining)
    console.print()
    together = found.bookmark == len(found.items) == found.checkpoint["items"]
    kept = found.items[0] == question and found.items == delivered.items and found.turn is None
    return together and kept and not report.remaining


def written_at_the_end(seed: dict[str, Any]) -> list[Any]:
    """What is left of the turn where it is stored behind the loop."""
    history: list[Any] = []

    def turn() -> None:
        answer = []
        for update in seed["stream"]:
            answer.append(update)
            if len(answer) == seed["left_after"]:
                return
        history.extend([seed["input"], answer])

    turn()
    return history


async def leave(store: SqliteStore, seed: dict[str, Any]) -> Snapshot:
    """One turn whose consumer breaks out of the loop."""

    async def model() -> AsyncIterator[Any]:
        for update in seed["stream"]:
            yield update

    snapshot = await store.load("demo")
    async with Recorder(store)(model(), snapshot, input=[seed["input"]]) as updates:
        seen = 0
        async for _ in updates:
            seen += 1
            if seen == seed["left_after"]:
                updates.keep(checkpoint={"items": 2})
                break
    return await store.load("demo")


def by_rule(violations: Sequence[Violation]) -> dict[str, list[str]]:
    """The places that break each rule."""
    found: dict[str, list[str]] = {}
    for violation in violations:
        paths = found.setdefault(violation.rule, [])
        if violation.path not in paths:
            paths.append(violation.path)
    return found


def line(label: str, element: dict[str, Any], width: int) -> str:
    """An element in one line of the terminal."""
    text = label + json.dumps(element, ensure_ascii=False)
    return text if len(text) <= width - 6 else f"{text[: width - 9]}..."


if __name__ == "__main__":
    sys.exit(main())
