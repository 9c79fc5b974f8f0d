"""Rank the rows of logs by outcome, as the likelihood reads them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preselect.context import Integers
from preselect.logs.logs import Logs

NOBODY = -1  # stands for a row of the virtual arm, whose features are zero
_LAST = np.iinfo(np.int64).max - 1


class RankedRows(NamedTuple):
    """Outcomes that teach something.

    Parameters
    ----------
    rows : array of integers
        Rows of the logs, outcome after outcome, ranked ones first, best first; NOBODY for the virtual arm.
    rounds : array of integers
        The round of each outcome.
    sizes : array of integers
        How many rows each outcome has.
    lengths : array of integers
        How many of them were ranked.
    ties : array of integers, or None
        For each row the place at which its tie ends, 0 in outcomes without ties; None if there are no ties at all.
    """

    rows: Integers
    rounds: Integers
    sizes: Integers
    lengths: Integers
    ties: Integers | None


def rank_rows(logs: Logs, outside: bool) -> RankedRows:
    """Return the outcomes of logs, with NOBODY in each of them if there is an outside option.

    If no arm has a place, NOBODY is first; otherwise it comes after the arms with places. Without an outside
    option, outcomes of a single arm or without a place say nothing and are left out.
    """
    T = len(logs)
    rows, of = np.flatnonzero(logs.shown), np.repeat(np.arange(T), np.diff(logs.starts))[logs.shown]
    place = logs.places[rows]
    has_winner = np.bincount(of, place > 0, minlength=T) > 0
    key = np.where(place > 0, place, _LAST)
    if outside:
        rows, of = np.append(rows, np.full(T, NOBODY)), np.append(of, np.arange(T))
        key = np.append(key, np.where(has_winner, _LAST + 1, 1))
    order = np.lexsort((key, of))
    rows, of, key = rows[order], of[order], key[order]
    sizes, lengths = np.bincount(of, minlength=T), np.bincount(of, key < _LAST, minlength=T).astype(np.int64)
    ties = _find_ties(of, key, sizes, lengths, outside)
    return _leave_out(RankedRows(rows, np.arange(T), sizes, lengths, ties), of)


def _find_ties(of: Integers, key: Integers, sizes: Integers, lengths: Integers, outside: bool) -> Integers | None:
    """Return where the tie of each row ends, and shorten rankings whose last tie says nothing."""
    tied = (of[1:] == of[:-1]) & (key[1:] == key[:-1]) & (key[1:] < _LAST)
    if not tied.any():
        return None
    ties, firsts = np.zeros(len(of), dtype=np.int64), np.cumsum(sizes) - sizes
    for t in np.unique(of[1:][tied]).tolist():
        first, size = int(firsts[t]), int(sizes[t])
        ends = _list_ends(key[first : first + int(lengths[t])])
        if not outside:  # a last tie of all arms that are left says nothing
            ends = ends[ends < size]
        lengths[t] = len(ends)
        if not np.array_equal(ends, np.arange(1, len(ends) + 1)):
            ties[first : first + len(ends)] = ends
    return ties if ties.any() else None


def _list_ends(key: Integers) -> Integers:
    """Return for each place of a sorted ranking where its tie ends.

    >>> _list_ends(np.array([1, 2, 2, 5])).tolist()
    [1, 3, 3, 4]
    """
    return np.searchsorted(key, key, side="right")


def _leave_out(found: RankedRows, of: Integers) -> RankedRows:
    """Leave out the outcomes that say nothing."""
    kept: NDArray[np.bool_] = (found.lengths > 0) & (found.sizes > 1)
    if kept.all():
        return found
    rows = kept[of]
    ties = None if found.ties is None else found.ties[rows]
    return RankedRows(found.rows[rows], found.rounds[kept], found.sizes[kept], found.lengths[kept], ties)
