import subprocess
import sys
from importlib.metadata import version


def test_versions_are_in_step() -> None:
    """The adapter has the version of the core it was released with."""
    assert version("convnorm-litellm") == version("convnorm")


def test_the_framework_stays_out() -> None:
    """Importing the adapter does not import the framework."""
    look = "import sys, convnorm_litellm; print('litellm' in sys.modules)"

    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)

    assert seen.stdout == "False\n"
