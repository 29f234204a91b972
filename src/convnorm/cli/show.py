"""Violations and edits as a person reads them in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from convnorm import Report, Violation
from convnorm.passes import BUILTIN, DEFAULT
from convnorm.rules import RULES, Rule
from convnorm.rules.shorten import as_json, shortened
from convnorm.testing.strict_server import Request


def show_violations(console: Console, violations: Sequence[Violation]) -> None:
    """One paragraph per fault: where, what is wrong, what the provider says, what repairs it."""
    for one in violations:
        console.print(
            f"[red]✗[/] [bold]{escape(one.path)}[/] {escape(one.message)}", highlight=False
        )
        console.print(f"  rule {one.rule}: {escape(one.error)}", style="dim", highlight=False)
        console.print(f"  {repaired(one.rule, one.repair)}", style="dim", highlight=False)
    if not violations:
        console.print("[green]✓[/] nothing that this request shows would be refused")


def repaired(rule: str, repair: str | None) -> str:
    """Which pass repairs a fault, if it can."""
    if repair is None:
        return "not repaired silently: see the rule"
    if repair in BUILTIN and repair not in DEFAULT:
        return f"repaired by {repair}, where the policy names it"
    built = repair in BUILTIN and RULES[rule].api != "anthropic.messages"
    return f"repaired by {repair}" if built else f"to be repaired by {repair}, which is not built"


def show_edits(console: Console, report: Report) -> None:
    """One line per edit, with what it cost, then what is still wrong and what was assumed."""
    for edit in report.edits:
        cost = f" [yellow](lost: {edit.loss})[/]" if edit.loss else ""
        console.print(
            f"[cyan]{edit.by}[/] {escape(edit.what)} [bold]{escape(edit.where)}[/]: "
            f"{escape(edit.why)} [dim]{edit.rule}[/]{cost}",
            highlight=False,
        )
    for assumption in report.assumed:
        console.print(f"[yellow]assumed[/] {escape(assumption)}", highlight=False)
    if report.remaining:
        show_violations(console, report.remaining)
    elif not report.edits:
        console.print("[green]✓[/] nothing had to change")


def describe_rule(console: Console, rule: Rule) -> None:
    """All that the catalogue knows of one rule."""
    console.print(f"[bold]{rule.id}[/] ({rule.api})", highlight=False)
    console.print(f"{escape(rule.statement)}\n", highlight=False)
    facts = {
        "error": rule.error,
        "level": rule.level,
        "certainty": rule.certainty,
        "repair": repaired(rule.id, rule.repair),
        "what that costs": rule.loss or "-",
        "remedy": rule.remedy,
        "sources": ", ".join(rule.sources),
        "needs": ", ".join(f"{key}={value}" for key, value in rule.setting.items()),
    }
    for name, value in facts.items():
        if value:
            console.print(f"[dim]{name:16}[/]{escape(value)}", highlight=False)
    console.print("[dim]a request that breaks it:[/]")
    short, cuts = shortened(rule.example)
    console.print(as_json(short), markup=False)
    for cut in cuts:
        console.print(cut, style="dim", markup=False, highlight=False)


def answered(request: Request) -> str:
    """One line for a request that the strict server got."""
    status = "cut" if request.status is None else request.status
    line = f"{request.method} {request.path} {status}"
    for first in request.violations[:1]:
        line += f" {first.rule}: {first.path}: {first.message}"
    return line
