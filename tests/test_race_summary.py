"""What races add up to: known times, the best single arm, curves, calibration."""

import math
from collections import Counter

import numpy as np
import pytest
from race_journals import details, open_learner, play

from preselect import NoWinner, Void
from preselect.chances import Chances
from preselect.race.calibration import calibrate
from preselect.race.result import Knowledge, KnownTime, PastRace
from preselect.race.summary import RaceSummary, summarise_races
from preselect.store import Journal, Round, count_rounds, read_rounds

EXACT, AT_LEAST, LIMIT = Knowledge.EXACT, Knowledge.AT_LEAST, Knowledge.LIMIT


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


def a_round(chosen, *, kind="winner", winner=None, utilities=None, after=None):
    names = () if winner is None else (winner,)
    utilities = tuple(utilities or [0.0] * len(chosen))
    return Round(1, 0.0, "x.cnf", tuple(chosen), utilities, kind=kind, names=names, after=after)


def a_race(statuses, *, kind="winner", seconds=2.0, limit=60.0, times=None):
    past = a_round(tuple(statuses), kind=kind)
    return PastRace(past, seconds, None, limit, statuses, times or dict.fromkeys(statuses))


def summarise(path):
    with Journal.read(path) as journal:
        return summarise_races(read_rounds(journal))


@pytest.mark.parametrize(
    ("status", "known"),
    [
        ("won", KnownTime(1.5, EXACT)),
        ("killed", KnownTime(2.0, AT_LEAST)),
        ("finished late", KnownTime(2.0, AT_LEAST)),
        ("timeout", KnownTime(60.0, LIMIT)),
        ("memory", KnownTime(60.0, LIMIT)),
        ("crashed", KnownTime(60.0, LIMIT)),
        ("wrong answer", KnownTime(60.0, LIMIT)),
        ("no answer", KnownTime(60.0, LIMIT)),
        ("not started", None),
        ("infrastructure error", None),
        ("something new", None),
    ],
)
def test_what_a_race_tells_of_the_time_of_an_arm(status, known):
    race = a_race({"a": status}, times={"a": 1.5})
    assert race.known_time("a") == known
    assert race.known_time("b") is None
    for ended in ({"kind": "void"}, {"kind": None}, {"seconds": None}):
        assert a_race({"a": status}, times={"a": 1.5}, **ended).known_time("a") is None


def test_without_a_limit_or_an_own_time_the_race_says_how_long():
    assert a_race({"a": "crashed"}, limit=None).known_time("a") == KnownTime(2.0, LIMIT)
    assert a_race({"a": "won"}).known_time("a") == KnownTime(2.0, EXACT)


def compare(**arms):
    """The best single arm of some, whose races are given as lists of (seconds, how)."""
    statuses = {EXACT: "won", AT_LEAST: "killed"}
    races = [a_race({arm: statuses[how]}, seconds=seconds) for arm, known in arms.items() for seconds, how in known]
    best = RaceSummary(races, count_rounds([])).find_best_single()
    return best and best.arm


def test_the_best_single_arm_won_most_in_enough_races():
    quick_loser, winner = [(0.1, AT_LEAST)] * 9, [(5.0, EXACT)] * 3 + [(5.0, AT_LEAST)] * 2
    assert compare(quick=quick_loser, winner=winner) == "winner"
    assert compare(quick=quick_loser, rare=[(1.0, EXACT)] * 4) == "quick"
    assert compare(slow=winner, fast=[*winner[:4], (1.0, AT_LEAST)]) == "fast"
    assert compare(rare=winner[:4]) is None
    assert compare() is None


@pytest.mark.parametrize("outside", [False, True])
def test_calibration_compares_the_chances_at_each_round_with_how_it_ended(outside):
    generator, chances, pairs, races = np.random.default_rng(0), Chances(outside), [], []
    for _ in range(60):
        u, place = generator.normal(size=2), int(generator.choice(3, p=[0.5, 0.2, 0.3]))
        kind = "no-winner" if place == 2 else ("winner", "ranking")[len(races) % 2]
        races.append(a_round("ab", kind=kind, winner="ab "[place].strip() or None, utilities=u.tolist()))
        races += [a_round("ab", kind=kind, utilities=[9.0, 0.0]) for kind in ("void", None)]
        races.append(a_round("ab", kind="ranking", winner=("a", "b"), utilities=[9.0, 0.0]))  # a tie
        races.append(a_round("ab", winner="a", utilities=[math.inf, 0.0]))
        if outside or place < 2:
            pairs += [(chance, place == i) for i, chance in enumerate(chances.predict(u)[: 2 + outside])]
            chances.learn(u, None if place == 2 else place)
    bins = calibrate(races, outside)
    assert sum(one.size for one in bins) == len(pairs)
    for one in bins:
        inside = [pair for pair in pairs if one.low <= pair[0] < one.high]
        predicted, won = np.mean(inside, axis=0)
        assert one[2:] == pytest.approx((len(inside), predicted, won, math.sqrt(won * (1 - won) / len(inside))))


