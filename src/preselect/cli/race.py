"""`preselect race`: run k solvers of a pool on each instance, stop at the first right answer, learn which to race."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import click

from preselect.cli.dashboard import show_dashboard
from preselect.cli.folders import Folder
from preselect.cli.formats import format_option
from preselect.cli.instances import iterate_files, list_files, make_printable, make_visible, require_apart, require_some
from preselect.cli.lanes import work_in_lanes
from preselect.cli.race_printing import Batch, print_result, write_answer
from preselect.cli.race_summary import count, print_summary
from preselect.cli.standings import LiveStandings
from preselect.errors import InputError
from preselect.race import Cluster, Pool, RaceResult, RaceSession, check_arms, find_solvers, read_pool, write_pool
from preselect.race.answers import EXIT_CODES
from preselect.race.compressors import PROGRAMS, find_compressors
from preselect.race.outputs import OutputFolder
from preselect.race.own_files import find_own_files
from preselect.race.starts import Starts

_NO_ANSWER = 3  # the exit code if some file has no answer

_POOL = click.argument("pool_file", metavar="POOL", type=click.Path(path_type=Path))


class _Race(click.Group):
    """Treats a first word that is not a subcommand as a pool: `race pool.toml FILE` means `race run pool.toml FILE`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            self._require_no_typo(context, args[0])
            args = ["run", *args]
        return super().parse_args(context, args)

    def _require_no_typo(self, context: click.Context, word: str) -> None:
        close = get_close_matches(word, self.commands, cutoff=0.75)
        if close and not os.path.exists(word):
            context.fail(f"there is neither a command nor a pool {word!r}; did you mean {close[0]!r}?")


@click.group(cls=_Race, short_help="Race solvers on instances, and learn which ones to race.")
def race() -> None:
    """Race k solvers of a pool on each instance, stop at the first right answer, and learn which ones to race.

    \b
    Write pool.toml with the solvers that are installed:
        preselect race init
    Try each of them on tiny formulas:
        preselect race check pool.toml
    Race, learn, and print the winners' answers:
        preselect race pool.toml cnf/*.cnf
    Race on every file that appears in a folder:
        preselect race pool.toml --watch inbox
    Write a page about what has been learnt:
        preselect race report pool.toml

    Everything learnt is in the pool's journal: race on more instances tomorrow, and learning continues from there.
    `preselect race run --help` lists the options of a race.
    """


@race.command(short_help="Write a pool file with the solvers that are installed.")
@click.argument("pool", default="pool.toml", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(["sat", "program"]),
    default="sat",
    show_default=True,
    help="SAT solvers; or other programs, with compressors as an example.",
)
@click.option("--k", type=click.IntRange(1), help="Solvers per race.  [default: 2]")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time limit of a race, in seconds.",
)
def init(pool: Path, kind: str, k: int | None, seconds: float) -> None:
    """Write a commented POOL file with the solvers that are installed here and SAPS, which comes with preselect.

    POOL is pool.toml unless it is given. A file that exists is not overwritten. With --kind program, write an example to change: compressors, of which the one with the smallest output wins.
    """
    found = find_solvers() if kind == "sat" else find_compressors()
    write_pool(pool, found, k=k, seconds=seconds, **({} if kind == "sat" else {"template": PROGRAMS}))
    click.echo(f"{pool}: {', '.join(solver.name for solver in found)}")
    instance = "" if kind == "sat" else " --instance FILE"
    click.echo(f"next: preselect race check {shlex.quote(str(pool))}{instance}", err=True)


