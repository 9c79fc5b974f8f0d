"""`preselect`: all commands, and what happens when one fails."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

import preselect as library
from preselect.cli.instances import make_visible
from preselect.errors import PreselectError

_COMMANDS = {  # the module of each command and its name there, in the order of --help
    "demo": ("demo", "demo"),
    "race": ("race", "race"),
    "serve": ("serve", "serve"),
    "study": ("study", "study"),
    "policies": ("policies", "policies"),
    "journal": ("journal", "journal"),
    "logs": ("logs", "logs"),
    "fit": ("fit", "fit_logs"),
    "evaluate": ("evaluate", "evaluate_policies"),
    "sat": ("sat", "sat"),
    "compile": ("compile", "compile_all"),
}

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # set by users: numpy's threads

_EXTRAS = {
    "threadpoolctl": "cli",
    "jinja2": "study",
    "joblib": "study",
    "matplotlib": "study",
    "pandas": "study",
    "yaml": "study",
    "distributed": "dask",
    "msgspec": "serve",
    "prometheus_client": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "preflibtools": "logs",
    "psycopg": "postgres",
    "pyarrow": "logs",
}


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn expected errors, and failures to write output, into messages of one sentence."""
    try:
        with ExitStack() as stack:
            stack.callback(_flush)
            yield
    except PreselectError as error:
        raise click.ClickException("\n".join(map(make_visible, str(error).split("\n")))) from None
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        advice = f"run pip install '.[{_EXTRAS[error.name]}]' in a checkout of preselect"
        raise click.ClickException(f"this needs {error.name}, which is not installed; {advice}") from None
    except BrokenPipeError:
        raise  # click exits silently, as it should for `... | head`
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        raise click.ClickException(f"cannot read or write{where}: {error.strerror or error}") from None
    except MemoryError:
        raise click.ClickException("not enough memory") from None


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


class Group(click.Group):
    """Imports a command when it is asked for; expected errors become a sentence and exit code 1."""

    def list_commands(self, context: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, context: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module, name = _COMMANDS[cmd_name]
            self.add_command(getattr(import_module(f"preselect.cli.{module}"), name))
        return super().get_command(context, cmd_name)

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        if self.get_command(context, args[0]) is None and (close := get_close_matches(args[0], _COMMANDS)):
            context.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(context, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _explain_errors():  # --help and --version print here
            return super().make_context(*arguments, **options)

    def invoke(self, context: click.Context) -> Any:
        with _explain_errors():
            _use_one_thread()
            return super().invoke(context)


def _use_one_thread() -> None:
    """Do linear algebra in one thread unless the environment says otherwise.

    Matrices are small, so that more threads only cost more CPU time, and how many there are decides the last bits of
    some results: a journal has to be reproduced on a machine with another number of cores.
    """
    if not any(name in os.environ for name in _THREADS):
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="blas")


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(library.__version__, prog_name="preselect")
def preselect() -> None:
    """Contextual online preselection: choose k of n, see which one wins, choose better.

    \b
    Pick posters in the browser, and watch it learn your taste:
        preselect demo
    Race the SAT solvers that are installed, and learn which to race:
        preselect race init
        preselect race pool.toml FILE...
    Choose and learn over HTTP:
        preselect serve
    Repeat the paper's first experiment on a small scale, and show its table:
        preselect study synthetic --quick --out results
        preselect study show results
    Check whether the confidence widths of CPPL and Newton contain the truth:
        preselect study coverage
    Fit the model to logs, and save what it has learnt from them:
        preselect fit clicks.csv --state clicks.npz
    Estimate from logs what other policies would have won:
        preselect evaluate clicks.csv --policies newton,random
    List the policies, or describe one:
        preselect policies
        preselect policies cppl
    """
