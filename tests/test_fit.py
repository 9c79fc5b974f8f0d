"""Fits of logs: against other packages, finite differences and the truth."""

import numpy as np
import pytest
from click.testing import CliRunner

import preselect
from preselect import InputError, Preselector, logs
from preselect.cli.main import preselect as command
from preselect.logs.ranked import RankedRows
from preselect.offline import fit
from preselect.posterior import maximise

ARMS = [f"a{i}" for i in range(12)]


class World:
    """Twelve arms with two features each, in a context of two numbers, and a taste that is linear in both."""

    def __init__(self, seed, outside=False):
        self.generator = np.random.default_rng(seed)
        self.z = self.generator.normal(size=(12, 2))
        self.own = self.generator.normal(size=12)
        self.weights = self.generator.normal(size=(2, 3))
        self.outside = outside

    def utilities(self, c):
        return 0.5 * self.own + self.z @ self.weights @ np.array([1.0, *c])

    def play(self, rounds, *, shown=4, ranked=1):
        rows = []
        for t in range(rounds):
            c, chosen = self.generator.normal(size=2), self.generator.choice(12, shown, replace=False)
            noisy = self.utilities(c)[chosen] + self.generator.gumbel(size=shown)
            nobody = self.generator.gumbel() if self.outside else -np.inf
            order = np.argsort(-noisy)
            for place, position in enumerate(order, start=1):
                seen = place if place <= ranked and noisy[order[0]] > nobody else None
                rows.append((t, ARMS[chosen[position]], seen, *self.z[chosen[position]], *c))
        columns = ("round", "arm", "place", "arm.x", "arm.y", "context.p", "context.q")
        return logs.read(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


def stack(X, winners, precision=1e-9):
    """Fit the winners of T sets of k rows, given as T x k x d numbers."""
    T, k, d = X.shape
    order = np.argsort(np.arange(k) != winners[:, None], axis=1, kind="stable")
    rows = np.take_along_axis(X, order[:, :, None], axis=1).reshape(-1, d)
    ranked = RankedRows(np.arange(T * k), np.arange(T), np.full(T, k), np.ones(T, dtype=np.int64), None)
    return maximise(rows, ranked, np.zeros(d), np.full(d, precision))


def test_it_agrees_with_a_conditional_logit():
    discrete = pytest.importorskip("statsmodels.discrete.conditional_models")
    generator = np.random.default_rng(3)
    X, theta = generator.normal(size=(400, 5, 3)), np.array([0.5, -1.0, 0.3])
    winners = (X @ theta + generator.gumbel(size=(400, 5))).argmax(axis=1)
    found = stack(X, winners)
    won = (np.arange(5) == winners[:, None]).astype(float).ravel()
    model = discrete.ConditionalLogit(won, X.reshape(-1, 3), groups=np.repeat(np.arange(400), 5))
    theirs = model.fit(disp=False, method="newton", tol=1e-12)
    np.testing.assert_allclose(found.theta, theirs.params, atol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), theirs.bse, rtol=1e-5)


def test_it_agrees_with_choix():
    choix = pytest.importorskip("choix")
    generator = np.random.default_rng(4)
    utilities, data = generator.normal(size=6), []
    X, winners = np.zeros((300, 3, 6)), np.zeros(300, dtype=np.int64)
    for t in range(300):
        chosen = generator.choice(6, 3, replace=False)
        X[t, np.arange(3), chosen] = 1.0
        winners[t] = (utilities[chosen] + generator.gumbel(size=3)).argmax()
        data.append((int(chosen[winners[t]]), tuple(int(arm) for arm in np.delete(chosen, winners[t]))))
    found = stack(X, winners, precision=0.2)
    theirs = choix.opt_top1(6, data, alpha=0.1, method="Newton-CG", tol=1e-12)
    np.testing.assert_allclose(found.theta - found.theta.mean(), theirs - theirs.mean(), atol=1e-6)


