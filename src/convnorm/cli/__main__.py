"""`python -m convnorm.cli`, where the command itself is not on the path."""

from convnorm.cli import main

main()
