"""The study of widths and estimates: against formulas written out, and what Lemma 1 says of an F-distribution."""

import numpy as np
import pytest
from commands import preselect

from preselect import CPPL, InputError, Newton, Winner
from preselect.study import CoveragePlan, Results
from preselect.study.coverage import _bound_wald, _compare_with_truth


def train(policy, rounds=60):
    generator, theta = np.random.default_rng(0), np.array([0.2, 0.9, 0.5])
    for _ in range(rounds):
        X = generator.random((8, 3))
        decision = policy.select(X, 3)
        noisy = X[decision.arms] @ theta + generator.gumbel(size=3)
        policy.learn(decision, Winner(decision.arms[noisy.argmax()]))
    return generator.random((8, 3)), theta


def test_cppl_is_judged_by_the_papers_interval():
    policy = CPPL(d=3, omega=0.2, seed=0)
    X, theta = np.random.default_rng(1).normal(size=(500, 3)), train(policy)[1]
    t, v, v_true = 61, np.exp(X @ policy.theta), np.exp(X @ theta)
    log = np.log(t)
    c = 0.2 * v * np.sqrt((2 * log + 3 + 2 * np.sqrt(3 * log)) * np.einsum("ij,jk,ik->i", X, policy.Sigma, X))
    missed, too_low, distance, wald, _ = _compare_with_truth(policy, X, theta)
    assert missed == np.mean(np.abs(v - v_true) > c)
    assert 0.0 < too_low < missed < 1.0
    assert too_low == np.mean(v_true > v + c)
    assert distance == pytest.approx(np.linalg.norm(policy.theta - theta))
    error = policy.theta - theta
    assert wald == pytest.approx(error @ np.linalg.inv(policy.Sigma) @ error / 3)


@pytest.mark.parametrize("beta", [0.1, 0.5, 10.0])
def test_newton_is_judged_by_leads_over_the_leader(beta):
    policy = Newton(d=3, beta=beta, seed=0)
    X, theta = train(policy)
    D = X - X[(X @ policy.theta).argmax()]
    q = np.einsum("ij,jk,ik->i", D, policy.estimate.covariance, D)
    others = np.flatnonzero(q)
    outside = np.abs(D @ (theta - policy.theta)) > beta * np.sqrt(q)
    assert len(others) == 7
    assert _compare_with_truth(policy, X, theta)[0] == np.mean(outside[others])


def test_an_f_distributed_statistic_stays_within_lemma_1():
    generator = np.random.default_rng(0)
    for d, t in ((5, 400), (10, 1000)):
        drawn = generator.f(d, t - d, size=100_000)
        assert np.mean(drawn > _bound_wald(d, t)) <= 1.0 / t + np.exp(-3.0 * (t - d) / 256.0)


def test_a_study_counts_rounds_and_can_be_shown(tmp_path):
    out = tmp_path / "coverage"
    preselect("study", "coverage", "--scenario", "6,2,2", "--horizon", 50, "--reps", 2, "--workers", 1, "--out", out)
    results = Results.open(out)
    assert results.plan.write_command("x") == (
        "preselect study coverage --scenario 6,2,2 --horizon 50 --reps 2 --out x"
    )  # fmt: skip
    missed, low, error = (results.load(name)[(6, 2, 2), "newton"] for name in ("missed", "too_low", "error"))
    assert missed.shape == (2, 50)
    assert np.all(low <= missed)
    assert np.all(missed[:, -1] <= 50)
    assert np.all(np.diff(error, axis=1) > 0.0)
    assert (out / "report.html").exists()


def test_what_has_no_truth_or_no_widths_is_refused(tmp_path):
    with pytest.raises(InputError, match="variation is 'drifting', which has no fixed θ"):
        CoveragePlan(variation="drifting")
    with pytest.raises(InputError, match="mm has no widths that claim to contain the truth; use cppl or newton"):
        Results.create(tmp_path / "out", CoveragePlan(policies=("mm",)))
