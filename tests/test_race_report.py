"""The page about races: its numbers are those of the journal, and it needs and harms nothing but itself."""

import math
import re

import numpy as np
import pytest
from race_journals import ENDINGS, SOLVERS, Reading, details, open_learner, play

from preselect import InputError, NoWinner, Void
from preselect.chances import Chances
from preselect.cli.race_summary import summarise
from preselect.errors import JournalError
from preselect.race import report
from preselect.race.report import write_report
from preselect.race.summary import summarise_races
from preselect.reports.html import write_page
from preselect.store import Journal, read_rounds, verify

PNG = b"\x89PNG\r\n\x1a\n"  # figures are drawn for real in test_race_figures.py
POLICIES = ("newton", "newton(outside=True)", "thompson", "cppl", "mm", "random", "ofu-mnl", "epsilon-greedy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "report.html"


@pytest.fixture(autouse=True)
def _drawn_elsewhere(monkeypatch):
    for name in ("draw_plays_and_wins", "draw_times", "draw_calibration"):
        monkeypatch.setattr(report, name, lambda *_: PNG)


def read_page(path, out):
    return Reading(write_report(path, out).read_text(encoding="utf-8"))


def test_the_headline_counts_what_is_in_the_journal(path, out):
    with open_learner(path) as learner:
        book = play(learner, 60)
        learner.select([1.0, 2.0], k=2, label="running.cnf")
        found = read_page(path, out).tiles
    assert min(book["won"], book["nobody"], book["void"]) > 0
    assert [found[name] for name in ("races", "solved", "without a winner", "void", "unfinished", "arms")] == [
        "61", str(book["won"]), str(book["nobody"]), str(book["void"]), "1", "3",
    ]  # fmt: skip
    assert found["racing time"].startswith(f"{book['seconds']:.0f} s (")
    assert found["feature time"] == f"{0.25 * (book['won'] + book['nobody']):.1f} s"


def test_the_terminal_says_the_same(path, out):
    with open_learner(path) as learner:
        play(learner, 60)
    found = read_page(path, out).tiles
    with Journal.read(path) as journal:
        summary = summarise_races(read_rounds(journal))
    said = summarise(summary)
    assert said.startswith(
        f"{found['solved']} of {found['races']} races solved, {found['without a winner']} without a winner, "
        f"{found['void']} void; "
    )
    seconds, features = map(float, re.findall(r"([\d.]+) s (?:of racing|for features)", said))
    assert found["racing time"].startswith(f"{seconds:.0f} s (")
    assert found["feature time"] == f"{features:.1f} s"


def test_the_page_says_in_words_what_the_journal_is_about(path, out):
    about = {"kind": "race", "policy": "newton(beta=0.5)", "seed": 3, "limits": {"seconds": 5}}
    with open_learner(path, policy="newton(beta=0.5)", about=about) as learner:
        play(learner, 3)
    facts = read_page(path, out).facts
    assert facts["Journal"] == str(path)
    assert facts["Policy"].startswith("Newton(beta=0.5, mean=0.0")
    assert (facts["Seed"], facts["Limits"]) == ("3", "seconds 5")
    assert list(facts) == ["Journal", "Policy", "Seed", "Limits", "Begun", "As of"]
    assert facts["Begun"].endswith(" UTC")
    assert not any("{" in fact for fact in facts.values())


def test_the_table_of_arms_is_a_count_of_the_racers(path, out):
    with open_learner(path) as learner:
        book = play(learner, 120)
    rows = read_page(path, out).table("arm", "played", "won", "share won")
    assert sorted(row["arm"] for row in rows) == sorted(SOLVERS)
    assert [int(row["played"]) for row in rows] == sorted((int(row["played"]) for row in rows), reverse=True)
    for row in rows:
        arm = row["arm"]
        played, won = book["played", arm], book["won", arm]
        assert (row["played"], row["won"]) == (str(played), str(won))
        assert row["share won"] == f"{100 * won / played:.1f} %"
        assert float(row["mean when winning, s"]) == pytest.approx(book["winning seconds", arm] / won, abs=0.06)
        for status in ENDINGS:
            assert row[status] == str(book[status, arm])


def test_failures_have_their_columns_even_if_there_were_none(path, out):
    with open_learner(path) as learner:
        entry = learner.select([1.0, 2.0], k=1)
        learner.learn(entry, winner=entry.decision.names[0], details=details(1.0, {entry.decision.names[0]: "won"}))
    (row, *_) = read_page(path, out).table("arm", "played")
    assert (row["crashed"], row["wrong answer"], row["timeout"]) == ("0", "0", "0")
    assert "memory" not in row


def test_the_page_adds_up_the_races_and_what_the_best_arm_needs(path, out):
    with open_learner(path, arms=["a", "b"], context=()) as learner:
        for seconds, a, b in [(1.0, "won", "killed"), (2.0, "won", "crashed"), (4.0, "won", "finished late"),
                              (8.0, "timeout", "won"), (16.0, "killed", "won")]:  # fmt: skip
            winner = "a" if a == "won" else "b"
            recorded = details(seconds, {"a": a, "b": b}, limit=100.0)
            learner.learn(learner.select(k=2, label=f"{seconds}.cnf"), winner=winner, details=recorded)
    page = read_page(path, out)
    assert "The best single arm is a: it won 3 of the 5 solved races" in page.words
    assert "These races took 31.0 s; alone it is known to need at least 123.0 s, 3.97 times as long" in page.words
    assert page.table("arm", "races") == [
        {"arm": "a", "races": "5", "won": "3", "mean of these races, s": "6.200", "mean alone, at least, s": "24.6",
         "saved, at least, s": "92.0"},
        {"arm": "b", "races": "5", "won": "2", "mean of these races, s": "6.200", "mean alone, at least, s": "25.8",
         "saved, at least, s": "98.0"},
    ]  # fmt: skip
    longest = page.table("instance", "seconds")
    assert [row["instance"] for row in longest] == [f"{seconds}.cnf" for seconds in (16.0, 8.0, 4.0, 2.0, 1.0)]
    assert [row["a alone"] for row in longest[:3]] == ["16.0 (at least)", "100.0 (failed, limit)", "4.000 (won)"]


@pytest.mark.parametrize("policy", ["newton", "newton(outside=True)"])
def test_the_page_compares_the_estimates_at_the_decision(path, out, policy):
    with open_learner(path, policy=policy) as learner:
        play(learner, 80)
    outside = "outside" in policy
    chances, pairs = Chances(outside), []
    with Journal.read(path) as journal:
        for made, ended in journal.rounds():
            made, ended = made.event, ended.event
            u = np.subtract(made.scores, made.widths)
            if ended.outcome in (("winner", "no-winner") if outside else ("winner",)):
                won = made.chosen.index(ended.names[0]) if ended.names else None
                pairs += [
                    (p, i == (2 if won is None else won)) for i, p in enumerate(chances.predict(u)[: 2 + outside])
                ]
                chances.learn(u, won)
    page = read_page(path, out)
    assert "Predicted: each arm's estimated chance to win when it was chosen" in page.words
    assert ("Races without a winner are included" in page.words) == ("outside" in policy)
    assert ("Only races with a winner are included" in page.words) == ("outside" not in policy)
    rows = page.table("probability", "predictions")
    assert sum(int(row["predictions"]) for row in rows) == len(pairs)
    for row in rows:
        low, high = map(float, row["probability"].split(" to "))
        inside = [won for chance, won in pairs if low <= chance < high]
        assert int(row["predictions"]) == len(inside) > 0
        assert float(row["observed ± s.e."].split(" ± ")[0]) == pytest.approx(np.mean(inside), abs=6e-4)


def test_the_page_shows_the_weights_of_the_last_state(path, out):
    with open_learner(path) as learner:
        play(learner, 40)
        theta, deviations = learner.preselector.policy.theta.copy(), np.sqrt(np.diagonal(learner.preselector.policy.P))
    rows = read_page(path, out).table("", "usual", "size", "ratio")
    assert [row[""] for row in rows] == ["feature cdcl", *SOLVERS]
    cells = [row[name] for row in rows for name in ("usual", "size", "ratio")]
    assert cells == [f"{value:+.2f} ± {deviation:.2f}" for value, deviation in zip(theta, deviations, strict=True)]


def test_of_many_context_features_the_clearest_are_shown(path, out):
    names = [f"f{place:02}" for place in range(40)]
    with open_learner(path, context=names) as learner:
        play(learner, 30)
        theta, variances = learner.preselector.policy.theta, np.diagonal(learner.preselector.policy.P)
        ratios = (np.abs(theta) / np.sqrt(variances)).reshape(-1, 41)[:, 1:].max(axis=0)
    page = read_page(path, out)
    clearest = sorted(np.array(names)[np.argsort(-ratios)[:12]])
    assert list(page.table("", "usual")[0]) == ["", "usual", *clearest]
    assert "Of 40 context features, the 12 with the clearest weights are shown" in page.words


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_a_page(path, out, policy):
    with open_learner(path, policy=policy) as learner:
        play(learner, 12)
    page = read_page(path, out)
    without = policy in ("mm", "random", "epsilon-greedy")
    assert ("has no estimate of how certain its weights are" in page.words) == without
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 2


def test_a_page_of_few_races_has_no_figures_that_say_nothing(path, out):
    with open_learner(path) as learner:
        play(learner, 4)
        page = read_page(path, out)
        assert "img" not in {tag for tag, _ in page.tags}
        assert "From 5 races on a figure shows" in page.words
        assert "That is too few to say anything: from 30 on" in page.words
        play(learner, 80)
    assert len([tag for tag, _ in read_page(path, out).tags if tag == "img"]) == 3


def test_the_page_begins_with_who_won(path, out):
    with open_learner(path, arms=["a", "b"], context=()) as learner:
        for winner, seconds in ("a", 1.0), ("a", 2.0), ("b", 3.0), ("a", 4.0), ("a", 5.0):
            loser = "b" if winner == "a" else "a"
            entry = learner.select([], k=2)
            learner.learn(entry, winner=winner, details=details(seconds, {winner: "won", loser: "killed"}))
    words = read_page(path, out).words
    assert "a won most: 4 of 5 solved races, and 80.0 % of those it was in." in words
    assert "Racing took 15.0 s. a, the best single arm, would have needed at least 15.0 s alone." in words


def test_names_break_between_words_only(path, out):
    with open_learner(path, arms=["a_b-c<d", "e"], context=["number_of_variables"]) as learner:
        play(learner, 2)
    text = write_report(path, out).read_text()
    assert "number_<wbr>of_<wbr>variables" in text
    assert "<td>a_<wbr>b-<wbr>c&lt;d</td>" in text


def test_an_empty_journal_says_so(path, out):
    open_learner(path).close()
    page = read_page(path, out)
    assert "There is no race in this journal yet." in page.words
    assert "No race has been won yet." in page.words
    assert read_page(path, out).tiles == {
        "races": "0", "solved": "0", "without a winner": "0", "void": "0", "unfinished": "0", "arms": "3"
    }  # fmt: skip


def test_a_journal_of_void_races(path, out):
    with open_learner(path) as learner:
        for _ in range(6):
            entry = learner.select([1.0, 2.0], k=2)
            learner.learn(entry, outcome=Void(), details={"reason": "the race was cut short"})
    page = read_page(path, out)
    assert read_page(path, out).tiles["void"] == "6"
    assert "nothing to compare" in page.words
    assert "no prediction can be compared" in page.words
    assert sum(int(row["played"]) for row in page.table("arm", "played")) == 12
    assert {row["won"] for row in page.table("arm", "played")} == {"0"}


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"seconds": 1.0},
        {"seconds": "fast", "racers": [1, 2], "limit": None},
        {"seconds": math.inf, "feature_seconds": -1, "racers": {"cadical": "won", "saps": {}, "x": {"status": "won"}}},
        {"seconds": True, "racers": {"cadical": {"status": ["won"], "seconds": {}}}},
    ],
)
def test_details_that_are_not_those_of_races(path, out, strange):
    with open_learner(path) as learner:
        for _ in range(7):
            entry = learner.select([1.0, 2.0], k=2)
            learner.learn(entry, ranking=entry.decision.names, details=strange)
    page = read_page(path, out)
    assert read_page(path, out).tiles["solved"] == "7"
    assert "feature time" not in read_page(path, out).tiles
    assert "nothing to compare" in page.words
    assert sum(int(row["won"]) for row in page.table("arm", "played")) == 7