@race.command()
@_POOL
@click.option("--instance", type=click.Path(path_type=Path), help="Try the arms on this file instead of tiny formulas.")
@format_option("table", "json", help="Print a line for each arm, or everything as JSON.")
def check(pool_file: Path, instance: Path | None, style: str) -> None:
    """Try each arm of POOL, and say what is wrong with it.

    The exit code is 1 if anything is wrong. How long each arm took is remembered, so that races leave out arms that take longer to start than others take to
    answer. For programs other than SAT solvers give an --instance that is easy for all arms.
    """
    pool = read_pool(pool_file)
    with tempfile.TemporaryDirectory(prefix="preselect-") as folder:
        checks = check_arms(pool, Path(folder), instance=instance)
    if instance is None or not pool.is_for_sat:
        Starts(pool).note_checks(checks)
    if style == "json":
        click.echo(json.dumps([each._asdict() for each in checks], indent=2))
    else:
        for each in checks:
            click.echo(f"{'ok   ' if each.ok else 'wrong'}  {each.arm}: {make_visible(each.message)}")
    if not all(each.ok for each in checks):
        sys.exit(1)


@race.command(short_help="Race solvers of POOL on INSTANCES.")
@_POOL
@click.argument("instances", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--watch",
    "inbox",
    type=click.Path(path_type=Path),
    help="Race on every file that appears in this folder, or is overwritten there, until Ctrl-C.",
)
@click.option(
    "--output",
    type=Folder(),
    help="Folder in which each winner's output is written to NAME.out; made if it is missing.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1),
    help="Instances to race on at the same time, each with k cores.  [default: 1; on a cluster, as many as fit]",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Race on the workers of a Dask cluster, whose scheduler is at this address, as in tcp://host:8786.",
)
@click.option("--k", type=click.IntRange(1), help="Solvers per race, instead of the pool's number.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Time limit of a race, in seconds, instead of the pool's.",
)
@format_option("text", "json", help="Print the winners' outputs, or a line of JSON for each instance.")
@click.option("--dashboard", is_flag=True, help="Show the races in a browser while they run; the address is printed.")
def run(
    pool_file: Path,
    instances: tuple[Path, ...],
    inbox: Path | None,
    output: Path | None,
    at_once: int | None,
    cluster: str | None,
    k: int | None,
    seconds: float | None,
    style: str,
    dashboard: bool,
) -> None:
    """Race solvers of POOL on INSTANCES: files, folders of files, or - for a list of files on standard input.

    The winner's output goes to standard output, or to a folder with --output. Progress and a summary go to standard
    error. With --format json, standard output has a line of JSON for each instance instead.

    With --output, the answer to a.cnf is in a.cnf.out; there is no such file if there was no winner. An output that an
    earlier run wrote is replaced or removed. Any other file stays as it is: if one is in the way, nothing is raced.
    (The folder's file .preselect-outputs lists what was written there, with checksums.)

    With --at-once, each result is printed when its race has ended; an instance that cannot be raced does not stop the
    others. With --cluster, all files that a race needs must have the same paths on the workers.

    The exit code is 1 if a file could not be raced. Otherwise it is 0 if there is an answer for every file, and 3 if
    not. With SAT solvers and a single file it is the one that solvers use: 10 satisfiable, 20 unsatisfiable, 0 unknown;
    with several files it is 0.
    """
    if not instances and inbox is None:
        raise click.UsageError("name instances to race on, or a folder with --watch")
    pool = read_pool(pool_file).override(k=k, seconds=seconds)
    is_own = find_own_files(pool)
    files = list_files(instances, is_own)
    if inbox is None:
        require_some(files, instances)
    require_apart(output, inbox, instances)
    batch = Batch(files, inbox, None if output is None else OutputFolder(output, files), style, pool.is_for_sat)
    log = _Log()
    with (
        _open_session(pool, cluster) as session,
        show_dashboard(pool.journal, dashboard),
        _explain_interrupt(pool.journal, log, inbox),
        LiveStandings() as live,
    ):
        for name, error in session.find_start_errors().items():
            click.echo(f"{name} is not raced: {make_printable(Path(error))}", err=True)
        work = partial(_race_one, session, batch, log, live)
        work_in_lanes(
            enumerate(iterate_files(files, inbox, is_own), start=1),
            work,
            at_once or _count_lanes(session),
            session.stop,
        )
        with suppress(KeyboardInterrupt):  # every answer has been given
            session.settle()
    print_summary(pool.journal, log.first_number)
    if log.failed:
        raise InputError(f"{count(log.failed, 'instance')} could not be raced; see above")
    if pool.is_for_sat and batch.is_single and log.last is not None and log.last.winner is not None:
        sys.exit(EXIT_CODES.get(log.last.answer or "", log.last.exit_code))
    if not pool.is_for_sat and log.unanswered:
        sys.exit(_NO_ANSWER)


