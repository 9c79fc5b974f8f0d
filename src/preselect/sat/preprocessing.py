"""Simplify a formula, without changing whether it is satisfiable, before features are computed from it.

The features of the paper's second study were computed after bounded variable elimination (Eén and Biere, Effective
preprocessing in SAT through variable and clause elimination, SAT 2005). To eliminate x, replace the clauses that hold
it by all resolvents on x that are not tautologies: (x or A) and (not x or B) become (A or B). A variable is eliminated
if that does not increase the number of clauses. In a colouring problem this resolves away one colour, the same at every
vertex: 'v has colour 1' is positive in a single clause, and in the end each edge says that one of its two vertices has
another colour. Each variable that is left is positive once per neighbour of its vertex, and is kept. With 6 colours, n
vertices and 5n edges, 6n variables and 46n clauses become 5n variables and 40n clauses.

Nothing else is done; subsumption and strengthening of clauses would find nothing in colouring problems.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.compiling import compiled
from preselect.sat.dimacs import Formula, Integers, Literals

_MAX_PAIRS = 10_000  # with more pairs of clauses, a variable is kept: counting resolvents would take too long
_MAX_LITERALS = 20  # with a longer resolvent, a variable is kept: a few could outgrow the formula


def tidy(formula: Formula) -> Formula:
    """Remove tautologies and repeated literals.

    Parameters
    ----------
    formula : Formula
        A formula; clauses that hold a variable with both signs are dropped, of equal literals in a clause the first
        is kept.

    Examples
    --------
    >>> list(tidy(Formula.of(3, [[1, 2, 1], [3, -3], [-2]])))
    [[1, 2], [-2]]
    """
    literals, starts = _tidy(formula.variables, formula.literals, formula.starts)
    return Formula(formula.variables, literals, starts)


def eliminate_variables(formula: Formula) -> Formula:
    """Eliminate variables by resolution, as long as the number of clauses does not grow.

    Tautologies and repeated literals are removed first. Variables with few pairs of clauses to resolve are tried first,
    and again when clauses that contain them have changed; ties are broken by number.

    Parameters
    ----------
    formula : Formula
        A formula. The result is satisfiable if and only if it is; the variables left are renumbered from 1, in order.

    Examples
    --------
    >>> list(eliminate_variables(Formula.of(4, [[1, 2], [-1, 3], [-1, 4], [-2, -3], [-2, 4], [-3, -4]])))
    []
    >>> list(eliminate_variables(Formula.of(1, [[1], [-1]])))
    [[]]
    """
    literals, starts = _tidy(formula.variables, formula.literals, formula.starts)
    codes = 2 * (np.abs(literals.astype(np.int64)) - 1) + (literals < 0)
    return _renumber(*_eliminate(formula.variables, codes, starts))


def _renumber(literals: Literals, starts: Integers) -> Formula:
    """The formula over the variables that occur, and no others."""
    occurring, position = np.unique(np.abs(literals), return_inverse=True)
    renamed = np.where(literals > 0, position + 1, -position - 1).astype(np.int32)
    return Formula(len(occurring), renamed, starts)


@compiled
def _tidy(variables: int, literals: Literals, starts: Integers) -> tuple[Literals, Integers]:
    kept = np.empty_like(literals)
    ends = np.zeros_like(starts)
    seen = np.full(2 * variables + 1, -1, dtype=np.int64)  # the last clause that held a literal, at literal + variables
    size = clauses = 0
    for clause in range(starts.shape[0] - 1):
        tautology = False
        for at in range(starts[clause], starts[clause + 1]):
            literal = np.int64(literals[at])
            tautology = tautology or seen[variables - literal] == clause
            if seen[variables + literal] != clause:
                seen[variables + literal] = clause
                kept[size] = literals[at]
                size += 1
        if tautology:
            size = ends[clauses]
        else:
            clauses += 1
            ends[clauses] = size
    return kept[:size].copy(), ends[: clauses + 1].copy()


# --- elimination ------------------------------------------------------------------------------------------------------
#
# Literals are numbered 2v (positive) and 2v + 1 (negative) for v from 0, so that `literal ^ 1` is the opposite one. All
# clauses, those given and those made, are stored one after the other in a growing array. The occurrences of a literal
# are linked: `heads` holds the last one, `chain` the one before each. Removed clauses stay in the chains.


@compiled
def _enlarge(values: NDArray[Any], size: int) -> NDArray[Any]:
    """The same array, or if it is shorter than `size`, a copy at least twice as long."""
    if size <= values.shape[0]:
        return values
    larger = np.empty(max(size, 2 * values.shape[0]), dtype=values.dtype)
    for at in range(values.shape[0]):  # a loop compiles in a third of the time of a slice
        larger[at] = values[at]
    return larger


@compiled
def _find_holders(
    literal: int, count: int, heads: Integers, chain: Integers, owners: Integers, alive: NDArray[np.bool_]
) -> Integers:
    """The `count` clauses that hold a literal and have not been removed."""
    found = np.empty(count, dtype=np.int64)
    size = 0
    at = heads[literal]
    while size < count:
        if alive[owners[at]]:
            found[size] = owners[at]
            size += 1
        at = chain[at]
    return found


@compiled
def _resolve_all(
    pivot: int, positive: Integers, negative: Integers, codes: Integers, starts: Integers, marks: NDArray[np.bool_]
) -> tuple[bool, Integers, Integers]:
    """Whether the pivot may be eliminated, and if so the literals of all resolvents, and where each resolvent ends."""
    most = positive.shape[0] + negative.shape[0]
    room = min(most, positive.shape[0] * negative.shape[0]) + 1  # with room for the resolvent that is one too many
    row = np.empty(room * (_MAX_LITERALS + 1), dtype=np.int64)
    ends = np.zeros(room, dtype=np.int64)
    made = size = 0
    for first in positive:
        for at in range(starts[first], starts[first + 1]):
            marks[codes[at]] = True
        allowed = True
        for second in negative:
            size = ends[made]
            tautology = False
            for at in range(starts[second], starts[second + 1]):
                literal = codes[at]
                if literal == pivot ^ 1:
                    continue
                tautology = tautology or marks[literal ^ 1]
                if not marks[literal] and size - ends[made] <= _MAX_LITERALS:
                    row[size] = literal
                    size += 1
            if tautology:
                continue
            for at in range(starts[first], starts[first + 1]):
                if codes[at] != pivot and size - ends[made] <= _MAX_LITERALS:
                    row[size] = codes[at]
                    size += 1
            allowed = made < most and size - ends[made] <= _MAX_LITERALS
            if not allowed:
                break
            made += 1
            ends[made] = size
        for at in range(starts[first], starts[first + 1]):
            marks[codes[at]] = False
        if not allowed:
            return False, row[:0], ends[:1]
    return True, row[: ends[made]], ends[: made + 1]


@compiled
def _sort_variables(counts: Integers) -> Integers:
    """Variables by the number of pairs of clauses to resolve, equal ones by their number (a counting sort)."""
    variables = counts.shape[0] // 2
    pairs = np.empty(variables, dtype=np.int64)
    places = np.zeros(_MAX_PAIRS + 3, dtype=np.int64)
    for variable in range(variables):
        pairs[variable] = min(counts[2 * variable] * counts[2 * variable + 1], _MAX_PAIRS + 1)
        places[pairs[variable] + 1] += 1
    for number in range(_MAX_PAIRS + 1):
        places[number + 1] += places[number]
    order = np.empty(variables, dtype=np.int64)
    for variable in range(variables):
        order[places[pairs[variable]]] = variable
        places[pairs[variable]] += 1
    return order


@compiled
def _append(
    row: Integers,
    ends: Integers,
    clauses: int,
    codes: Integers,
    owners: Integers,
    chain: Integers,
    starts: Integers,
    heads: Integers,
    counts: Integers,
) -> None:
    """Append clauses to arrays that are long enough for them."""
    size = starts[clauses]
    for clause in range(ends.shape[0] - 1):
        for at in range(ends[clause], ends[clause + 1]):
            code = row[at]
            codes[size], owners[size], chain[size], heads[code] = code, clauses + clause, heads[code], size
            counts[code] += 1
            size += 1
        starts[clauses + clause + 1] = size


@compiled
def _remove(
    removed: Integers,
    codes: Integers,
    starts: Integers,
    alive: NDArray[np.bool_],
    counts: Integers,
    touched: NDArray[np.bool_],
) -> None:
    """Remove clauses, and mark their variables as touched: it may now be possible to eliminate them."""
    for clause in removed:
        alive[clause] = False
        for at in range(starts[clause], starts[clause + 1]):
            counts[codes[at]] -= 1
            touched[codes[at] // 2] = True


@compiled
def _eliminate(variables: int, row: Integers, ends: Integers) -> tuple[Literals, Integers]:
    """The clauses that are left when all variables that may be eliminated are."""
    clauses = ends.shape[0] - 1
    codes = np.empty(2 * row.shape[0] + 1, dtype=np.int64)
    owners, chain = np.empty_like(codes), np.empty_like(codes)
    starts = np.zeros(2 * clauses + 1, dtype=np.int64)
    alive = np.ones(2 * clauses + 1, dtype=np.bool_)
    heads = np.full(2 * variables, -1, dtype=np.int64)
    counts = np.zeros(2 * variables, dtype=np.int64)
    marks = np.zeros(2 * variables, dtype=np.bool_)
    touched = np.ones(variables, dtype=np.bool_)
    _append(row, ends, 0, codes, owners, chain, starts, heads, counts)
    while touched.any():
        for variable in _sort_variables(counts):
            pivot, pairs = 2 * variable, counts[2 * variable] * counts[2 * variable + 1]
            tried, touched[variable] = touched[variable], False
            if not tried or pairs > _MAX_PAIRS:
                continue
            positive = _find_holders(pivot, counts[pivot], heads, chain, owners, alive)
            negative = _find_holders(pivot + 1, counts[pivot + 1], heads, chain, owners, alive)
            allowed, row, ends = _resolve_all(pivot, positive, negative, codes, starts, marks)
            if not allowed:
                continue
            _remove(positive, codes, starts, alive, counts, touched)
            _remove(negative, codes, starts, alive, counts, touched)
            touched[variable] = False  # it no longer occurs
            made = ends.shape[0] - 1
            codes = _enlarge(codes, starts[clauses] + row.shape[0])
            owners = _enlarge(owners, codes.shape[0])
            chain = _enlarge(chain, codes.shape[0])
            starts = _enlarge(starts, clauses + made + 1)
            alive = _enlarge(alive, clauses + made)
            _append(row, ends, clauses, codes, owners, chain, starts, heads, counts)
            alive[clauses : clauses + made] = True
            clauses += made
    return _collect(codes, starts[: clauses + 1], alive)


@compiled
def _collect(codes: Integers, starts: Integers, alive: NDArray[np.bool_]) -> tuple[Literals, Integers]:
    """The clauses that are left, with literals as in formulas."""
    literals = np.empty(starts[-1], dtype=np.int32)
    ends = np.zeros_like(starts)
    size = clauses = 0
    for clause in range(starts.shape[0] - 1):
        if not alive[clause]:
            continue
        for at in range(starts[clause], starts[clause + 1]):
            variable = (codes[at] >> 1) + 1
            literals[size] = -variable if codes[at] & 1 else variable
            size += 1
        clauses += 1
        ends[clauses] = size
    return literals[:size].copy(), ends[: clauses + 1].copy()