def test_failures_are_not_counted_where_they_are_not_recorded(path, out):
    with open_learner(path) as learner:
        learner.learn(learner.select([1.0, 2.0], k=2), outcome=NoWinner())
    page = read_page(path, out)
    assert "failures cannot be counted" in page.words
    assert "crashed" not in page.table("arm", "played")[0]


def test_markup_in_names_is_text_on_the_page(path, out):
    evil = "<script>alert('1')</script>"
    arms = {f"{evil}{place}": {f"<i>{place}</i>": 1.0} for place in range(2)}
    with open_learner(path, arms=arms, context=["<u>size</u>"], about={"<s>": evil}) as learner:
        for _ in range(6):
            entry = learner.select([1.0], k=2, label=f"{evil}\"'&amp;.cnf")
            first, second = entry.decision.names
            learner.learn(entry, winner=first, details=details(1.0, {first: "won", second: "<em>odd</em>"}))
    page = read_page(path, out)
    assert not {tag for tag, _ in page.tags} & {"script", "i", "u", "s", "em"}
    assert {row["instance"] for row in page.table("instance")} == {f"{evil}\"'&amp;.cnf"}
    assert {row["arm"] for row in page.table("arm", "played")} == set(arms)
    assert "<em>odd</em>" in page.table("arm", "played")[0]
    assert "<u>size</u>" in page.table("", "usual")[0]


