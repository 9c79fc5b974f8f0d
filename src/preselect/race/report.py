"""Write one self-contained HTML page about the races of a journal, even while one is running.

The words are in the template `race.html`, the numbers come from `preselect.race.summary`.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from preselect.files import require_ours
from preselect.policies import Policy
from preselect.preselector import Preselector
from preselect.race.calibration import calibrate
from preselect.race.figures import draw_calibration, draw_plays_and_wins, draw_times
from preselect.race.result import Knowledge, KnownTime
from preselect.race.summary import MIN_RACES, RaceSummary, SingleArm, summarise_races
from preselect.race.supervision import Status
from preselect.reports.html import Cell, is_page, render, write_page
from preselect.reports.weights import Weights, read_weights
from preselect.store import Journal, read_rounds, restore
from preselect.store.events import NO_WINNER, WINNER
from preselect.store.rounds import collection_paused
from preselect.store.sqlite import require_apart

_MAX_COLUMNS = 12  # the most context features in the table of weights
_MAX_ROWS = 30  # arms there
_LONGEST = 10  # races
_MAX_CALIBRATED = 20_000  # the most races to compare with predictions; of more, every second, third and so on
_MIN_CALIBRATED = 30  # with fewer races, standard errors are as wide as the figure
_ALWAYS_SHOWN = [Status.CRASHED, Status.WRONG_ANSWER, Status.TIMEOUT]
_HOW = {Knowledge.EXACT: "won", Knowledge.AT_LEAST: "at least", Knowledge.LIMIT: "failed, limit"}

_ID = b'<meta name="preselect-journal" '  # begins the tag that says which journal a page is about

_Values = dict[str, Any]  # for the template


@dataclass(frozen=True)
class _History:
    """A journal as it was at one moment: its races, and what has been learnt from them."""

    path: Path
    id: str
    begun: float
    until: float
    about: Mapping[str, Any]
    preselector: Preselector
    summary: RaceSummary

    def rank_arms(self) -> list[str]:
        """List all arms, those played most first."""
        return sorted(self.preselector.arms, key=lambda arm: -self.summary.counts.plays[arm])

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Races of {self.path.name}"

    def is_described_by(self, page: bytes) -> bool:
        """Whether a page, given by its beginning, is about this journal; older pages have only a title."""
        if _ID not in page:
            return f"<title>{escape(self.title)}</title>".encode(errors="backslashreplace") in page
        return _ID + f'content="{self.id}"'.encode() in page


def write_report(journal: Path, out: Path) -> Path:
    """Write the page about a journal, and return its path.

    Parameters
    ----------
    journal : Path
        The journal; it is only read; another process may be writing it.
    out : Path
        The page. An earlier page about the same journal is replaced once the new one is complete. Any other file, such
        as the journal or a page about another one, is an error and stays as it is.
    """
    require_apart(out, journal)
    require_ours(out, is_page)
    with collection_paused():
        history = _read_history(journal)
        require_ours(out, history.is_described_by, "is a page about other races")
        return write_page(out, _render(history))


def _read_history(path: Path) -> _History:
    with Journal.read(path) as journal:
        last = journal.record(journal.last)
        return _History(
            path=Path(journal.source),
            id=hashlib.sha256(f"{journal.about.created!r}".encode() + journal.about.digest).hexdigest()[:32],
            begun=journal.about.created,
            until=journal.about.created if last is None else last.at,
            about=journal.about.description,
            preselector=restore(journal).fold.preselector,
            summary=summarise_races(read_rounds(journal)),
        )


def _render(history: _History) -> str:
    values = {**_describe_head(history), "summary": history.summary, "best": None, "leader": _find_leader(history)}
    if history.summary.races:
        for describe in (_describe_times, _describe_calibration, _describe_weights, _describe_arms):
            values |= describe(history)
        values["figures"] = _draw_figures(values)
    return render("race.html", **values)


def _draw_figures(values: _Values) -> dict[str, bytes]:
    figures = {"plays_and_wins": b"", "calibration": b""}
    if len(values["summary"].races) >= MIN_RACES:
        figures["plays_and_wins"] = draw_plays_and_wins(values["curves"])
    if values["best"]:
        figures["times"] = draw_times(values["summary"].races, values["best"])
    if values["compared"] >= _MIN_CALIBRATED:
        figures["calibration"] = draw_calibration(values["calibration"])
    return figures


# --- the head of the page ---------------------------------------------------------------------------------------------


def _describe_head(history: _History) -> _Values:
    about = {name: value for name, value in history.about.items() if name not in ("kind", "policy")}
    facts = {
        "Journal": history.path,
        "Policy": _describe_policy(history.preselector.policy),
        **{name.capitalize(): _say(value) for name, value in about.items()},
        "Begun": _format_time(history.begun),
        "As of": _format_time(history.until),
    }
    return {"title": history.title, "id": history.id, "facts": facts, "headline": _count(history)}


def _find_leader(history: _History) -> _Values | None:
    """Find the arm that won most; None if no race has been won."""
    counts = history.summary.counts
    arm = max(history.rank_arms(), key=lambda arm: counts.wins[arm], default=None)
    if arm is None or not counts.wins[arm]:
        return None
    share = _format_share(counts.wins[arm], counts.plays[arm])
    return {"arm": arm, "wins": counts.wins[arm], "solved": history.summary.solved, "share": share}


def _count(history: _History) -> dict[str, Any]:
    summary = history.summary
    counts = {
        "races": summary.counts.rounds,
        "solved": summary.solved,
        "without a winner": summary.unsolved,
        "void": summary.void,
        "unfinished": summary.counts.unfinished,
        "arms": len(history.preselector.arms),
    }
    times = {"racing time": summary.seconds, "feature time": summary.feature_seconds}
    return counts | {name: _format_duration(seconds) for name, seconds in times.items() if seconds is not None}


def _describe_policy(policy: Policy) -> str:
    given = {name: value for name, value in policy.parameters.items() if name != "d"}
    return f"{policy.kind}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _say(value: Any) -> str:
    """Write a value of the journal's description in words.

    >>> _say({"seconds": 5, "arms": ["a", "b"]})
    'seconds 5, arms a, b'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_say(one)}" for name, one in value.items())
    return ", ".join(map(_say, value)) if isinstance(value, list) else str(value)


