"""SAPS, scaling and probabilistic smoothing (Hutter, Tompkins and Hoos 2002): a local search for models of a formula.

Each clause has a penalty. A step looks at the variables in unsatisfied clauses and flips the one that lowers the total
penalty of unsatisfied clauses most. If none lowers it by more than 0.1, the step flips a random variable with
probability wp, and otherwise changes the penalties: with probability ps it smooths all of them, then it multiplies
those of unsatisfied clauses by alpha.

Smoothing follows ubcsat, the solver for which the paper's parameters were drawn: w + (1 - rho) mean. Up to a common
factor this is the published rho w + (1 - rho) mean with 1 / (2 - rho) in place of rho.

Smoothing takes O(1) here instead of O(clauses), because adding the same number to every penalty only changes one
number, the offset: the penalty of clause c is base[c] + offset. The score of variable v is sums[v] + offset counts[v],
where sums adds up the bases of the clauses that flipping v breaks, minus those of the clauses that it makes, and counts
the numbers of such clauses.
"""

from dataclasses import dataclass
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer, number
from preselect.compiling import compiled
from preselect.errors import InputError
from preselect.sat.dimacs import Formula

_THRESHOLD = -0.1  # a flip has to lower the penalties by more than this
_TIE = 1e-9  # scores that differ by less count as equal
_MAX_PENALTY = 1000.0
_FIRST_STEPS, _SECONDS_AT_A_TIME = 1000, 0.02


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of SAPS.

    Parameters
    ----------
    alpha : float, default 1.3
        The factor by which penalties of unsatisfied clauses grow, above 0.
    rho : float, default 0.8
        Smoothing, from -1 to 1: a penalty w becomes w + (1 - rho) mean; 1 disables it.
    ps : float, default 0.05
        The probability of smoothing in a step that changes penalties.
    wp : float, default 0.01
        The probability of flipping a random variable in a step that finds no better one.
    """

    alpha: float = 1.3
    rho: float = 0.8
    ps: float = 0.05
    wp: float = 0.01

    def __post_init__(self) -> None:
        number(self.alpha, "alpha", above=0.0)
        number(self.rho, "rho", least=-1.0, most=1.0)
        number(self.ps, "ps", least=0.0, most=1.0)
        number(self.wp, "wp", least=0.0, most=1.0)


DEFAULT = Parameters()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Parameters
    ----------
    model : array of bool or None
        The value of each variable in the model found, or None if none was found within the limits.
    steps : int
        The number of steps taken.
    seconds : float
        The processor time used, in seconds.
    """

    model: NDArray[np.bool_] | None
    steps: int
    seconds: float

    @property
    def solved(self) -> bool:
        """Whether a model was found."""
        return self.model is not None


def solve(
    formula: Formula,
    parameters: Parameters = DEFAULT,
    *,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
) -> SearchResult:
    """Search from a random assignment until a model is found or a limit is reached.

    SAPS cannot prove that a formula has no model: without limits it searches forever, unless there is an empty clause.

    Parameters
    ----------
    formula : Formula
        The formula to find a model of.
    parameters : Parameters, default Parameters()
        The parameters of SAPS.
    seed : int, default 0
        The seed of the random numbers, not negative. Equal seeds take equal steps.
    steps : int, optional
        Give up after this number of steps.
    seconds : float, optional
        Give up after this much processor time, set-up included, which is checked about every 20 ms.
    """
    began = thread_time()
    most_steps = np.iinfo(np.int64).max if steps is None else integer(steps, "steps", 0)
    most_seconds = np.inf if seconds is None else number(seconds, "seconds", least=0.0)
    if np.any(formula.starts[1:] == formula.starts[:-1]):  # an empty clause: there is no model
        return SearchResult(None, 0, thread_time() - began)
    search = Search(formula, parameters, integer(seed, "seed", 0))
    at_a_time = _FIRST_STEPS
    while not search.solved and search.steps < most_steps and thread_time() - began < most_seconds:
        started = thread_time()
        search.run(min(at_a_time, most_steps - search.steps))
        rate = at_a_time / max(thread_time() - started, 1e-6)
        left = min(_SECONDS_AT_A_TIME, max(most_seconds - (thread_time() - began), 0.0))
        at_a_time = max(int(rate * left), 1)
    model = search.model() if search.solved else None
    return SearchResult(model, search.steps, thread_time() - began)


class _State(NamedTuple):
    """All data of a search, for the compiled functions."""

    variables: NDArray[np.uint32]  # the variables of all literals, clause by clause
    signs: NDArray[np.bool_]
    starts: NDArray[np.uint64]
    occurrences: NDArray[np.uint32]  # the clauses of each literal; v has number 2v, its negation 2v + 1
    places: NDArray[np.uint64]
    random: NDArray[np.uint64]
    assignment: NDArray[np.bool_]
    true: NDArray[np.int32]  # true literals of each clause
    critical: NDArray[np.uint32]  # sum of a clause's true variables: the variable itself if there is only one
    base: NDArray[np.float64]
    sums: NDArray[np.float64]
    counts: NDArray[np.int32]
    unsatisfied: NDArray[np.uint32]  # the unsatisfied clauses; the last element is their number
    where: NDArray[np.uint32]  # the position of each clause in `unsatisfied`
    numbers: NDArray[np.float64]  # the offset, and the sum of all penalties
    seen: NDArray[np.int64]  # the last step that looked at each variable
    ties: NDArray[np.uint32]


