"""Races by value: everybody runs to the end, values are read, the best wins, and what is learnt is a ranking."""

import json
import math
import random

import pytest
from commands import preselect
from pools import make_pool, write_script
from race_journals import Reading

from preselect import InputError
from preselect.race import RaceSession, check_arms, race, read_pool, values
from preselect.race.values import _parse
from preselect.store import Journal, read_rounds, verify

SUCCESS = "[success]\nvalue = '^cost (.*)$'\nbetter = \"{}\"\n"


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "instance.txt"
    path.write_text("something\n")
    return path


@pytest.fixture
def by_value(pool):
    """Writes a pool of shell scripts whose output has lines such as `cost 3`."""

    def write(arms, *, better="smaller", success="", **more):
        options = {"features": 'from = "none"', "head": f"k = {len(arms)}", **more}
        path = pool(arms, **options)
        path.write_text(path.read_text() + (success or SUCCESS.format(better)))
        return path

    return write


def rounds(path):
    with Journal.read(read_pool(path).journal) as journal:
        return read_rounds(journal)


def statuses(result):
    return {finish.name: finish.status for finish in result.finishes}


def details_of(result):
    return {finish.name: finish.detail for finish in result.finishes}


def test_values_are_compared_by_newton_unless_the_pool_says_otherwise(by_value):
    assert read_pool(by_value({"a": "echo cost 1", "b": "echo cost 2"})).policy == "newton(outside=True)"
    path = by_value({"a": "echo cost 1", "b": "echo cost 2"}, head='policy = "nearby(outside=True)"')
    assert read_pool(path).policy == "nearby(outside=True)"


@pytest.mark.parametrize(
    ("better", "winner", "names"), [("smaller", "b", ("b", "a", "c")), ("larger", "c", ("c", "a", "b"))]
)
def test_the_best_value_wins_however_late(by_value, instance, better, winner, names):
    arms = {"a": "echo cost 9; echo cost 2.5", "b": "echo cost -1e1; echo bye", "c": "sleep 0.2; echo cost +7"}
    path = by_value(arms, better=better)
    result = race(path, instance)
    assert (result.winner, result.tie, result.better, result.answer) == (winner, False, better, None)
    assert result.value == {"smaller": -10.0, "larger": 7.0}[better]
    assert {finish.name: finish.value for finish in result.finishes} == {"a": 2.5, "b": -10.0, "c": 7.0}
    assert statuses(result) == {name: "won" if name == winner else "behind" for name in arms}
    assert result.seconds >= 0.2
    assert result.output.decode().startswith("cost")
    (past,) = rounds(path)
    assert (past.kind, past.names, past.winner, past.after) == ("ranking", names, winner, None)
    assert past.details["better"] == better
    assert {name: racer["value"] for name, racer in past.details["racers"].items()} == {"a": 2.5, "b": -10.0, "c": 7.0}
    assert verify(read_pool(path).journal).equal


def test_equal_values_tie_and_failures_are_not_ranked(by_value, instance):
    path = by_value({
        "a": "echo cost 2", "b": "echo cost 2.0", "c": "echo cost 3", "fails": "echo cost 1; exit 1",
        "silent": "echo done", "killed": "echo cost 1; kill -9 $$",
    })  # fmt: skip
    result = race(path, instance)
    assert result.tie
    assert result.winner in ("a", "b")
    assert statuses(result) == {"a": "won", "b": "won", "c": "behind", "fails": "no answer", "silent": "no answer",
                                "killed": "crashed"}  # fmt: skip
    assert details_of(result)["silent"] == "it has no value"
    (past,) = rounds(path)
    assert (past.kind, set(past.names[0]), past.names[1:], past.winner) == ("ranking", {"a", "b"}, ("c",), None)


def test_without_any_value_nobody_wins(by_value, instance):
    path = by_value({"a": "echo cost", "b": "exit 1"})
    result = race(path, instance)
    assert (result.winner, result.value, result.output, result.void) == (None, None, b"", None)
    assert [(past.kind, past.after) for past in rounds(path)] == [("no-winner", None)]


