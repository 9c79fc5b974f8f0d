"""`preselect sat` and the studies on run times, as they are typed."""

import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import pytest
from commands import preselect

from preselect.errors import InputError
from preselect.files import read_bytes
from preselect.sat import FEATURE_NAMES, runtimes

GENERATE = ["sat", "generate", "--count", 3, "--vertices", "20:30", "--ratio=-2", "--seed", 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sat")
    assert "3 files in" in preselect(*GENERATE, "--out", place / "cnf").stderr
    return place


@pytest.fixture
def files(folder):
    return sorted((folder / "cnf").iterdir())


def test_instances_are_generated_again_alike(files, tmp_path):
    preselect(*GENERATE, "--out", tmp_path)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [path.read_bytes() for path in files]
    preselect(*GENERATE, "--out", tmp_path)  # equal content may stay


def test_generating_overwrites_nothing(files, tmp_path):
    mine = tmp_path / files[0].name
    mine.write_text("c edited by hand\n")
    printed = preselect(*GENERATE, "--out", tmp_path, expect=1).stderr
    assert f"{mine} exists and is not overwritten" in printed
    assert mine.read_text() == "c edited by hand\n"


@pytest.mark.parametrize(
    ("option", "value", "code", "sentence"),
    [
        ("seed", "-1", 2, "-1 is not in the range x>=0"),
        ("ratio", "2000", 2, "2000 is not within -1000:0"),
        ("ratio", "-5000", 2, "-5000 is not within -1000:0"),
        ("ratio", "-2:-3", 2, "-2:-3 has the larger number first"),
        ("ratio", "nan", 2, "'nan' is neither an integer nor two integers as in FROM:TO"),
        ("vertices", "x", 2, "'x' is neither an integer nor two integers as in FROM:TO"),
        ("vertices", "", 2, "'' is neither an integer nor two integers as in FROM:TO"),
        ("vertices", "9" * 5000, 2, "9 is neither an integer nor two integers as in FROM:TO"),
        ("vertices", "2:20", 2, "2:20 is not within 3:1000000"),
        ("vertices", "8:20", 1, "neighbours=10 does not fit into the ring"),
        ("vertices", "500000", 1, "the formula would have 48000000 literals; at most 10000000 are possible"),
        ("count", "0", 2, "0 is not in the range 1<=x<=1000000"),
        ("count", str(10**30), 2, "is not in the range 1<=x<=1000000"),
        ("neighbours", "-1", 1, "neighbours is -1; use an integer of at least 2"),
        ("neighbours", str(10**30), 1, "use an integer of at most 2**63 - 1"),
        ("colours", "0", 1, "colours is 0; use an integer of at least 1"),
        ("colours", "100000", 1, "the formula would have"),
        ("seed", "9" * 300, 1, "use an integer of at most 2**63 - 1"),
    ],
)
def test_impossible_instances_are_refused_before_anything_is_written(tmp_path, option, value, code, sentence):
    out = tmp_path / "out"
    assert sentence in preselect("sat", "generate", f"--{option}={value}", "--out", out, expect=code).stderr
    assert not out.exists() or not list(out.iterdir())


def test_features_as_csv_and_json(files):
    rows = list(csv.DictReader(io.StringIO(preselect("sat", "features", *files, "--eliminate").stdout)))
    assert [row["instance"] for row in rows] == [path.name for path in files]
    assert list(rows[0])[1:] == list(FEATURE_NAMES)
    shown = preselect("sat", "features", *files[:2], "--no-clause-graph", "--times", "--format", "json").stdout
    found = json.loads(shown)
    assert shown == json.dumps(found, indent=2) + "\n"
    assert [row["instance"] for row in found] == [path.name for path in files[:2]]
    assert not any(name.startswith(("CG", "cluster")) for name in found[0])
    assert "seconds clauses" in found[0]
    assert "line 1" in preselect("sat", "features", __file__, expect=1).stderr


@pytest.mark.parametrize("style", ["csv", "json"])
def test_features_of_other_files_are_printed_when_some_are_bad(files, tmp_path, style):
    (tmp_path / "huge.cnf").write_text("p cnf 2147483647 1\n1 0\n")
    (tmp_path / "bad.cnf").write_text("p cnf 2 1\n1 x 0\n")
    bad = [tmp_path / "huge.cnf", tmp_path / "bad.cnf", tmp_path / "none.cnf"]
    result = preselect("sat", "features", files[0], *bad, files[1], "--format", style, expect=1)
    for part in (
        "huge.cnf, line 1: the header declares 2147483647 variables, far more than 23 bytes of text can use",
        "bad.cnf, line 2: expected an integer literal, found 'x'",
        "none.cnf: No such file",
        "Error: 3 of 5 files left out; see above",
    ):
        assert part in result.stderr
    good = preselect("sat", "features", *files[:2], "--format", style)
    assert (result.stdout, good.stderr) == (good.stdout, "")


def test_small_files_that_become_very_large_are_left_out(files, tmp_path, monkeypatch):
    monkeypatch.setitem(read_bytes.__kwdefaults__, "most", 1 << 20)
    (tmp_path / "bomb.cnf.xz").write_bytes(lzma.compress(b"c" + bytes(1 << 21)))
    result = preselect("sat", "features", tmp_path / "bomb.cnf.xz", files[0], "--no-clause-graph", expect=1)
    assert "bomb.cnf.xz has more than 1 MiB when decompressed" in result.stderr
    assert files[0].name in result.stdout


def test_features_of_no_usable_file(tmp_path):
    assert preselect("sat", "features", tmp_path, "--format", "json", expect=1).stdout == "[]\n"
    assert preselect("sat", "features", tmp_path, expect=1).stdout == ""


def test_solving_answers_as_sat_solvers_do(files):
    found = preselect("sat", "solve", files[0], "--seed", 1, expect=10).stdout
    assert "s SATISFIABLE" in found
    assert found.rstrip().endswith(" 0")
    given_up = preselect("sat", "solve", files[0], "--steps", 0).stdout
    assert "s UNKNOWN" in given_up


@pytest.mark.parametrize(
    ("option", "value", "code", "sentence"),
    [
        ("seed", "-1", 2, "-1 is not in the range x>=0"),
        ("steps", "-1", 2, "-1 is not in the range x>=0"),
        ("seconds", "nan", 1, "seconds is nan"),
        ("seconds", "-1", 1, "seconds is -1.0"),
        ("alpha", "0", 1, "alpha is 0.0"),
        ("rho", "1.5", 1, "rho is 1.5"),
        ("ps", "inf", 1, "ps is inf"),
        ("wp", "", 2, "'' is not a valid float"),
    ],
)
def test_limits_and_parameters_out_of_range_are_a_sentence(files, option, value, code, sentence):
    assert sentence in preselect("sat", "solve", files[0], f"--{option}={value}", expect=code).stderr


def test_a_table_is_measured_and_studied(files, folder):
    table = folder / "table"
    table.mkdir()
    measure = ["sat", "runtimes", *files, "--out", table / "runs.csv", "--workers", 1]
    assert "60 runs" in preselect(*measure, "--cutoff", 0.02).stderr
    assert "60 runs" in preselect(*measure).stderr
    (table / "features.csv").write_text(preselect("sat", "features", *files).stdout)
    out = folder / "study"
    result = preselect("study", "saps", "--data", table, "--k", "2", "--reps", 1, "--policies", "newton,random",
                     "--workers", 1, "--out", out)  # fmt: skip
    assert "k = 2" in result.stdout
    assert "best fixed set" in (out / "report.html").read_text()
    assert (
        "k=20, but the table has 20 algorithms"
        in preselect("study", "saps", "--data", table, "--k", 20, expect=1).stderr
    )
    assert "description.txt" in preselect("study", "aslib", table, expect=1).stderr


TABLE = b"instance,parametrization,seconds,steps,solved\n" + b"a.cnf,1,0.1,7,1\n" * 9


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"My thesis.\n", "is not a table of run times: its first line is not instance,parametrization,seconds"),
        (b"My thesis, unfinished", "is not a table of run times"),
        (b"\x7fELF\xff\x00\n", "is not UTF-8 text"),
        (b"instance,parametrization,seconds,steps,solved\nand,notes\n1,2", "line 2: expected instance,parametrization"),
        (
            gzip.compress(TABLE, mtime=0),
            "is compressed, and the table grows line by line; decompress it, or name another file",
        ),
        (lzma.compress(TABLE), "is compressed, and the table grows line by line; decompress it, or name another file"),
    ],
)
def test_a_file_that_is_no_table_is_left_alone(files, tmp_path, content, sentence):
    out = tmp_path / "thesis.txt"
    out.write_bytes(content)
    assert sentence in preselect("sat", "runtimes", files[0], "--out", out, expect=1).stderr
    assert out.read_bytes() == content


