"""Compute the curves for the charts of a page, as columns of at most 2000 points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from preselect.serve.dashboard.aggregate import Aggregate
from preselect.serve.dashboard.buckets import Bucket, add_up

_MOST_CURVES = 7  # as many as a reader can tell apart, one of them for all other arms together
_LEAST = 20  # the fewest decisions, or outcomes, for a point that is a share

_Columns = dict[str, list[Any]]


def make_series(aggregate: Aggregate) -> dict[str, Any]:
    """Return all curves by the name of their chart; times are seconds since 1970."""
    return {
        "number": aggregate.number,
        "seconds": aggregate.timeline.width,
        "rates": _trace_time(aggregate),
        "shares": _trace_shares(aggregate),
    }


def _trace_time(aggregate: Aggregate) -> _Columns:
    timeline = aggregate.timeline
    found = [_list_values(bucket, timeline.width) for bucket in _fill(timeline.buckets, timeline.width)]
    names = ("at", "decided", "told", "expired", *_RANGES)
    return {name: list(column) for name, column in zip(names, zip(*found, strict=True), strict=True)} if found else {}


_RANGES = (
    "waiting",
    "waiting_low",
    "waiting_high",
    "effective",
    "effective_low",
    "effective_high",
    "first",
    "expected",
)


def _list_values(bucket: Bucket, width: float) -> tuple[float | None, ...]:
    waiting, effective = bucket.waiting, bucket.effective
    ranges = (waiting.last, waiting.low, waiting.high, effective.last, effective.low, effective.high)
    rates = (bucket.begin, bucket.decided / width, bucket.told / width, bucket.expired / width)
    return (*rates, *ranges, bucket.first.last, bucket.expected.last)


def _fill(buckets: list[Bucket], width: float) -> list[Bucket]:
    """Return the buckets, with an empty one after and before each gap, so that rates fall to 0 there."""
    filled = buckets[:1]
    for before, after in pairwise(buckets):
        for begin in sorted({before.begin + width, after.begin - width}):
            if before.begin < begin < after.begin:
                filled.append(_make_quiet(before, begin))
        filled.append(after)
    return filled


def _make_quiet(before: Bucket, begin: float) -> Bucket:
    quiet = Bucket(begin)
    if before.waiting.last is not None:
        quiet.waiting.add(before.waiting.last)
    return quiet


def _trace_shares(aggregate: Aggregate) -> dict[str, Any]:
    """Return the shares of the arms that were chosen most, and what all others won together."""
    groups = aggregate.timeline.gather(_LEAST)
    plays = [add_up(one.plays for one in group) for group in groups]
    wins = [add_up(one.wins for one in group) for group in groups]
    made, told = ([sum(getattr(one, name) for one in group) for group in groups] for name in ("decided", "told"))
    ranked = [arm for arm, _ in add_up(plays).most_common() if arm is not None]
    shown, others = ranked[:_MOST_CURVES], len(ranked[_MOST_CURVES:])
    rest = [one.total() - sum(one[arm] for arm in shown) for one in wins]
    return {
        "at": [group[-1].begin for group in groups],
        "arms": shown + [f"{others} other{'s' if others > 1 else ''}"] * (others > 0),
        "chosen": [_divide([one[arm] for one in plays], made) for arm in shown],
        "won": [_divide([one[arm] for one in wins], told) for arm in shown] + [_divide(rest, told)] * (others > 0),
    }


def _divide(parts: list[int], wholes: list[int]) -> list[float | None]:
    return [part / whole if whole else None for part, whole in zip(parts, wholes, strict=True)]
