"""One self-contained HTML page about what races have taught, from their journal alone, also while a race goes on."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from os.path import realpath
from pathlib import Path

from preselect.errors import InputError
from preselect.policies import Policy
from preselect.race import drawing
from preselect.race.account import (
    AT_LEAST,
    EXACT,
    LEAST_RACES,
    LIMIT,
    Account,
    Bin,
    Comparison,
    Known,
    Race,
    best_single,
    calibration,
    comparisons,
    curves,
    read_account,
)
from preselect.reports.html import image, page, table, write_page
from preselect.reports.weights import Weights, weights_of
from preselect.store.apply import NO_WINNER, RANKING, VOID, WINNER
from preselect.store.values import encode

_STYLE = """
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0 }
.tiles div { background: #f4f4f4; border-radius: .4rem; padding: .5rem 1.1rem; color: #555 }
.tiles b { display: block; font-size: 1.5rem; color: #222; font-variant-numeric: tabular-nums }
.beside { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: center } .beside img { width: 32rem }
.wide { overflow-x: auto } .wide td { white-space: nowrap } th { vertical-align: bottom }
td:first-child { overflow-wrap: anywhere } .wide td:first-child { white-space: normal; min-width: 15rem }
.weights td, .weights th { padding: .15rem .35rem; line-height: 1.2 }
.weights th { min-width: 3.3rem; max-width: 7rem; overflow-wrap: anywhere; font-size: .85rem }
.wide.weights td:first-child { min-width: 10rem }
"""
_MOST_COLUMNS = 12  # context features in the table of weights
_MOST_ROWS = 30  # arms there
_LONGEST = 10  # races
_ALWAYS_SHOWN = ("crashed", "wrong answer", "timeout")
_HOW = {EXACT: "won", AT_LEAST: "at least", LIMIT: "failed, limit"}


def write_report(journal: Path, out: Path) -> Path:
    """Write the page about a journal, whole or not at all; a file that is there is replaced, except the journal."""
    _require_apart(journal, out)
    account = read_account(journal)
    return write_page(out, page(f"Races of {account.path.name}", _body(account), style=_STYLE))


def _require_apart(journal: Path, out: Path) -> None:
    kept = [realpath(journal) + suffix for suffix in ("", "-wal", "-shm", "-journal", ".lock")]
    if realpath(out) in kept:
        raise InputError(f"out must be another file than the journal, got {str(out)!r}; name another")


def _body(account: Account) -> str:
    head = _origin(account) + _headline(account)
    if not account.races:
        return f"{head}<p>There is no race in this journal yet.</p>"
    return head + "".join(
        f"<h2>{title}</h2>{section(account)}"
        for title, section in (
            ("Who was chosen, and who won", _plays_and_wins),
            ("Against the best single arm", _times),
            ("Are the predictions right?", _calibration),
            ("What was learnt", _weights),
            ("Arms", _arms),
        )
    )


def _note(text: str) -> str:
    return f"<p class='note'>{text}</p>"


# --- the head of the page ---------------------------------------------------------------------------------------------


def _origin(account: Account) -> str:
    about = f"; {escape(encode(account.about, 'about'))}" if account.about else ""
    return _note(f"{escape(str(account.path))}, begun {_time(account.begun)}, as of {_time(account.until)}{about}")


def _headline(account: Account) -> str:
    races, kinds = account.races, Counter(race.kind for race in account.races)
    counts = {
        "races": len(races),
        "solved": kinds[WINNER] + kinds[RANKING],
        "nobody": kinds[NO_WINNER],
        "void": kinds[VOID],
        "unfinished": kinds[None],
        "arms": len(account.chooser.arms),
    }
    tiles = "".join(f"<div><b>{count}</b>{name}</div>" for name, count in counts.items())
    policy = f"<p>Policy: <code>{escape(_policy(account.chooser.policy))}</code></p>"
    return f"<div class='tiles'>{tiles}{_totals(races)}</div>{policy}"


def _totals(races: Sequence[Race]) -> str:
    totals = {
        "time of the races": [race.seconds for race in races if race.seconds is not None],
        "time of features, apart": [race.feature_seconds for race in races if race.feature_seconds is not None],
    }
    return "".join(f"<div><b>{_duration(math.fsum(found))}</b>{name}</div>" for name, found in totals.items() if found)


def _policy(policy: Policy) -> str:
    given = {name: value for name, value in policy.parameters.items() if name != "d"}
    return f"{policy.kind}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


# --- plays and wins ---------------------------------------------------------------------------------------------------


def _plays_and_wins(account: Account) -> str:
    note = "An arm was played when it was chosen, whatever came of it; it won when it was first with a right answer."
    found = curves(account)
    if found[-1].arms > 1:
        note += f" Shown are the {len(found) - 1} arms played most, and the others together."
    return _note(note) + image(drawing.plays_and_wins(found), "Plays and wins of each arm, added up over the races")


# --- time -------------------------------------------------------------------------------------------------------------


def _times(account: Account) -> str:
    found = comparisons(account)
    if not found:
        return _note("The journal does not say how long arms ran, so there is nothing to compare.")
    known = _note(
        "What a race tells of the time that an arm needs: its time if it won; at least the time of the race if it was "
        "stopped or came late; the limit if it ran out of time or failed otherwise. Of arms that did not take part, "
        "and in void races, nothing is known. Times are of the clock; the racers of a race ran side by side."
    )
    best = best_single(found)
    compared = _against(account, best) if best else _note(
        f"No arm is known from at least {LEAST_RACES} races yet, so none is called the best single arm."
    )  # fmt: skip
    return f"{known}{compared}<h3>Each arm beside its races</h3>{_known_table(found)}{_longest(account, best)}"


def _against(account: Account, best: Comparison) -> str:
    factor = f", {best.arm_seconds / best.race_seconds:.2f} times as long" if best.race_seconds > 0 else ""
    text = (
        f"<p>The best single arm is <b>{escape(best.arm)}</b>: it won {best.wins} of the {len(best.pairs)} races in "
        f"which its time is known. These races took {_duration(best.race_seconds)}; alone it is known to need at least "
        f"{_duration(best.arm_seconds)}{factor}.</p>"
    )
    rule = _note(
        f"Best is who won most, among the arms known from at least {LEAST_RACES} races; of equals, who has the smaller "
        "mean of known times. The mean alone would not do: lower bounds are small for those who lose quick races. The "
        "races are those that it was chosen for, which are not a fair sample. Times below a millisecond are drawn at "
        "one."
    )
    return text + rule + image(drawing.times(account.races, best), "Seconds of each race, and of the best single arm")


def _known_table(found: Sequence[Comparison]) -> str:
    rows = [
        [escape(one.arm), str(len(one.pairs)), str(one.wins), _short(one.race_seconds / len(one.pairs)),
         _short(one.arm_seconds / len(one.pairs))]
        for one in sorted(found, key=lambda one: -one.wins)
    ]  # fmt: skip
    return table(["arm", "races", "won", "mean s of these races", "mean s alone, at least"], rows)


def _longest(account: Account, best: Comparison | None) -> str:
    timed = sorted((race for race in account.races if race.seconds is not None), key=lambda race: -(race.seconds or 0))
    header = ["instance", "seconds", "outcome", *([f"{best.arm} alone"] if best else [])]
    rows = [
        [escape(race.label) or "–", _short(race.seconds), escape(race.winner or race.kind or "–"),
         *([_told(race.known(best.arm))] if best else [])]
        for race in timed[:_LONGEST]
    ]  # fmt: skip
    return f"<h3>The longest races</h3><div class='wide'>{table(header, rows)}</div>"


def _told(known: Known | None) -> str:
    return "–" if known is None else f"{_short(known.seconds)} ({_HOW[known.how]})"


# --- calibration ------------------------------------------------------------------------------------------------------


def _calibration(account: Account) -> str:
    outside = account.chooser.policy.outside
    bins = calibration(account.races, outside)
    if not bins:
        return _note("No race has been won yet in which more than one could win, so no prediction can be compared.")
    nobody = " Clocks take part in each race, and races that nobody won count too." if outside else ""
    note = _note(
        "Predicted is the chance to win that each chosen arm had by the estimates at the decision, without what was "
        f"added for exploration. Compared are races with a winner.{nobody} Standard errors are binomial; predictions "
        "of one race depend on each other, so they are approximate, and 0 says little where there are few."
    )
    return f"{note}<div class='beside'>{_reliability(bins)}{_bins(bins)}</div>"


def _reliability(bins: Sequence[Bin]) -> str:
    return image(drawing.reliability(bins), "Share of arms that won against their predicted chance, by bins")


def _bins(bins: Sequence[Bin]) -> str:
    rows = [
        [f"{one.low:.1f} to {one.high:.1f}", str(one.size), f"{one.predicted:.3f}",
         f"{one.observed:.3f} ± {one.standard_error:.3f}"]
        for one in bins
    ]  # fmt: skip
    return table(["chance", "predictions", "predicted", "observed ± s.e."], rows)


# --- weights ----------------------------------------------------------------------------------------------------------


def _weights(account: Account) -> str:
    found = weights_of(account.chooser)
    if found is None:
        kind = escape(account.chooser.policy.kind)
        return _note(f"The policy {kind} does not say how sure it is of weights, so none are shown.")
    shown = found.only(account.by_plays()[:_MOST_ROWS], most=_MOST_COLUMNS)
    note = (
        "Log-utility is a sum of weights times features: (arm's features, arm) by (1, context), all scaled. Weight ± "
        "standard deviation as the policy reckons them; blue speaks for an arm, orange against it, stronger the more "
        "standard deviations it is away from 0."
    )
    if len(shown.columns) < len(found.columns):
        note += (
            f" Of {len(found.columns) - 1} context features the {_MOST_COLUMNS} are shown in which some weight is "
            "furthest from 0 in standard deviations."
        )
    if len(shown.arms) < len(found.arms):
        note += f" Of {len(found.arms)} arms the {_MOST_ROWS} played most are shown."
    return f"{_note(note)}<div class='wide weights'>{_weight_table(shown)}</div>"


def _weight_table(shown: Weights) -> str:
    names = [*(f"feature {name}" for name in shown.features), *shown.arms]
    numbers = zip(names, shown.values, shown.deviations, shown.ratios(), strict=True)
    rows = [[escape(name), *map(_weight, *row)] for name, *row in numbers]
    return table(["", *shown.columns], rows)


def _weight(value: float, deviation: float, ratio: float) -> str:
    colour = "0, 114, 178" if value > 0 else "230, 159, 0"
    strength = min(ratio / 4.0, 1.0) * 0.6
    return f"<td style='background: rgba({colour}, {strength:.2f})'>{value:+.2f}<br><small>± {deviation:.2f}</small>"


# --- arms -------------------------------------------------------------------------------------------------------------


def _arms(account: Account) -> str:
    plays, wins, ended, winning = account.plays, account.wins, _endings(account.races), _winning_times(account.races)
    seen = {status for counts in ended.values() for status in counts} - {"won"}
    statuses = [*_ALWAYS_SHOWN, *sorted(seen - set(_ALWAYS_SHOWN))] if ended else []
    rows = [
        [escape(arm), str(plays[arm]), str(wins[arm]), _share(wins[arm], plays[arm]), _mean(winning[arm]),
         *(str(ended[arm][status]) for status in statuses)]
        for arm in account.by_plays()
    ]  # fmt: skip
    without = "" if ended else _note("The journal does not say how racers ended, so failures cannot be counted.")
    header = ["arm", "played", "won", "share won", "mean s when winning", *statuses]
    return f"{without}<div class='wide'>{table(header, rows)}</div>"


def _endings(races: Sequence[Race]) -> dict[str, Counter[str]]:
    """How each arm's runs ended, in void races too."""
    ended: dict[str, Counter[str]] = defaultdict(Counter)
    for race in races:
        for arm, status in race.statuses.items():
            ended[arm][status] += 1
    return ended


def _winning_times(races: Sequence[Race]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for race in races:
        known = race.known(race.winner) if race.winner is not None else None
        if race.winner is not None and known is not None and known.how == EXACT:
            found[race.winner].append(known.seconds)
    return found


# --- numbers as texts -------------------------------------------------------------------------------------------------


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _mean(values: Sequence[float]) -> str:
    return _short(math.fsum(values) / len(values)) if values else "–"


def _short(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"


def _duration(seconds: float) -> str:
    """Seconds, and from ten minutes on what they are in hours and minutes.

    >>> _duration(12.34), _duration(660.0), _duration(7384.0)
    ('12.3 s', '660.0 s (11 min)', '7384.0 s (2 h 3 min)')
    """
    hours, minutes = divmod(int(seconds // 60), 60)
    spoken = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    return f"{seconds:.1f} s ({spoken})" if seconds >= 600 else f"{seconds:.1f} s"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
