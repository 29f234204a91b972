"""The command line, as a user runs it."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builders import calls, result, user
from convnorm.cli.app import app
from convnorm.testing import StrictServer

runner = CliRunner()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A request with an unanswered call."""
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"model": "m", "messages": [calls("a"), user("b")]}))
    return file


def test_check_says_what_is_wrong(broken: Path) -> None:
    """`check` names place, rule and repair, and exits with 1."""
    done = runner.invoke(app, ["check", str(broken)])

    assert 1 == done.exit_code
    assert all(
        word in done.stdout
        for word in ("messages[0]", "chat-tool-calls-unanswered", "repair_tool_pairs")
    )


def test_check_speaks_json(broken: Path) -> None:
    """`--json` is for programs."""
    done = runner.invoke(app, ["check", str(broken), "--json"])

    assert ["chat-tool-calls-unanswered"] == [row["rule"] for row in json.loads(done.stdout)]


def test_check_of_a_clean_file(tmp_path: Path) -> None:
    """Nothing wrong exits with 0."""
    file = tmp_path / "list.json"
    file.write_text(json.dumps([calls("a"), result("a")]))

    assert 0 == runner.invoke(app, ["check", str(file)]).exit_code


def test_fix_writes_and_explains(broken: Path, tmp_path: Path) -> None:
    """The repaired request goes to a file, the edits to stderr, and the input stays."""
    before = broken.read_text()
    out = tmp_path / "out.json"

    done = runner.invoke(app, ["fix", str(broken), "-o", str(out), "-p", "openai.chat"])
    fixed = json.loads(out.read_text())
    assert (0, before, "m", 3) == (
        done.exit_code,
        broken.read_text(),
        fixed["model"],
        len(fixed["messages"]),
    )
    assert "repair_tool_pairs" in done.stderr


def test_fix_reads_stdin_and_prints(broken: Path) -> None:
    """`-` is standard input; `-q` keeps stderr empty."""
    done = runner.invoke(app, ["fix", "-", "-q"], input=broken.read_text())

    assert (3, "") == (len(json.loads(done.stdout)["messages"]), done.stderr)


def test_policy_file_is_used(broken: Path, tmp_path: Path) -> None:
    """A policy file decides what a change means."""
    policy = tmp_path / "p.toml"
    policy.write_text('target = "openai.chat"\non_change = "raise"')

    done = runner.invoke(app, ["fix", str(broken), "-p", str(policy)])
    assert (2, True) == (done.exit_code, "repair_tool_pairs would change" in done.stderr)


@pytest.mark.parametrize("text", ["{", "[null]", "5", "[]", '{"messages": 3}'])
def test_bad_files_are_answered_in_one_line(tmp_path: Path, text: str) -> None:
    """A file that cannot be used exits with 2 and no traceback."""
    file = tmp_path / "bad.json"
    file.write_text(text)

    for command in ("check", "fix"):
        done = runner.invoke(app, [command, str(file), "-p", "openai.chat"])
        if text != "{" and command == "check":
            assert 1 == done.exit_code  # that is what is wrong
        else:
            assert (2, True) == (done.exit_code, done.stderr.startswith("convnorm:"))
    missing = runner.invoke(app, ["check", str(tmp_path / "nowhere.json")])
    assert (2, True) == (missing.exit_code, "cannot be read" in missing.stderr)


def test_markup_in_names_and_errors_is_text(tmp_path: Path) -> None:
    """Square brackets are printed, not obeyed: every error ends in its rule."""
    file = tmp_path / "[red].json"
    file.write_text(json.dumps([{"role": "wizard", "content": "x"}]))

    done = runner.invoke(app, ["fix", str(file), "-p", "openai.chat"])
    assert (2, True) == (done.exit_code, "[chat-role-invalid]" in done.stderr)
    assert "[/x]" in runner.invoke(app, ["fix", str(file), "-p", "[/x]"]).stderr