def test_places_where_a_table_cannot_be_written(files, tmp_path):
    for out, sentence in (
        ("/dev/null", "cannot write the table to /dev/null, which is not a file"),
        (tmp_path, "which is not a file"),
        (tmp_path / "runs.csv.xz", "cannot be compressed; name it"),
        (tmp_path / "none" / "runs.csv", f"cannot write {tmp_path}/none/runs.csv: No such file or directory"),
    ):
        assert sentence in preselect("sat", "runtimes", files[0], "--out", out, expect=1).stderr


def test_a_full_disk_is_said_with_the_name_of_the_table():
    with pytest.raises(InputError, match="cannot write /dev/full: No space left on device"):
        runtimes._append_runs(Path("/dev/full"), [runtimes.RunTime("a.cnf", 1, 0.1, 7, True)])


ONE = "[[1.3, 0.8, 0.05, 0.01]]"


def test_a_table_cut_off_anywhere_is_completed(files, tmp_path):
    out, parameters = tmp_path / "runs.csv", tmp_path / "one.json"
    parameters.write_text(ONE)
    measure = ["sat", "runtimes", *files[:2], "--out", out, "--parameters", parameters, "--workers", 1]
    preselect(*measure)
    header, first, second = out.read_text().splitlines()
    for cut in ("", header[:20], header, f"{header}\n{first}", f"{header}\n{first}\n{second[:-2]}"):
        out.write_text(cut)
        assert "2 runs, 2 solved" in preselect(*measure).stderr
        assert {line.instance for line in runtimes.read_runtimes(out)} == {path.name for path in files[:2]}


