"""SATzilla's base features of a formula: sizes, balance of signs, and degrees in three graphs.

The definitions are SATzilla's (Nudelman and others, Understanding random SAT: beyond the clauses-to-variables ratio,
CP 2004, and its public feature code). n counts the variables that occur and m the clauses, without tautologies and
without repeated literals in a clause. A feature that is undefined for a formula, such as a mean over variables when
none occurs, is 0. The features in the paper's second study are those of the formula after `eliminate_variables`.

The balance of p positive and q negative literals is 2 |1/2 - p / (p + q)|: 0 if there are as many positive as negative
ones, 1 if all have the same sign. Entropies are in nats; those of balances and cluster coefficients are taken over 100
bins of [0, 1] and another one for 1 itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.compiling import compiled
from preselect.errors import InputError
from preselect.sat.dimacs import Formula, Integers
from preselect.sat.preprocessing import tidy

FEATURE_NAMES = (
    "nvars",
    "nclauses",
    "POSNEG-RATIO-CLAUSE-mean",
    "POSNEG-RATIO-CLAUSE-coeff-variation",
    "POSNEG-RATIO-CLAUSE-entropy",
    "VCG-CLAUSE-mean",
    "VCG-CLAUSE-coeff-variation",
    "VCG-CLAUSE-entropy",
    "UNARY",
    "BINARY+",
    "TRINARY+",
    "VCG-VAR-mean",
    "VCG-VAR-coeff-variation",
    "VCG-VAR-entropy",
    "POSNEG-RATIO-VAR-mean",
    "POSNEG-RATIO-VAR-stdev",
    "POSNEG-RATIO-VAR-entropy",
    "HORNY-VAR-mean",
    "HORNY-VAR-coeff-variation",
    "HORNY-VAR-entropy",
    "VG-mean",
    "VG-coeff-variation",
    "CG-mean",
    "CG-coeff-variation",
    "CG-entropy",
    "cluster-coeff-mean",
    "cluster-coeff-coeff-variation",
    "cluster-coeff-entropy",
)

_MAX_CLASHES = 100_000_000  # limit for a clause graph: some seconds for the degrees alone, and 400 MB

_BINS = 100

_Floats = NDArray[np.float64]
_Clauses = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class FormulaFeatures:
    """The features of a formula.

    Parameters
    ----------
    values : dict of str to float
        The features by name, in the order of `FEATURE_NAMES`.
    seconds : dict of str to float
        The seconds that each group of features took: size (and what all others build on), clauses, variables,
        variable-graph, clause-graph.
    """

    values: dict[str, float]
    seconds: dict[str, float]


def compute_features(formula: Formula, *, clause_graph: bool = True) -> FormulaFeatures:
    """Compute the features of a formula.

    Parameters
    ----------
    formula : Formula
        The formula, as it is: `eliminate_variables` first to get the paper's features.
    clause_graph : bool, default True
        Whether to compute the features named CG and cluster-coeff as well, which can take longest.

    Examples
    --------
    >>> features = compute_features(Formula.of(2, [[1, 2], [-1, 2], [-2]]), clause_graph=False)
    >>> features.values["nclauses"], features.values["VCG-CLAUSE-mean"]
    (3.0, 0.8333333333333334)
    """
    _compile_all()
    values: dict[str, float] = {}
    seconds: dict[str, float] = {}
    began = perf_counter()
    incidence = _find_incidence(formula)
    for group, measure in _GROUPS.items():
        if group == "clause-graph" and not clause_graph:
            continue
        values.update(measure(incidence))
        ended = perf_counter()
        seconds[group], began = ended - began, ended
    return FormulaFeatures(values, seconds)


@dataclass(frozen=True, slots=True)
class _Incidence:
    """Which literals are in which clauses, and which clauses hold which literals.

    Literals are numbered 2v (positive) and 2v + 1 (negative) over the n variables that occur: clause j has
    `codes[starts[j]:starts[j + 1]]`, and literal l is in the clauses `holders[bounds[l]:bounds[l + 1]]`.
    """

    n: int
    codes: Integers
    starts: Integers
    holders: _Clauses
    bounds: Integers

    @property
    def m(self) -> int:
        return len(self.starts) - 1

    @property
    def owners(self) -> Integers:
        """The clause of each literal in `codes`."""
        return np.repeat(np.arange(self.m), np.diff(self.starts))

    @property
    def counts(self) -> Integers:
        """How often each variable occurs positive and negative, n x 2."""
        return np.diff(self.bounds).reshape(-1, 2)

    @property
    def positive(self) -> Integers:
        """How many positive literals each clause has."""
        return np.bincount(self.owners[self.codes % 2 == 0], minlength=self.m)


def _find_incidence(formula: Formula) -> _Incidence:
    tidied = tidy(formula)
    occurring, places = np.unique(np.abs(tidied.literals), return_inverse=True)
    codes = 2 * places.astype(np.int64) + (tidied.literals < 0)
    counts = np.bincount(codes, minlength=2 * len(occurring))
    bounds = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    owners = np.repeat(np.arange(tidied.clauses, dtype=np.int32), np.diff(tidied.starts))
    return _Incidence(len(occurring), codes, tidied.starts, owners[np.argsort(codes, kind="stable")], bounds)


# --- the groups -------------------------------------------------------------------------------------------------------


def _measure_size(incidence: _Incidence) -> dict[str, float]:
    return {"nvars": float(incidence.n), "nclauses": float(incidence.m)}


def _measure_clauses(incidence: _Incidence) -> dict[str, float]:
    lengths = np.diff(incidence.starts)
    signed = lengths > 0  # the empty clause has no balance
    balance = _balance(incidence.positive[signed], lengths[signed])
    values = _describe("POSNEG-RATIO-CLAUSE", balance) | {"POSNEG-RATIO-CLAUSE-entropy": _binned_entropy(balance)}
    values |= _describe("VCG-CLAUSE", lengths / max(incidence.n, 1)) | {"VCG-CLAUSE-entropy": _entropy(lengths)}
    for name, longest in (("UNARY", 1), ("BINARY+", 2), ("TRINARY+", 3)):
        values[name] = _mean(signed & (lengths <= longest))
    return values


def _measure_variables(incidence: _Incidence) -> dict[str, float]:
    m = max(incidence.m, 1)
    occurrences = incidence.counts.sum(axis=1)
    balance = _balance(incidence.counts[:, 0], occurrences)
    in_horn_clause = (incidence.positive <= 1)[incidence.owners]
    horn = np.bincount(incidence.codes[in_horn_clause] // 2, minlength=incidence.n)
    values = _describe("VCG-VAR", occurrences / m) | {"VCG-VAR-entropy": _entropy(occurrences)}
    values["POSNEG-RATIO-VAR-mean"] = _mean(balance)
    values["POSNEG-RATIO-VAR-stdev"] = _deviation(balance)
    values["POSNEG-RATIO-VAR-entropy"] = _binned_entropy(balance)
    return values | _describe("HORNY-VAR", horn / m) | {"HORNY-VAR-entropy": _entropy(horn)}


def _measure_variable_graph(incidence: _Incidence) -> dict[str, float]:
    """Statistics of the graph in which variables are joined when they share a clause."""
    degrees = _count_variable_degrees(incidence.codes, incidence.starts, incidence.holders, incidence.bounds)
    return _describe("VG", degrees / max(incidence.m, 1))


def _measure_clause_graph(incidence: _Incidence) -> dict[str, float]:
    """Statistics of the graph in which clauses are joined when they clash: a variable has opposite signs in them.

    The cluster coefficient of a clause is the share of joined pairs among the clause and its neighbours.
    """
    clashes = int(incidence.counts.prod(axis=1).sum())
    if clashes > _MAX_CLASHES:
        large = f"the clause graph is too large: {clashes} pairs of opposite literals, more than {_MAX_CLASHES}"
        raise InputError(f"{large}; leave its features out (clause_graph=False, --no-clause-graph)")
    graph = (incidence.codes, incidence.starts, incidence.holders, incidence.bounds)
    degrees = _count_clause_degrees(*graph)
    edges = degrees + _count_triangles(*_list_edges(*graph, degrees))
    coefficients = 2.0 * edges / np.maximum(degrees * (degrees + 1), 1)
    values = _describe("CG", degrees / max(incidence.m, 1)) | {"CG-entropy": _entropy(degrees)}
    values |= _describe("cluster-coeff", coefficients)
    return values | {"cluster-coeff-entropy": _binned_entropy(coefficients)}


_GROUPS: dict[str, Callable[[_Incidence], dict[str, float]]] = {
    "size": _measure_size,
    "clauses": _measure_clauses,
    "variables": _measure_variables,
    "variable-graph": _measure_variable_graph,
    "clause-graph": _measure_clause_graph,
}


# --- statistics -------------------------------------------------------------------------------------------------------


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _deviation(values: _Floats) -> float:
    return float(values.std()) if len(values) else 0.0


def _describe(name: str, values: _Floats) -> dict[str, float]:
    """Mean and coefficient of variation of non-negative numbers."""
    mean = _mean(values)
    return {f"{name}-mean": mean, f"{name}-coeff-variation": _deviation(values) / mean if mean else 0.0}


def _balance(positive: Integers, both: Integers) -> _Floats:
    balance: _Floats = 2.0 * np.abs(0.5 - positive / both)
    return balance


def _entropy(values: Integers) -> float:
    """Entropy of the distribution of non-negative integers."""
    counts = np.bincount(values)
    shares = counts[counts > 0] / max(len(values), 1)
    return float(np.sum(shares * -np.log(shares)))


def _binned_entropy(values: _Floats) -> float:
    return _entropy((values * _BINS).astype(np.int64))


# --- graphs -----------------------------------------------------------------------------------------------------------


@cache
def _compile_all() -> None:
    """Run every kernel once on a small formula, so that no measured time includes compiling."""
    incidence = _find_incidence(Formula.of(1, [[1], [-1]]))
    for measure in _GROUPS.values():
        measure(incidence)


@compiled
def _count_variable_degrees(codes: Integers, starts: Integers, holders: _Clauses, bounds: Integers) -> Integers:
    n = (bounds.shape[0] - 1) // 2
    degrees = np.zeros(n, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    for variable in range(n):
        seen[variable] = variable  # it is not its own neighbour
        for position in range(bounds[2 * variable], bounds[2 * variable + 2]):
            clause = holders[position]
            for at in range(starts[clause], starts[clause + 1]):
                other = codes[at] // 2
                if seen[other] != variable:
                    seen[other] = variable
                    degrees[variable] += 1
    return degrees


@compiled
def _count_clause_degrees(codes: Integers, starts: Integers, holders: _Clauses, bounds: Integers) -> Integers:
    m = starts.shape[0] - 1
    degrees = np.zeros(m, dtype=np.int64)
    seen = np.full(m, -1, dtype=np.int64)
    for clause in range(m):
        for at in range(starts[clause], starts[clause + 1]):
            opposite = codes[at] ^ 1
            for position in range(bounds[opposite], bounds[opposite + 1]):
                other = holders[position]
                if seen[other] != clause:
                    seen[other] = clause
                    degrees[clause] += 1
    return degrees


@compiled
def _list_edges(
    codes: Integers, starts: Integers, holders: _Clauses, bounds: Integers, degrees: Integers
) -> tuple[_Clauses, Integers]:
    """Every edge once, listed at the clause of lower degree, or at the earlier clause if the degrees are equal.

    That way no list is longer than about the root of twice the number of edges, however skewed the degrees are.
    """
    m = starts.shape[0] - 1
    neighbours = np.empty(degrees.sum() // 2, dtype=np.int32)
    ends = np.zeros(m + 1, dtype=np.int64)
    seen = np.full(m, -1, dtype=np.int64)
    size = 0
    for clause in range(m):
        for at in range(starts[clause], starts[clause + 1]):
            opposite = codes[at] ^ 1
            for position in range(bounds[opposite], bounds[opposite + 1]):
                other = holders[position]
                later = degrees[other] > degrees[clause] or (degrees[other] == degrees[clause] and other > clause)
                if later and seen[other] != clause:
                    seen[other] = clause
                    neighbours[size] = other
                    size += 1
        ends[clause + 1] = size
    return neighbours, ends


@compiled
def _count_triangles(neighbours: _Clauses, ends: Integers) -> Integers:
    """The number of triangles of the graph at each clause."""
    m = ends.shape[0] - 1
    triangles = np.zeros(m, dtype=np.int64)
    seen = np.full(m, -1, dtype=np.int64)
    for first in range(m):
        for position in range(ends[first], ends[first + 1]):
            seen[neighbours[position]] = first
        for position in range(ends[first], ends[first + 1]):
            second = neighbours[position]
            for further in range(ends[second], ends[second + 1]):
                third = neighbours[further]
                if seen[third] == first:
                    triangles[first] += 1
                    triangles[second] += 1
                    triangles[third] += 1
    return triangles
