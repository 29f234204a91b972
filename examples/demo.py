"""The histories convnorm was built for: each shown broken, cured and checked."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from convnorm import Context, Policy, explain
from convnorm.cli.show import show_edits, show_violations

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
        source = f" [magenta]{context.sources[at]}[/]" if context.sources else ""
        console.print(f"  {at}{source} {escape(line(element))}")
    console.print("\n[bold]what is wrong[/]")
    show_violations(console, report.violations)
    console.print("\n[bold]edits[/]")
    show_edits(console, report)
    console.print("\n[bold]after[/]")
    for element in report.messages:
        console.print(f"  {escape(line(element))}")
    console.print("\n[bold]checked again[/]")
    show_violations(console, report.remaining)
    console.print()
    return bool(report.edits) and not report.remaining


def line(element: dict[str, Any]) -> str:
    """An element in one line."""
    text = json.dumps(element, ensure_ascii=False)
    return text if len(text) <= 150 else f"{text[:147]}..."


if __name__ == "__main__":
    sys.exit(main())
