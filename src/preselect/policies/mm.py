"""MM, the paper's context-free baseline: Plackett-Luce worths by minorise-maximise (Hunter 2004, Section 5)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer, number
from preselect.context import Context, Floats, Integers
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.kernels import mm
from preselect.outcomes import Outcome, list_ties
from preselect.policies.persistence import Arrays
from preselect.policies.policy import Policy

_MOST_TIED = 8  # of m tied arms, 2^m sets may be left


class MM(Policy):
    """One worth per arm, whatever the context; always the k arms with the largest estimated worth.

    The worths maximise the likelihood of all rankings and winners seen. The history is kept as counts of the sets that
    arms were chosen from: a set seen again costs nothing, and memory and time grow with the number of different sets. A
    tie, of at most 8 arms, counts as all its orders, each with its probability by the present worths. Arms are told
    apart by the context's ids, or else by their position; features are ignored.

    Hunter's estimate exists only if every arm has beaten and been beaten, directly or through others. Here each arm
    also wins and loses `prior` times against an imaginary arm of worth 1, so it always exists, and an arm not seen yet
    has worth 1.

    Parameters
    ----------
    d : int, optional
        Number of joint features of an arm, which are ignored; if given, contexts are checked for it.
    prior : float, default 0.5
        Wins, and losses, of each arm against the imaginary arm, above 0; larger values pull worths closer to 1.
    tolerance : float, default 1e-6
        Sweeps over all worths stop when none of them changes by more than this share of itself.
    sweeps : int, default 10
        The most sweeps after an outcome; they start from the worths found before.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> from preselect.outcomes import Winner
    >>> policy = MM(seed=0)
    >>> for _ in range(20):
    ...     decision = policy.select(np.zeros((3, 1)), k=2)
    ...     policy.learn(decision, Winner(decision.arms.max()))
    >>> policy.scores(np.zeros((3, 1))).argmax()
    np.int64(2)
    """

    source = "Hunter 2004"
    learns_ties = True
    _state = ("ids", "worth", "wins", "starts", "members", "counts")

    def __init__(
        self,
        *,
        d: int | None = None,
        prior: float = 0.5,
        tolerance: float = 1e-6,
        sweeps: int = 10,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.prior = number(prior, "prior", above=0.0)
        self.tolerance = number(tolerance, "tolerance", least=0.0)
        self.sweeps = integer(sweeps, "sweeps", 1)
        self._keep(np.empty(0, dtype=np.int64))
        self.worth = np.empty(0)
        self.wins = np.empty(0)
        self.starts = np.zeros(1, dtype=np.int64)
        self.members = np.empty(0, dtype=np.int64)
        self.counts = np.empty(0)
        self._sets: dict[tuple[int, ...], int] = {}

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        context.require_finite()
        ids = context.identify(np.arange(context.shape[0]))
        scores = np.zeros(len(ids))
        if len(self.ids):
            places = self._by_id[np.searchsorted(self.ids, ids, sorter=self._by_id).clip(max=len(self.ids) - 1)]
            known = self.ids[places] == ids
            scores[known] = np.log(self.worth[places[known]])
        return scores, np.zeros(len(ids))

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:  # noqa: ARG002
        if ranking.ndim == 2 and (largest := max(map(len, list_ties(ranking)))) > _MOST_TIED:
            raise InputError(
                f"MM learns from ties of at most {_MOST_TIED} arms, because it lists their orders, not of {largest}"
            )
        places = self._find_places(decision.ids.tolist())
        running = sorted(places)
        for tied in list_ties(ranking):
            arms = [places[position] for position in tied]
            if len(running) > len(arms):  # the arms left at the end have beaten no arm
                behind = [arm for arm in running if arm not in arms]
                stages = [(running, 1.0)] if len(arms) == 1 else _find_stages(arms, behind, self.worth)
                for left, chance in stages:
                    seen = self._find_set(left)  # in its own statement: it may replace `counts` by a longer array
                    self.counts[seen] += chance
                for arm in arms:
                    self.wins[arm] += 1.0
                running = behind
        sets = self.starts, self.members, self.counts, len(self._sets)
        mm.minorise_maximise(self.worth, self.wins, *sets, self.prior, self.tolerance, self.sweeps)

    def _find_places(self, ids: list[int]) -> list[int]:
        """Return where these arms are kept; arms not seen before get a place."""
        new = [arm for arm in ids if arm not in self._place_of]
        if new:
            self._keep(np.concatenate((self.ids, np.array(new))))
            self.worth = _lengthen(self.worth, len(self.ids), 1.0)
            self.wins = _lengthen(self.wins, len(self.ids), 0.0)
        return [self._place_of[arm] for arm in ids]

    def _keep(self, ids: Integers) -> None:
        self.ids = ids
        self._by_id = np.argsort(ids)
        self._place_of = {arm: place for place, arm in enumerate(ids.tolist())}

    def _find_set(self, arms: list[int]) -> int:
        """Return the number of the set; room for new sets grows by doubling."""
        key = tuple(arms)
        if key not in self._sets:
            last = len(self._sets)
            first = int(self.starts[last])
            if last == len(self.counts):
                self.counts = _lengthen(self.counts, 2 * last + 1, 0.0)
                self.starts = _lengthen(self.starts, 2 * last + 2, 0)
            if first + len(arms) > len(self.members):
                self.members = _lengthen(self.members, 2 * first + len(arms), 0)
            self.members[first : first + len(arms)] = arms
            self.starts[last + 1] = first + len(arms)
            self._sets[key] = last
        return self._sets[key]

    def _restore_arrays(self, arrays: Arrays) -> None:
        _require_sets(*(arrays[name] for name in self._state))
        for name in self._state:
            setattr(self, name, arrays[name])
        self._keep(self.ids)
        for place in range(int(np.count_nonzero(self.counts))):
            first, last = self.starts[place : place + 2]
            self._sets[tuple(self.members[first:last].tolist())] = place
        if len(self._sets) != np.count_nonzero(self.counts):
            raise ValueError("a set occurs twice")

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return arrays  # features are ignored


def _find_stages(tied: list[int], behind: list[int], worth: Floats) -> Iterator[tuple[list[int], float]]:
    """Yield each set of arms that may have been left at some stage of a tie, and how likely it was.

    It is not known in which order the tied arms went. The chance of a set follows from the worths of the tied arms and
    of the arms behind them, given that all tied arms went before those behind, which are part of every set.

    >>> list(_find_stages([0, 1], [2], np.array([1.0, 3.0, 2.0])))
    [([0, 1, 2], 1.0), ([1, 2], 0.375), ([0, 2], 0.625)]
    """
    sets = [left for size in range(1, len(tied) + 1) for left in itertools.combinations(tied, size)]
    next_one = {left: worth[list(left)] / worth[[*left, *behind]].sum() for left in sets}
    go: dict[tuple[int, ...], float] = {(): 1.0}  # the chance that these, if they are left, go before those behind
    for left in sets:
        go[left] = sum(chance * go[rest] for rest, chance in zip(_leave_out(left), next_one[left], strict=True))
    occur = dict.fromkeys(go, 0.0) | {tuple(tied): 1.0}
    for left in reversed(sets):
        for rest, chance in zip(_leave_out(left), next_one[left], strict=True):
            occur[rest] += occur[left] * float(chance) * go[rest] / go[left]
        yield sorted((*left, *behind)), float(occur[left])


def _leave_out(arms: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the arms without the first one, the arms without the second one, and so on."""
    return [arms[:place] + arms[place + 1 :] for place in range(len(arms))]


