"""The command line: `convnorm check FILE` and `convnorm fix FILE`."""

import sys


def main() -> None:
    """Start the command line, or say what is missing."""
    try:
        from convnorm.cli.app import app  # noqa: PLC0415  # typer and rich are an extra
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {missing.name}: pip install 'convnorm[cli]'")
    app()