def test_who_is_stopped_at_the_limit_has_the_value_that_it_has_reached(by_value, instance):
    path = by_value(
        {"a": "echo cost 5; echo cost 4; sleep 60; echo cost 1", "b": "echo cost 6", "c": "sleep 60"}, seconds=1
    )
    result = race(path, instance)
    assert (result.winner, result.value) == ("a", 4.0)
    assert statuses(result) == {"a": "won", "b": "behind", "c": "timeout"}
    assert details_of(result)["a"] == "stopped at the time limit"
    assert 1 <= result.seconds < 20
    path = by_value({"a": "echo cost 5; sleep 60", "b": "echo cost 6"}, seconds=1,
                    success=SUCCESS.format("smaller") + "unfinished = false\n")  # fmt: skip
    assert statuses(race(path, instance)) == {"a": "timeout", "b": "won"}


def test_a_line_that_was_cut_off_at_the_limit_is_no_value(by_value, instance):
    cut = "printf 'cost 7\\ncost 1'; sleep 60"  # as when a full buffer of `cost 12345` was written
    result = race(by_value({"cut": cut, "whole": "printf 'cost 5'"}, seconds=1), instance)
    assert {one.name: one.value for one in result.finishes} == {"cut": 7.0, "whole": 5.0}
    result = race(by_value({"cut": "printf 'cost 1'; sleep 60", "whole": "echo cost 5"}, seconds=1), instance)
    assert (result.winner, statuses(result)["cut"]) == ("whole", "timeout")


def test_a_command_gives_values_to_those_that_have_finished(by_value, instance):
    size = '[success]\nvalue = ["stat", "--format=%s", "{output}"]\nbetter = "smaller"\n'
    arms = {"short": "echo 12345; sleep 60", "long": "echo 1234567890"}
    result = race(by_value(arms, seconds=1, success=size), instance)
    assert (result.winner, result.value, statuses(result)["short"]) == ("long", 11.0, "timeout")
    result = race(by_value(arms, seconds=1, success=size + "unfinished = true\n"), instance)
    assert (result.winner, result.value, statuses(result)["long"]) == ("short", 6.0, "behind")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no value"),
        ("nan", "its value is 'nan', which is not a number"),
        ("-inf", "its value is '-inf', which is not a number"),
        ("Infinity", "not a number"),
        ("1e999", "its value is 1e999, which is too large"),
        ("9" * 350, "too large"),
        ("1 2", "its value is '1 2', which is not a number"),
        ("1,234", "not a number"),
        ("1_000", "not a number"),
        ("0x10", "not a number"),
        ("٣", "not a number"),
        ("- 3", "not a number"),
    ],
)
def test_what_is_not_a_finite_number_is_no_value(text, reason):
    with pytest.raises(ValueError, match=reason):
        _parse(text)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0.0), ("-.5", -0.5), ("3.", 3.0), ("1e300", 1e300), ("+2E-3", 0.002)]
)
def test_numbers_as_programs_print_them(text, value):
    assert _parse(text) == value


def test_a_value_that_is_no_number_is_the_fault_of_its_racer(by_value, instance):
    path = by_value({"a": "echo cost nan", "b": "printf 'cost \\377\\n'", "c": "echo cost 1"})
    result = race(path, instance)
    assert (result.winner, result.void) == ("c", None)
    assert details_of(result)["a"] == "its value is 'nan', which is not a number"
    assert rounds(path)[0].names == ("c",)