def _require_sets(
    ids: Integers, worth: Floats, wins: Floats, starts: Integers, members: Integers, counts: Floats
) -> None:
    """Raise a ValueError unless the arrays of a file fit together: the kernel does not check them."""
    for array, kind in zip((ids, worth, wins, starts, members, counts), "iffiif", strict=True):
        if array.ndim != 1 or array.dtype != (np.int64 if kind == "i" else np.float64):
            raise ValueError(f"an array has {array.ndim} axes of {array.dtype}")
        if not np.isfinite(array).all() or array.min(initial=0) < 0:
            raise ValueError("an array has entries that are negative or not finite")
    sets = int(np.count_nonzero(counts))
    used = starts[: sets + 1]
    if not len(ids) == len(np.unique(ids)) == len(worth) == len(wins) or not np.all(worth > 0.0):
        raise ValueError("ids, worth and wins need one entry per arm, distinct ids, and worth above 0")
    if len(starts) != len(counts) + 1 or used[0] or np.any(np.diff(used) < 1) or not np.all(counts[:sets] > 0.0):
        raise ValueError("starts and counts need one entry per set")
    if used[-1] > len(members) or np.any(members[: used[-1]] >= len(ids)):
        raise ValueError("members has to name the arms of every set")


def _lengthen(array: NDArray[Any], size: int, value: float) -> NDArray[Any]:
    longer = np.full(size, value, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