def test_a_single_arm_is_predicted_only_where_it_may_fail():
    races = [a_round("a", winner="a", utilities=[math.log(3.0)])]
    nobody, somebody = calibrate(races, outside=True)
    assert nobody == pytest.approx((0.2, 0.3, 1, 0.25, 0.0, 0.0))
    assert somebody == pytest.approx((0.7, 0.8, 1, 0.75, 1.0, 0.0))
    assert calibrate(races, outside=False) == []


def test_a_sure_prediction_falls_into_the_last_bin():
    (low, high) = calibrate([a_round("ab", winner="a", utilities=[900.0, 0.0])], outside=False)
    assert (low.low, low.size, low.observed, high.high, high.size, high.observed) == (0.0, 1, 0.0, 1.0, 1, 1.0)


def test_of_many_arms_the_rest_is_one_curve(path):
    with open_learner(path, arms=[f"arm{place}" for place in range(30)], context=(), policy="random") as learner:
        book = play(learner, 50)
    summary = summarise(path)
    found = summary.trace_arms()
    assert len(found) == 12
    assert [int(curve.plays[-1]) for curve in found[:-1]] == [book["played", curve.name] for curve in found[:-1]]
    assert [int(curve.wins[-1]) for curve in found[:-1]] == [
        Counter(race.round.winner for race in summary.races)[curve.name] for curve in found[:-1]
    ]
    assert sum(curve.plays[-1] for curve in found) == 100
    assert sum(curve.wins[-1] for curve in found) == book["won"]
    assert found[-1].name == f"{found[-1].arms} other arms"
    alone = {curve.name for curve in found}
    rest = [book["played", arm] for arm in learner.preselector.arms if arm not in alone]
    assert min(curve.plays[-1] for curve in found[:-1]) >= max(rest)
    assert found[-1].plays[-1] == sum(rest)


def test_curves_follow_the_races(path):
    with open_learner(path, arms=["a", "b"], context=()) as learner:
        for winner in ("a", None, "b", "a"):
            outcome = {"outcome": NoWinner()} if winner is None else {"winner": winner}
            learner.learn(learner.select(k=2), **outcome)
    found = {curve.name: (curve.plays.tolist(), curve.wins.tolist()) for curve in summarise(path).trace_arms()}
    assert found == {"a": ([1, 2, 3, 4], [1, 1, 1, 2]), "b": ([1, 2, 3, 4], [0, 0, 1, 1])}


def race(learner, seconds, statuses, **outcome):
    recorded = details(seconds, statuses, limit=60.0)
    learner.learn(learner.select(k=2, eligible=[*statuses]), details=recorded, **outcome)


def test_void_races_count_and_have_no_time(path):
    with open_learner(path, arms=["a", "b"], context=()) as learner:
        race(learner, 2.0, {"a": "won", "b": "crashed"}, winner="a")
        race(learner, 7.0, {"a": "not started", "b": "crashed"}, outcome=Void())
        learner.select(k=2)
    summary = summarise(path)
    assert (summary.counts.rounds, summary.solved, summary.unsolved, summary.void) == (3, 1, 0, 1)
    assert summary.counts.unfinished == 1
    assert summary.counts.plays == {"a": 3, "b": 3}
    assert (summary.seconds, summary.feature_seconds) == (2.0, 0.25)
    assert {arm: single.saved_seconds for arm, single in summary.single_arms.items()} == {"a": 0.0, "b": 58.0}


def test_a_race_that_nobody_won_saves_nothing(path):
    """However soon everybody fails, the arm alone would have failed as well."""
    with open_learner(path, arms=["a", "b"], context=()) as learner:
        race(learner, 0.1, {"a": "crashed", "b": "no answer"}, outcome=NoWinner())
    lost = summarise(path)
    assert (lost.unsolved, lost.seconds, dict(lost.single_arms)) == (1, 0.1, {})
    assert lost.races[0].known_time("a") == KnownTime(60.0, LIMIT)


def test_without_details_there_is_no_time(path):
    with open_learner(path, arms=["a", "b"], context=()) as learner:
        learner.learn(learner.select(k=2), winner="a")
    summary = summarise(path)
    assert (summary.seconds, summary.feature_seconds, summary.solved) == (None, None, 1)