@race.command(short_help="Write an HTML page about what has been learnt.")
@click.argument("pool", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File for the page. An earlier page about the same pool is replaced; any other file that exists is an error and "
    "stays as it is.  [default: the pool's name with .html, in this folder]",
)
def report(pool: Path, out: Path | None) -> None:
    """Write an HTML page about what has been learnt with POOL, a pool file (.toml) or a journal."""
    from preselect.race.report import write_report

    journal = read_pool(pool).journal if pool.suffix == ".toml" else pool
    out = Path(pool.with_suffix(".html").name) if out is None else out
    if journal != pool and os.path.realpath(out) == os.path.realpath(pool):
        raise InputError(f"cannot write the page to {str(out)!r}: it is the pool; name another file")
    click.echo(f"report: {write_report(journal, out)}")


# --- the races of a run -----------------------------------------------------------------------------------------------


@dataclass
class _Log:
    """What has happened so far: the first and the last race, how many instances could not be raced or have no answer."""

    first: RaceResult | None = None
    last: RaceResult | None = None
    failed: int = 0
    unanswered: int = 0

    def add(self, result: RaceResult) -> None:
        self.first, self.last = min(self.first or result, result, key=lambda race: race.number), result
        self.failed += result.void is not None and result.winner is None
        self.unanswered += result.void is None and result.winner is None

    @property
    def first_number(self) -> int | None:
        return None if self.first is None else self.first.number


@contextmanager
def _open_session(pool: Pool, address: str | None) -> Iterator[RaceSession]:
    with ExitStack() as resources:
        cluster = None if address is None else resources.enter_context(Cluster(address))
        yield resources.enter_context(RaceSession(pool, cluster=cluster))


def _count_lanes(session: RaceSession) -> int:
    return 1 if session.cluster is None else session.cluster.count_places(session.pool.k)


def _race_one(session: RaceSession, batch: Batch, log: _Log, live: LiveStandings, item: tuple[int, Path]) -> None:
    """Race on a file and print the result; an error ends the command only if it is the only file."""
    position, file = item
    progress = f"[{position}/{len(batch.files)}]" if position <= len(batch.files) else "[new]"
    try:
        if batch.output is not None:
            batch.output.require_free(file)
        with live.watch(file) as watch:
            result = session.run(file, watch=watch)
        with live.printing():
            log.add(result)
            print_result(result, progress)
            write_answer(result, batch)
        if session.pool.learning.wait:
            session.settle(result.number)
    except InputError as error:
        if batch.is_single:
            raise
        with live.printing():
            log.failed += 1
            click.echo(f"{progress} {make_printable(file)}: {make_visible(str(error))}", err=True)


@contextmanager
def _explain_interrupt(journal: Path, log: _Log, inbox: Path | None) -> Iterator[None]:
    """On Ctrl-C, print that nothing is lost and how to continue, and a summary of the races so far."""
    try:
        yield
    except KeyboardInterrupt:
        if inbox is None:
            advice = "to continue, run the command again with the remaining instances"
        else:
            advice = f"to continue, run the same command again: it races on every file that is then in {_quote(inbox)}"
        click.echo(f"\ninterrupted; what was learnt is in {_quote(journal)}; {advice}", err=True)
        print_summary(journal, log.first_number)
        sys.exit(130)


def _quote(path: Path) -> str:
    """Return a path as it can be pasted into a shell."""
    return shlex.quote(make_printable(path))