def test_verifiers_refuse_values(by_value, instance, tmp_path):
    write_script(tmp_path, "verify", 'grep -q honest "$1" || { echo a lie; exit 1; }')
    success = SUCCESS.format("smaller") + 'verifier = ["./verify", "{output}", "{instance}", "{seed}", "{timeout}"]\n'
    path = by_value({"liar": "echo cost 1", "a": "echo honest; echo cost 2"}, success=success)
    result = race(path, instance)
    assert (result.winner, statuses(result)["liar"]) == ("a", "wrong answer")
    assert details_of(result)["liar"] == "the verifier exited with 1: a lie"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('["no-such-program", "{output}"]', "the value command failed: not started, no such command: no-such-program"),
        ('["/bin/sh", "-c", "sleep 60", "{output}"]', "the value command failed: timeout"),
        ('["/bin/sh", "-c", "kill -9 $$", "{output}"]', "the value command failed: crashed, killed by SIGKILL"),
        ("'^(a+)+$'", "the value command failed: timeout"),
    ],
)
def test_a_value_that_cannot_be_had_makes_the_race_void(by_value, instance, monkeypatch, value, reason):
    monkeypatch.setattr(values, "_MIN_SECONDS", 0.5)
    path = by_value({"a": f"echo {'a' * 60}b"}, success=f'[success]\nvalue = {value}\nbetter = "larger"\n', seconds=0.5)
    result = race(path, instance)
    assert (result.winner, result.void) == (None, reason)
    assert rounds(path)[0].kind == "void"


def test_a_value_command_that_fails_refuses_the_answer(by_value, instance):
    value = '["/bin/sh", "-c", "echo no solution >&2; exit 4", "{output}"]'
    result = race(by_value({"a": "echo x"}, success=f'[success]\nvalue = {value}\nbetter = "larger"\n'), instance)
    assert (result.winner, result.void) == (None, None)
    assert details_of(result) == {"a": "the value command exited with 4: no solution"}


def test_an_arm_may_print_its_value_in_its_own_way(by_value, instance):
    path = by_value({"a": "echo cost 2", "b": "echo 'Objective: 1'"}, b="success = { value = 'Objective: (.*)' }")
    assert race(path, instance).winner == "b"


@pytest.mark.parametrize(
    ("success", "message"),
    [
        ("value = 'x (.*)'", 'success.better is missing; write "smaller" or "larger"'),
        ("value = 'x'\nbetter = 'smaller'", "success.value is 'x'; use one group, in parentheses, around the number"),
        ("value = '(x)(y)'\nbetter = 'smaller'", "use one group"),
        ("value = '(x'\nbetter = 'smaller'", "not a regular expression"),
        ("value = ['x']\nbetter = 'smaller'", "has no {output}"),
        ("value = '(x)'\nbetter = 'more'", "success.better is 'more'; use 'smaller' or 'larger'"),
        ("better = 'larger'", "arms.a.success.value is missing; write it there, or into [success] for all arms"),
        ("unfinished = true", "success has value or unfinished, but success.better is missing"),
        ("value = '(x)'\nbetter = 'larger'\nverifier = 'model'", "answers with values are not models"),
        ("[arms.a.success]\nbetter = 'larger'", "arms.a.success.better does not belong here"),
    ],
)
def test_what_is_wrong_in_the_pool_is_said(tmp_path, success, message):
    arm = '[arms.a]\ncommand = ["a", "{instance}"]\n'
    with pytest.raises(InputError) as caught:
        make_pool(tmp_path, arm + ("" if success.startswith("[") else "[success]\n") + success)
    assert message in str(caught.value)


def test_an_arm_that_gives_no_value_is_explained_by_check(by_value, instance, tmp_path):
    pool = read_pool(by_value({"good": "echo cost 12345678", "bad": "echo price 3", "worse": "exit 2"}))
    checks = {one.arm: (one.ok, one.message) for one in check_arms(pool, tmp_path / "check", instance=instance)}
    assert checks["good"][0]
    assert checks["good"][1].startswith("answers with value 12345678 in ")
    wanted = "it has no value, it printed 'price 3'; correct the value in [success], or the command in [arms.bad]"
    assert checks["bad"] == (False, wanted)
    assert checks["worse"][1].startswith("exit code 2 instead of 0, it printed nothing; correct the command")


# the command


