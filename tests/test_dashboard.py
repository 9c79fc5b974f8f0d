"""The pages of the service: who may see and change what, what they show, and that they stay small."""

import time

import msgspec
import pytest
from dashboards import HOSTILE, play, put_articles
from race_journals import SOLVERS, details, open_learner
from race_journals import play as play_races
from services import bear, decide, make_keys, open_service, put_demo, tell

from preselect.serve.dashboard import views
from preselect.serve.dashboard.aggregate import Aggregate
from preselect.serve.dashboard.buckets import Timeline
from preselect.serve.dashboard.routes import PAGES
from preselect.serve.dashboard.series import make_series
from preselect.store import Record, read_counts

ORDER = ("reader", "client", "admin")
HTML = {"Accept": "text/html"}
OURS = {"Origin": "http://127.0.0.1:8000"}
POLICY = "default-src 'self'"


@pytest.fixture(scope="module")
def shown():
    with open_service() as client:
        put_articles(client)
        play(client, 150)
        yield client


@pytest.fixture(scope="module")
def guarded():
    keys, tokens = make_keys()
    with open_service(keys=keys) as client:
        for name in ("demo", "other"):
            put_demo_with(client, name, tokens["admin"])
        yield client, tokens


def put_demo_with(client, name, token):
    answer = client.put(f"/v1/preselectors/{name}", json={"arms": ["a", "b", "c"]}, headers=bear(token))
    assert answer.status_code == 201


def wait_for(client, path, text):
    """The page, once it says something: it follows the journal twice a second."""
    limit = time.monotonic() + 20
    while text not in (page := client.get(path, headers=HTML).text):
        assert time.monotonic() < limit, page
        time.sleep(0.05)
    return page


def test_pages_show_what_happened(shown):
    home = shown.get("/", headers=HTML)
    assert 'href="/preselectors/articles"' in home.text
    assert POLICY in home.headers["content-security-policy"]
    page = wait_for(shown, "/preselectors/articles", "<b>150</b>decisions")
    for title in ("Rounds per second", "Waiting and expired", "Chosen", "Won", "Has it settled?", "Estimates by arm"):
        assert title in page
    assert "Regret cannot be seen live" in page
    assert "outcomes the first arm won" in page
    assert "weather" in page


def test_curves_are_small_and_add_up(shown):
    wait_for(shown, "/preselectors/articles", "<b>150</b>decisions")
    series = shown.get("/preselectors/articles/series").json()
    rates, shares = series["rates"], series["shares"]
    assert sum(rates["decided"]) * series["seconds"] == 150
    assert {len(column) for column in rates.values()} == {len(rates["at"])}
    assert shares["arms"][-1] == "3 others"
    assert len(shares["chosen"]) == 7
    for point in zip(*shares["chosen"], strict=True):
        assert all(0 <= share <= 1 for share in point)
        assert 2 < sum(point) <= 3  # k arms in each set, and there are others
    for point in zip(*shares["won"], strict=True):
        assert sum(point) == pytest.approx(1)
    ranges = [pair for pair in zip(rates["effective_low"], rates["effective_high"], strict=True) if None not in pair]
    assert ranges
    assert all(2.999 <= low <= high <= 10.001 for low, high in ranges)


def test_arms_are_searched_sorted_and_paged(shown):
    wait_for(shown, "/preselectors/articles", "<b>150</b>decisions")
    found = shown.get("/preselectors/articles/arms?search=MO&sort=name", headers=HTML).text
    assert "moon" in found
    assert "garden" not in found
    by_name = shown.get("/preselectors/articles/arms?sort=name", headers=HTML).text
    assert by_name.count("▲") == 1
    assert by_name.index("derby") < by_name.index("moon") < by_name.index("weather")
    assert "No arm has “xyz”" in shown.get("/preselectors/articles/arms?search=xyz", headers=HTML).text
    with open_service() as client:
        put_demo(client, arms=[f"arm {number:03}" for number in range(120)])
        last = client.get("/preselectors/demo/arms?sort=name&page=3", headers=HTML).text
        assert "arm 119" in last
        assert "arm 099" not in last
        assert "page 3 of 3" in last


def test_a_decision_is_explained(shown):
    made = decide(shown, "articles", context={"age": 30, "evening": 1}, label="a visit")
    path = f"/preselectors/articles/decisions/{made['id']}"
    page = shown.get(path, headers=HTML).text
    names = ", ".join(f"<bdi>{name}</bdi>" for name in made["names"])
    for text in ("Why " + names, "leader", "a visit", "sport × age", "Nothing yet", "evening"):
        assert text in page
    tell(shown, made["id"], winner=made["names"][1], details={"why": "because"})
    page = shown.get(path, headers=HTML).text
    assert f"<b>{made['names'][1]}</b>" in page
    assert "because" in page
    missing = shown.get("/preselectors/articles/decisions/none", headers=HTML)
    assert (missing.status_code, "<h1>Not Found</h1>" in missing.text) == (404, True)