def test_run_times_of_other_files_are_measured_when_some_are_bad(files, tmp_path):
    (tmp_path / "bad.cnf").write_text("p cnf 1 1\n")
    (tmp_path / "one.json").write_text(ONE)
    measure = ["sat", "runtimes", "--parameters", tmp_path / "one.json", "--workers", 1, "--out", tmp_path / "runs.csv"]
    printed = preselect(*measure, tmp_path / "bad.cnf", files[0], expect=1).stderr
    assert "1 of 2 formulas cannot be run, all other runs are in" in printed
    assert "bad.cnf, line 1: the header declares 1 clauses, but the file has 0" in printed
    assert [line.instance for line in runtimes.read_runtimes(tmp_path / "runs.csv")] == [files[0].name]


@pytest.mark.parametrize(
    ("option", "value", "code", "sentence"),
    [
        ("seed", "-1", 2, "-1 is not in the range x>=0"),
        ("workers", "-2", 2, "-2 is not in the range x>=-1"),
        ("workers", "0", 1, "workers is 0; use a positive number, or -1 for one per core"),
        ("cutoff", "0", 1, "cutoff is 0.0"),
        ("cutoff", "inf", 1, "cutoff is inf"),
        ("cutoff", "soon", 2, "'soon' is not a valid float"),
        ("parameters", "none.json", 1, "cannot read none.json: No such file"),
    ],
)
def test_bad_options_of_run_times_are_a_sentence(files, tmp_path, option, value, code, sentence):
    measure = ["sat", "runtimes", files[0], "--out", tmp_path / "runs.csv", f"--{option}={value}"]
    assert sentence in preselect(*measure, expect=code).stderr
    assert not (tmp_path / "runs.csv").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "there are no parametrizations"),
        ("3", "one.json is not a JSON list of rows [alpha, rho, ps, wp]: 'int' object is not iterable"),
        ('{"a": 1}', "could not convert string to float"),
        ("[[1, 2, 3]]", "not enough values"),
        ("[[1.3, NaN, 0, 0]]", "one.json is not a JSON list of rows [alpha, rho, ps, wp]: rho is nan"),
        (f"[[1{'0' * 400}, 0, 0, 0]]", "int too large"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        ("\udcff", "is not UTF-8 text"),
    ],
)
def test_bad_parametrizations_are_a_sentence(files, tmp_path, text, sentence):
    (tmp_path / "one.json").write_bytes(text.encode(errors="surrogateescape"))
    measure = ["sat", "runtimes", files[0], "--out", tmp_path / "runs.csv", "--parameters", tmp_path / "one.json"]
    assert sentence in preselect(*measure, expect=1).stderr
    assert not (tmp_path / "runs.csv").exists()


def test_names_that_the_table_cannot_hold(files, tmp_path):
    names = ["a\nb.cnf", "\udcff.cnf"]
    for name in names:
        (tmp_path / name).write_bytes(files[0].read_bytes())
        printed = preselect("sat", "runtimes", tmp_path / name, "--out", tmp_path / "runs.csv", expect=1).stderr
        assert f"rename {name!r}" in printed
    twice = [files[0], tmp_path / files[0].name]
    printed = preselect("sat", "runtimes", *twice, "--out", tmp_path / "runs.csv", expect=1).stderr
    assert f"several files are called {files[0].name}" in printed
    rows = preselect("sat", "features", *(tmp_path / name for name in names), "--no-clause-graph").stdout
    assert [row["instance"] for row in csv.DictReader(io.StringIO(rows))] == ["a\nb.cnf", "\ufffd.cnf"]


def test_an_interrupted_measurement_says_how_to_continue(files, tmp_path, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("preselect.cli.sat.measure_runtimes", interrupt)
    printed = preselect("sat", "runtimes", files[0], "--out", tmp_path / "runs.csv", expect=130).stderr
    assert "run the same command again to continue" in printed
