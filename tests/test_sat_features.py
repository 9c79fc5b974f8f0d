"""Features of formulas against plain definitions and the published table, and that preprocessing keeps the answer."""

import csv
import math
from functools import cache
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preselect.errors import InputError
from preselect.sat import dimacs, features, preprocessing
from preselect.sat.dimacs import Formula

DATA = Path(__file__).parents[2] / "shared" / "data" / "swgcp"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the paper's instances are not in ../shared/data/swgcp")


def literal_lists(most_variables):
    literal = st.integers(1, most_variables).flatmap(lambda variable: st.sampled_from((variable, -variable)))
    return st.lists(st.lists(literal, max_size=4), max_size=16)


# --- preprocessing ----------------------------------------------------------------------------------------------------


def is_satisfiable(variables, clauses):
    """Try every assignment."""
    signs = every_assignment(variables)
    models = np.ones(len(signs), dtype=bool)
    for clause in clauses:
        models &= (signs[:, [abs(literal) - 1 for literal in clause]] == [literal > 0 for literal in clause]).any(
            axis=1
        )
    return bool(models.any())


@cache
def every_assignment(variables):
    return np.array(list(product((False, True), repeat=variables)), dtype=bool).reshape(2**variables, variables)


@settings(max_examples=300)
@given(clauses=literal_lists(6))
def test_elimination_keeps_satisfiability_and_makes_no_more_clauses(clauses):
    formula = Formula.of(6, clauses)
    left = preprocessing.eliminate_variables(formula)
    assert is_satisfiable(left.variables, left) == is_satisfiable(6, clauses)
    assert left.clauses <= formula.clauses
    assert left.variables <= formula.variables
    assert set(np.abs(left.literals)) == set(range(1, left.variables + 1))


def eliminate_by_definition(clauses, variable):
    """All resolvents that are no tautologies, in place of the clauses that hold the variable."""
    positive = [clause - {variable} for clause in clauses if variable in clause]
    negative = [clause - {-variable} for clause in clauses if -variable in clause]
    resolvents = [first | second for first, second in product(positive, negative)]
    others = [clause for clause in clauses if variable not in clause and -variable not in clause]
    return others + [clause for clause in resolvents if not any(-literal in clause for literal in clause)]


@pytest.mark.parametrize("count", [15, 20, 25, 42])
def test_elimination_goes_as_far_as_it_may(count):
    generator = np.random.default_rng(count)
    for _ in range(40):
        signs = generator.choice((-1, 1), (count, 3))
        clauses = (np.array([generator.permutation(9)[:3] + 1 for _ in range(count)]) * signs).tolist()
        left = preprocessing.eliminate_variables(Formula.of(9, clauses))
        assert is_satisfiable(left.variables, left) == is_satisfiable(9, clauses)
        for variable in range(1, left.variables + 1):
            assert len(eliminate_by_definition([set(clause) for clause in left], variable)) > left.clauses


def as_sets(clauses):
    return sorted(sorted(clause) for clause in clauses)


def colouring(vertices, edges, colours):
    """At least one colour, at most one, and different ones at the ends of an edge."""

    def variable(vertex, colour):
        return vertex * colours + colour + 1

    clauses = [[variable(vertex, colour) for colour in range(colours)] for vertex in range(vertices)]
    for vertex, pair in product(range(vertices), combinations(range(colours), 2)):
        clauses.append([-variable(vertex, colour) for colour in pair])
    clauses += [[-variable(end, colour) for end in edge] for edge, colour in product(edges, range(colours))]
    return Formula.of(vertices * colours, clauses)


def test_one_colour_of_every_vertex_is_resolved_away():
    vertices, colours = 12, 4
    edges = [(first, second) for first, second in combinations(range(vertices), 2) if (second - first) % 3]
    left = preprocessing.eliminate_variables(colouring(vertices, edges, colours))
    others = range(1, colours)
    expected = [
        [-(vertex * 3 + colour) for colour in pair]
        for vertex, pair in product(range(vertices), combinations(others, 2))
    ]
    expected += [[-(end * 3 + colour) for end in edge] for edge, colour in product(edges, others)]
    expected += [[end * 3 + colour for end in edge for colour in others] for edge in edges]
    assert left.variables == vertices * (colours - 1)
    assert as_sets(left) == as_sets(expected)


def test_variables_with_long_resolvents_are_kept():
    edges = list(combinations(range(8), 2))
    eleven, twelve = (preprocessing.eliminate_variables(colouring(8, edges, colours)) for colours in (11, 12))
    assert max(map(len, eleven)) == 20
    assert eleven.variables == 8 * 10
    assert max(map(len, twelve)) == 12  # each vertex loses another colour: the same one would make 22 per edge
    assert twelve.variables == 8 * 11


