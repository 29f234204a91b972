"""The commands. Each reads one JSON file: a request body, or a bare list of messages."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from convnorm import ConvnormError, Policy, check, explain
from convnorm.cli.show import describe_rule, show_edits, show_violations
from convnorm.options import nearest
from convnorm.rules import RULES

app = typer.Typer(
    help="Repair conversation histories so that the next model call is accepted.",
    no_args_is_help=True,
    add_completion=False,
)
out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)

File = Annotated[Path, typer.Argument(help="A JSON file: a request body or a list. - is stdin.")]
Target = Annotated[
    str | None, typer.Option("--policy", "-p", help="A target's name, or a policy file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command("check")
def check_file(
    file: File,
    policy: Target = None,
    disputed: Annotated[
        bool, typer.Option(help="Add rules that sources disagree about, and advisory ones.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what the provider would refuse. Exits with 1 when something is wrong."""
    try:
        found = check(_read(file), _policy(policy), disputed=disputed)
    except ConvnormError as error:
        _stop(error)
    if as_json:
        rows = [
            {"rule": one.rule, "path": one.path, "message": one.message, "repair": one.repair}
            for one in found
        ]
        typer.echo(_json(rows))
    else:
        show_violations(out, found)
    raise typer.Exit(1 if found else 0)


@app.command("fix")
def fix_file(
    file: File,
    policy: Target = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it; stdout if left out.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not list the edits.")] = False,
) -> None:
    """Write the repaired history, and list the edits on stderr. The file itself is not touched."""
    try:
        report = explain(_read(file), _policy(policy))
    except ConvnormError as error:
        _stop(error)
    fixed: Any = report.messages if report.request is None else report.request
    text = _json(fixed)
    if output is None:
        typer.echo(text)
    else:
        try:
            output.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            _stop(f"{output} cannot be written: {error.strerror}")
    if not quiet:
        show_edits(err, report)


@app.command("rule")
def show_rule(
    name: Annotated[str, typer.Argument(help="The rule's id, as reports name it.")],
) -> None:
    """Say what a rule is: the API's own words, what repairs it and how certain it is."""
    if name not in RULES:
        _stop(f"there is no rule {name!r}; {nearest(name, RULES)}")
    describe_rule(out, RULES[name])


def _read(file: Path) -> Any:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        _stop(f"{file} cannot be read: {error.strerror}")
    except (ValueError, RecursionError) as error:
        _stop(f"{file} is no JSON: {error}")


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can escape it, UTF-8 cannot hold it
        return json.dumps(value, indent=2)
    return text


def _policy(given: str | None) -> Policy | str | None:
    if given is not None and given.endswith((".json", ".toml")):
        return Policy.from_file(given)
    return given


def _stop(error: object) -> NoReturn:
    err.print(f"[bold red]convnorm:[/] {escape(str(error))}", highlight=False)
    raise typer.Exit(2)