@pytest.mark.parametrize(("ranked", "outside"), [(1, False), (3, False), (4, False), (1, True)])
def test_the_gradient_at_the_maximum_vanishes(ranked, outside):
    """The gradient of likelihood times prior, by the pure functions of the model, is zero at the estimate."""
    table = World(5, outside).play(300, ranked=ranked)
    found = Preselector.fit(table, nobody_may_win=outside, seed=0)
    theta, joint = found.policy.theta, found._joint
    gradient = -theta.copy()  # the prior is N(0, 1)
    for t, one in enumerate(table.rounds()):
        rows = np.arange(one.rows.start, one.rows.stop)
        X = np.array([joint.rows(table.arm[[row]], table.values[[row]], table.contexts[t])[0] for row in rows])
        ranking = [int(np.flatnonzero(table.arm[rows] == table.arms.index(name))[0]) for (name,) in one.places]
        if outside:
            X = np.vstack((X, np.zeros(X.shape[1])))
            ranking = ranking or [len(X) - 1]
        gradient += preselect.model.gradient(X, theta, ranking)
    assert np.abs(gradient).max() < 1e-8


def test_a_feature_that_has_varied_counts_even_if_it_no_longer_does():
    """Arms are scaled by their last rows, in which no offer is reduced; in the rounds before, reduced ones won."""
    reduced = np.random.default_rng(0).random(200) < 0.5
    rows = [
        (t, arm, 1 if (arm == "a") == one else None, float(one) if arm == "a" else 1.0 - one)
        for t, one in enumerate(reduced.tolist())
        for arm in "ab"
    ] + [(200, "a", 1, 0.0), (200, "b", 2, 0.0)]
    names = ("round", "arm", "place", "arm.reduced")
    found = Preselector.fit(logs.read(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), seed=0)
    found.change("b", {"reduced": 1.0})
    utilities = {name: one.utility for name, one in found.estimates().items()}
    assert utilities["b"] > utilities["a"] + 2.0


def test_ties_are_fitted_as_they_are_learnt():
    rows = [(t, arm, place) for t in range(40) for arm, place in zip("abcd", (1, 1, 2, None), strict=True)]
    table = logs.read(dict(zip(("round", "arm", "place"), map(list, zip(*rows, strict=True)), strict=True)))
    found = Preselector.fit(table, seed=0)
    u = {name: one.utility for name, one in found.estimates().items()}
    assert abs(u["a"] - u["b"]) < 1e-9
    assert u["a"] > u["c"] > u["d"]


def test_a_fitted_preselector_starts_far_ahead():
    warm, regrets = compare_starts(6)
    assert regrets[0] < regrets[1] / 3.0
    restored = Preselector.from_bytes(warm.to_bytes())
    assert restored.to_bytes() == warm.to_bytes()


def compare_starts(seed):
    """The regrets over the next 2000 rounds, the same for both, of a preselector with a log and of one without."""
    world = World(seed)
    warm = Preselector.fit(world.play(600), seed=0)
    cold = Preselector({name: warm.arm(name) for name in warm.arms}, context=["p", "q"], seed=0)
    return warm, [_play(world, one, 2000) for one in (warm, cold)]


def _play(world, preselector, rounds):
    generator, regret = np.random.default_rng(7), 0.0
    for _ in range(rounds):
        c = generator.normal(size=2)
        decision = preselector.select(c.tolist(), k=3)
        u = world.utilities(c)
        chosen = [ARMS.index(name) for name in decision.names]
        regret += 1.0 - np.exp(u[chosen].max() - u.max())
        winner = chosen[int((u[chosen] + generator.gumbel(size=3)).argmax())]
        preselector.learn(decision, winner=ARMS[winner])
    return regret


