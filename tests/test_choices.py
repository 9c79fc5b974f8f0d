"""Tables of choices as environments: who wins among those that are shown, measures, baselines, and real tables."""

import itertools
from io import StringIO

import numpy as np
import pytest
from commands import preselect
from studies import compute

from preselect import InputError, NoWinner, Random, Ranking, Winner, logs
from preselect.environments import ChoiceReplay, choice_baselines
from preselect.errors import ResultsError
from preselect.offline import read_logs
from preselect.study import ChoicesPlan, ChoicesSetting

TABLE = """round,arm,place,shown,arm.price,context.hour
1,a,2,1,5,20
1,b,1,1,4,20
1,c,,1,3,20
2,a,,1,6,9
2,c,1,1,3,9
2,d,1,1,,9
2,b,,0,,9
3,a,,1,5,
3,b,,1,7,
3,d,,1,8,
"""


@pytest.fixture
def table():
    return logs.read(StringIO(TABLE))


def play(environment, policy, rounds, k=2):
    """Play rounds; return for each the shown names, the chosen names, the outcome and its measures."""
    found = []
    for _ in range(rounds):
        context = environment.context()
        decision = policy.select(context, k)
        outcome = environment.outcome(decision)
        policy.learn(decision, outcome)
        measured = environment.measure(np.array([environment.truth()]), decision.arms[None])
        arms = [environment.logs.arms[slot] for slot in context.ids]
        found.append((int(environment.truth()[0]), arms, [arms[arm] for arm in decision.arms], outcome, measured))
    return found


def test_the_best_ranked_of_those_shown_wins(table):
    seen = {}
    for seed in range(40):
        environment = ChoiceReplay(table, seed=seed)
        for t, arms, chosen, outcome, measured in play(environment, Random(d=environment.d, seed=seed), 3):
            assert arms == [["a", "b", "c"], ["a", "c", "d"], ["a", "b", "d"]][t]
            winner = arms[outcome.arm] if isinstance(outcome, Winner) else None
            counts = (measured["misses"].item(), measured["better"].item())
            seen.setdefault((t, frozenset(chosen)), set()).add((winner, *counts))
    assert seen == {
        (0, frozenset("ab")): {("b", 0.0, 0.0)},
        (0, frozenset("ac")): {("a", 1.0, 1.0)},
        (0, frozenset("bc")): {("b", 0.0, 0.0)},
        (1, frozenset("ac")): {("c", 0.0, 0.0)},
        (1, frozenset("ad")): {("d", 0.0, 0.0)},
        (1, frozenset("cd")): {("c", 0.0, 0.0), ("d", 0.0, 0.0)},  # tied: by lot
        (2, frozenset("ab")): {(None, 0.0, 0.0)},  # nobody has a place, so nothing is missed
        (2, frozenset("ad")): {(None, 0.0, 0.0)},
        (2, frozenset("bd")): {(None, 0.0, 0.0)},
    }


def test_a_choice_that_is_not_shown_has_no_winner_and_rankings_are_of_those_with_a_place():
    table = logs.read({"round": [1, 1, 1, 1], "arm": list("abcd"), "place": [None, 3, 2, 1]})
    environment = ChoiceReplay(table, feedback="ranking")
    context = environment.context()
    assert context.shape == (4, 4)
    policy = Random(d=4, seed=0)
    kinds = {}
    for _ in range(40):
        decision = policy.select(context, 2)
        kinds[frozenset(decision.arms.tolist())] = environment.outcome(decision)
    assert kinds[frozenset((0, 1))] == Ranking([1])
    assert kinds[frozenset((1, 2))] == Ranking([2, 1])
    assert kinds[frozenset((2, 3))] == Ranking([3, 2])
    winners = logs.read({"round": [1, 1, 1], "arm": list("abc"), "place": [None, None, 1]})
    environment = ChoiceReplay(winners)
    environment.context()
    decision = policy.select(np.eye(4)[:2], 2)
    assert environment.outcome(decision) == NoWinner()
    assert environment.measure(np.array([[0.0]]), np.array([[0, 1]])) == {"misses": [1.0], "better": [1.0]}


def test_features_are_those_of_the_round_and_scaled_by_the_whole_table(table):
    environment = ChoiceReplay(table, seed=1)
    assert environment.d == (1 + 4) * (1 + 1)
    rows = {}
    for _ in range(3):
        context = environment.context()
        t = int(environment.truth()[0])
        rows.update({(t, table.arms[slot]): row for slot, row in zip(context.ids, np.asarray(context), strict=True)})
    price = {key: row[0] for key, row in rows.items()}
    assert price[1, "a"] > price[0, "a"] == price[2, "a"]  # 6, 5, 5
    assert price[1, "d"] == 0.0  # not known: the mean
    assert sum(price.values()) == pytest.approx(0.0, abs=1e-12)
    assert [rows[0, "a"][2 + 2 * arm] for arm in range(4)] == pytest.approx([np.sqrt(0.5), 0.0, 0.0, 0.0])
    plain = ChoiceReplay(table, identity=False)
    assert (plain.d, plain.context().shape) == (2, (3, 2))
    without = logs.read({"round": [1, 1], "arm": ["a", "b"], "place": [1, 2]})
    with pytest.raises(
        InputError, match=r"without identities arms differ by their features only, .* no column arm.NAME"
    ):
        ChoiceReplay(without, identity=False)