# --- the sections -----------------------------------------------------------------------------------------------------


def _describe_times(history: _History) -> _Values:
    summary, best = history.summary, history.summary.find_best_single()
    singles = sorted(summary.single_arms.values(), key=lambda one: -one.wins)
    return {
        "curves": summary.trace_arms(),
        "single_arms": [_single_row(one) for one in singles],
        "min_races": MIN_RACES,
        "best": best,
        "best_race_time": best and _format_duration(best.race_seconds),
        "best_alone_time": best and _format_duration(best.alone_seconds),
        "longest": _longest_rows(summary, best),
        "valued_arms": [
            [one.arm, one.races, summary.counts.wins[one.arm], _format_value(one.mean), _format_value(one.mean_best)]
            for one in summary.valued_arms.values()
        ],
        "after_races": summary.after_races,
    }


def _single_row(single: SingleArm) -> list[Any]:
    races = len(single.pairings)
    means = [_format_seconds(total / races) for total in (single.race_seconds, single.alone_seconds)]
    return [
        single.arm,
        races,
        single.wins,
        *means,
        _format_seconds(single.saved_seconds) if single.saved_seconds > 0 else "–",
    ]


def _longest_rows(summary: RaceSummary, best: SingleArm | None) -> list[list[str]]:
    timed = [race for race in summary.races if race.is_timed and race.seconds is not None]
    return [
        [
            race.round.label or "–",
            _format_seconds(race.seconds),
            " and ".join(race.round.leaders) or ("nobody" if race.round.kind == NO_WINNER else race.round.kind or "–"),
            *([_format_known(race.known_time(best.arm))] if best else []),
        ]
        for race in sorted(timed, key=lambda race: -(race.seconds or 0.0))[:_LONGEST]
    ]


