"""`preselect journal`: look at a journal of decisions and outcomes, take it elsewhere, prove it."""

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table
from rich.text import Text

from preselect import state
from preselect import store as journals
from preselect.files import write_whole
from preselect.policies import registry
from preselect.store.values import encode

_LONG = 2000  # events, from which on a replay takes long enough to tell how far it is
_JOURNAL = click.argument("journal", metavar="JOURNAL", type=click.Path(path_type=Path))

_COLUMNS = ("number", "time", "label", "chosen", "outcome", "winner", "ranking", "seconds", "after")


@click.group()
def journal() -> None:
    """Look at a journal of decisions and outcomes, whether or not somebody is writing it.

    \b
    preselect journal show race.journal                   arms, counts, the last rounds
    preselect journal export race.journal --out runs.csv  every round, one line each
    preselect journal replay race.journal                 does everything come out again, bit for bit?
    """


@journal.command()
@_JOURNAL
@click.option("--last", type=click.IntRange(0), default=5, show_default=True, help="How many of the last rounds.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
def show(journal: Path, last: int, style: str) -> None:
    """Arms with their wins, the policy, how many rounds there are, and the last ones.

    An arm was played when it was among the chosen ones, and it won if it was the winner or came first in a ranking.
    """
    with journals.Journal.read(journal) as source:
        found = {**_summary(source), "last": [_line(*pair) for pair in source.last_rounds(last)]}
    if style == "json":
        click.echo(json.dumps(json.loads(encode(found, "journal")), indent=2))
    else:
        _print(found)


@journal.command()
@_JOURNAL
@click.option(
    "--format",
    "style",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="A table; or JSON lines, which hold more: scores, widths, who was eligible, all details.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write, whole or not at all; one that is there is replaced.  [default: print]",
)
def export(journal: Path, style: str, out: Path | None) -> None:
    """Every round on a line of its own: when, what, who was chosen, how it ended, and the context.

    In CSV several names in one field are separated by semicolons, a context feature x is in the column context.x, and
    what is missing or has not happened yet is empty. Times are in UTC.
    """
    with journals.Journal.read(journal) as source:
        lines = _json_lines(source) if style == "jsonl" else _csv_lines(source)
        if out is None:
            sys.stdout.writelines(map(_printable, lines))
        else:
            write_whole(out, "".join(lines))
            click.echo(f"{out} written", err=True)


@journal.command()
@_JOURNAL
@click.option("--policy", metavar="MODULE:CLASS", help="The policy of your own that the journal was written with.")
def replay(journal: Path, policy: str | None) -> None:
    """Make every decision again from the beginning, learn every outcome again, and compare to the last bit.

    Exit code 0 if everything came out again: choices, scores, joint features, and the states that were kept on the way.
    Exit code 1 and the first difference if not, which means that the journal was changed, or that numpy, the machine or
    preselect is another one and computes last bits differently.
    """
    if policy is not None:
        registry.parse(policy)
    with _progress() as report:
        found = journals.verify(journal, report=report)
    if not found.equal:
        click.echo(_printable(f"{journal} does not come out again: {found.difference}"))
        sys.exit(1)
    click.echo(
        f"{journal} comes out again bit for bit: {found.events} events, {found.decisions} decisions, "
        f"{found.outcomes} outcomes, {found.snapshots} snapshots compared"
    )


def _summary(source: journals.Journal) -> dict[str, Any]:
    header = state.unpack(source.about.genesis, source.path).header
    joined = [str(event.body["name"]) for event in source.events() if event.kind == "arm"]
    decisions, outcomes, plays, wins = 0, Counter[str](), Counter[str](), Counter[str]()
    for made, told in source.rounds():
        decisions += 1
        plays.update(made.body["chosen"])
        outcomes[_outcome(told) or "unfinished"] += 1
        wins.update(_ranked(told)[:1])
    return {
        "journal": str(source.path),
        "created": _time(source.about.created),
        "about": source.about.description,
        "policy": _policy(header["policy"]),
        "context": header["context"],
        "events": source.last,
        "decisions": decisions,
        "unfinished": outcomes.pop("unfinished", 0),
        "outcomes": dict(outcomes),
        "arms": [{"name": arm, "plays": plays[arm], "wins": wins[arm]} for arm in [*header["arms"], *joined]],
    }


def _policy(header: dict[str, Any]) -> str:
    given = {name: value for name, value in header["parameters"].items() if name != "d"}
    return f"{header['kind']}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _print(found: dict[str, Any]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    outcomes = ", ".join(f"{count} {kind}" for kind, count in found["outcomes"].items()) or "no outcomes"
    for line in (
        f"{found['journal']}, begun {found['created']}",
        f"about: {encode(found['about'], 'about')}",
        f"policy: {found['policy']}",
        f"context: {', '.join(found['context']) or 'none'}",
        f"{found['decisions']} decisions: {outcomes}, {found['unfinished']} unfinished",
    ):
        console.print(Text(_printable(line)), soft_wrap=True)
    console.print(_table("arms", ("arm", "played", "won"), [list(arm.values()) for arm in found["arms"]]))
    if found["last"]:
        rows = [_row(line) for line in found["last"]]
        console.print(_table("the last rounds", ("number", "time", "label", "chosen", "outcome", "seconds"), rows))


def _row(line: dict[str, Any]) -> list[Any]:
    ended = " ".join(filter(None, (line["outcome"] or "unfinished", " > ".join(line["ranking"]))))
    seconds = "" if line["seconds"] is None else f"{line['seconds']:.3g}"
    return [line["number"], line["time"], line["label"], ", ".join(line["chosen"]), ended, seconds]


def _table(title: str, columns: Iterable[str], rows: Iterable[list[Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold", justify="right" if name in ("played", "won", "seconds") else "left")
    for row in rows:
        table.add_row(*(Text("" if value is None else _printable(str(value))) for value in row))
    return table


def _line(made: journals.Event, told: journals.Event | None) -> dict[str, Any]:
    """One round, with what every form shows of it."""
    ranked = _ranked(told)
    return {
        "number": made.number,
        "time": _time(made.at),
        "label": made.body["label"],
        "chosen": made.body["chosen"],
        "outcome": _outcome(told),
        "winner": ranked[0] if ranked else None,
        "ranking": ranked,
        "seconds": told.body["details"].get("seconds") if told else None,
        "after": told.body.get("after") if told else None,
    }


def _outcome(told: journals.Event | None) -> str | None:
    return None if told is None else str(told.body["kind"])


def _ranked(told: journals.Event | None) -> list[str]:
    return [] if told is None else list(told.body["names"])


def _csv_lines(source: journals.Journal) -> Iterator[str]:
    features = state.unpack(source.about.genesis, source.path).header["context"]
    yield _csv([*_COLUMNS, *(f"context.{name}" for name in features)])
    for made, told in source.rounds():
        line = _line(made, told)
        line |= {name: ";".join(line[name]) for name in ("chosen", "ranking")}
        yield _csv([*(line[name] for name in _COLUMNS), *(made.body["context"][name] for name in features)])


def _csv(values: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def _json_lines(source: journals.Journal) -> Iterator[str]:
    for made, told in source.rounds():
        more = {name: made.body[name] for name in ("k", "eligible", "context", "scores", "widths", "round")}
        ended = {"ended": _time(told.at), "details": told.body["details"]} if told else {"ended": None, "details": None}
        yield encode({**_line(made, told), **more, **ended}, "round") + "\n"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _printable(text: str) -> str:
    """Names of files may hold bytes that are no text; they are shown as \\udc80 and the like."""
    return text.encode(errors="backslashreplace").decode()


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; elsewhere a line now and then, if it takes long."""
    console = Console(stderr=True)
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console, transient=True,
                  disable=not console.is_terminal) as progress:  # fmt: skip
        bar = progress.add_task("events", total=None)

        def report(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total)
            if not console.is_terminal and total >= _LONG and done * 10 // total > (done - 1) * 10 // total:
                print(f"{done} of {total} events", file=sys.stderr, flush=True)

        yield report