def test_an_admin_adds_and_retires_arms(shown):
    path = "/preselectors/articles/"
    answer = shown.post(path + "arms", data={"arm": "a/b ü", "feature-0": "3,5", "group": "x"}, headers=OURS)
    assert answer.status_code == 303
    described = shown.get("/v1/preselectors/articles").json()["arms"]["a/b ü"]
    assert described == {"features": {"length": 3.5, "sport": None}, "group": "x", "price": None}
    assert "a/b ü has joined." in shown.get(answer.headers["location"], headers=HTML).text
    wrong = shown.post(path + "arms", data={"arm": "x", "price": "dear"}, headers=OURS | HTML)
    assert (wrong.status_code, "give a number" in wrong.text, "Unprocessable" in wrong.text) == (422, True, False)
    assert "Retire a/b ü?" in shown.get(path + "retire?arm=a%2Fb%20%C3%BC", headers=HTML).text
    assert shown.post(path + "retire", data={"arm": "a/b ü"}, headers=OURS).status_code == 303
    assert "a/b ü" not in shown.get("/v1/preselectors/articles").json()["arms"]
    assert shown.post(path + "retire", data={"arm": "a/b ü"}, headers=OURS).status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://example.org"}, {"Origin": "null"}])
def test_forms_of_other_pages_are_refused(shown, headers):
    for path in ("arms", "retire"):
        assert shown.post(f"/preselectors/articles/{path}", data={"arm": "moon"}, headers=headers).status_code == 403
    assert shown.post("/logout", headers=headers).status_code == 403
    assert "moon" in shown.get("/v1/preselectors/articles").json()["arms"]


def test_without_keys_pages_answer_to_local_names_only(shown):
    assert shown.get("/", headers={"Host": "example.org"}).status_code == 403


