"""MM, the paper's context-free baseline: Plackett-Luce worths by minorise-maximise (Hunter 2004, Section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer, number
from preselect.context import Context, Floats, Integers
from preselect.decision import Decision
from preselect.kernels import mm
from preselect.outcomes import Outcome
from preselect.policies.persistence import Arrays
from preselect.policies.policy import Policy


class MM(Policy):
    """One worth per arm, whatever the context; always the k arms with the largest estimated worth.

    The estimate is the maximum likelihood one given all rankings and winners seen. The history is kept as counts of the
    sets that arms were chosen from: a set seen again costs nothing, memory and time grow with the number of different
    sets. Arms are told apart by the context's ids, or else by their position; features are ignored.

    Hunter's estimate exists only if every arm has beaten and been beaten, directly or through others. Here each arm
    also wins and loses `prior` times against an imaginary arm of worth 1, so it always exists, and an arm not seen yet
    has worth 1.

    Parameters
    ----------
    d : int, optional
        Number of joint features of an arm, which are ignored; if given, contexts are checked for it.
    prior : float, default 0.5
        Wins, and losses, of each arm against the imaginary arm, above 0; more draws worths closer to 1.
    tolerance : float, default 1e-6
        Sweeps stop when no worth moves by more than this share of itself.
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
        places = self._find_places(decision.ids.tolist())
        running = sorted(places)
        for position in ranking.tolist():
            if len(running) > 1:  # the last one left has beaten no arm
                self.wins[places[position]] += 1.0
                seen = self._find_set(running)  # first, because it may replace `counts` by a longer array
                self.counts[seen] += 1.0
                running.remove(places[position])
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
        for name in self._state:
            setattr(self, name, arrays[name])
        self._keep(self.ids)
        for place in range(int(np.count_nonzero(self.counts))):
            first, last = self.starts[place : place + 2]
            self._sets[tuple(self.members[first:last].tolist())] = place

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return arrays  # features are ignored


def _lengthen(array: NDArray[Any], size: int, value: float) -> NDArray[Any]:
    longer = np.full(size, value, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