class Search:
    """A search that can be run step by step.

    Parameters
    ----------
    formula : Formula
        The formula to find a model of, without empty clauses.
    parameters : Parameters
        The parameters of SAPS.
    seed : int
        The seed of the random numbers, not negative.
    """

    def __init__(self, formula: Formula, parameters: Parameters, seed: int) -> None:
        self.formula, self.parameters = formula, parameters
        n, m = formula.variables, formula.clauses
        self._state = _State(
            np.abs(formula.literals).astype(np.uint32),
            formula.literals > 0,
            formula.starts.astype(np.uint64),
            *_find_occurrences(formula),
            np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1),
            np.zeros(n + 1, dtype=np.bool_),
            np.zeros(m, dtype=np.int32),
            np.zeros(m, dtype=np.uint32),
            np.ones(m),
            np.zeros(n + 1),
            np.zeros(n + 1, dtype=np.int32),
            np.zeros(m + 1, dtype=np.uint32),
            np.zeros(m, dtype=np.uint32),
            np.array([0.0, m]),
            np.zeros(n + 1, dtype=np.int64),
            np.zeros(n + 1, dtype=np.uint32),
        )
        self.steps = 0
        _start(self._state)

    @property
    def solved(self) -> bool:
        """Whether a model was found."""
        return bool(self._state.unsatisfied[-1] == 0)

    def run(self, steps: int) -> None:
        """Take `steps` further steps, fewer if a model is found."""
        p = self.parameters
        self.steps += _run(self._state, p.alpha, p.rho, p.ps, p.wp, self.steps, steps)

    def model(self) -> NDArray[np.bool_]:
        """The model that was found, verified."""
        values = self._state.assignment[1:].copy()
        if not is_model(self.formula, values):
            raise RuntimeError("SAPS found an assignment that is not a model; please report this bug")
        return values


def is_model(formula: Formula, values: NDArray[np.bool_]) -> bool:
    """Whether an assignment makes every clause true.

    Parameters
    ----------
    formula : Formula
        The formula.
    values : array of bool
        The value of each variable.
    """
    if len(values) != formula.variables:
        raise InputError(f"{len(values)} values for {formula.variables} variables; give one for each")
    true = values[np.abs(formula.literals) - 1] == (formula.literals > 0)
    before = np.concatenate(([0], np.cumsum(true)))
    return bool(np.all(before[formula.starts[1:]] > before[formula.starts[:-1]]))


def _find_occurrences(formula: Formula) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The clauses in which each literal occurs, one literal after the other, and where each literal's begin."""
    index = 2 * np.abs(formula.literals) + (formula.literals < 0)
    clauses = np.repeat(np.arange(formula.clauses, dtype=np.uint32), np.diff(formula.starts))
    places = np.zeros(2 * formula.variables + 3, dtype=np.uint64)
    places[1:] = np.cumsum(np.bincount(index, minlength=2 * formula.variables + 2))
    return clauses[np.argsort(index, kind="stable")], places


# --- compiled ---------------------------------------------------------------------------------------------------------
# Indices are unsigned, because signed ones are checked for being negative.


