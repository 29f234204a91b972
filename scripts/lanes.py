"""Lanes: every environment the project is tested in, and one run over all of them.

A lane is a virtual environment in `.venvs/<lane>`, installed from the pins in
`constraints/<lane>.txt` and rebuilt when these or the project's dependencies change. A step is
one command in a lane; it leaves a log, the versions it ran on and, for pytest, a junit report in
`.lanes/`. `verdict.py`, the last pytest run, turns each step into one test.

    lanes.py test ci|thorough    run every step, then the verdict
    lanes.py run LANE COMMAND…   run one command in one lane
    lanes.py newest [LANE…]      resolve the pins anew
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venvs"
RESULTS = ROOT / ".lanes"
ADAPTERS = tuple(sorted(path.parent.name for path in ROOT.glob("adapters/*/pyproject.toml")))
OUR_OWN = {"convnorm", *(f"convnorm-{name}" for name in ADAPTERS)}


@dataclass(frozen=True)
class Lane:
    """One environment: what is asked for, and what it must have got."""

    name: str
    install: tuple[str, ...]
    """Requirements; a path is installed editable. Exact versions are in the constraint file."""
    majors: Mapping[str, str] = field(default_factory=dict)
    """Leading version numbers without which the lane would prove something else."""

    @property
    def constraints(self) -> Path:
        """The lane's pins: names and versions, nothing else."""
        return ROOT / "constraints" / f"{self.name}.txt"

    @property
    def python(self) -> Path:
        """The lane's interpreter; its other commands stand beside it."""
        return VENVS / self.name / "bin" / "python"


@dataclass(frozen=True)
class Step:
    """One command in a lane, and one test in the verdict."""

    name: str
    lane: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    thorough_only: bool = False

    @property
    def runs_pytest(self) -> bool:
        """Whether the step must leave a junit report."""
        return self.command[0] == "pytest"

    def file(self, suffix: str) -> Path:
        """Where the step's log, report or result is kept."""
        return RESULTS / f"{self.name}{suffix}"


CORE = ("pytest-xdist", "trio", "mypy", "ruff", "mkdocs-material", "mini-racer")
"""What the core is judged by; mini-racer runs the search of the docs as a browser does."""
AGENTS = (".[testing]", "./adapters/openai-agents")
TOOLS = Lane("tools", ("uv", "hatchling", "editables"))  # what installs and builds, pinned too
# Releases of Agent Framework between which its handling of histories differs. The old ones are
# pre-releases of parts that stand or fall together, so each is asked for exactly.
AGENT_FRAMEWORK = {
    name: Lane(name, (".[testing]", "./adapters/agent-framework", *parts))
    for name, parts in {
        "maf-b260212": (
            "agent-framework-core==1.0.0b260212",
            "agent-framework-orchestrations==1.0.0b260212",
        ),
        "maf-rc2": (
            "agent-framework-core==1.0.0rc2",
            "agent-framework-orchestrations==1.0.0b260225",
        ),
        "maf-1.0.0": (
            "agent-framework-core==1.0.0",
            "agent-framework-orchestrations==1.0.0b260402",
            "agent-framework-openai==1.0.0",
        ),
        "maf-newest": (
            "agent-framework-core>=1.23,<2",
            "agent-framework-orchestrations>=1.4,<2",
            "agent-framework-openai>=1.17,<2",
        ),
    }.items()
}
LANES = {
    lane.name: lane
    for lane in (
        Lane("core", (".[cli,testing]", *CORE)),
        Lane("openai-2", (".[testing]", "openai>=2.54,<3"), {"openai": "2"}),
        Lane("openai-3", (".[testing]", "openai>=3.51,<4"), {"openai": "3"}),
        Lane("anthropic", (".[testing]", "anthropic>=2.9,<3"), {"anthropic": "2"}),
        Lane("adapters", (".", *(f"./adapters/{name}" for name in ADAPTERS), "pytest")),
        Lane(
            "agents-floor",  # before openai 2.45 by itself, whatever the SDK declares
            (*AGENTS, "openai-agents==0.13.3", "openai>=2.26,<2.45"),
            {"openai-agents": "0.13", "openai": "2"},
        ),
        Lane(
            "agents-newest",
            (*AGENTS, "openai-agents>=0.24"),
            {"openai-agents": "0", "openai": "3"},
        ),
        # The newest of both that fit together: by itself either is resolved to one of long ago.
        Lane(
            "agents-litellm",
            (*AGENTS, "openai-agents>=0.20", "litellm>=1.106"),
            {"openai-agents": "0", "litellm": "1"},
        ),
        *AGENT_FRAMEWORK.values(),
        # Only for `make quality`: other libraries that clean histories, each as it installs alone.
        # The floors keep a conflict from being resolved silently to a version of long ago.
        Lane("peer-litellm", ("litellm>=1.106",)),
        Lane("peer-openai-agents", ("openai-agents>=0.24",)),
        Lane("peer-langchain", ("langchain>=1.4", "deepagents>=0.7")),
    )
}

