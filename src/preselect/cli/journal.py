"""`preselect journal`: look at a journal of decisions and outcomes, export it, verify it."""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from preselect import state, store
from preselect.cli.formats import format_option
from preselect.cli.instances import make_visible
from preselect.cli.progress import show_progress
from preselect.files import require_ours, write_whole
from preselect.named.tables import write_count
from preselect.policies import registry
from preselect.store.beginning import format_policy
from preselect.store.rounds import collection_paused
from preselect.store.sqlite import require_apart
from preselect.store.values import encode

_JOURNAL = click.argument("journal", metavar="JOURNAL", type=click.Path(path_type=Path))

_NAME = click.option(
    "--name", default=store.MAIN, show_default=True, help="Name of the journal, if the file holds several."
)

_MAX_ROUNDS = 1_000_000  # to list

_CHUNK = 1 << 16  # characters to write at once

_COLUMNS = ("number", "time", "label", "chosen", "outcome", "winner", "ranking", "seconds", "after", "also")


@click.group(short_help="Show, export, verify or copy journals of decisions and outcomes.")
def journal() -> None:
    """Look at a journal of decisions and outcomes, even while a race writes it.

    \b
    Show arms, counts and the last rounds:
        preselect journal show race.journal
    Export every round, one per line:
        preselect journal export race.journal --out runs.csv
    Check that everything can be reproduced, bit for bit:
        preselect journal verify race.journal
    Copy it to another file, or to a database:
        preselect journal copy race.journal copy.journal
    """


@journal.command()
@_JOURNAL
@_NAME
@click.option(
    "--last",
    type=click.IntRange(0, _MAX_ROUNDS),
    default=5,
    show_default=True,
    help="How many of the last rounds to list.",
)
@format_option("table", "json", help="Tables to read, or JSON for other programs.")
def show(journal: Path, name: str, last: int, style: str) -> None:
    """Show arms, counts and the last rounds.

    An arm is played in every round for which it is chosen. It wins a round if it is the winner or ranked first.
    """
    with store.Journal.read(journal, name) as source:
        rounds = [store.Round.of(*pair) for pair in source.rounds(limit=last, newest_first=True)]
        found = {**_summarise(source), "last": [_tabulate(one) for one in reversed(rounds)]}
    if style == "json":
        click.echo(json.dumps(json.loads(encode(found, "journal")), indent=2))
    else:
        _print(found)


@journal.command()
@_JOURNAL
@_NAME
@format_option("csv", "jsonl", help="CSV; or JSON lines, which have more: scores, widths, eligible arms, all details.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write. An earlier export is replaced, whole or not at all; any other file that exists is an error and "
    "stays as it is.  [default: standard output]",
)
def export(journal: Path, name: str, style: str, out: Path | None) -> None:
    """Export every round, one per line.

    A line has the time (UTC), the label, the chosen arms, the outcome and the context. In CSV, several names in one
    field are separated by semicolons, the context feature x is in the column context.x, and a value that is not known,
    or not yet, is empty.
    """
    if out is not None:
        require_apart(out, journal)
        require_ours(out, _is_export)
    with store.Journal.read(journal, name) as source, collection_paused():
        lines = _write_json_lines(source) if style == "jsonl" else _write_csv_lines(source)
        if out is None:
            sys.stdout.writelines(map(_escape, lines))
        else:
            write_whole(out, "".join(lines))
            click.echo(f"{out} written", err=True)


@journal.command()
@_JOURNAL
@_NAME
@click.option(
    "--policy", metavar="MODULE:CLASS", help="The class of your own policy, if the journal was written with one."
)
def verify(journal: Path, name: str, policy: str | None) -> None:
    """Check that everything can be reproduced.

    The journal is replayed from the start: every decision is made again, every outcome is learnt from again, and
    everything is compared bit for bit: choices, scores, joint features, and snapshots of the state. The exit code is 0
    if all of it is reproduced. It is 1 at the first difference, which is printed: either the journal was changed, or
    another machine, numpy or preselect rounds the last bits differently. The number of numpy's threads matters too: the
    command uses one, unless OPENBLAS_NUM_THREADS says otherwise. (`replay` is an older name of this command.)
    """
    if policy is not None:
        registry.parse(policy)
    with show_progress("events") as bar:
        found = store.verify(journal, name, report=bar.update)
    if not found.equal:
        click.echo(make_visible(f"{journal} cannot be reproduced: {found.difference}"))
        sys.exit(1)
    numbers = {
        "event": found.events,
        "decision": found.decisions,
        "outcome": found.outcomes,
        "snapshot": found.snapshots,
    }
    counts = ", ".join(write_count(number, noun) for noun, number in numbers.items())
    click.echo(f"{journal} is reproduced bit for bit: {counts}{_list_more(found)}")


def _list_more(found: store.Verification) -> str:
    expired = f", {found.expired} expired" if found.expired else ""
    return expired + (f"; {found.earlier} chosen with an earlier state, not repeated" if found.earlier else "")


