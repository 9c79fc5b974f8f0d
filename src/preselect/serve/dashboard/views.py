"""Prepare what templates show of a preselector: figures as texts, and coordinates of small drawings."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from preselect.named.estimates import Estimate
from preselect.preselector import Preselector
from preselect.race.totals import RaceTotals
from preselect.reports.weights import Weights, read_weights
from preselect.serve.dashboard.aggregate import Aggregate
from preselect.serve.schemas import ArmExplanation
from preselect.store.rounds import Round

_MOST_ARMS, _MOST_COLUMNS = 15, 8  # in the panels of estimates
_MOST_CONTRIBUTIONS, _LONGEST = 25, 20_000  # the most rows, and characters, on the page of a decision
_ENOUGH = 100  # how many rounds are needed to compare predictions with outcomes
_STEPS = (1.0, 2.0, 3.0)  # standard deviations from 0, for the three strengths of a colour


class _Interval(NamedTuple):
    """An estimate and its interval as a drawing, from 0 to 100."""

    low: float
    middle: float
    high: float
    zero: float | None


class ArmRow(NamedTuple):
    """An arm, its estimates, and how often it was chosen and won."""

    name: str
    utility: float | None
    error: float | None
    chance: float | None
    plays: int
    wins: int
    interval: _Interval | None = None

    @property
    def share(self) -> float | None:
        """The share of its rounds that it won."""
        return self.wins / self.plays if self.plays else None


class Belief(NamedTuple):
    """Estimates of all arms and, if the policy has weights, of features."""

    arms: list[tuple[str, Estimate]]
    nobody: float | None
    weights: Weights | None
    version: int


def read_belief(preselector: Preselector) -> Belief:
    """Read the estimates of all arms if nothing is known about the context, and the weights."""
    if not preselector.arms:
        return Belief([], None, None, preselector.version)
    found = preselector.estimates(dict.fromkeys(preselector.context))
    return Belief([*found.items()], found.nobody, read_weights(preselector), preselector.version)


def list_arms(belief: Belief, aggregate: Aggregate) -> list[ArmRow]:
    """Return all arms, those first that are believed to be best."""
    rows = [
        ArmRow(name, one.utility, one.standard_error, one.chance, aggregate.plays[name], aggregate.wins[name])
        for name, one in belief.arms
    ]
    return sorted(rows, key=lambda row: (-_none_to_least(row.utility), row.name))


def _none_to_least(value: float | None) -> float:
    return -math.inf if value is None or math.isnan(value) else value


def draw_intervals(rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Add to each arm its interval: the estimate, and two standard errors to both sides, on a common scale."""
    ends = [one for row in rows for one in _find_ends(row) if math.isfinite(one)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    width = (high - low) or 1.0

    def place(value: float) -> float:
        return round(2.0 + 96.0 * (min(max(value, low), high) - low) / width, 2)

    def draw(row: ArmRow) -> ArmRow:
        first, middle, last = _find_ends(row)
        if not all(map(math.isfinite, (first, middle, last))):
            return row
        zero = place(0.0) if low <= 0.0 <= high else None
        return row._replace(interval=_Interval(place(first), place(middle), place(last), zero))

    return [draw(row) for row in rows]


def _find_ends(row: ArmRow) -> tuple[float, float, float]:
    middle, error = row.utility, 2.0 * (row.error or 0.0)
    return (math.nan,) * 3 if middle is None else (middle - error, middle, middle + error)


def describe_signs(aggregate: Aggregate, arms: int, version: int) -> dict[str, Any]:
    """Return the vital signs of a preselector."""
    counts, rates = aggregate.counts, aggregate.first_slot.rates
    return {
        "decisions": counts["decided"],
        "per second, in the last minute": f"{aggregate.find_rate(time.time()):.3g}",
        "waiting": aggregate.waiting,
        "told": counts["told"],
        "expired": counts["expired"],
        "void": counts["void"],
        "arms": arms,
        **({"won by the first arm": f"{100 * rates[0]:.0f} %"} if len(aggregate.first_slot) else {}),
        **({"arms in use, effectively": f"{aggregate.spread.effective:.1f}"} if counts["decided"] else {}),
        "version of the state": version,
    }


def describe_calibration(aggregate: Aggregate) -> dict[str, Any]:
    """Return how predictions compare with what happened; no bins while there are too few rounds."""
    calibration = aggregate.calibration
    is_enough = calibration.rounds >= _ENOUGH
    points = [
        {
            "bin": one,
            "x": round(100 * one.predicted, 2),
            "y": round(100 - 100 * one.observed, 2),
            "low": round(100 - 100 * max(one.observed - 2 * one.standard_error, 0.0), 2),
            "high": round(100 - 100 * min(one.observed + 2 * one.standard_error, 1.0), 2),
        }
        for one in calibration.bins
    ]
    return {"points": points if is_enough else [], "rounds": calibration.rounds, "enough": _ENOUGH}


def describe_delays(aggregate: Aggregate) -> dict[str, Any]:
    """Return how long outcomes took: bars, and two quantiles."""
    bins, delays = aggregate.delays.list_bins(), aggregate.delays
    largest = max((size for _, size in bins), default=1)
    return {
        "bars": [(say_seconds(end), size, round(100 * size / largest, 2)) for end, size in bins],
        "median": say_seconds(delays.find_quantile(0.5)),
        "most": say_seconds(delays.find_quantile(0.9)),
        "count": len(delays),
    }


def describe_weights(belief: Belief, aggregate: Aggregate) -> dict[str, Any] | None:
    """Return the weights of the arms that were chosen most, and of the clearest features; None without weights."""
    found = belief.weights
    if found is None or len(found.columns) + len(found.features) < 2:
        return None
    most = {name for name, _ in aggregate.plays.most_common(_MOST_ARMS)} or set(found.arms[:_MOST_ARMS])
    kept = found.keep(most, most=_MOST_COLUMNS)
    names = [*((name, True) for name in kept.features), *((name, False) for name in kept.arms)]
    numbers = zip(names, kept.values.tolist(), kept.deviations.tolist(), strict=True)
    return {
        "columns": kept.columns[1:],
        "rows": [(name, is_feature, [*map(_weigh, values, errors)]) for (name, is_feature), values, errors in numbers],
        "left_out": (len(found.arms) - len(kept.arms), len(found.columns) - len(kept.columns)),
    }


def _weigh(value: float, error: float) -> tuple[str, str, str]:
    """Return a weight, its standard deviation, and the class of its colour."""
    strength = sum(abs(value) >= step * error for step in _STEPS) if error > 0.0 else 0
    kind = f"{'plus' if value > 0.0 else 'minus'}{strength}" if strength else ""
    return f"{value:+z.2f}", f"± {error:.2f}", kind


def describe_races(races: RaceTotals) -> dict[str, Any] | None:
    """Return what racing saved; None if the rounds are not races."""
    if not races.races:
        return None
    best = races.find_best_single()
    return {
        "races": races.races,
        "time": say_seconds(races.seconds),
        "features": say_seconds(races.feature_seconds),
        "best": best,
        "saved": best and abs(best.saved_seconds) >= 0.001 and say_seconds(abs(best.saved_seconds)),
        "has_saved": best and best.saved_seconds >= 0.0,
        "arms": [
            (one.arm, one.races, one.wins, say_seconds(one.race_seconds / one.races),
             say_seconds(one.alone_seconds / one.races))
            for one in sorted(races.arms.values(), key=lambda one: (-one.wins, one.arm))[:_MOST_ARMS]
        ],
    }  # fmt: skip


def list_contributions(arms: Sequence[ArmExplanation]) -> dict[str, Any]:
    """Return the largest contributions of features to utilities: a row per feature, a column per arm."""
    parts = [arm.contributions or {} for arm in arms]
    sizes = {label: max(abs(one.get(label) or 0.0) for one in parts) for label in (parts[0] if parts else {})}
    shown = sorted(sizes, key=lambda label: -sizes[label])[:_MOST_CONTRIBUTIONS]
    largest = max(sizes.values(), default=0.0) or 1.0
    rows = [(label, [_tint(one.get(label) or 0.0, largest) for one in parts]) for label in shown]
    return {"labels": rows, "left_out": len(sizes) - len(shown)}


def _tint(value: float, largest: float) -> tuple[str, str]:
    strength = min(int(4.0 * abs(value) / largest), 3)
    return f"{value:+z.3f}", f"{'plus' if value > 0.0 else 'minus'}{strength}" if strength else ""


def say_outcome(past: Round) -> str:
    """Describe how a round ended."""
    return "waiting" if past.kind is None else say_places(past.kind, past.names)


def say_places(kind: str, names: Sequence[str | Sequence[str]]) -> str:
    """Describe an outcome in words.

    >>> say_places("ranking", ["a", ("b", "c")]), say_places("no-winner", [])
    ('a > b = c', 'nobody won')
    """
    if kind in ("winner", "ranking"):
        return " > ".join(place if isinstance(place, str) else " = ".join(place) for place in names)
    return "nobody won" if kind == "no-winner" else kind


def say_details(details: Mapping[str, Any]) -> str:
    """Write what else was reported, shortened if it is very long."""
    text = json.dumps(details, indent=2, ensure_ascii=False) if details else ""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n…"


def say_seconds(seconds: float) -> str:
    """Write a duration in words.

    >>> [say_seconds(one) for one in (0.0123, 3.2, 75.0, 4000.0, 200000.0)]
    ['12 ms', '3.2 s', '75 s', '67 min', '56 h']
    """
    if seconds < 1.0:
        return f"{1000.0 * seconds:.2g} ms" if seconds < 0.1 else f"{1000.0 * seconds:.0f} ms"
    if seconds < 120.0:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.0f} h"