AGENT_FRAMEWORK_TESTS = "adapters/agent-framework/tests"
AGENTS_TESTS = "adapters/openai-agents/tests"
PACKAGING = tuple(
    f"adapters/{name}/tests/test_convnorm_{name.replace('-', '_')}.py" for name in ADAPTERS
)
"""By adapter: the tests that need no framework."""
ANTHROPIC = {"CONVNORM_LANE_ANTHROPIC": "2"}  # the major the lane is about

# The steps of one group run two at a time; the core tests fill both cores by themselves.
GROUPS = (
    (
        Step("types", "core", ("mypy",)),
        Step("lint", "core", ("ruff", "check", ".")),
        Step("format", "core", ("ruff", "format", "--check", ".")),
        Step("docs", "core", ("mkdocs", "build", "--strict", "--quiet")),
    ),
    (Step("core", "core", ("pytest", "-n", "2", "--dist", "worksteal")),),
    (
        Step("openai-2", "openai-2", ("pytest", "tests/sdk"), {"CONVNORM_LANE_OPENAI": "2"}),
        Step("openai-3", "openai-3", ("pytest", "tests/sdk"), {"CONVNORM_LANE_OPENAI": "3"}),
        Step("anthropic", "anthropic", ("pytest", "tests/anthropic_sdk"), ANTHROPIC),
        Step("adapters", "adapters", ("pytest", *PACKAGING)),
        Step("agents-floor", "agents-floor", ("pytest", AGENTS_TESTS)),
        Step("agents-newest", "agents-newest", ("pytest", AGENTS_TESTS)),
        Step(
            "agents-litellm",
            "agents-litellm",
            ("pytest", "-W", "default", "adapters/openai-agents/tests_litellm"),  # litellm warns
            {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        ),
        *(Step(name, name, ("pytest", AGENT_FRAMEWORK_TESTS)) for name in AGENT_FRAMEWORK),
    ),
    (Step("bench", "core", ("python", "benchmarks/run.py"), thorough_only=True),),
)


def groups(profile: str) -> list[list[Step]]:
    """The steps of one profile, in the order in which they run."""
    return [
        [step for step in group if profile == "thorough" or not step.thorough_only]
        for group in GROUPS
    ]


# ---------------------------------------------------------------- environments


class LaneError(Exception):
    """A lane could not be built; the text is what the failing command said."""


def call(*command: object, stdin: str = "") -> str:
    """Run one command of the machinery itself and return what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LaneError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def alone(lane: Lane) -> Iterator[None]:
    """Let one thread of one process at a time build a lane."""
    VENVS.mkdir(exist_ok=True)
    with (VENVS / f"{lane.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def find_uv() -> str:
    """The uv on the path, or one of our own, installed on first use."""
    if found := shutil.which("uv"):
        return found
    own = TOOLS.python.with_name("uv")
    with alone(TOOLS):
        if not own.exists():
            print("uv is not on the path: installing it in .venvs/tools", flush=True)
            call(sys.executable, "-m", "venv", "--clear", VENVS / TOOLS.name)
            call(TOOLS.python, "-m", "pip", "install", "-q", "-c", TOOLS.constraints, "uv")
    return str(own)


def key(lane: Lane) -> str:
    """What the environment is built from: when this changes, it is built again.

    The root is part of it, since editable installs point there: a copied tree starts afresh.
    """
    projects = [ROOT, *(ROOT / "adapters" / name for name in ADAPTERS)]
    files = [lane.constraints, TOOLS.constraints, *(path / "pyproject.toml" for path in projects)]
    parts = [str(ROOT), sys.version, repr(lane), *(path.read_text() for path in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def prepare(lane: Lane) -> None:
    """Build the lane's environment, unless it already is what its key says."""
    uv = find_uv()
    with alone(lane):
        stamp = VENVS / lane.name / "stamp"
        if stamp.exists() and stamp.read_text() == key(lane):
            return
        asked = [
            word
            for name in lane.install
            for word in (("-e", name) if name.startswith(".") else (name,))
        ]
        pinned = ("-c", lane.constraints, "--build-constraints", TOOLS.constraints)
        shutil.rmtree(VENVS / lane.name, ignore_errors=True)
        call(uv, "venv", "--python", sys.executable, VENVS / lane.name)
        call(uv, "pip", "install", "--python", lane.python, *pinned, *asked)
        stamp.write_text(key(lane))


def newest(lane: Lane) -> None:
    """Resolve the lane's pins anew; what is our own, and where it came from, is left out."""
    resolved = call(
        *(find_uv(), "pip", "compile", "--universal", "--python-version", "3.11"),
        *("--no-annotate", "--no-header", "-"),
        stdin="\n".join(lane.install),
    )
    lines = [line for line in resolved.splitlines() if "==" in line]
    lane.constraints.write_text("\n".join(lines) + "\n")


# ---------------------------------------------------------------- steps


def environment(lane: Lane) -> dict[str, str]:
    """The caller's variables without those that would lead into another environment."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTEST_ADDOPTS"}
    }
    return {
        **inherited,
        "PATH": f"{lane.python.parent}{os.pathsep}{os.environ['PATH']}",
        "NO_MKDOCS_2_WARNING": "1",  # the theme's banner about its own future, in every build
    }


def run(step: Step, profile: str) -> None:
    """Run one step, keep what it left behind, and show its output if it failed."""
    lane = LANES[step.lane]
    start = time.monotonic()
    report = (f"--junitxml={step.file('.xml')}",) if step.runs_pytest else ()
    try:
        prepare(lane)
        with step.file(".log").open("w") as log:
            code = subprocess.run(
                [lane.python.with_name(step.command[0]), *step.command[1:], *report],
                cwd=ROOT,
                env={**environment(lane), **step.env, "CONVNORM_PROFILE": profile},
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        versions = json.loads(call(lane.python, "-I", "-c", LIST_VERSIONS))
    except LaneError as error:
        step.file(".log").write_text(f"{error}\n")
        code, versions = 1, {}
    step.file(".json").write_text(json.dumps({"exit": code, "versions": versions}, indent=1))
    output = step.file(".log").read_text() if code else ""
    word = "FAILED" if code else "ok"
    print(f"{word:7}{step.name:10}{time.monotonic() - start:6.1f} s\n{output}", end="", flush=True)


LIST_VERSIONS = """
import importlib.metadata, json
print(json.dumps({found.name: found.version for found in importlib.metadata.distributions()}))
"""


def test(profile: str) -> int:
    """Run every step, whatever fails, and let the verdict have the last word."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    for group in groups(profile):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, group, [profile] * len(group)))
    core = LANES["core"]
    prepare(core)
    return subprocess.run(
        [core.python.with_name("pytest"), "-p", "no:cacheprovider", "scripts/verdict.py"],
        cwd=ROOT,
        env={**environment(core), "CONVNORM_PROFILE": profile},
        check=False,
    ).returncode


# ---------------------------------------------------------------- judging


def plain(name: str) -> str:
    """A distribution's name in its one normal spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lane: Lane) -> dict[str, set[str]]:
    """The versions a lane may get; markers can give one name several."""
    found: dict[str, set[str]] = {}
    for line in lane.constraints.read_text().splitlines():
        name, version = line.partition(";")[0].strip().split("==")
        found.setdefault(plain(name), set()).add(version)
    return found


def problems(step: Step) -> list[str]:
    """Everything that keeps a step from being green; an empty list is the only good answer."""
    if not step.file(".json").exists():
        return ["it did not run"]
    result = json.loads(step.file(".json").read_text())
    found = [f"exit code {result['exit']}"] if result["exit"] else []
    if step.runs_pytest:
        found += report_problems(step.file(".xml"))
    lane = LANES[step.lane]
    return found + version_problems(lane.majors, pins(lane), result["versions"])


def report_problems(report: Path) -> list[str]:
    """What a junit report holds beside passed tests; no test at all is a problem too."""
    if not report.exists():
        return ["it wrote no test report"]
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - our own file
    found = [
        f"{outcome.tag}: {case.get('classname')}::{case.get('name')}"
        for case in cases
        for outcome in case
        if outcome.tag in {"failure", "error", "skipped"}
    ]
    return found if cases else ["no test ran"]


def version_problems(
    majors: Mapping[str, str], pinned: Mapping[str, set[str]], versions: Mapping[str, str]
) -> list[str]:
    """Where an environment is not what its majors and its pins promise."""
    got = {plain(name): version for name, version in versions.items()}
    found = [
        f"{name} must be {major}.x and is {got.get(name, 'missing')}"
        for name, major in majors.items()
        if not f"{got.get(name, '')}.".startswith(f"{major}.")
    ]
    found += [
        f"{name} is {version} and pinned to {' or '.join(sorted(pinned.get(name, {'nothing'})))}"
        for name, version in sorted(got.items())
        if name not in OUR_OWN and version not in pinned.get(name, set())
    ]
    return found


def main(arguments: list[str]) -> int:
    """Do what the first argument says; see the top of this file."""
    match arguments:
        case ["test", ("ci" | "thorough") as profile]:
            return test(profile)
        case ["run", name, command, *rest] if name in LANES:
            lane = LANES[name]
            prepare(lane)
            words = [str(lane.python.with_name(command)), *rest]
            return subprocess.run(words, env=environment(lane), check=False).returncode
        case ["newest", *names]:
            for lane in (TOOLS, *LANES.values()):
                if not names or lane.name in names:
                    newest(lane)
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LaneError as error:
        sys.exit(str(error))