@compiled
def _draw_uniform(random: NDArray[np.uint64]) -> float:
    """A random number in [0, 1), by xorshift64*."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def _start(s: _State) -> None:
    """Start from a random assignment and penalties 1."""
    for v in range(1, s.assignment.shape[0]):
        s.assignment[v] = _draw_uniform(s.random) < 0.5
    for c in range(s.true.shape[0]):
        for j in range(s.starts[c], s.starts[c + 1]):
            v = s.variables[j]
            if s.assignment[v] == s.signs[j]:
                s.true[c] += 1
                s.critical[c] += v
        if s.true[c] == 0:
            _add_unsatisfied(s, np.uint32(c))
    _rescore(s)


@compiled
def _add_unsatisfied(s: _State, c: Any) -> None:
    s.where[c] = s.unsatisfied[-1]
    s.unsatisfied[s.unsatisfied[-1]] = c
    s.unsatisfied[-1] += np.uint32(1)


@compiled
def _remove_unsatisfied(s: _State, c: Any) -> None:
    s.unsatisfied[-1] -= np.uint32(1)
    last = s.unsatisfied[s.unsatisfied[-1]]
    s.unsatisfied[s.where[c]] = last
    s.where[last] = s.where[c]


@compiled
def _rescore(s: _State) -> None:
    """Compute sums and counts from scratch."""
    s.sums[:] = 0.0
    s.counts[:] = 0
    for c in range(s.true.shape[0]):
        if s.true[c] == 1:
            s.sums[s.critical[c]] += s.base[c]
            s.counts[s.critical[c]] += 1
        elif s.true[c] == 0:
            for j in range(s.starts[c], s.starts[c + 1]):
                s.sums[s.variables[j]] -= s.base[c]
                s.counts[s.variables[j]] -= 1


@compiled
def _flip(s: _State, v: Any) -> None:
    now_true = np.uint64(2) * np.uint64(v) + np.uint64(s.assignment[v])
    now_false = now_true ^ np.uint64(1)
    s.assignment[v] = not s.assignment[v]
    for position in range(s.places[now_true], s.places[now_true + np.uint64(1)]):
        c = np.uint64(s.occurrences[position])
        w = s.base[c]
        s.true[c] += 1
        if s.true[c] == 1:  # now satisfied: no flip has to satisfy it any more, and flipping v back would break it
            _remove_unsatisfied(s, c)
            for j in range(s.starts[c], s.starts[c + np.uint64(1)]):
                s.sums[s.variables[j]] += w
                s.counts[s.variables[j]] += 1
            s.sums[v] += w
            s.counts[v] += 1
        elif s.true[c] == 2:  # flipping the variable that alone satisfied it no longer breaks it
            s.sums[s.critical[c]] -= w
            s.counts[s.critical[c]] -= 1
        s.critical[c] += np.uint32(v)
    for position in range(s.places[now_false], s.places[now_false + np.uint64(1)]):
        c = np.uint64(s.occurrences[position])
        w = s.base[c]
        s.true[c] -= 1
        s.critical[c] -= np.uint32(v)
        if s.true[c] == 0:  # now unsatisfied: any flip of its variables satisfies it; flipping v no longer breaks it
            _add_unsatisfied(s, c)
            for j in range(s.starts[c], s.starts[c + np.uint64(1)]):
                s.sums[s.variables[j]] -= w
                s.counts[s.variables[j]] -= 1
            s.sums[v] -= w
            s.counts[v] -= 1
        elif s.true[c] == 1:
            s.sums[s.critical[c]] += w
            s.counts[s.critical[c]] += 1


@compiled
def _find_best_flips(s: _State, stamp: int) -> tuple[float, int]:
    """The least score of the variables in unsatisfied clauses, and how many have it; `ties` begins with these."""
    offset, least, tied = s.numbers[0], np.inf, 0
    for position in range(s.unsatisfied[-1]):
        c = np.uint64(s.unsatisfied[position])
        for j in range(s.starts[c], s.starts[c + np.uint64(1)]):
            v = s.variables[j]
            if s.seen[v] != stamp:
                s.seen[v] = stamp
                score = s.sums[v] + offset * s.counts[v]
                if score < least - _TIE:
                    least, tied = score, 0
                if score <= least + _TIE:
                    s.ties[tied] = v
                    tied += 1
    return least, tied


@compiled
def _change_penalties(s: _State, alpha: float, rho: float, smooth: bool) -> None:
    clauses = s.true.shape[0]
    if smooth:
        added = (1.0 - rho) * s.numbers[1] / clauses
        s.numbers[0] += added
        s.numbers[1] += added * clauses
    largest = s.numbers[0]
    for position in range(s.unsatisfied[-1]):
        c = np.uint64(s.unsatisfied[position])
        grown = (alpha - 1.0) * (s.base[c] + s.numbers[0])
        s.base[c] += grown
        s.numbers[1] += grown
        largest = max(largest, s.base[c] + s.numbers[0])
        for j in range(s.starts[c], s.starts[c + np.uint64(1)]):
            s.sums[s.variables[j]] -= grown
    if largest > _MAX_PENALTY:
        _rescale(s)


@compiled
def _rescale(s: _State) -> None:
    """Divide all penalties by the largest that is allowed, and remove accumulated rounding errors."""
    total = 0.0
    for c in range(s.true.shape[0]):
        s.base[c] = (s.base[c] + s.numbers[0]) / _MAX_PENALTY
        total += s.base[c]
    s.numbers[0] = 0.0
    s.numbers[1] = total
    _rescore(s)


@compiled
def _run(s: _State, alpha: float, rho: float, ps: float, wp: float, before: int, steps: int) -> int:
    """Take at most `steps` steps, fewer if a model is found; returns how many were taken."""
    for step in range(steps):
        if s.unsatisfied[-1] == 0:
            return step
        least, tied = _find_best_flips(s, before + step + 1)
        if least < _THRESHOLD:
            _flip(s, s.ties[int(_draw_uniform(s.random) * tied)])
        elif _draw_uniform(s.random) < wp:
            _flip(s, np.uint32(1 + int(_draw_uniform(s.random) * (s.assignment.shape[0] - 1))))
        else:
            _change_penalties(s, alpha, rho, _draw_uniform(s.random) < ps)
    return steps
