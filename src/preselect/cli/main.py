"""`preselect`: the command without a subcommand teaches."""

from typing import Any

import click

import preselect as library
from preselect.cli.journal import journal
from preselect.cli.policies import policies
from preselect.cli.race import race
from preselect.cli.sat import sat
from preselect.cli.study import study
from preselect.errors import PreselectError


class Group(click.Group):
    """Our own errors become one sentence and exit code 1; tracebacks are for bugs."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except PreselectError as error:
            raise click.ClickException(str(error)) from None
        except BrokenPipeError:
            raise  # whoever reads has had enough, as in `... | head`
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            raise click.ClickException(f"cannot read or write{where}: {error.strerror or error}") from None


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(library.__version__, prog_name="preselect")
def preselect() -> None:
    """Contextual online preselection: choose k of n, see which one wins, choose better.

    \b
    Reproduce the paper's first experiment, small:
        preselect study synthetic --quick --out results
    Look at the table again:
        preselect study show results
    What there is to choose from:
        preselect policies
    Race the SAT solvers that are installed, and learn which to race:
        preselect race init
        preselect race pool.toml FILE...
    """


preselect.add_command(journal)
preselect.add_command(policies)
preselect.add_command(race)
preselect.add_command(sat)
preselect.add_command(study)
