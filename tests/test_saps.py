"""SAPS: models are models, and the search is the published one, step by step, in distribution."""

import itertools
import random

import numpy as np
import pytest
import scipy.stats

from preselect import InputError
from preselect.sat import saps
from preselect.sat.colouring import Colouring
from preselect.sat.dimacs import Formula
from preselect.sat.parametrizations import EFFECTIVE, PRINTED, convert_printed
from preselect.sat.saps import Parameters, Search, is_model, solve


def random_formula(seed, variables=20, clauses=80, length=3):
    generator = np.random.default_rng(seed)
    rows = [generator.permutation(variables)[:length] + 1 for _ in range(clauses)]
    return Formula.of(variables, [(row * generator.choice([-1, 1], length)).tolist() for row in rows])


def find_holders(formula):
    """The clauses that hold each variable."""
    clauses = [{abs(literal) for literal in clause} for clause in formula]
    return {v: [c for c, held in enumerate(clauses) if v in held] for v in range(1, formula.variables + 1)}


def slow_steps(formula, parameters, generator):
    """Steps until a model is found: scores recomputed in every step, penalties in a plain list."""
    clauses = [list(clause) for clause in formula]
    holders = find_holders(formula)
    value = {v: generator.random() < 0.5 for v in range(1, formula.variables + 1)}
    penalty = [1.0] * len(clauses)

    def unsatisfied(among):
        return [c for c in among if not any(value[abs(x)] == (x > 0) for x in clauses[c])]

    def score(v):
        before = sum(penalty[c] for c in unsatisfied(holders[v]))
        value[v] = not value[v]
        after = sum(penalty[c] for c in unsatisfied(holders[v]))
        value[v] = not value[v]
        return after - before

    steps = 0
    while wrong := unsatisfied(range(len(clauses))):
        steps += 1
        scores = {v: score(v) for v in {abs(x) for c in wrong for x in clauses[c]}}
        least = min(scores.values())
        if least < -0.1:
            flipped = generator.choice([v for v, s in scores.items() if s <= least + 1e-9])
        elif generator.random() < parameters.wp:
            flipped = generator.randint(1, formula.variables)
        else:
            if generator.random() < parameters.ps:
                mean = sum(penalty) / len(penalty)
                penalty = [w + (1.0 - parameters.rho) * mean for w in penalty]
            for c in wrong:
                penalty[c] *= parameters.alpha
            continue
        value[flipped] = not value[flipped]
    return steps


@pytest.mark.parametrize("parameters", [Parameters(), Parameters(1.6, 0.5, 0.6, 0.3), EFFECTIVE[18]])
def test_steps_to_a_model_are_distributed_as_by_a_slow_search(parameters):
    formula = random_formula(3, 12, 48)
    generator = random.Random(0)
    slow = [slow_steps(formula, parameters, generator) for _ in range(120)]
    fast = [solve(formula, parameters, seed=seed).steps for seed in range(1200)]
    assert scipy.stats.ks_2samp(slow, fast).pvalue > 0.001
    assert np.median(slow) > 5  # there is something to compare
    assert scipy.stats.ks_2samp([2 * steps for steps in slow], fast).pvalue < 0.001  # and the test would see it


