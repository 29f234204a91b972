import re
from pathlib import Path

import pytest

from lanes import LANES, TOOLS, Lane, report_problems, version_problems

REPORTS = {
    "<testcase classname='m' name='a'/>": [],
    "": ["no test ran"],
    "<testcase classname='m' name='a'><failure/></testcase>": ["failure: m::a"],
    "<testcase classname='m' name='a'><error/></testcase>": ["error: m::a"],
    "<testcase classname='m' name='a'><skipped/></testcase>": ["skipped: m::a"],
}
PINNED = {"openai": {"2.54.0"}, "pytest-xdist": {"3.8.0"}}


@pytest.mark.parametrize("cases, expected", REPORTS.items())
def test_only_passed_tests_are_green(tmp_path: Path, cases: str, expected: list[str]) -> None:
    """A report with a failure, an error, a skip or no test at all is a problem."""
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")

    assert report_problems(report) == expected


def test_a_missing_report_is_a_problem(tmp_path: Path) -> None:
    """A lane that wrote no report did not pass."""
    assert report_problems(tmp_path / "report.xml") == ["it wrote no test report"]


@pytest.mark.parametrize(
    "versions, expected",
    [
        ({"openai": "2.54.0", "pytest_xdist": "3.8.0", "convnorm": "0.1"}, []),
        ({}, ["openai must be 2.x and is missing"]),
        (
            {"openai": "3.51.0"},
            [
                "openai must be 2.x and is 3.51.0",
                "openai is 3.51.0 and pinned to 2.54.0",
            ],
        ),
        ({"openai": "2.54.0", "httpx": "1"}, ["httpx is 1 and pinned to nothing"]),
    ],
)
def test_wrong_versions_are_a_problem(versions: dict[str, str], expected: list[str]) -> None:
    """A lane must have the major it is about, and of everything the pinned version."""
    assert version_problems({"openai": "2"}, PINNED, versions) == expected


@pytest.mark.parametrize("lane", [TOOLS, *LANES.values()], ids=lambda lane: lane.name)
def test_pins_are_names_and_versions(lane: Lane) -> None:
    """A constraint file holds names, versions and markers, and no address."""
    pin = re.compile(r"[a-z0-9-]+==[0-9a-z.+]+( ; [a-z_]+ [^:/]*)?")

    lines = lane.constraints.read_text().splitlines()

    assert [line for line in lines if not pin.fullmatch(line)] == []
