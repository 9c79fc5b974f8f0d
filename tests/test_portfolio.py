"""The example of a real portfolio: its instances are what they claim to be, and its table adds up."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from preselect.errors import InputError
from preselect.race import read_pool
from preselect.sat import dimacs
from preselect.store import Journal, read_rounds

EXAMPLE = Path(__file__).parents[1] / "examples" / "portfolio"


@pytest.fixture(scope="module")
def instances():
    return _imported("instances")


@pytest.fixture(scope="module")
def measure():
    return _imported("measure")


def _imported(name):
    sys.path.insert(0, str(EXAMPLE))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(EXAMPLE))


def _models(formula):
    """How many assignments satisfy a formula, by trying all."""
    values = np.array(list(product((False, True), repeat=formula.variables)))
    satisfied = np.ones(len(values), dtype=bool)
    for clause in formula:
        satisfied &= np.any([values[:, abs(literal) - 1] == (literal > 0) for literal in clause], axis=0)
    return int(satisfied.sum())


def test_the_same_seed_gives_the_same_files_and_more_begin_with_the_same(instances, tmp_path):
    few = list(instances.write_all(tmp_path / "few", count=8, seed=3))
    more = list(instances.write_all(tmp_path / "more", count=12, seed=3))
    other = list(instances.write_all(tmp_path / "other", count=8, seed=4))
    assert [path.name for path in few] == [path.name for path in more[:8]]
    assert [path.read_bytes() for path in few] == [path.read_bytes() for path in more[:8]]
    assert not {path.read_bytes() for path in few} & {path.read_bytes() for path in other}


def test_families_have_equal_shares_and_all_files_parse(instances, tmp_path):
    paths = list(instances.write_all(tmp_path / "cnf", count=16, seed=0))
    families = [path.name.partition("-")[0] for path in paths]
    assert {family: families.count(family) for family in families} == dict.fromkeys(instances.FAMILIES, 4)
    assert all(dimacs.read_formula(path).clauses > 50 for path in paths)


def test_instances_of_a_family_are_distinct_even_if_they_are_of_the_same_size(instances):
    draws = [np.random.default_rng(seed) for seed in range(40)]
    made = [instances.pigeonhole_formula(draw) for draw in draws]
    assert len({tuple(formula.literals.tolist()) for _, formula in made}) == 40


def test_a_folder_that_is_not_empty_stays_as_it_is(instances, tmp_path):
    (tmp_path / "mine.cnf").write_text("p cnf 0 0\n")
    with pytest.raises(InputError, match="is not empty; name a new folder"):
        next(instances.write_all(tmp_path, count=1, seed=0))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.cnf"]


@pytest.mark.parametrize("holes", [1, 2, 3])
def test_pigeons_do_not_fit_and_one_less_would(instances, holes):
    clauses = instances.pigeonhole_clauses(holes)
    formula = dimacs.Formula.of((holes + 1) * holes, clauses)
    assert _models(instances.disguise(formula, np.random.default_rng(0))) == 0
    without_one_pigeon = dimacs.Formula.of(formula.variables, clauses[1:])
    assert _models(without_one_pigeon) > 0


def test_a_disguise_keeps_the_number_of_models(instances):
    formula = dimacs.Formula.of(5, [[1, -2], [2, 3, -4], [-1, -5], [4, 5]])
    other = instances.disguise(formula, np.random.default_rng(1))
    assert list(other) != list(formula)
    assert _models(other) == _models(formula) > 0


@pytest.mark.parametrize("charge", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_parity_leaves_the_assignments_with_the_right_one(instances, size, charge):
    clauses = instances.parity(list(range(1, size + 1)), charge)
    allowed = {row for row in product((0, 1), repeat=size) if sum(row) % 2 == charge}
    satisfying = {
        row
        for row in product((0, 1), repeat=size)
        if all(any(row[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)
    }
    assert satisfying == allowed


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("vertices", "degree"), [(4, 3), (6, 3), (8, 3), (5, 4)])
def test_graphs_of_odd_charge_have_no_solution_and_of_even_charge_those_of_all_cycles(
    instances, vertices, degree, seed
):
    odd = instances.parity_graph(vertices, degree=degree, odd=True, draw=np.random.default_rng(seed))
    even = instances.parity_graph(vertices, degree=degree, odd=False, draw=np.random.default_rng(seed))
    edges = vertices * degree // 2
    assert _models(odd) == 0
    assert _models(even) == 2 ** (edges - vertices + 1)  # of a connected graph


@pytest.mark.parametrize("seed", range(5))
def test_parity_systems_have_a_solution_and_use_every_variable_in_three_equations(instances, seed):
    formula = instances.parity_system(9, np.random.default_rng(seed))
    assert _models(formula) > 0
    assert np.bincount(np.abs(formula.literals))[1:].tolist() == [12] * 9  # four clauses for each equation


SINGLES = """\
instance,arm,seconds,status,limit
x-1.cnf,fast,1.0,won,5
x-1.cnf,slow,4.0,won,5
x-2.cnf,fast,5.0,timeout,5
x-2.cnf,slow,2.0,won,5
y-1.cnf,fast,0.5,won,5
y-1.cnf,slow,5.0,timeout,5
y-2.cnf,fast,0.5,won,5
y-2.cnf,slow,5.0,timeout,5
"""


def test_the_table_adds_up(measure, tmp_path):
    (tmp_path / "singles.csv").write_text(SINGLES)
    singles = measure.read_singles(tmp_path / "singles.csv", 5.0)
    solved = dict.fromkeys(("x-1.cnf", "x-2.cnf", "y-1.cnf", "y-2.cnf"), measure.Outcome(1.0, True, 0.25))
    failed = solved | {"x-1.cnf": measure.Outcome(5.0, False, 0.25)}
    ways = measure.compare(singles, [measure.Way("race", [solved, failed])], 5.0)
    assert measure.table(ways, 5.0).splitlines() == [
        "| | solved | total, s | of these features, s | PAR10, s |",
        "|---|---|---|---|---|",
        "| fast | 3 | 7.0 | 0.0 | 13.00 |",
        "| slow | 2 | 16.0 | 0.0 | 26.50 |",
        "| race | 3.5 ± 0.5 | 7.0 ± 2.0 | 1.0 ± 0.0 | 7.34 ± 6.09 |",
        "| best pair in hindsight (fast, slow) | 4 | 4.0 | 0.0 | 1.00 |",
        "| virtual best | 4 | 4.0 | 0.0 | 1.00 |",
    ]
    assert measure.table_by_family(ways, 5.0).splitlines()[2] == "| fast | 25.50 | 0.50 |"


def test_an_unfinished_line_is_dropped_and_the_rest_stays(measure, tmp_path):
    path = tmp_path / "singles.csv"
    path.write_text(SINGLES + "y-3.cnf,fa")
    assert len(measure.read_singles(path, 5.0)["fast"]) == 4
    assert path.read_text() == SINGLES


def test_singles_of_another_limit_are_not_mixed_in(measure, tmp_path):
    (tmp_path / "singles.csv").write_text(SINGLES)
    with pytest.raises(InputError, match="line 2: measured with a limit of 5 s, not 3 s"):
        measure.read_singles(tmp_path / "singles.csv", 3.0)
    assert (tmp_path / "singles.csv").read_text() == SINGLES


def test_orders_differ_and_repeat(measure):
    paths = [Path(f"{number}.cnf") for number in range(20)]
    assert measure.shuffle(paths, 0, 1) == measure.shuffle(paths, 0, 1) != measure.shuffle(paths, 0, 2)
    assert sorted(measure.shuffle(paths, 0, 1)) == sorted(paths)


def test_a_missing_pool_is_written_and_an_existing_one_races_two_arms_within_the_limit(measure, tmp_path):
    path = tmp_path / "pool.toml"
    first = measure.prepare_pool(path, 5.0, saps=3)
    assert list(first.arms)[-3:] == ["saps", "saps-2", "saps-9"]
    again = measure.prepare_pool(path, 2.5, saps=0)
    assert list(again.arms) == list(first.arms)
    assert [(pool.k, pool.limits.seconds, pool.limits.output) for pool in (first, again)] == [
        (2, 5.0, 64.0),
        (2, 2.5, 64.0),
    ]


@pytest.mark.parametrize("alone", [True, False])
def test_pairs_race_in_three_ways_and_solvers_alone_if_asked_to(measure, pool, tmp_path, alone):
    arms = read_pool(pool(dict.fromkeys("abc", "sleep 0.06; exit 20"), head="k = 2", features='from = "none"'))
    paths = [tmp_path / "x-1.cnf", tmp_path / "y-1.cnf"]
    for path in paths:
        path.write_text("p cnf 1 2\n1 0\n-1 0\n")
    text = measure.measure(arms, paths, tmp_path, orders=1, seed=0, alone=alone)
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    assert rows.count("random pair") == rows.count("learnt pair") == rows.count("learnt pair, after-races") == 2
    assert (rows.count("a"), rows.count("virtual best")) == ((2, 2) if alone else (0, 0))
    with Journal.read(tmp_path / "after-0.journal") as journal:
        assert any(len(past.also) for past in read_rounds(journal))  # with one more arm than raced
    assert (tmp_path / "portfolio.png").stat().st_size > 10_000


class TestReplay:
    """Four arms on thirty instances of which "fast" is best: what is raced, learnt and counted."""

    @pytest.fixture
    def replay(self):
        return _imported("replay")

    @pytest.fixture
    def rounds(self, replay):
        times = {"fast": (0.2, True), "slow": (1.0, True), "late": (2.0, True), "never": (3.0, False)}
        outcomes = {arm: replay.Outcome(*time) for arm, time in times.items()}
        return [(f"{number}.cnf", {"x": float(number)}, outcomes) for number in range(30)]

    @pytest.fixture
    def arms(self, pool):
        return read_pool(pool(dict.fromkeys(("fast", "slow", "late", "never"), "exit 0"), head="k = 2", seconds=3))

    def test_it_learns_and_after_races_keep_to_their_budget(self, replay, rounds, arms):
        alone, taught = replay.replay(arms, rounds, 0.0), replay.replay(arms, rounds, 1.0)
        assert alone.used_after == 0.0
        assert alone.used == pytest.approx(2 * sum(outcome.seconds for outcome in alone.run.values()))
        assert 0.0 < taught.used_after <= taught.used + 1e-9
        assert all(taught.run[name].seconds == 0.2 for name, _, _ in rounds[-20:])
        assert replay.race(rounds[0][2], ["never", "late"], 1.5) == (None, 1.5)

    def test_an_arm_is_measured_by_its_cpu_time(self, replay, pool, tmp_path):
        (tmp_path / "a.cnf").write_text("p cnf 1 1\n1 0\n")
        made = read_pool(pool({"good": "sleep 0.2; exit 10", "busy": "while :; do :; done"}, seconds=3))
        name, arm, seconds, status, limit = replay.measure_cpu(made, tmp_path / "a.cnf", "good", 1)
        assert (name, arm, status, limit) == ("a.cnf", "good", "won", 1)
        assert seconds < 0.2  # sleeping costs nothing
        assert replay.measure_cpu(made, tmp_path / "a.cnf", "busy", 1)[3] == "timeout"