def test_variables_with_very_many_pairs_are_kept():
    def clauses(times):
        return [[1, 2]] * times + [[-1, -2]] * 100

    assert preprocessing.eliminate_variables(Formula.of(2, clauses(100))) == Formula.of(0, [])
    assert preprocessing.eliminate_variables(Formula.of(2, clauses(101))) == Formula.of(2, clauses(101))


@pytest.mark.parametrize("clauses", [[], [[]], [[], []]])
def test_nothing_to_eliminate(clauses):
    for variables in (0, 3):
        assert preprocessing.eliminate_variables(Formula.of(variables, clauses)) == Formula.of(0, clauses)


def test_tidying():
    tidied = preprocessing.tidy(Formula.of(3, [[1, -1], [2, 3, 2], [], [3, 1, -3], [-2]]))
    assert list(tidied) == [[2, 3], [], [-2]]
    assert tidied.variables == 3


# --- features ---------------------------------------------------------------------------------------------------------


def entropy(values):
    shares = [values.count(value) / len(values) for value in set(values)]
    return -sum(share * math.log(share) for share in shares)


def describe(name, values, entropy_of=None):
    mean = fmean(values) if values else 0.0
    described = {f"{name}-mean": mean, f"{name}-coeff-variation": pstdev(values) / mean if mean else 0.0}
    return described if entropy_of is None else described | {f"{name}-entropy": entropy(entropy_of)}


def balance(positive, negative):
    return 2 * abs(0.5 - positive / (positive + negative))


def binned(values):
    return [int(value * 100) for value in values]


def compute_by_definition(clauses):
    """The definitions word by word, on lists and sets; needs at least one clause that is not empty."""
    rows = [set(clause) for clause in clauses if not any(-literal in clause for literal in clause)]
    variables = sorted({abs(literal) for row in rows for literal in row})
    n, m = len(variables), len(rows)
    clash = [{j for j in range(m) if any(-literal in rows[j] for literal in rows[i])} for i in range(m)]
    signs = [balance(sum(l > 0 for l in row), sum(l < 0 for l in row)) for row in rows if row]
    lengths = [len(row) for row in rows]
    positive = [sum(v in row for row in rows) for v in variables]
    negative = [sum(-v in row for row in rows) for v in variables]
    both = [p + q for p, q in zip(positive, negative, strict=True)]
    balances = [balance(p, q) for p, q in zip(positive, negative, strict=True)]
    horn = [sum(sum(l > 0 for l in row) <= 1 and (v in row or -v in row) for row in rows) for v in variables]
    near = [len({abs(l) for row in rows if v in row or -v in row for l in row} - {v}) for v in variables]
    degrees = [len(others) for others in clash]
    coefficients = []
    for clause, others in enumerate(clash):
        joined = sum(second in clash[first] for first, second in combinations(others | {clause}, 2))
        k = len(others) + 1
        coefficients.append(2 * joined / (k * (k - 1)) if k > 1 else 0.0)
    values = {"nvars": n, "nclauses": m}
    values |= describe("POSNEG-RATIO-CLAUSE", signs, binned(signs))
    values |= describe("VCG-CLAUSE", [length / n for length in lengths], lengths)
    values |= {"UNARY": lengths.count(1) / m, "BINARY+": sum(0 < length <= 2 for length in lengths) / m}
    values |= {"TRINARY+": sum(0 < length <= 3 for length in lengths) / m}
    values |= describe("VCG-VAR", [count / m for count in both], both)
    values |= {"POSNEG-RATIO-VAR-mean": fmean(balances), "POSNEG-RATIO-VAR-stdev": pstdev(balances)}
    values |= {"POSNEG-RATIO-VAR-entropy": entropy(binned(balances))}
    values |= describe("HORNY-VAR", [count / m for count in horn], horn)
    values |= describe("VG", [degree / m for degree in near])
    values |= describe("CG", [degree / m for degree in degrees], degrees)
    return values | describe("cluster-coeff", coefficients, binned(coefficients))


@settings(max_examples=200)
@given(clauses=literal_lists(7))
def test_features_are_as_defined(clauses):
    found = features.compute_features(Formula.of(7, clauses)).values
    assert all(math.isfinite(value) for value in found.values())
    if any(clause and not any(-literal in clause for literal in clause) for clause in clauses):
        assert found == pytest.approx(compute_by_definition(clauses), rel=1e-9, abs=1e-12)


def test_features_of_a_larger_formula():
    generator = np.random.default_rng(3)
    clauses = [
        (generator.permutation(40)[: generator.integers(1, 7)] + 1) * generator.choice((-1, 1)) for _ in range(150)
    ]
    found = features.compute_features(Formula.of(40, [clause.tolist() for clause in clauses])).values
    assert found == pytest.approx(compute_by_definition([clause.tolist() for clause in clauses]), rel=1e-9)


