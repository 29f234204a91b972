"""The commands. Each reads one JSON file: a request body, or a bare list of messages."""

import json
import signal
import sys
from pathlib import Path
from threading import Event
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from convnorm import ConvnormError, Policy, check, explain
from convnorm.cli.show import answered, describe_rule, show_edits, show_violations
from convnorm.options import nearest
from convnorm.rules import RULES
from convnorm.testing import StrictServer

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


IN_ORDER = "The strict server has nothing against this request."
"""What the model says when there is no script."""


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
            {
                "rule": one.rule,
                "path": one.path,
                "message": one.message,
                "error": one.error,
                "repair": one.repair,
            }
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


@app.command("strict-server")
def strict_server(
    script: Annotated[
        Path | None, typer.Argument(help="A JSON file with the model's replies. - is stdin.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Whose rules apply.")] = None,
    model: Annotated[str | None, typer.Option(help="The model whose rules apply.")] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0 is any free port.")
    ] = 0,
) -> None:
    """Run a server on loopback that refuses what the provider would refuse, until Ctrl-C."""
    replies: Any = (lambda _: IN_ORDER) if script is None else _read(script)
    try:
        server = StrictServer(
            replies,
            provider=provider,
            model=model,
            port=port,
            on_answer=lambda request: typer.echo(answered(request)),
        )
        server.start()
    except (ConvnormError, TypeError) as error:
        _stop(f"{script} is no script: {error}" if script else error)
    except OSError as error:
        _stop(f"port {port} cannot be used: {error}")
    end = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    with server:
        # In one write: a request may be answered, and told, before a second one.
        typer.echo(
            f"OpenAI clients:    base_url={server.base_url}\n"
            f"Anthropic clients: base_url={server.url}"
        )
        end.wait()


def _read(file: Path) -> Any:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
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
