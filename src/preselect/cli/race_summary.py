"""Print a summary of races, read from the journal, to standard error."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from preselect.race.summary import AfterRaceTotals, RaceSummary, summarise_races
from preselect.store import Journal, read_rounds


def print_summary(journal: Path, first: int | None) -> None:
    """Summarise the races from decision number `first` on; nothing if it is None."""
    if first is None:
        return
    with Journal.read(journal) as source:
        summary = summarise_races(read_rounds(source, after=first - 1))
    click.echo(summarise(summary), err=True)
    if summary.after_races is not None:
        click.echo(_describe_after_races(summary.after_races), err=True)
    Console(stderr=True).print(_tabulate_values(summary) if summary.is_by_value else _tabulate_times(summary))
    if summary.is_by_value:
        note = "value: the mean of the arm's values; best: the mean of the best values in the same races"
    else:
        note = "saved: time saved against the arm alone, on solved instances, without features; –: unknown"
    click.echo(note, err=True)


def summarise(summary: RaceSummary) -> str:
    """Return the counts and times of races in a sentence."""
    others = {"without a winner": summary.unsolved, "void": summary.void, "unfinished": summary.counts.unfinished}
    return (
        f"{summary.solved} of {count(summary.counts.rounds, 'race')} {'won' if summary.is_by_value else 'solved'}"
        + "".join(f", {number} {what}" for what, number in others.items() if number)
        + f"; {summary.seconds or 0.0:.2f} s of racing, {summary.feature_seconds or 0.0:.2f} s for features"
    )


def _describe_after_races(found: AfterRaceTotals) -> str:
    return (
        f"after-races: {count(found.arms, 'run')} after {count(found.races, 'race')}, {found.used:.2f} s of core time, "
        f"{found.share:.2f} times what the races took; in {found.faster} an arm that was not chosen was faster"
    )


def _tabulate_times(summary: RaceSummary) -> Table:
    table = _make_table("arm", "played", "won", "saved at least, s")
    for arm in _order_arms(summary):
        single = summary.single_arms.get(arm)
        saved = f"{single.saved_seconds:.2f}" if single and single.saved_seconds > 0 else "–"
        table.add_row(Text(arm), str(summary.counts.plays[arm]), str(summary.counts.wins[arm]), saved)
    return table


def _tabulate_values(summary: RaceSummary) -> Table:
    table = _make_table("arm", "played", "won", "with a value", "value", "best")
    for arm in _order_arms(summary):
        found = summary.valued_arms.get(arm)
        values = [str(found.races), f"{found.mean:.6g}", f"{found.mean_best:.6g}"] if found else ["0", "–", "–"]
        table.add_row(Text(arm), str(summary.counts.plays[arm]), str(summary.counts.wins[arm]), *values)
    return table


def _make_table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column, justify="left" if column == "arm" else "right")
    return table


def _order_arms(summary: RaceSummary) -> list[str]:
    plays, wins = summary.counts.plays, summary.counts.wins
    return sorted(plays, key=lambda arm: (-wins[arm], -plays[arm], arm))


def count(number: int, what: str) -> str:
    """Return a number with what it counts, such as "2 races"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