@pytest.mark.parametrize("policy", ["newton", "thompson", "newton(beta=1.0)"])
def test_it_learns_on_from_a_fit(policy):
    world = World(8)
    found = Preselector.fit(world.play(50), policy=policy, seed=0)
    before = found.policy.theta.copy()
    assert found.policy.observations == 50
    decision = found.select({"p": 0.0, "q": 1.0}, k=2)
    found.learn(decision, winner=decision.names[1])
    assert found.policy.observations == 51
    assert not np.array_equal(before, found.policy.theta)


def test_rounds_that_teach_nothing_are_left_out():
    table = {"round": [1, 2, 2, 3, 3], "arm": list("aabab"), "place": [1, None, None, 1, None]}
    assert Preselector.fit(logs.read(table), seed=0).policy.observations == 1
    policy = Preselector.fit(logs.read(table), nobody_may_win=True, seed=0).policy
    assert (policy.observations, policy.no_winners) == (2, 1)


def test_what_cannot_be_fitted_is_refused():
    table = logs.read({"round": [1, 1], "arm": ["a", "b"], "place": [1, None]})
    with pytest.raises(InputError, match="'cppl', which cannot start from logs; use newton or thompson"):
        Preselector.fit(table, policy="cppl")
    with pytest.raises(InputError, match=r"use what preselect\.logs\.read returns"):
        Preselector.fit({"round": [1]})
    with pytest.raises(InputError, match="0 of 1 rounds are too few to test on"):
        fit(table)


def test_held_out_rounds_tell_a_good_model_from_a_popular_one():
    found = fit(World(9).play(800), seed=0)
    model, popular, uniform = found.scores
    assert (found.rounds, found.held_out) == (800, 160)
    assert model.lead == 0.0
    assert popular.lead > 3.0 * popular.lead_error
    assert uniform.log_likelihood == pytest.approx(-np.log(4.0))
    assert uniform.lead > popular.lead
    assert sum(one.size for one in found.calibration) == 160 * 4
    assert sum(one.size * one.observed for one in found.calibration) == pytest.approx(160)


def test_the_command_prints_saves_and_writes_a_page(tmp_path):
    table = World(10, outside=True).play(200)
    path, state, page = (tmp_path / name for name in ("t.csv", "t.npz", "t.html"))
    lines = ["round,arm,place,context.p"]
    for one, context in zip(table.rounds(), table.contexts, strict=True):
        for row in range(one.rows.start, one.rows.stop):
            place = table.places[row] or ""
            lines.append(f"{one.label},<b>{table.arms[table.arm[row]]}</b>,{place},{context[0]}")
    path.write_text("\n".join(lines) + "\n")
    arguments = ["fit", str(path), "--nobody-may-win", "--state", str(state), "--out", str(page)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert "200 rounds, 200 of them with an outcome that teaches something; 12 arms" in result.output
    assert "popularity" in result.output
    assert preselect.load(state).policy.no_winners > 0
    assert "&lt;b&gt;a0&lt;" in page.read_text()
    assert "<b>a0" not in page.read_text()
    assert CliRunner().invoke(command, arguments).exit_code == 0  # our own files may be replaced
    for file in (page, state):
        before = file.read_bytes()
        file.write_text("mine")
        refused = CliRunner().invoke(command, arguments)
        assert (refused.exit_code, file.read_text()) == (1, "mine")
        file.write_bytes(before)


def test_what_cannot_be_written_is_said_before_the_log_is_read(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir()
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "none" / "a", "No such file or directory")):
        for option in ("--state", "--out"):
            result = CliRunner().invoke(command, ["fit", "no such log", option, str(path)])
            assert (result.exit_code, result.output) == (1, f"Error: cannot write {path}: {reason}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.access", lambda *_: False)  # as for users who are not root
        result = CliRunner().invoke(command, ["evaluate", "no such log", "--out", str(locked / "a.html")])
    assert result.output == f"Error: cannot write {locked / 'a.html'}: Permission denied\n"


def test_state_and_page_are_two_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, ["fit", "no such log", "--state", "a", "--out", "./a"])
    assert (result.exit_code, result.output) == (1, "Error: --state and --out both name a; name two files\n")
