"""The option --format, by which a command prints for people or for programs."""

from collections.abc import Callable
from typing import Any

import click


def format_option(*styles: str, help: str) -> Callable[[Any], Any]:  # as click calls it
    """Return the option --format, which a command takes as `style`; the first of the styles is the default."""
    return click.option("--format", "style", type=click.Choice(styles), default=styles[0], show_default=True, help=help)
