"""Tables of rounds: what can be read, and what is said of what cannot."""

import gzip
from io import StringIO

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from preselect import InputError, Preselector, logs
from preselect.cli.main import preselect as command
from preselect.logs.ranked import NOBODY, rank_rows
from preselect.offline import read_logs
from preselect.store import Learner

TABLE = """round,arm,place,shown,propensity,arm.words,context.hour
1,storm,1,1,0.5,900,20
1,derby,,1,0.5,,20
2,derby,1,1,,300,
1,budget,,0,,2500,20
2,storm,1,yes,,900,
3,storm,,1,,900,5
3,derby,,1,,300,5
"""


def table(**columns):
    return {"round": [1, 1], "arm": ["a", "b"], "place": [1, None], **columns}


def test_a_table_becomes_rounds():
    found = logs.read(StringIO(TABLE))
    assert (found.arms, found.features, found.context) == (("storm", "derby", "budget"), ("words",), ("hour",))
    assert [one.label for one in found.rounds()] == ["1", "2", "3"]
    assert [one.places for one in found.rounds()] == [(("storm",),), (("derby", "storm"),), ()]
    assert found.starts.tolist() == [0, 3, 5, 7]
    assert found.shown.tolist() == [True, True, False, True, True, True, True]
    assert found.winners.tolist() == [True, True, False]
    np.testing.assert_array_equal(found.contexts, [[20.0], [np.nan], [5.0]])
    np.testing.assert_array_equal(found.values[:3, 0], [900.0, np.nan, 2500.0])
    np.testing.assert_array_equal(found.propensities[:3], [0.5, 0.5, np.nan])
    assert found.describe_arms()["derby"] == {"words": 300.0}


def test_logs_are_shown_without_their_arrays():
    rounds = [number for number in range(2000) for _ in range(2)]
    found = logs.read({"round": rounds, "arm": ["a", "b"] * 2000, "place": [1, None] * 2000, "context.hour": rounds})
    assert repr(found) == "Logs(rounds=2000, arms=2, features=(), context=('hour',))"


def test_files_and_frames_give_the_same_logs(tmp_path):
    pandas = pytest.importorskip("pandas")
    expected = logs.read(StringIO(TABLE))
    plain, zipped, parquet = (tmp_path / name for name in ("t.csv", "t.csv.gz", "t.parquet"))
    plain.write_text("\ufeff" + TABLE)
    zipped.write_bytes(gzip.compress(TABLE.encode()))
    frame = pandas.read_csv(StringIO(TABLE), dtype={"shown": str})
    frame.to_parquet(parquet)
    for source in (plain, str(zipped), parquet, frame):
        found = logs.read(source)
        for name in ("arms", "labels", "features", "context"):
            assert getattr(found, name) == getattr(expected, name)
        for name in ("starts", "arm", "values", "contexts", "shown", "places", "propensities"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("4,storm,first,1,,900,5", "line 9: place is 'first'; use a number, or nothing"),
        ("4,storm,0,1,,900,5", "line 9: place is 0; use 1, 2, 3 and so on, or nothing"),
        ("4,storm,1.5,1,,900,5", "line 9: place is 1.5; use 1, 2, 3 and so on, or nothing"),
        ("4,storm,1,maybe,,900,5", "line 9: shown is 'maybe'; use 1 or 0"),
        ("4,storm,1,0,,900,5", "line 9: round 4 shows no arm; 1 more problem"),
        ("4,storm,,0,,900,5", "line 9: round 4 shows no arm"),
        ("4,,1,1,,900,5", "line 9: arm is empty"),
        ("3,storm,1,1,,900,5", "line 9: storm occurs in this round already"),
        ("3,budget,1,1,,900,6", "line 9: the context differs from that of line 7, in the same round"),
        ("4,storm,1,1,1.2,900,5", "line 9: propensity is 1.2; use a probability above 0, up to 1, or nothing"),
        ("4,storm,1,1,,inf,5", "line 9: arm.words is infinite; use a finite number, or nothing"),
        ("4,storm,1,1,,900,5,5", "line 9: 8 values, but there are 7 columns"),
        ('\n3,"ha\nil",1,1,,900,5\n4,x,x,1,,1,1', "line 12: place is 'x'; use a number, or nothing"),
        ("4,storm,1,1,,900", "line 9: 6 values, but there are 7 columns"),
        ('4,"storm,1,1,,900,5', "the table, line 9: this is not CSV: unexpected end of data"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line, problem):
    with pytest.raises(InputError) as caught:
        logs.read(StringIO(TABLE + line + "\n"))
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"round": [1], "arm": ["a"]}, "the table has no column 'place'; it has 'round', 'arm'"),
        (table(words=[1, 2]), "the table has the columns 'words'; features of arms are called arm.NAME"),
        ({"round": [], "arm": [], "place": []}, "the table has no rows"),
        (table(place=[1]), "the columns have different lengths"),
        (table(**{"arm.x": [1.0, "x"]}), "row 1: arm.x is 'x'; use a number, or nothing"),
        (table(place=1), "columns hold one value for each row of the table, but these do not: 'place'"),
        (table(**{"arm.x": [[1], [2]]}), "but these do not: 'arm.x'"),
        (table(**{"arm.": [1, 2]}), "the table has a column without a name; it has 'round', 'arm', 'place', 'arm.'"),
        (StringIO(TABLE.replace("round", "")), "the table has no column 'round'"),
        (StringIO(TABLE.replace(",context.hour", ",")), "the table has a column without a name"),
        (StringIO(""), "the table is empty"),
        (StringIO("\n\n"), "the table is empty"),
        (StringIO(TABLE.replace(",", ";")), "the table has ';' between its columns; write it with commas"),
        (StringIO("round,arm,place,arm\n"), "the table has two columns of the same name"),
        (7, "the table is 7; use a file, a data frame, or a mapping of columns"),
    ],
)
def test_what_is_no_table_is_refused(source, problem):
    with pytest.raises(InputError, match=problem.replace(".", r"\.")):
        logs.read(source)