@pytest.mark.parametrize("role", [None, "reader", "client", "admin"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.method} {page.path}")
def test_every_page_needs_its_role(guarded, page, role):
    client, tokens = guarded
    if page.path.endswith("/live") and role is not None:
        pytest.skip("a stream does not end")
    path = page.path.replace("{name}", "demo").replace("{id}", "none")
    cookies = {} if role is None else {"Cookie": f"preselect_key={tokens[role]}"}
    answer = client.request(page.method, path, headers=OURS | HTML | cookies)
    if role is None:
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")
    elif ORDER.index(role) < ORDER.index(page.role):
        assert answer.status_code == 403
    else:
        assert answer.status_code in (200, 303, 404, 422)  # nothing was sent with the forms


def test_a_key_is_kept_in_a_cookie_that_no_script_can_read(guarded):
    client, tokens = guarded
    wrong = client.post("/login", data={"key": "x"}, headers=OURS)
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
    answer = client.post("/login", data={"key": tokens["reader"], "next": "//example.org"}, headers=OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.post("/login", data={"key": tokens["reader"]}, headers={}).status_code == 403
    left = client.post("/logout", headers=OURS)
    assert (left.headers["location"], "Max-Age=0" in left.headers["set-cookie"]) == ("/login", True)


def test_a_cookie_is_no_key_for_calls(guarded):
    client, tokens = guarded
    assert client.get("/v1/preselectors", headers={"Cookie": f"preselect_key={tokens['admin']}"}).status_code == 401


def test_a_bound_key_sees_its_preselector_only(guarded):
    client, tokens = guarded
    cookie = {"Cookie": f"preselect_key={tokens['bound']}"} | HTML
    home = client.get("/", headers=cookie).text
    assert "/preselectors/demo" in home
    assert "/preselectors/other" not in home
    assert client.get("/preselectors/other", headers=cookie).status_code == 403


def test_only_an_admin_sees_buttons_that_change(guarded):
    client, tokens = guarded
    pages = {
        role: client.get("/preselectors/demo/arms", headers=HTML | {"Cookie": f"preselect_key={tokens[role]}"}).text
        for role in ORDER
    }
    assert [("Retire" in pages[role], "Add an arm" in pages[role]) for role in ORDER] == [
        (False, False),
        (False, False),
        (True, True),
    ]


def test_names_are_shown_as_text():
    with open_service() as client:
        put_demo(client, arms=[HOSTILE, "b"], context=[HOSTILE])
        made = decide(client, context={HOSTILE: 1.0}, label=HOSTILE)
        tell(client, made["id"], winner=HOSTILE, details={HOSTILE: HOSTILE})
        wait_for(client, "/preselectors/demo", "<b>1</b>told")
        for path in ("", "/arms", f"/decisions/{made['id']}", "/retire?arm=<script>", f"/arms?search={HOSTILE}"):
            text = client.get(f"/preselectors/demo{path}", headers=HTML).text
            assert "&lt;" in text
            assert not any(tag in text for tag in ("<img", "<script>", 'onerror="'))


def test_races_that_the_best_arm_always_won_saved_nothing(tmp_path):
    path = tmp_path / "pool.journal"
    with open_learner(path) as learner:
        for _ in range(8):
            entry = learner.select([1.0, 2.0], k=3)
            learner.learn(entry, winner="cadical", details=details(0.3, dict.fromkeys(SOLVERS, "killed")))
        with open_service(journal=path) as client:
            assert "saved nothing in the 8 solved" in wait_for(client, "/preselectors/pool", "<b>8</b>decisions")


def test_a_journal_of_races_is_shown_while_it_is_written_and_cannot_be_changed(tmp_path):
    path = tmp_path / "pool.journal"
    with open_learner(path) as learner:
        play_races(learner, 30)
        with open_service(journal=path) as client:
            page = wait_for(client, "/preselectors/pool", "<b>30</b>decisions")
            for text in ("Seconds saved", "The last decisions", "cadical", "29.cnf"):
                assert text in page
            number = learner.select([1.0, 2.0], k=2, label="new.cnf").number
            wait_for(client, "/preselectors/pool", "new.cnf")
            assert "new.cnf" in client.get(f"/preselectors/pool/decisions/{number}", headers=HTML).text
            arms = client.get("/preselectors/pool/arms", headers=HTML).text
            assert "saps" in arms
            assert "Retire" not in arms
            refused = client.delete("/v1/preselectors/pool/arms/saps")
            assert (refused.status_code, "only shown here" in refused.text) == (409, True)
            assert client.get("/v1/preselectors/pool/rounds?limit=3").json()["rounds"][0]["label"] == "0.cnf"


@pytest.mark.parametrize("decided", [[5], [1, 1], [30, 3], [30, 30, 3], [3, 30, 3, 30, 4, 1]])
def test_neighbours_are_gathered_in_order_until_there_are_enough(decided):
    timeline = Timeline()
    for second, many in enumerate(decided):
        timeline.find(1000.0 + second).decided = many
    groups = timeline.gather(20)
    assert [bucket.decided for group in groups for bucket in group] == decided
    assert len(groups) == 1 or all(sum(bucket.decided for bucket in group) >= 20 for group in groups)


def test_names_that_are_peeked_at_and_events_that_are_read_count_alike(tmp_path):
    with open_learner(tmp_path / "pool.journal") as learner:
        play_races(learner, 60)
        records, counts = [*learner.journal.records()], read_counts(learner.journal)
    read = [Record(one.row._replace(text=""), one.event) for one in records]  # as without storage
    for events in (records, read):
        aggregate = Aggregate(outside=False)
        aggregate.fold(events)
        assert (aggregate.plays, aggregate.wins) == (counts.plays, counts.wins)
        assert aggregate.counts["decided"] == counts.rounds == 60
        assert (aggregate.counts["void"], aggregate.waiting) == (counts.outcomes["void"], counts.unfinished)
        assert aggregate.races.races == 60 - counts.outcomes["void"]
        assert [one.label for one in aggregate.recent[:2]] == ["59.cnf", "58.cnf"]
        assert aggregate.calibration.rounds == counts.outcomes["winner"]


def test_what_is_kept_of_a_long_history_does_not_grow(tmp_path):
    with open_learner(tmp_path / "pool.journal") as learner:
        play_races(learner, 30)
        learner.select([1.0, 2.0], k=2, label="waits for ever")
        records = [*learner.journal.records()]
    aggregate = Aggregate(outside=False)
    for turn in range(150):
        shift, later = turn * len(records), 3600.0 * turn
        aggregate.fold(Record(move(one.row, shift, later)) for one in records)
    assert aggregate.counts["decided"] == 150 * 31
    assert len(aggregate.recent) == 20
    assert len(aggregate.timeline.buckets) <= 600 < 150 * 31
    assert len(msgspec.json.encode(make_series(aggregate))) < 200_000


def move(row, shift, later):
    ended = None if row.decision is None else row.decision + shift
    return row._replace(number=row.number + shift, at=row.at + later, decision=ended)


def test_no_weight_is_minus_zero():
    assert views._weigh(-0.001, 0.2) == ("+0.00", "± 0.20", "")
    assert views._tint(-0.0001, 1.0) == ("+0.000", "")