def test_baselines_agree_with_brute_force():
    generator = np.random.default_rng(0)
    places = [generator.permutation(5) + 1 for _ in range(30)]
    columns = {"round": np.repeat(np.arange(30), 5), "arm": list("abcde") * 30, "place": np.concatenate(places)}
    found = choice_baselines(logs.read(columns), 2)
    better, sets = np.array(places) - 1, list(itertools.combinations(range(5), 2))
    for measure, costs in {"better": better, "misses": np.minimum(better, 1)}.items():
        totals = [costs[:, list(chosen)].min(axis=1).sum() for chosen in sets]
        popular = np.argsort(costs.mean(axis=0), kind="stable")[:2]
        expected = {"random set": np.mean(totals), "best on average": costs[:, popular].min(axis=1).sum()}
        assert found[measure] == pytest.approx(expected | {"best fixed set": min(totals)})


def test_no_fixed_set_where_rounds_have_different_arms(table):
    assert set(choice_baselines(table, 2)["misses"]) == {"random set", "best on average"}


def test_the_study_is_played_and_changed_tables_are_refused(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(TABLE)
    plan = ChoicesPlan(
        (ChoicesSetting(str(file), 2),), policies=("newton(outside=True)", "mm", "random"), repetitions=2
    )
    results = compute(tmp_path / "out", plan)
    assert results.find_data(plan.settings[0]).rounds == 3
    assert {policy for _, policy in results.summarise("misses")} == set(plan.policies)
    file.write_text(TABLE.replace("a,2", "a,3"))
    with pytest.raises(ResultsError, match=r"holds results of \S+table.csv, which has changed since"):
        compute(tmp_path / "out", plan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"settings": (ChoicesSetting("t.csv", 4),)},
            "k=4, but every round of t.csv shows 3 arms; choose k from 1 to 2",
        ),
        ({"feedback": "smile"}, "unknown feedback 'smile'; choose one of winner, ranking"),
    ],
)
def test_bad_plans_are_named(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    with pytest.raises(InputError, match=message):
        ChoicesPlan(**{"settings": (ChoicesSetting("t.csv", 2),), **change}).check()


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (2, "k=2, but every round of t.csv shows 2 arms; choose k from 1 to 1"),
        (1, "no round of t.csv shows more than one arm, so there is nothing to choose"),
    ],
)
def test_a_table_without_a_choice_is_refused(tmp_path, monkeypatch, shown, message):
    """Nothing could be missed, by any policy: a log of what was shown is no table of choices among all."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{t},{arm},{int(arm < shown)},{1 if arm == 0 else ''}\n" for t in range(3) for arm in range(4)]
    (tmp_path / "t.csv").write_text("round,arm,shown,place\n" + "".join(rows))
    with pytest.raises(InputError, match=message):
        ChoicesPlan((ChoicesSetting("t.csv", 2),)).check()


def test_a_table_that_is_away_or_wrong_is_said(tmp_path):
    assert "no.csv: No such file" in preselect("study", "choices", tmp_path / "no.csv", "--k", 2, expect=1).stderr
    (tmp_path / "bad.csv").write_text("round,arm,place\n1,a,first\n")
    said = preselect("study", "choices", tmp_path / "bad.csv", "--k", 1, expect=1).stderr
    assert "line 2: place is 'first'; use a number, or nothing" in said


def test_travellers_are_learnt(tmp_path):
    """210 travellers between Sydney, Canberra and Melbourne, and how they went: real choices, from statsmodels."""
    modechoice = pytest.importorskip("statsmodels.datasets.modechoice")
    data = modechoice.load_pandas().data
    columns = {"round": data["individual"], "arm": data["mode"], "place": data["choice"].where(data["choice"] > 0)}
    columns |= {f"arm.{name}": data[name] for name in ("ttme", "invc", "invt")}
    columns |= {f"context.{name}": data[name] for name in ("hinc", "psize")}
    environment_of = read_logs(columns)
    assert len(environment_of) == 210
    random = choice_baselines(environment_of, 2)["misses"]["random set"]
    assert random == pytest.approx(105.0)  # two of four
    file = tmp_path / "travellers.csv"
    import pandas

    pandas.DataFrame(columns).to_csv(file, index=False)
    plan = ChoicesPlan((ChoicesSetting(str(file), 2),), policies=("newton(outside=True)",), repetitions=3)
    (found,) = compute(tmp_path / "out", plan).summarise("misses").values()
    assert found.mean < 0.6 * random


ORDER = "100 1\n0 3 5 99 0\n0 2 26 7\n"
USERS = "0\t1\t2\t785\t13\t3\t0\t26\t6\t1\t1\n1\t0\t5\t300\t0\t0\t0\t0\t0\t0\t0\n"


def write_sushi(folder, order=ORDER, users=USERS, items=100):
    lines = [f"{i}\tsushi{i}\t{i % 2}\t0\t{i % 12}\t{i / 50}\t1.5\t{1 + i}\t0.5\n" for i in range(items)]
    for name, text in (("sushi3b.order", order), ("sushi3.udata", users), ("sushi3.idata", "".join(lines))):
        (folder / name).write_text(text)
    return folder / "sushi3b.order"


def test_sushi_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("preselect.study.study.write_report", lambda results: results.folder)
    found = read_logs(write_sushi(tmp_path))
    assert [one.places for one in found.rounds()] == [
        (("sushi5",), ("sushi99",), ("sushi0",)),
        (("sushi26",), ("sushi7",)),
    ]
    assert found.context == ("female", "age", "seconds", "west_until_15", "west", "moved")
    assert found.contexts.tolist() == [[1, 2, 785, 0, 1, 1], [0, 5, 300, 0, 0, 0]]
    assert found.features[:6] == ("not_maki", "not_seafood", "lightness", "eaten", "price", "sold")
    assert found.values[0].tolist() == [1, 0, 0.1, 1.5, 6, 0.5, *(float(group == 5) for group in range(12))]
    assert found.values[1, 6:].tolist() == [float(group == 3) for group in range(12)]
    out = tmp_path / "out"
    options = ["--k", 1, "--no-identity", "--policies", "newton,random", "--reps", 1, "--workers", 1, "--out", out]
    preselect("study", "choices", tmp_path / "sushi3b.order", *options)
    assert "sushi3b.order" in preselect("study", "show", out).stdout
    assert "2 rounds" in preselect("logs", "check", tmp_path / "sushi3b.order").stdout


def test_a_table_may_have_a_single_round(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("round,arm,place\n1,a,1\n1,b,\n1,c,\n")
    plan = ChoicesPlan((ChoicesSetting(str(file), 2),), policies=("newton", "random"), repetitions=2)
    assert compute(tmp_path / "out", plan).find_pending(plan) == []


def test_sushi_files_may_end_in_empty_lines_and_be_shouted(tmp_path):
    path = write_sushi(tmp_path, order=ORDER.replace("\n", "\r\n") + "\r\n", users=USERS + "\n")
    expected = [one.places for one in read_logs(path).rounds()]
    assert len(expected) == 2
    path = path.rename(path.with_suffix(".ORDER"))
    assert [one.places for one in read_logs(path).rounds()] == expected


def test_the_small_item_set_has_the_same_items(tmp_path):
    path = write_sushi(tmp_path, order="10 1\n0 10 5 0 3 4 6 9 8 1 7 2\n", users=USERS[: USERS.index("\n") + 1])
    numbers = [
        6,
        0,
        3,
        4,
        7,
        29,
        26,
        1,
        8,
        2,
    ]  # ikura, ebi, ika, uni, tamago, kappa maki, tekka maki, anago, toro, maguro
    (only,) = read_logs(path).rounds()
    assert only.places == tuple((f"sushi{number}",) for number in numbers)


@pytest.mark.parametrize("head", ["nan 1", "inf 1", "2.5 1"])
def test_the_head_of_a_sushi_file_is_a_number_of_items(head, tmp_path):
    with pytest.raises(InputError, match="is not a file of rankings"):
        read_logs(write_sushi(tmp_path, order=f"{head}\n0 1 0\n"))


def test_sushi_files_that_are_no_text_are_named(tmp_path):
    path = write_sushi(tmp_path)
    (tmp_path / "sushi3.udata").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"sushi3\.udata is not text in UTF-8"):
        read_logs(path)


def test_sushi_without_people_and_items(tmp_path):
    path = write_sushi(tmp_path)
    for name in ("sushi3.udata", "sushi3.idata"):
        (tmp_path / name).unlink()
    found = read_logs(path)
    assert (found.arms, found.features, found.context) == (("5", "99", "0", "26", "7"), (), ())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"order": ""}, "is not a file of rankings: its first line should be the number of items and a 1"),
        ({"order": "round,arm\n"}, "is not a file of rankings: it should hold numbers only"),
        (
            {"order": "100 1\n0 3 5 99\n0 2 1 2\n"},
            "line 2: expected 0, how many items follow, and their numbers, from 0",
        ),
        ({"order": "100 1\n0 2 5 5\n0 2 1 2\n"}, "line 2: expected"),
        (
            {"order": "100 1\n0 2 5 7\n0 2 1 100\n"},
            "line 3: expected 0, how many items follow, and their numbers, from 0 to 99",
        ),
        ({"order": "100 1\n0 2 1 2\n"}, "describes 2 people, but .* has 1 rankings"),
        ({"users": "0\tx\n1\ty\n"}, r"sushi3.udata, line 1: '0\\tx' cannot be read; it should be numbers"),
        ({"items": 50}, "sushi3.idata describes 50 items, but the rankings have 100"),
    ],
)
def test_what_is_wrong_with_sushi_files_is_said(tmp_path, files, message):
    with pytest.raises(InputError, match=message):
        read_logs(write_sushi(tmp_path, **files))