def test_nothing_that_is_printed_is_about_sat(by_value, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(name)
    path = by_value({"one": "echo cost 3", "other": "echo cost 4"})
    done = preselect("race", path, folder)
    assert done.stdout == "".join(f"==> {folder / name} <==\ncost 3\n" for name in "ab")
    assert f"[1/2] {folder / 'a'}: 3 by one in " in done.stderr
    assert "(other 4)" in done.stderr
    assert "2 of 2 races won; " in done.stderr
    row = next(line for line in done.stderr.splitlines() if "│ other" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["other", "2", "0", "2", "4", "3"]
    assert preselect("race", path, folder / "a").stdout == "cost 3\n"
    printed = json.loads(preselect("race", path, folder / "a", "--format", "json").stdout)
    assert (printed["winner"], printed["value"], printed["better"], printed["answer"]) == ("one", 3.0, "smaller", None)
    assert {racer["name"]: racer["value"] for racer in printed["racers"]} == {"one": 3.0, "other": 4.0}


@pytest.mark.parametrize("success", [SUCCESS.format("smaller"), "[success]\nexit_codes = [0]\n"])
def test_exit_codes_say_whether_there_is_an_answer(by_value, tmp_path, success):
    for name in "ab":
        (tmp_path / name).write_text(name)
    good, bad = tmp_path / "a", tmp_path / "b"
    path = by_value({"one": 'grep -q a "$0" && echo cost 1'}, success=success)
    preselect("race", path, good)
    nothing = preselect("race", path, bad, expect=3)
    assert (nothing.stdout, "SAT" in nothing.stderr) == ("", False)
    preselect("race", path, good, bad, expect=3)
    preselect("race", path, good, good)


def test_the_page_shows_values_instead_of_seconds(by_value, instance, tmp_path):
    path, out = by_value({"a": "echo cost 2", "b": "echo cost 5", "c": "exit 1"}), tmp_path / "page.html"
    with RaceSession(path) as session:
        for _ in range(3):
            session.run(instance)
    preselect("race", "report", path, "--out", out)
    page = Reading(out.read_text())
    assert "Against the best single arm" not in page.words
    assert "the first with a right answer" not in page.words
    rows = page.table("arm", "races with a value")
    assert [tuple(row.values()) for row in rows] == [("a", "3", "3", "2", "2"), ("b", "3", "0", "5", "2")]


# learning

RATES = {  # bytes that each of three synthetic compressors needs for one of each kind of file
    "words": {"words": 0.30, "numbers": 0.60, "bytes": 1.02},
    "numbers": {"words": 0.50, "numbers": 0.35, "bytes": 1.01},
    "store": {"words": 1.00, "numbers": 1.00, "bytes": 1.00},
}


def write_file(folder, kind, number, generator):
    size = int(2000 * math.exp(generator.uniform(0, 2)))
    make = {
        "words": lambda: " ".join(generator.choices(["the", "cat", "sat", "on", "a", "mat"], k=size // 4)).encode(),
        "numbers": lambda: b"".join(generator.randrange(300).to_bytes(4, "little") for _ in range(size // 4)),
        "bytes": lambda: generator.randbytes(size),
    }
    path = folder / f"{kind}-{number}"
    path.write_bytes(make[kind]())
    return path


def test_races_by_value_learn_which_program_suits_which_kind_of_file(pool, tmp_path):
    """Three synthetic compressors on 50 files, two at a time: in the second half the best is nearly always chosen."""
    folder, generator = tmp_path / "files", random.Random(1)
    folder.mkdir()
    script = 'size=$(stat --format=%s "$0"); case "$0" in {}; esac; echo cost $((size * rate / 100))'
    arms = {
        name: script.format("; ".join(f"*/{kind}-*) rate={rate * 100:.0f};" for kind, rate in rates.items()))
        for name, rates in RATES.items()
    }
    path = pool(arms, features='from = "file"')
    path.write_text(path.read_text() + SUCCESS.format("smaller"))
    kinds = [kind for kind in RATES["words"] for _ in range(17)][:50]
    generator.shuffle(kinds)
    with RaceSession(path) as session:
        hits = [
            min(RATES, key=lambda name: RATES[name][kind]) in session.run(write_file(folder, kind, n, generator)).chosen
            for n, kind in enumerate(kinds)
        ]
    assert sum(hits[25:]) >= 23
    assert verify(read_pool(path).journal).equal
