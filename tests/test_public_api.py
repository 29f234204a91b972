"""What the package shows to the world."""

import subprocess
import sys

import convnorm


def test_public_names_are_pinned() -> None:
    """A public name is added or removed on purpose."""
    expected = [
        "Change",
        "ChangeError",
        "ConflictError",
        "Context",
        "Conversation",
        "ConvnormError",
        "DialectError",
        "Exchange",
        "Ledger",
        "LedgerError",
        "Link",
        "NeedsRequestError",
        "NotReadyError",
        "Policy",
        "PolicyError",
        "Provenance",
        "Report",
        "StoreError",
        "UnrepairableError",
        "Violation",
        "check",
        "explain",
        "normalize",
        "normalize_request",
    ]
    assert expected == sorted(expected) == convnorm.__all__


def test_every_error_has_one_root() -> None:
    """Whoever catches ConvnormError catches everything."""
    errors = [name for name in convnorm.__all__ if name.endswith("Error")]

    assert all(issubclass(getattr(convnorm, name), convnorm.ConvnormError) for name in errors)


def test_import_pulls_in_no_framework_and_no_extra() -> None:
    """`import convnorm` loads no SDK, no framework, no test helpers and no command line."""
    heavy = [
        "openai",
        "agents",
        "litellm",
        "agent_framework",
        "hypothesis",
        "typer",
        "rich",
        "pytest",
    ]
    code = f"import convnorm, sys; print([m for m in {heavy} if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603  # our own interpreter
    assert "[]" == done.stdout.strip()
