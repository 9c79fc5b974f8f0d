"""The page about races: its numbers are those of the journal, and it needs and harms nothing but itself."""

import math
import random
import re
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

from preselect import InputError, NoWinner, Preselector, Void
from preselect.errors import JournalError
from preselect.policies.newton import Newton
from preselect.race import account as accounts
from preselect.race import drawing
from preselect.race.account import AT_LEAST, EXACT, LIMIT, Known, Race, best_single, calibration, read_account
from preselect.race.report import write_report
from preselect.reports.html import write_page
from preselect.reports.weights import INTERCEPT, weights_of
from preselect.store import Journal, Learner, verify

SOLVERS = {"cadical": {"cdcl": 1.0}, "saps": {"cdcl": 0.0}, "kissat": {"cdcl": 1.0}}
ENDINGS = ("killed", "finished late", "timeout", "memory", "crashed", "wrong answer", "no answer")
POLICIES = ("newton", "newton(outside=True)", "thompson", "cppl", "mm", "random", "ofu-mnl", "epsilon-greedy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "report.html"


def opened(path, *, arms=SOLVERS, context=("size", "ratio"), policy="newton", about=None):
    return Learner.open(path, make=lambda: Preselector(arms, context, policy=policy, seed=3), about=about)


def details(seconds, statuses, *, limit=60.0):
    racers = {name: {"status": status, "seconds": seconds, "detail": ""} for name, status in statuses.items()}
    return {"seconds": seconds, "feature_seconds": 0.25, "limit": limit, "racers": racers, "reason": None}


def play(learner, races, *, seed=0):
    """Races that end in every way; answers what the page should count, by the test's own book."""
    generator, book = random.Random(seed), Counter()
    for place in range(races):
        values = [generator.uniform(0, 9) for _ in learner.preselector.context]
        entry = learner.select(values, k=2, label=f"{place}.cnf")
        first, second = generator.sample(entry.decision.names, 2)
        how = generator.choice(["won", "won", "won", "nobody", "void"])
        seconds, other = round(generator.uniform(0.1, 50.0), 3), generator.choice(ENDINGS)
        statuses = {first: "won" if how == "won" else "timeout", second: other}
        ended = {"won": {"winner": first}, "nobody": {"outcome": NoWinner()}, "void": {"outcome": Void()}}[how]
        learner.learn(entry, details=details(seconds, statuses), **ended)
        book[how] += 1
        book["seconds"] += seconds
        for name, status in statuses.items():
            book["played", name] += 1
            book[status, name] += 1
        if how == "won":
            book["winning seconds", first] += seconds
    return book


class Reading(HTMLParser):
    """What a browser would make of a page: tables, tiles, all text, and the tags with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.tiles, self.text, self.tags = [], [], "", []
        self.place = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.place = tag if tag in ("td", "th", "b", "style", "br", "small") else self.place
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "br":
            self.handle_data(" ")

    def handle_endtag(self, tag):
        self.place = None if tag in ("table", "style", "b") else self.place

    def handle_data(self, data):
        if self.place == "style":
            return
        self.text += data
        if self.tables and self.place in ("td", "th", "br", "small"):
            self.tables[-1][-1][-1] += data

    def table(self, *header):
        """The table whose header begins so, as maps by column."""
        found = next(rows for rows in self.tables if rows[0][: len(header)] == list(header))
        return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


def written(path, out):
    return Reading(write_report(path, out).read_text(encoding="utf-8"))


def tiles(path, out):
    page = write_report(path, out).read_text(encoding="utf-8")
    return {name: value for value, name in re.findall(r"<div><b>([^<]*)</b>([^<]*)</div>", page)}


def a_race(statuses, *, kind="winner", seconds=2.0, limit=60.0, times=None, winner=None, utilities=None, after=None):
    return Race(
        label="x.cnf",
        chosen=tuple(statuses),
        utilities=tuple(utilities or [0.0] * len(statuses)),
        kind=kind,
        winner=winner,
        seconds=seconds,
        feature_seconds=None,
        limit=limit,
        after=after,
        statuses=statuses,
        times=times or dict.fromkeys(statuses),
    )


def test_the_headline_counts_what_is_in_the_journal(path, out):
    with opened(path) as learner:
        book = play(learner, 60)
        learner.select([1.0, 2.0], k=2, label="running.cnf")
        found = tiles(path, out)
    assert min(book["won"], book["nobody"], book["void"]) > 0
    assert [found[name] for name in ("races", "solved", "nobody", "void", "unfinished", "arms")] == [
        "61", str(book["won"]), str(book["nobody"]), str(book["void"]), "1", "3",
    ]  # fmt: skip
    assert found["time of the races"].startswith(f"{book['seconds']:.1f} s")
    assert found["time of features, apart"] == "15.0 s"


def test_the_page_names_policy_and_journal(path, out):
    with opened(path, policy="newton(beta=0.5)", about={"kind": "race"}) as learner:
        play(learner, 3)
    text = written(path, out).text
    assert "Newton(beta=0.5, mean=0.0" in text
    assert str(path) in text
    assert '{"kind": "race"}' in text


def test_the_table_of_arms_is_a_count_of_the_racers(path, out):
    with opened(path) as learner:
        book = play(learner, 120)
    rows = written(path, out).table("arm", "played", "won", "share won")
    assert sorted(row["arm"] for row in rows) == sorted(SOLVERS)
    assert [int(row["played"]) for row in rows] == sorted((int(row["played"]) for row in rows), reverse=True)
    for row in rows:
        arm = row["arm"]
        played, won = book["played", arm], book["won", arm]
        assert (row["played"], row["won"]) == (str(played), str(won))
        assert row["share won"] == f"{100 * won / played:.1f} %"
        assert float(row["mean s when winning"]) == pytest.approx(book["winning seconds", arm] / won, abs=0.06)
        for status in ENDINGS:
            assert row[status] == str(book[status, arm])


def test_failures_have_their_columns_even_if_there_were_none(path, out):
    with opened(path) as learner:
        entry = learner.select([1.0, 2.0], k=1)
        learner.learn(entry, winner=entry.decision.names[0], details=details(1.0, {entry.decision.names[0]: "won"}))
    (row, *_) = written(path, out).table("arm", "played")
    assert (row["crashed"], row["wrong answer"], row["timeout"]) == ("0", "0", "0")
    assert "memory" not in row


@pytest.mark.parametrize(
    ("status", "known"),
    [
        ("won", Known(1.5, EXACT)),
        ("killed", Known(2.0, AT_LEAST)),
        ("finished late", Known(2.0, AT_LEAST)),
        ("timeout", Known(60.0, LIMIT)),
        ("memory", Known(60.0, LIMIT)),
        ("crashed", Known(60.0, LIMIT)),
        ("wrong answer", Known(60.0, LIMIT)),
        ("no answer", Known(60.0, LIMIT)),
        ("not started", None),
        ("infrastructure error", None),
        ("something new", None),
    ],
)
def test_what_a_race_tells_of_the_time_of_an_arm(status, known):
    race = a_race({"a": status}, times={"a": 1.5})
    assert race.known("a") == known
    assert race.known("b") is None
    for ended in ({"kind": "void"}, {"kind": None}, {"seconds": None}):
        assert a_race({"a": status}, times={"a": 1.5}, **ended).known("a") is None


def test_without_a_limit_or_an_own_time_the_race_says_how_long():
    assert a_race({"a": "crashed"}, limit=None).known("a") == Known(2.0, LIMIT)
    assert a_race({"a": "won"}).known("a") == Known(2.0, EXACT)


def compared(**arms):
    """Comparisons from lists of (seconds, how)."""
    return [
        accounts.Comparison(arm, [(1, a_race({arm: "won"}), Known(*pair)) for pair in pairs])
        for arm, pairs in arms.items()
    ]


def test_the_best_single_arm_won_most_in_enough_races():
    quick_loser, winner = [(0.1, AT_LEAST)] * 9, [(5.0, EXACT)] * 3 + [(5.0, AT_LEAST)] * 2
    assert best_single(compared(quick=quick_loser, winner=winner)).arm == "winner"
    assert best_single(compared(quick=quick_loser, rare=[(1.0, EXACT)] * 4)).arm == "quick"
    assert best_single(compared(slow=winner, fast=[*winner[:4], (1.0, AT_LEAST)])).arm == "fast"
    assert best_single(compared(rare=winner[:4])) is None
    assert best_single([]) is None


def test_the_page_adds_up_the_races_and_what_the_best_arm_needs(path, out):
    with opened(path, arms=["a", "b"], context=()) as learner:
        for seconds, a, b in [(1.0, "won", "killed"), (2.0, "won", "crashed"), (4.0, "won", "finished late"),
                              (8.0, "timeout", "won"), (16.0, "killed", "won")]:  # fmt: skip
            winner = "a" if a == "won" else "b"
            told = details(seconds, {"a": a, "b": b}, limit=100.0)
            learner.learn(learner.select(k=2, label=f"{seconds}.cnf"), winner=winner, details=told)
    page = written(path, out)
    assert "The best single arm is a: it won 3 of the 5 races" in page.text
    assert "These races took 31.0 s; alone it is known to need at least 123.0 s, 3.97 times as long" in page.text
    assert page.table("arm", "races") == [
        {"arm": "a", "races": "5", "won": "3", "mean s of these races": "6.200", "mean s alone, at least": "24.6"},
        {"arm": "b", "races": "5", "won": "2", "mean s of these races": "6.200", "mean s alone, at least": "25.8"},
    ]
    longest = page.table("instance", "seconds")
    assert [row["instance"] for row in longest] == [f"{seconds}.cnf" for seconds in (16.0, 8.0, 4.0, 2.0, 1.0)]
    assert [row["a alone"] for row in longest[:3]] == ["16.0 (at least)", "100.0 (failed, limit)", "4.000 (won)"]


def test_calibration_is_what_one_computes_by_hand():
    third = math.log(3.0)  # chances 3/4 and 1/4
    races = [
        a_race({"a": "", "b": ""}, winner="a", utilities=[third, 0.0]),
        a_race({"a": "", "b": ""}, winner="a", utilities=[third + 5.0, 5.0]),
        a_race({"a": "", "b": ""}, winner="b", utilities=[third, 0.0]),
        a_race({"a": "", "b": ""}, winner="a", utilities=[0.0, 0.0]),
        a_race({"a": ""}, winner="a", utilities=[0.0]),  # nothing to choose from
        a_race({"a": "", "b": ""}, winner="a", utilities=[math.inf, 0.0]),
        *(a_race({"a": "", "b": ""}, kind=kind, utilities=[9.0, 0.0]) for kind in ("no-winner", "void", None)),
        a_race({"a": "", "b": ""}, kind="ranking", winner="a", utilities=[9.0, 0.0]),
    ]
    quarter, half, most = calibration(races, outside=False)
    assert quarter == pytest.approx((0.2, 0.3, 3, 0.25, 1 / 3, math.sqrt(1 / 3 * 2 / 3 / 3)))
    assert half == pytest.approx((0.5, 0.6, 2, 0.5, 0.5, math.sqrt(0.125)))
    assert most == pytest.approx((0.7, 0.8, 3, 0.75, 2 / 3, math.sqrt(1 / 3 * 2 / 3 / 3)))


def test_with_an_outside_option_nobody_takes_part():
    races = [
        a_race({"a": ""}, winner="a", utilities=[math.log(4.0)]),
        a_race({"a": ""}, kind="no-winner", utilities=[math.log(4.0)]),
        a_race({"a": ""}, kind="no-winner", utilities=[math.log(4.0)]),
        a_race({"a": ""}, kind="void", utilities=[0.0]),
    ]
    nobody, somebody = calibration(races, outside=True)
    assert nobody[:5] == pytest.approx((0.2, 0.3, 3, 0.2, 2 / 3))
    assert somebody[:5] == pytest.approx((0.8, 0.9, 3, 0.8, 1 / 3))
    assert calibration(races, outside=False) == []


def test_where_times_are_known_nobody_is_two_clocks():
    """v = 4: nobody wins if both clocks come first, 2/6 * 1/5."""
    races = [a_race({"a": ""}, winner="a", utilities=[math.log(4.0)], after=0.5)]
    nobody, somebody = calibration(races, outside=True)
    assert (nobody.predicted, somebody.predicted) == pytest.approx((1 / 15, 14 / 15))


def test_a_sure_prediction_falls_into_the_last_bin():
    (low, high) = calibration([a_race({"a": "", "b": ""}, winner="a", utilities=[900.0, 0.0])], outside=False)
    assert (low.low, low.size, low.observed, high.high, high.size, high.observed) == (0.0, 1, 0.0, 1.0, 1, 1.0)


@pytest.mark.parametrize("policy", ["newton", "newton(outside=True)"])
def test_the_page_compares_the_estimates_at_the_decision(path, out, policy):
    with opened(path, policy=policy) as learner:
        play(learner, 80)
    pairs = []
    with Journal.read(path) as journal:
        for made, told in journal.rounds():
            u = dict(zip(made.body["chosen"], np.subtract(made.body["scores"], made.body["widths"]), strict=True))
            kinds = {"winner"}
            if "outside" in policy:
                u["nobody"], kinds = 0.0, {"winner", "no-winner"}
            if told.body["kind"] in kinds:
                total, won = sum(math.exp(one) for one in u.values()), (told.body["names"] or ["nobody"])[0]
                pairs += [(math.exp(one) / total, name == won) for name, one in u.items()]
    rows = written(path, out).table("chance", "predictions")
    assert sum(int(row["predictions"]) for row in rows) == len(pairs)
    for row in rows:
        low, high = map(float, row["chance"].split(" to "))
        inside = [won for chance, won in pairs if low <= chance < high]
        assert int(row["predictions"]) == len(inside) > 0
        assert float(row["observed ± s.e."].split(" ± ")[0]) == pytest.approx(np.mean(inside), abs=6e-4)


def test_weights_are_those_by_which_arms_are_scored():
    chooser = Preselector(SOLVERS, ["size", "ratio"], policy="newton(beta=0)", seed=0)
    generator = random.Random(1)
    for place in range(30):
        if place == 10:
            chooser.add("glucose", {"cdcl": 1.0})  # makes room for more than one
        decision = chooser.select([generator.uniform(0, 9), generator.uniform(3, 5)], k=2)
        chooser.learn(decision, winner=generator.choice(decision.names))
    found = weights_of(chooser)
    assert (found.features, found.arms, found.columns) == (["cdcl"], chooser.arms, [INTERCEPT, "size", "ratio"])
    shown = chooser._shown(np.array([2.0, 4.0]))
    utilities = shown.arms[:, : len(found.values)] @ found.values @ shown.context
    np.testing.assert_allclose(utilities, list(chooser.scores([2.0, 4.0]).values()), rtol=1e-12)
    assert len(set(found.values.ravel())) == found.values.size
    for row, column in np.ndindex(found.values.shape):
        unit = np.zeros((len(chooser.policy.theta) // 3, 3))
        unit[row, column] = 1.0
        variance = unit.ravel() @ chooser.policy.P @ unit.ravel()
        assert found.deviations[row, column] == pytest.approx(math.sqrt(variance))


def test_the_page_shows_the_weights_of_the_last_state(path, out):
    with opened(path) as learner:
        play(learner, 40)
        theta, deviations = learner.preselector.policy.theta.copy(), np.sqrt(np.diagonal(learner.preselector.policy.P))
    rows = written(path, out).table("", INTERCEPT, "size", "ratio")
    assert [row[""] for row in rows] == ["feature cdcl", *SOLVERS]
    cells = [row[name] for row in rows for name in (INTERCEPT, "size", "ratio")]
    assert cells == [f"{value:+.2f} ± {deviation:.2f}" for value, deviation in zip(theta, deviations, strict=True)]


def test_arms_without_identity_have_the_weights_of_their_features():
    chooser = Preselector(SOLVERS, ["size"], policy="newton", identity=False, seed=0)
    found = weights_of(chooser)
    assert (found.features, found.arms, found.values.shape) == (["cdcl"], [], (1, 2))


def test_of_many_context_features_the_clearest_are_shown(path, out):
    names = [f"f{place:02}" for place in range(40)]
    with opened(path, context=names) as learner:
        play(learner, 30)
        theta, variances = learner.preselector.policy.theta, np.diagonal(learner.preselector.policy.P)
        ratios = (np.abs(theta) / np.sqrt(variances)).reshape(-1, 41)[:, 1:].max(axis=0)
    page = written(path, out)
    clearest = sorted(np.array(names)[np.argsort(-ratios)[:12]])
    assert list(page.table("", INTERCEPT)[0]) == ["", INTERCEPT, *clearest]
    assert "Of 40 context features the 12 are shown" in page.text


def test_cppl_is_not_sure_of_an_arm_that_it_never_saw():
    chooser = Preselector(["a", "b", "c"], policy="cppl", seed=0)
    for _ in range(20):
        decision = chooser.select(k=2, eligible=["a", "b"])
        chooser.learn(decision, winner="a")
    found = weights_of(chooser)
    np.testing.assert_array_equal(found.values.ravel(), chooser.policy.theta)
    np.testing.assert_allclose(found.deviations.ravel() ** 2, np.diagonal(chooser.policy.P))
    assert found.deviations.argmax() == 2
    assert found.ratios().argmin() == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_a_page(path, out, policy):
    with opened(path, policy=policy) as learner:
        play(learner, 12)
    page = written(path, out)
    without = policy in ("mm", "random", "epsilon-greedy")
    assert ("does not say how sure it is" in page.text) == without
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 3


def test_an_empty_journal_says_so(path, out):
    opened(path).close()
    page = written(path, out)
    assert "There is no race in this journal yet." in page.text
    assert tiles(path, out) == {
        "races": "0", "solved": "0", "nobody": "0", "void": "0", "unfinished": "0", "arms": "3"
    }  # fmt: skip


def test_a_journal_of_void_races(path, out):
    with opened(path) as learner:
        for _ in range(6):
            entry = learner.select([1.0, 2.0], k=2)
            learner.learn(entry, outcome=Void(), details={"reason": "the race was cut short"})
    page = written(path, out)
    assert tiles(path, out)["void"] == "6"
    assert "nothing to compare" in page.text
    assert "no prediction can be compared" in page.text
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
    with opened(path) as learner:
        for _ in range(7):
            entry = learner.select([1.0, 2.0], k=2)
            learner.learn(entry, ranking=entry.decision.names, details=strange)
    page = written(path, out)
    assert tiles(path, out)["solved"] == "7"
    assert "time of features, apart" not in tiles(path, out)
    assert "nothing to compare" in page.text
    assert sum(int(row["won"]) for row in page.table("arm", "played")) == 7


def test_failures_are_not_counted_where_they_are_not_recorded(path, out):
    with opened(path) as learner:
        learner.learn(learner.select([1.0, 2.0], k=2), outcome=NoWinner())
    page = written(path, out)
    assert "failures cannot be counted" in page.text
    assert "crashed" not in page.table("arm", "played")[0]


def test_markup_in_names_is_text_on_the_page(path, out):
    evil = "<script>alert('1')</script>"
    arms = {f"{evil}{place}": {f"<i>{place}</i>": 1.0} for place in range(2)}
    with opened(path, arms=arms, context=["<u>size</u>"], about={"<s>": evil}) as learner:
        for _ in range(6):
            entry = learner.select([1.0], k=2, label=f"{evil}\"'&amp;.cnf")
            first, second = entry.decision.names
            learner.learn(entry, winner=first, details=details(1.0, {first: "won", second: "<em>odd</em>"}))
    page = written(path, out)
    assert not {tag for tag, _ in page.tags} & {"script", "i", "u", "s", "em"}
    assert {row["instance"] for row in page.table("instance")} == {f"{evil}\"'&amp;.cnf"}
    assert {row["arm"] for row in page.table("arm", "played")} == set(arms)
    assert "<em>odd</em>" in page.table("arm", "played")[0]
    assert "<u>size</u>" in page.table("", INTERCEPT)[0]


def test_names_that_figures_cannot_show(path, out):
    arms = ["_hidden", "$x_{", "$a$ $b$", "名前", "bytes\udc80", "two\nlines", "\\", "n" * 300]
    with opened(path, arms=arms, context=()) as learner:
        for place in range(8):
            entry = learner.select(k=len(arms), label="\udcff.cnf")
            statuses = {name: "won" if name == arms[place] else "killed" for name in arms}
            learner.learn(entry, winner=arms[place], details=details(0.0, statuses))
    page = written(path, out)
    shown = {row["arm"] for row in page.table("arm", "played")}
    assert shown == {*arms} - {"bytes\udc80"} | {"bytes\\udc80"}
    assert page.table("instance")[0]["instance"] == "\\udcff.cnf"


def test_names_that_are_too_long_keep_both_ends():
    name = drawing.plain("solver-" + "x" * 80 + "-fast")
    assert len(name) == 28
    assert name.startswith("solver-")
    assert name.endswith("-fast")


def test_the_page_needs_nothing_from_elsewhere(path, out):
    with opened(path) as learner:
        play(learner, 20)
    page = written(path, out)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "base", "a"}
    sources = [value for _, found in page.tags for name, value in found.items() if name in ("src", "href", "srcset")]
    assert len(sources) == 3
    assert all(source.startswith("data:image/png;base64,iVBORw0KGgo") for source in sources)
    assert "url(" not in out.read_text()
    assert "@import" not in out.read_text()
    (policy,) = [found["content"] for _, found in page.tags if found.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_of_many_arms_the_rest_is_one_curve(path, out):
    with opened(path, arms=[f"arm{place}" for place in range(30)], context=(), policy="random") as learner:
        book = play(learner, 50)
    found = accounts.curves(read_account(path))
    assert len(found) == accounts.MOST_LINES
    assert [int(curve.plays[-1]) for curve in found[:-1]] == [book["played", curve.name] for curve in found[:-1]]
    assert [int(curve.wins[-1]) for curve in found[:-1]] == [
        Counter(race.winner for race in read_account(path).races)[curve.name] for curve in found[:-1]
    ]
    assert sum(curve.plays[-1] for curve in found) == 100
    assert sum(curve.wins[-1] for curve in found) == book["won"]
    assert found[-1].name == f"{found[-1].arms} other arms"
    alone = {curve.name for curve in found}
    rest = [book["played", arm] for arm in read_account(path).chooser.arms if arm not in alone]
    assert min(curve.plays[-1] for curve in found[:-1]) >= max(rest)
    assert found[-1].plays[-1] == sum(rest)
    assert "Shown are the 11 arms played most" in written(path, out).text


def test_curves_follow_the_races(path):
    with opened(path, arms=["a", "b"], context=()) as learner:
        for winner in ("a", None, "b", "a"):
            told = {"outcome": NoWinner()} if winner is None else {"winner": winner}
            learner.learn(learner.select(k=2), **told)
    found = {curve.name: (curve.plays.tolist(), curve.wins.tolist()) for curve in accounts.curves(read_account(path))}
    assert found == {"a": ([1, 2, 3, 4], [1, 1, 1, 2]), "b": ([1, 2, 3, 4], [0, 0, 1, 1])}


def test_a_race_may_go_on_meanwhile(path, out, caplog):
    with opened(path) as learner:
        play(learner, 5)
        entry = learner.select([1.0, 2.0], k=2)
        before = learner.journal.last
        assert tiles(path, out)["unfinished"] == "1"
        assert read_account(path).chooser.to_bytes() == learner.preselector.to_bytes()
        learner.learn(entry, winner=entry.decision.names[0])
        assert learner.journal.last == before + 1
        assert tiles(path, out)["unfinished"] == "0"
    assert verify(path).equal
    assert not caplog.records


def test_a_report_changes_nothing_in_the_journal(path, out):
    with opened(path) as learner:
        play(learner, 5)
    before = path.read_bytes()
    write_report(path, out)
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["race.journal", "report.html"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
def test_the_journal_is_not_written_over(path, suffix):
    with opened(path) as learner:
        play(learner, 2)
    before = path.read_bytes()
    (path.parent / "link.html").symlink_to(f"{path.name}{suffix}")
    for out in (path.with_name(path.name + suffix), path.parent / "link.html"):
        with pytest.raises(InputError, match="out must be another file than the journal"):
            write_report(path, out)
    assert path.read_bytes() == before


def test_a_page_that_is_there_is_replaced_only_by_a_whole_one(path, out):
    out.write_text("old")
    with pytest.raises(JournalError, match="there is no journal"):
        write_report(path, out)
    assert out.read_text() == "old"
    opened(path).close()
    write_report(path, out)
    assert out.read_text().endswith("</html>\n")


def test_a_page_goes_where_a_link_points(tmp_path):
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    target.write_text("old")
    link.symlink_to(target)
    assert write_page(link, "new") == link
    assert (link.is_symlink(), target.read_text()) == (True, "new")


def test_a_page_needs_a_place(path, tmp_path):
    opened(path).close()
    with pytest.raises(InputError, match=r"cannot write .*: Is a directory"):
        write_report(path, tmp_path)
    with pytest.raises(InputError, match="No such file or directory"):
        write_report(path, tmp_path / "nowhere" / "report.html")
    assert write_report(path, tmp_path / ("n" * 250 + ".html")).exists()
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_policies_of_ones_own_that_are_gaussian_have_weights():
    class Own(Newton):
        pass

    chooser = Preselector(["a", "b"], policy="newton", seed=0)
    chooser.policy = Own(d=2, mean=[1.0, -1.0], precision=4.0, seed=0)
    found = weights_of(chooser)
    assert found.values.ravel().tolist() == [1.0, -1.0]
    assert found.deviations.ravel().tolist() == [0.5, 0.5]
