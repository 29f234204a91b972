import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_test_says_what_it_proves() -> None:
    """Every test has a docstring: the fact it proves."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for folder in (ROOT / "tests", *ROOT.glob("adapters/*/tests*"))
        for path in sorted(folder.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]

    assert silent == []