def test_all_problems_are_listed_in_order():
    lines = ["4,storm,x,1,,900,5", "", "4,storm", "5,,1,1,,900,5", '6,"a\nb",,,,,,', "7,a,x,,,,"]
    problems = logs.check(StringIO(TABLE + "\n".join(lines)))
    assert [problem.message.partition(":")[0] for problem in problems] == [f"line {n}" for n in (9, 11, 12, 13, 15)]
    assert [problem.row for problem in problems] == [7, 8, 9, 10, 11]


def test_values_that_frames_call_missing_are_missing():
    pandas = pytest.importorskip("pandas")
    missing = (pandas.NA, pandas.NaT, None, float("nan"), "")
    found = logs.read(
        {"round": [1] * 6, "arm": [*"abcdef"], "place": [*missing, 1], "arm.x": [*missing, 2.0], "shown": [*missing, 1]}
    )
    assert (found.places.tolist(), found.shown.all()) == ([0] * 5 + [1], True)
    np.testing.assert_array_equal(found.values[:, 0], [np.nan] * 5 + [2.0])
    frame = pandas.read_csv(StringIO(TABLE.replace("yes", "1"))).convert_dtypes()
    np.testing.assert_array_equal(logs.read(frame).places, logs.read(StringIO(TABLE)).places)
    arrays = pandas.DataFrame({**table(), "arm.x": [np.ones(2), np.ones(2)]})
    assert len(logs.check(arrays)) == 2


def test_what_is_masked_is_missing_and_times_are_no_numbers():
    masked = np.ma.array([1, 2], mask=[False, True])
    assert logs.read(table(place=masked)).places.tolist() == [1, 0]
    for unit in ("D", "us", "ns"):
        times = np.array(["2026-01-01"] * 2, dtype=f"datetime64[{unit}]")
        assert "context.day is datetime" in logs.check(table(**{"context.day": times}))[0].message
        assert logs.read(table(round=times)).labels[0].startswith("2026-01-01")
        assert "arm.age is datetime.timedelta" in logs.check(table(**{"arm.age": times - times[0]}))[0].message
        assert "context.day is datetime" in logs.check(table(**{"context.day": list(times)}))[0].message
        assert np.isnan(logs.read(table(**{"context.day": [np.datetime64("NaT", unit)] * 2})).contexts).all()
    for names in ([b"a", b"b"], [{"a": 1}, {"b": 1}]):
        assert "use a text or a number" in logs.check(table(arm=names))[0].message


def test_frames_of_pandas_have_each_column_once():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table())
    with pytest.raises(InputError, match="the table has two columns of the same name: 'arm'"):
        logs.read(pandas.concat([frame, frame[["arm"]]], axis=1))