@pytest.mark.parametrize("seed", range(20))
def test_models_are_found_where_there_are_some(seed):
    formula = random_formula(seed, 10, 42)
    clauses = list(formula)
    satisfiable = any(
        all(any(bits[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)
        for bits in itertools.product([False, True], repeat=10)
    )
    found = solve(formula, seed=seed, steps=20_000)
    assert found.solved == satisfiable
    if satisfiable:
        assert is_model(formula, found.model)
        spoilt = found.model.copy()
        spoilt[abs(clauses[0][0]) - 1] ^= True
        assert is_model(formula, spoilt) == all(
            any(spoilt[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses
        )


def test_each_sensible_parametrization_solves_colouring_instances():
    formula = Colouring(60, 2.0**-2, seed=5).formula()
    for number, parameters in enumerate(EFFECTIVE, start=1):
        if parameters.alpha > 1.0:  # the two others let penalties shrink where clauses are not satisfied
            assert solve(formula, parameters, seed=1, steps=1_000_000).solved, number


def test_scores_and_penalties_stay_what_they_are_defined_as():
    """What is kept up to date, step by step, equals what it is computed from."""
    formula = random_formula(1, 40, 190)
    search = Search(formula, Parameters(1.7, 0.4, 0.5, 0.2), seed=2)
    s, clauses, holders = search._state, list(formula), find_holders(formula)
    for _ in range(300):
        search.run(7)
        value = s.assignment
        true = np.array([sum(value[abs(x)] == (x > 0) for x in clause) for clause in clauses])
        penalty = s.base + s.numbers[0]
        assert np.array_equal(s.true, true)
        assert set(s.unsatisfied[: s.unsatisfied[-1]].tolist()) == set(np.flatnonzero(true == 0).tolist())
        assert s.numbers[1] == pytest.approx(penalty.sum(), rel=1e-9)
        assert penalty.max() <= 1000.0 * 1.7
        for v in range(1, 41):
            breaks = sum(penalty[c] for c in holders[v] if (v if value[v] else -v) in clauses[c] and true[c] == 1)
            makes = sum(penalty[c] for c in holders[v] if true[c] == 0)
            assert s.sums[v] + s.numbers[0] * s.counts[v] == pytest.approx(breaks - makes, rel=1e-6, abs=1e-6)
        if search.solved:
            break


def test_penalties_are_smoothed_towards_their_mean_and_grow_where_clauses_are_not_satisfied():
    search = Search(random_formula(1, 40, 190), Parameters(1.7, 0.4, 0.5, 0.2), seed=2)
    search.run(100)
    s = search._state
    penalty = s.base + s.numbers[0]
    saps._change_penalties(s, 1.0, 0.3, True)
    assert s.base + s.numbers[0] == pytest.approx(penalty + 0.7 * penalty.mean())
    penalty, wrong = s.base + s.numbers[0], s.unsatisfied[: s.unsatisfied[-1]]
    saps._change_penalties(s, 1.5, 0.3, False)
    penalty[wrong] *= 1.5
    assert len(wrong) > 0
    assert s.base + s.numbers[0] == pytest.approx(penalty)


def test_limits_seeds_and_nothing_to_search_for():
    hard = Formula.of(2, [[1, 2], [-1, 2], [1, -2], [-1, -2]])
    found = solve(hard, steps=500)
    assert (found.solved, found.steps, found.model) == (False, 500, None)
    assert solve(hard, seconds=0.05).seconds < 1.0
    formula = random_formula(7, 50, 180)
    assert solve(formula, seed=3).steps == solve(formula, seed=3).steps
    assert len({solve(formula, seed=seed).steps for seed in range(10)}) > 1
    assert solve(Formula.of(0, [])).solved
    assert solve(Formula.of(3, [])).model.shape == (3,)
    assert not solve(Formula.of(0, [[]])).solved
    assert not solve(Formula.of(2, [[1], []])).solved
    with pytest.raises(InputError, match=r"ps is 1\.5; use a number of at least 0 and at most 1"):
        Parameters(ps=1.5)
    with pytest.raises(InputError, match="seed is -1; use an integer of at least 0"):
        solve(formula, seed=-1)


def test_models_need_a_value_for_each_variable():
    formula = Formula.of(2, [[1, 2]])
    assert is_model(formula, np.array([False, True]))
    assert not is_model(formula, np.array([False, False]))
    with pytest.raises(InputError, match="3 values for 2 variables; give one for each"):
        is_model(formula, np.ones(3, dtype=bool))


def test_the_defaults_are_those_of_the_publication():
    """Hutter, Tompkins and Hoos 2002; the noise is that of their later solver."""
    assert Parameters() == Parameters(alpha=1.3, rho=0.8, ps=0.05, wp=0.01)


def test_the_papers_parametrizations_as_printed_and_as_they_acted():
    assert PRINTED.shape == (20, 4)
    assert EFFECTIVE[2].ps == pytest.approx(1 - 0.219562)
    assert EFFECTIVE[5].wp == pytest.approx(1 - 0.271802)
    assert EFFECTIVE[18].rho == -0.955414  # rho is no probability
    assert convert_printed((1.2, 0.5, 0.1, 0.2)) == Parameters(1.2, 0.5, 0.1, 0.2)


def test_colouring_instances_are_what_they_say():
    whole = Colouring(50, 0.0, seed=1)
    assert len(whole.edges()) == 250
    assert all((b - a) % 50 <= 5 or (a - b) % 50 <= 5 for a, b in whole.edges())
    half = Colouring(50, 0.5, seed=1)
    assert len(half.edges()) == 250
    assert len(np.unique(half.edges(), axis=0)) == 250
    ring, wild = ({tuple(edge) for edge in Colouring(50, ratio, seed=1).edges().tolist()} for ratio in (0.0, 1.0))
    mixed = {tuple(edge) for edge in half.edges().tolist()}
    assert ring & wild <= mixed <= ring | wild
    assert len(mixed - ring) == round(0.5 * len(wild - ring))
    formula = half.formula()
    assert (formula.variables, formula.clauses) == (6 * 50, 46 * 50)
    found = solve(formula, seed=0, steps=10**6)
    colours = found.model.reshape(50, 6)
    assert np.all(colours.sum(axis=1) == 1)
    a, b = half.edges().T
    assert not np.any(colours[a].argmax(axis=1) == colours[b].argmax(axis=1))
    with pytest.raises(
        InputError, match=r"neighbours=10 does not fit into the ring; use an even number below vertices=5"
    ):
        Colouring(5, 0.1, seed=0)


def test_a_model_that_is_none_is_a_bug_and_said_so(monkeypatch):
    monkeypatch.setattr(saps, "is_model", lambda *_: False)
    with pytest.raises(RuntimeError, match="not a model"):
        solve(random_formula(0, 10, 20))