def _describe_calibration(history: _History) -> _Values:
    outside, races = history.preselector.policy.outside, history.summary.races
    step = -(-len(races) // _MAX_CALIBRATED) or 1
    bins = calibrate((race.round for race in races[::step]), outside)
    rows = [
        [f"{one.low:.1f} to {one.high:.1f}", one.size, f"{one.predicted:.3f}",
         f"{one.observed:.3f} ± {one.standard_error:.3f}"]
        for one in bins
    ]  # fmt: skip
    compared = sum(race.round.kind == WINNER or (outside and race.round.kind == NO_WINNER) for race in races[::step])
    known = {"compared": compared, "min_calibrated": _MIN_CALIBRATED, "step": step}
    return {"outside": outside, "calibration": bins, "bins": rows, **known}


def _describe_weights(history: _History) -> _Values:
    found = read_weights(history.preselector)
    if found is None:
        return {"weights": None, "policy": history.preselector.policy.kind}
    shown = found.keep(history.rank_arms()[:_MAX_ROWS], most=_MAX_COLUMNS)
    return {
        "weights": shown,
        "weight_rows": _weight_rows(shown),
        "columns_in_all": len(found.columns),
        "arms_in_all": len(found.arms),
    }


def _weight_rows(shown: Weights) -> list[list[Any]]:
    names = [*(f"feature {name}" for name in shown.features), *shown.arms]
    numbers = zip(names, shown.values, shown.deviations, shown.ratios(), strict=True)
    return [[name, *map(_weight_cell, *row)] for name, *row in numbers]


def _weight_cell(value: float, deviation: float, ratio: float) -> Cell:
    colour, strength = "0, 114, 178" if value > 0 else "230, 159, 0", min(ratio / 4.0, 1.0) * 0.6
    return Cell(f"{value:+z.2f}", small=f"± {deviation:.2f}", background=f"rgba({colour}, {strength:.2f})")


def _describe_arms(history: _History) -> _Values:
    counts, ended, winning = (
        history.summary.counts,
        history.summary.count_statuses(),
        history.summary.list_winning_times(),
    )
    seen = {status for of_arm in ended.values() for status in of_arm} - {Status.WON, *_ALWAYS_SHOWN}
    statuses = [*_ALWAYS_SHOWN, *sorted(seen)] if ended else []
    rows = [
        [arm, counts.plays[arm], counts.wins[arm], _format_share(counts.wins[arm], counts.plays[arm]),
         _format_mean(winning.get(arm, [])), *(ended[arm][status] for status in statuses)]
        for arm in history.rank_arms()
    ]  # fmt: skip
    return {"statuses": statuses, "arms": rows}


# --- numbers as text --------------------------------------------------------------------------------------------------


def _format_known(known: KnownTime | None) -> str:
    return "–" if known is None else f"{_format_seconds(known.seconds)} ({_HOW[known.how]})"


def _format_value(value: float) -> str:
    return f"{value:.6g}"


def _format_share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _format_mean(values: Sequence[float]) -> str:
    return _format_seconds(math.fsum(values) / len(values)) if values else "–"


def _format_seconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"


def _format_duration(seconds: float) -> str:
    """Format seconds, from ten minutes on also as hours and minutes.

    >>> _format_duration(12.34), _format_duration(660.0), _format_duration(7384.0)
    ('12.3 s', '660 s (11 min)', '7384 s (2 h 3 min)')
    """
    hours, minutes = divmod(int(seconds // 60), 60)
    spoken = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    return f"{seconds:.0f} s ({spoken})" if seconds >= 600 else f"{seconds:.1f} s"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