def test_tables_of_arrow_keep_what_is_missing(tmp_path):
    """The index of a frame that was filtered and then written to Parquet is no column of the table."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    arms = arrow.array(["a", "b"]).dictionary_encode()
    one = arrow.table(
        {"round": [1, 1], "arm": arms, "place": [1, None], "arm.x": [1, None], "__index_level_0__": [5, 7]}
    )
    parquet.write_table(one, tmp_path / "t.parquet")
    for source in (one, tmp_path / "t.parquet"):
        found = logs.read(source)
        assert (found.arms, found.places.tolist(), found.features) == (("a", "b"), [1, 0], ("x",))
    unnamed = one.set_column(1, "arm", arrow.array(["a", None]).dictionary_encode())
    assert [problem.message for problem in logs.check(unnamed)] == ["row 1: arm is empty"]
    big = one.set_column(1, "arm", arrow.array([2**62 + 1, 2**62 + 2]))
    assert logs.read(big).arms == (str(2**62 + 1), str(2**62 + 2))
    parquet.write_table(
        arrow.Table.from_arrays([*one.columns, arms], names=[*one.column_names, "arm"]), tmp_path / "u.parquet"
    )
    with pytest.raises(InputError, match="two columns of the same name: 'arm'"):
        logs.read(tmp_path / "u.parquet")


def test_open_files_may_begin_with_a_mark():
    assert len(logs.read(StringIO("\ufeff" + TABLE))) == 3


def test_damaged_files_are_named(tmp_path):
    pandas = pytest.importorskip("pandas")
    zipped, parquet = tmp_path / "t.csv.gz", tmp_path / "t.parquet"
    zipped.write_bytes(gzip.compress(TABLE.encode())[:-20])
    pandas.read_csv(StringIO(TABLE), dtype=str).to_parquet(parquet)
    parquet.write_bytes(parquet.read_bytes()[:30] + bytes(270) + parquet.read_bytes()[300:])
    for path, problem in ((zipped, "breaks off before its end"), (parquet, "is not a Parquet file")):
        result = CliRunner().invoke(command, ["logs", "check", str(path)])
        assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
        assert f"{path} is" in result.output
        assert problem in result.output


@given(st.data())
def test_rankings_of_logs_are_those_of_outcomes(data):
    """Every outcome has the shown arms once, ranked ones first; NOBODY is first only if no arm was placed."""
    rounds = data.draw(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1), min_size=1))
    rows = [
        (t, f"a{i}", place if shown and place else None, shown or i == 0)
        for t, arms in enumerate(rounds)
        for i, (shown, place) in enumerate(arms)
    ]
    found = logs.read(dict(zip(("round", "arm", "place", "shown"), map(list, zip(*rows, strict=True)), strict=True)))
    outside = data.draw(st.booleans())
    ranked, first = rank_rows(found, outside), 0
    for t, size, length in zip(*(part.tolist() for part in (ranked.rounds, ranked.sizes, ranked.lengths)), strict=True):
        outcome, first = ranked.rows[first : first + size].tolist(), first + size
        arms = slice(found.starts[t], found.starts[t + 1])
        shown = [row for row in range(arms.start, arms.stop) if found.shown[row]]
        assert sorted(row for row in outcome if row != NOBODY) == shown
        places = [found.places[row] for row in outcome[:length] if row != NOBODY]
        assert places == sorted(places)
        assert all(places) or not places
        assert (outcome[0] == NOBODY) == (outside and not any(found.places[shown]))
        assert 1 <= length <= size
        assert outcome.count(NOBODY) == outside
    assert first == len(ranked.rows)


def test_a_journal_is_a_table_too(tmp_path):
    path = tmp_path / "a.journal"
    with Learner.open(path, make=lambda: Preselector({"a": {"x": 1.0}, "b": {"x": 2.0}}, context=["c"], seed=0)) as one:
        one.learn(one.select({"c": 3.0}, k=2), winner="b")
        one.learn(one.select({"c": None}, k=2), ranking=[["a", "b"]])
        one.select({"c": 1.0}, k=2)  # waits
    found = read_logs(path)
    first, second = found.rounds()
    assert first.places == (("b",),)
    assert [sorted(tied) for tied in second.places] == [["a", "b"]]
    assert found.describe_arms() == {"a": {"x": 1.0}, "b": {"x": 2.0}}
    np.testing.assert_array_equal(found.contexts, [[3.0], [np.nan]])


def test_a_journal_of_the_service_is_found_by_its_name(tmp_path):
    path = tmp_path / "a.journal"
    for name in ("news", "films"):
        with Learner.open(path, make=lambda: Preselector(["a", "b"], seed=0), name=name) as one:
            one.learn(one.select(k=2), winner="b")
        if name == "news":
            assert len(read_logs(path)) == 1  # the only one need not be named
    several = CliRunner().invoke(command, ["logs", "check", str(path)])
    assert (several.exit_code, len(several.output.splitlines())) == (1, 1)
    assert "several journals; name one of 'films', 'news'" in several.output
    for arguments in (["logs", "check"], ["fit", "--held-out", "0"]):
        found = CliRunner().invoke(command, [*arguments, str(path), "--name", "films"])
        assert (found.exit_code, found.output.startswith("1 rounds")) == (0, True)


PREFLIB = """# FILE NAME: food.toi
# TITLE: Food
# DESCRIPTION:
# DATA TYPE: toi
# MODIFICATION TYPE: synthetic
# RELATES TO:
# RELATED FILES:
# PUBLICATION DATE: 2026-01-01
# MODIFICATION DATE: 2026-01-01
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 4
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: ham
# ALTERNATIVE NAME 2: egg
# ALTERNATIVE NAME 3: jam
3: 1,{2,3}
1: 2
"""


def test_voters_of_preflib_are_rounds(tmp_path):
    pytest.importorskip("preflibtools")
    path = tmp_path / "food.toi"
    path.write_text(PREFLIB)
    found = read_logs(path)
    voters = sorted(found.rounds(), key=lambda one: int(one.label))
    assert [one.places for one in voters] == [(("ham",), ("egg", "jam"))] * 3 + [(("egg",),)]
    path.with_suffix(".TOI").write_text(PREFLIB)
    assert read_logs(path.with_suffix(".TOI")).labels == found.labels  # shuffled, always in the same way


def test_equal_votes_of_preflib_do_not_stand_together(tmp_path):
    """So that the last rounds, on which a fit is tested, are like the first ones."""
    pytest.importorskip("preflibtools")
    path = tmp_path / "food.toi"
    path.write_text(PREFLIB + "100: 3\n100: 2\n")
    winners = [one.places[0] for one in read_logs(path).rounds()]
    assert 10 < winners[-40:].count(("jam",)) < 30


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("food.toi", "nothing", "not a file of PrefLib: it should name the alternatives"),
        ("food.toi", "", "not a file of PrefLib"),
        ("food.toi", PREFLIB.partition("3: 1")[0], "not a file of PrefLib"),
        ("food.toi", "\udcff", "not a file of PrefLib"),
        ("food.toi", PREFLIB + "1: 4\n", r"line 18: '1: 4' should be a number of voters, a colon and alternatives"),
        ("food.toi", PREFLIB + "1: 1,1\n", "line 18"),
        ("food.toi", PREFLIB + "1: ham\n", "line 18"),
        ("food.toi", PREFLIB + "0: 1\n", "line 18"),
        ("food.toi", PREFLIB + "1: {1,2\n", "line 18"),
        ("food.toc", PREFLIB, "line 17: '1: 2' should be a number of voters, a colon and all alternatives"),
    ],
)
def test_what_is_wrong_in_a_file_of_preflib_is_said(name, content, problem, tmp_path):
    pytest.importorskip("preflibtools")
    path = tmp_path / name
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=problem):
        read_logs(path)


def test_logs_check_says_what_is_wrong_and_what_is_there(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    good = CliRunner().invoke(command, ["logs", "check", str(path)])
    assert (good.exit_code, good.output.splitlines()[0]) == (
        0,
        "3 rounds of 3 arms, 2 with a winner; everything can be read",
    )
    path.write_text(TABLE + "4,storm,x,1,,900,5\n")
    bad = CliRunner().invoke(command, ["logs", "check", str(path)])
    assert (bad.exit_code, bad.output) == (1, "line 9: place is 'x'; use a number, or nothing\n")
    path.write_text(TABLE + "4,\x1b[2J,,1,,900,5\n" * 2)
    hostile = CliRunner().invoke(command, ["logs", "check", str(path)])
    assert (hostile.exit_code, hostile.output) == (1, "line 10: \\x1b[2J occurs in this round already\n")
    missing = CliRunner().invoke(command, ["logs", "check", str(tmp_path / "none.csv")])
    assert missing.exit_code == 1
    assert "No such file" in missing.output