@journal.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--name", "names", multiple=True, help="Name of a journal to copy; may be repeated.  [default: all]")
def copy(source: str, target: str, names: tuple[str, ...]) -> None:
    """Copy journals to another file or database.

    FROM and TO are files, or URLs such as postgresql://user@host/database. Numbers and digests stay as they are, and
    every event is checked on the way. FROM may be in use; a copy that was interrupted is resumed.
    """
    copied = store.copy_journals(source, target, list(names) or None)
    for name, events in copied.items():
        click.echo(f"{name}: {events} events")
    if not copied:
        click.echo(f"{source} has no journals yet: nothing was copied")


journal.add_command(
    click.Command("replay", params=verify.params, callback=verify.callback, hidden=True, help=verify.help)
)


def _summarise(source: store.Journal) -> dict[str, Any]:
    header, counts = _read_header(source), store.read_counts(source)
    return {
        "journal": source.source,
        "created": _format_time(source.about.created),
        "about": source.about.description,
        "policy": format_policy(header["policy"]),
        "context": header["context"],
        "events": source.last,
        "decisions": counts.rounds,
        "unfinished": counts.unfinished,
        "outcomes": dict(counts.outcomes),
        "arms": [
            {"name": arm, "plays": counts.plays[arm], "wins": counts.wins[arm]}
            for arm in dict.fromkeys([*header["arms"], *counts.joined])
        ],
    }


def _read_header(source: store.Journal) -> dict[str, Any]:
    """Read what the preselector was made with."""
    return state.unpack(source.about.genesis, source.source).header


def _print(found: dict[str, Any]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    outcomes = ", ".join(f"{count} {kind}" for kind, count in found["outcomes"].items()) or "no outcomes"
    for line in (
        f"{found['journal']}, created {found['created']}",
        f"about: {encode(found['about'], 'about')}",
        f"policy: {found['policy']}",
        f"context: {', '.join(found['context']) or 'none'}",
        f"{found['decisions']} decisions: {outcomes}, {found['unfinished']} unfinished",
    ):
        console.print(Text(make_visible(line)), soft_wrap=True)
    console.print(_make_table("arms", ("arm", "played", "won"), [list(arm.values()) for arm in found["arms"]]))
    if found["last"]:
        columns = ("number", "time", "label", "chosen", "outcome", "seconds")
        console.print(_make_table("the last rounds", columns, map(_make_row, found["last"])))


def _make_row(line: dict[str, Any]) -> list[Any]:
    ended = " ".join(filter(None, (line["outcome"] or "unfinished", " > ".join(_join_ties(line["ranking"], " = ")))))
    seconds = "" if line["seconds"] is None else f"{line['seconds']:.3g}"
    return [line["number"], line["time"], line["label"], ", ".join(line["chosen"]), ended, seconds]


def _join_ties(ranking: Iterable[str | Iterable[str]], sign: str) -> list[str]:
    return [place if isinstance(place, str) else sign.join(place) for place in ranking]


def _make_table(title: str, columns: Iterable[str], rows: Iterable[list[Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold", justify="right" if name in ("played", "won", "seconds") else "left")
    for row in rows:
        table.add_row(*(Text("" if value is None else make_visible(str(value))) for value in row))
    return table


def _tabulate(round: store.Round) -> dict[str, Any]:
    """Return one round as values by column, the same in every format."""
    return {
        "number": round.number,
        "time": _format_time(round.decided),
        "label": round.label,
        "chosen": round.chosen,
        "outcome": round.kind,
        "winner": round.winner,
        "ranking": round.names,
        "seconds": round.details.get("seconds"),
        "after": round.after,
        "also": round.also,
    }


def _is_export(beginning: bytes) -> bool:
    """Whether a file begins like an export, in CSV or JSON lines; exports of earlier versions lack the last column."""
    text = beginning.decode(errors="replace")
    return text.startswith(",".join(_COLUMNS[:-1])) or re.match(r'\{"number": \d+, "time": "', text) is not None


def _write_csv_lines(source: store.Journal) -> Iterator[str]:
    features = _list_features(source)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"context.{name}" for name in features)])
    for one, made, _ in store.pair_rounds(source):
        line, context = _tabulate(one), made.context
        line |= {name: ";".join(_join_ties(line[name], "=")) for name in ("chosen", "ranking", "also")}
        writer.writerow([*(line[name] for name in _COLUMNS), *map(context.get, features)])
        if text.tell() > _CHUNK:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _list_features(source: store.Journal) -> list[str]:
    """List the features of the context, with those that were added later."""
    newest = next((made.event for made, _ in source.rounds(limit=1, newest_first=True)), None)
    return list(newest.labels[0]) if isinstance(newest, store.Decided) else list(_read_header(source)["context"])


def _write_json_lines(source: store.Journal) -> Iterator[str]:
    for one, made, ended in store.pair_rounds(source):
        more = {name: getattr(made, name) for name in ("k", "eligible", "context", "scores", "widths", "round")}
        more |= {"rules": made.rules} if made.rules else {}
        last: dict[str, Any] = {"ended": None, "details": None}
        if ended is not None:
            last = {"ended": _format_time(ended.at), "details": one.details}
        yield encode({**_tabulate(one), **more, **last}, "round") + "\n"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _escape(text: str) -> str:
    r"""Write bytes of file names that are not text as escapes such as \udc80."""
    return text.encode(errors="backslashreplace").decode()