def test_features_by_hand():
    # clause 1 clashes with 2 (variable 1) and 3 (variable 2), clause 2 with 3 (variable 2), clause 4 with none
    found = features.compute_features(Formula.of(5, [[1, 2], [-1, 2], [-2], [3, 2, 5]])).values
    coefficients = [1.0, 1.0, 2 * 4 / (4 * 3), 2 / 2]
    degrees = [2, 2, 3, 1]
    assert tuple(found) == features.FEATURE_NAMES
    assert (found["nvars"], found["nclauses"]) == (4, 4)
    assert found["POSNEG-RATIO-CLAUSE-mean"] == pytest.approx(3 / 4)
    assert found["POSNEG-RATIO-CLAUSE-entropy"] == pytest.approx(-(1 / 4) * math.log(1 / 4) - (3 / 4) * math.log(3 / 4))
    assert found["VCG-CLAUSE-mean"] == pytest.approx(8 / 4 / 4)
    assert [found[name] for name in ("UNARY", "BINARY+", "TRINARY+")] == [1 / 4, 3 / 4, 1]
    assert found["VCG-VAR-mean"] == pytest.approx(8 / 4 / 4)
    assert found["POSNEG-RATIO-VAR-mean"] == pytest.approx((0 + 1 / 2 + 1 + 1) / 4)
    assert found["HORNY-VAR-mean"] == pytest.approx((1 + 2) / 4 / 4)
    assert found["VG-mean"] == pytest.approx((1 + 3 + 2 + 2) / 4 / 4)
    assert found["CG-mean"] == pytest.approx(fmean(degrees) / 4)
    assert found["CG-coeff-variation"] == pytest.approx(pstdev(degrees) / fmean(degrees))
    assert found["cluster-coeff-mean"] == pytest.approx(fmean(coefficients))


@pytest.mark.parametrize(
    ("variables", "clauses"), [(0, []), (3, []), (0, [[]]), (2, [[], []]), (1, [[1, -1]]), (1, [[1]]), (1, [[1], [-1]])]
)
@pytest.mark.parametrize("clause_graph", [True, False])
def test_degenerate_formulas_have_finite_features(variables, clauses, clause_graph):
    found = features.compute_features(Formula.of(variables, clauses), clause_graph=clause_graph).values
    assert all(math.isfinite(value) for value in found.values())
    assert found["nvars"] == len({abs(l) for clause in clauses for l in clause if clause != [1, -1]})
    if found["nvars"] == 0:
        assert not any(value for name, value in found.items() if name != "nclauses")


def test_the_clause_graph_is_optional():
    formula = Formula.of(3, [[1, 2], [-1, 3], [-2, -3]])
    full, short = features.compute_features(formula), features.compute_features(formula, clause_graph=False)
    left_out = [name for name in features.FEATURE_NAMES if name.startswith(("CG-", "cluster-coeff-"))]
    assert len(left_out) == 6
    assert list(short.values) == [name for name in features.FEATURE_NAMES if name not in left_out]
    assert short.values.items() <= full.values.items()
    assert list(full.seconds) == ["size", "clauses", "variables", "variable-graph", "clause-graph"]
    assert list(short.seconds) == list(full.seconds)[:-1]
    assert all(seconds >= 0 for seconds in full.seconds.values())


def test_a_clause_graph_that_would_not_fit_is_refused(monkeypatch):
    formula = Formula.of(2, [[1, 2], [1], [-1], [-1, -2]])
    monkeypatch.setattr(features, "_MAX_CLASHES", 5)
    features.compute_features(formula)
    monkeypatch.setattr(features, "_MAX_CLASHES", 4)
    with pytest.raises(InputError, match=r"too large: 5 pairs of opposite literals, more than 4; .*clause_graph=False"):
        features.compute_features(formula)
    assert features.compute_features(formula, clause_graph=False).values["nclauses"] == 4


def published_features():
    with (DATA / "features.csv").open() as file:
        names, *rows = csv.reader(file)
    return names[1:], {row[0].split("/")[-1]: [float(value) for value in row[1:]] for row in rows}


@needs_data
def test_the_papers_features_come_out():
    names, published = published_features()
    assert tuple(names) == features.FEATURE_NAMES
    paths = sorted((DATA / "cnf").glob("*.cnf.gz"))
    assert len(paths) == 60
    for path in paths:
        formula = dimacs.read_formula(path)
        left = preprocessing.eliminate_variables(formula)
        assert (6 * left.variables, 46 * left.clauses) == (5 * formula.variables, 40 * formula.clauses)
        found = features.compute_features(left).values
        expected = dict(zip(names, published[path.name.removesuffix(".gz")], strict=True))
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)