def test_a_race_may_go_on_meanwhile(path, out, caplog):
    with open_learner(path) as learner:
        play(learner, 5)
        entry = learner.select([1.0, 2.0], k=2)
        before = learner.journal.last
        assert read_page(path, out).tiles["unfinished"] == "1"
        assert report._read_history(path).preselector.to_bytes() == learner.preselector.to_bytes()
        learner.learn(entry, winner=entry.decision.names[0])
        assert learner.journal.last == before + 1
        assert read_page(path, out).tiles["unfinished"] == "0"
    assert verify(path).equal
    assert not caplog.records


def test_a_report_changes_nothing_in_the_journal(path, out):
    with open_learner(path) as learner:
        play(learner, 5)
    before = path.read_bytes()
    write_report(path, out)
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["race.journal", "report.html"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
def test_the_journal_is_not_written_over(path, suffix):
    with open_learner(path) as learner:
        play(learner, 2)
    before = path.read_bytes()
    (path.parent / "link.html").symlink_to(f"{path.name}{suffix}")
    for out in (path.with_name(path.name + suffix), path.parent / "link.html"):
        with pytest.raises(InputError, match="it belongs to the journal; name another file"):
            write_report(path, out)
    assert path.read_bytes() == before


def test_a_page_that_is_there_is_replaced_only_by_a_whole_one(path, out):
    old = '<!doctype html>\n<meta name="generator" content="preselect">\n<title>Races of race.journal</title>old'
    out.write_text(old)
    with pytest.raises(JournalError, match="there is no journal"):
        write_report(path, out)
    assert out.read_text() == old
    open_learner(path).close()
    for _ in range(2):
        write_report(path, out)
    assert out.read_text().endswith("</html>\n")


def test_a_page_goes_where_a_link_points(tmp_path):
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    target.write_text("old")
    link.symlink_to(target)
    assert write_page(link, "new") == link
    assert (link.is_symlink(), target.read_text()) == (True, "new")


def test_a_page_needs_a_place(path, tmp_path):
    open_learner(path).close()
    with pytest.raises(InputError, match=r"cannot write .*: Is a directory"):
        write_report(path, tmp_path)
    with pytest.raises(InputError, match="No such file or directory"):
        write_report(path, tmp_path / "nowhere" / "report.html")
    assert write_report(path, tmp_path / ("n" * 250 + ".html")).exists()
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]