def test_output_that_cannot_be_written(broken: Path, tmp_path: Path) -> None:
    """A bad place for the output is one line, and a lone surrogate is written as an escape."""
    done = runner.invoke(app, ["fix", str(broken), "-o", str(tmp_path / "no" / "x.json")])
    assert (2, True) == (done.exit_code, "cannot be written" in done.stderr)
    odd = runner.invoke(
        app, ["fix", "-", "-q"], input='[{"role": "user", "content": "a", "x": "\\ud800"}]'
    )
    assert (0, True) == (odd.exit_code, "ud800" in odd.stdout)


def test_rule_prints_what_is_known_of_it() -> None:
    """`rule NAME` shows the API's own words and the repair; a wrong name gets a hint."""
    done = runner.invoke(app, ["rule", "chat-tool-calls-unanswered"])
    assert 0 == done.exit_code
    assert "must be followed by tool messages" in done.stdout
    assert "repair_tool_pairs" in done.stdout

    long = runner.invoke(app, ["rule", "chat-messages-too-many"]).stdout
    assert (True, True) == ("2,047 more elements" in long, len(long) < 2000)

    wrong = runner.invoke(app, ["rule", "chat-tool-call-unanswered"])
    assert 2 == wrong.exit_code
    assert "chat-tool-calls-unanswered" in wrong.stderr


@contextmanager
def running(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command in a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "convnorm.cli", "strict-server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own command
        try:
            assert process.stdout
            yield process.stdout.readline().partition("base_url=")[2].strip(), process
        finally:
            process.kill()


def post(url: str, body: object) -> tuple[int, str]:
    request = urllib.request.Request(url, json.dumps(body).encode())  # noqa: S310  # loopback
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_strict_server_runs_until_it_is_told(how: signal.Signals, broken: Path) -> None:
    """It prints where it listens and a line per request, and ends well."""
    with running() as (url, process):
        wrong = post(f"{url}/chat/completions", json.loads(broken.read_text()))
        right = post(f"{url}/chat/completions", {"messages": [user("x")]})
        process.send_signal(how)
        assert process.stdout
        lines = process.stdout.read().splitlines()
        process.wait(30)

    assert (400, 200, 0) == (wrong[0], right[0], process.returncode)
    assert "Anthropic clients: base_url=http://127.0.0.1:" in lines[0]
    assert "POST /v1/chat/completions 400 chat-tool-calls-unanswered: messages[0]" in lines[1]
    assert "POST /v1/chat/completions 200" == lines[2]


def test_strict_server_plays_a_script(tmp_path: Path) -> None:
    """A JSON file says what the model says, and the options whose rules apply."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["one", {"failure": 429, "message": "slow down"}]))
    with running(str(script), "--provider", "azure", "--model", "gpt-5.1") as (url, _):
        found = [post(f"{url}/responses", {"input": "?"}) for _ in range(2)]

    assert [(200, True), (429, True)] == [
        (status, word in body) for (status, body), word in zip(found, ("one", "slow"), strict=True)
    ]


@pytest.mark.parametrize(
    "script, said",
    [("{", "is no JSON"), ("[3]", "is no script"), ("3", "is no script"), ("[{}]", "no script")],
)
def test_strict_server_explains_a_bad_script(tmp_path: Path, script: str, said: str) -> None:
    """It does not start, and exits with 2."""
    file = tmp_path / "script.json"
    file.write_text(script)

    done = runner.invoke(app, ["strict-server", str(file)])
    assert 2 == done.exit_code
    assert said in done.stderr


def test_strict_server_explains_a_bad_port(strict_server: StrictServer) -> None:
    """A number that is no port, and a port that is taken."""
    taken = strict_server.url.rpartition(":")[2]
    for port in ("99999999", taken):
        done = runner.invoke(app, ["strict-server", "--port", port])
        assert 2 == done.exit_code
        assert "port" in done.stderr
