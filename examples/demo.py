"""The histories convnorm was built for: each shown broken, cured and checked."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from convnorm import Context, Policy, Violation, explain
from convnorm.cli.show import show_edits, show_violations
from convnorm.rules import RULES

SEEDS = Path(__file__).parent / "seeds"


def main() -> int:
    """Show every seed; exit with 1 if one that should be cured is not."""
    console = Console(highlight=False, soft_wrap=True)
    uncured = 0
    for file in sorted(SEEDS.glob("*.json")):
        seed = json.loads(file.read_text(encoding="utf-8"))
        console.rule(f"[bold]{file.stem.upper()}[/] {escape(seed['title'])}")
        console.print(f"[dim]{escape(seed['from'])}[/]")
        if "needs" in seed:
            console.print(f"[yellow]not yet[/]: it needs {escape(seed['needs'])}\n")
        else:
            uncured += not cure(console, seed)
    return 1 if uncured else 0


def cure(console: Console, seed: dict[str, Any]) -> bool:
    """Show one history before and after; whether nothing is wrong with it any more."""
    policy, context = Policy(**seed["policy"]), Context(**seed.get("context", {}))
    report = explain(seed["request"], policy, context=context)
    key = "messages" if "messages" in seed["request"] else "input"
    console.print("\n[bold]before[/]")
    for at, element in enumerate(seed["request"][key]):
        label = f"{context.sources[at]} " if context.sources else ""
        console.print(f"  {at} {escape(line(label, element, console.width))}")
    console.print("\n[bold]what is wrong[/]")
    for rule, paths in by_rule(report.violations).items():
        console.print(f"  [red]{rule}[/] at {escape(', '.join(paths))}")
        console.print(f"    {escape(RULES[rule].error)}", style="dim")
    console.print("\n[bold]edits[/]")
    show_edits(console, report)
    console.print("\n[bold]after[/]")
    for element in report.messages:
        console.print(f"  {escape(line('', element, console.width))}")
    console.print("\n[bold]checked again[/]")
    show_violations(console, report.remaining)
    console.print()
    return bool(report.edits) and not report.remaining


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
