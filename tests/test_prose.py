import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = [
    pytest.param(match[1], id=f"{path.name}-{number}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, match in enumerate(
        re.finditer(r"<!-- run -->\n```python\n(.*?)```", path.read_text(), re.DOTALL), start=1
    )
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str) -> None:
    """Every example marked `<!-- run -->` in the prose does what it says."""
    exec(example, {})  # noqa: S102 - the example is our own
