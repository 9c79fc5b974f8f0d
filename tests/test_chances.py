"""Chances to win: the model's at first, then corrected by how rounds ended."""

import numpy as np
import pytest

from preselect.chances import Chances, _compare


def play(true_chances, estimates, rounds, seed=0):
    """Draw rounds and their outcomes; return what was predicted for each and who won, k standing for no winner."""
    generator, chances, predictions, winners = np.random.default_rng(seed), Chances(outside=True), [], []
    for _ in range(rounds):
        u = generator.normal(size=3)
        p = true_chances(u)
        predictions.append(chances.predict(estimates(u)))
        winners.append(int(generator.choice(4, p=p)))
        chances.learn(estimates(u), winners[-1] if winners[-1] < 3 else None)
    return np.array(predictions), np.array(winners)


def model(u):
    v = np.append(np.exp(u), 1.0)
    return v / v.sum()


@pytest.mark.parametrize("outside", [True, False])
def test_at_first_chances_are_those_of_the_model(outside):
    """As drawn from the model: without an outside option there is always a winner."""
    u, generator = np.array([-0.5, 0.3, 0.1]), np.random.default_rng(0)
    drawn = np.append(u, 0.0 if outside else -np.inf) + generator.gumbel(size=(200_000, 4))
    shares = np.bincount(drawn.argmax(axis=1), minlength=4) / 200_000
    np.testing.assert_allclose(Chances(outside).predict(u), shares, atol=0.005)


@pytest.mark.parametrize("size", [1.0, 700.0, 1e300])
def test_chances_are_probabilities_whatever_the_estimates_and_outcomes(size):
    chances = Chances(outside=True)
    for winner in (0, 1, None, 1, 1, None, 0) * 5:
        chances.learn(np.array([size, -size]), winner)
        for u in ([size, -size], [-size, -size], [0.0, 0.0]):
            found = chances.predict(np.array(u))
            assert found.sum() == pytest.approx(1.0)
            assert (found >= 0.0).all()


@pytest.mark.parametrize("won", [0, 1, None])
def test_a_round_moves_the_correction_to_the_maximum_of_prior_times_likelihood(won):
    """b ~ N(0, 1), a and c ~ N(1, 1/4), on a grid."""
    u, chances = np.array([2.0, -1.0]), Chances(outside=True)
    chances.learn(u, won)
    log_V = np.log(np.exp(u).sum())
    b, a = np.meshgrid(np.linspace(-2.0, 2.0, 1001), np.linspace(-1.0, 3.0, 1001), indexing="ij")
    z = b + a * log_V
    posterior = (0.0 if won is not None else -z) - np.logaddexp(0.0, -z) - 0.5 * b**2 - 2.0 * (a - 1.0) ** 2
    place = np.unravel_index(posterior.argmax(), posterior.shape)
    win = 1.0 / (1.0 + np.exp(-z[place]))
    c = np.linspace(-1.0, 3.0, 4001)[:, None]
    shares = np.exp(c * u) / np.exp(c * u).sum(axis=1, keepdims=True)
    likelihood = 0.0 if won is None else np.log(shares[:, won])
    best = shares[(likelihood - 2.0 * (c[:, 0] - 1.0) ** 2).argmax()]
    np.testing.assert_allclose(chances.predict(u), [*(win * best), 1.0 - win], atol=2e-3)


def test_slopes_of_the_winners_share_equal_finite_differences():
    lead, c, h = np.array([0.0, -1.0, 0.7, 2.0]), 0.8, 1e-4
    log_share = [-np.log(np.exp(at * lead).sum()) for at in (c - h, c, c + h)]
    gradient, curvature = _compare(lead, c)
    assert gradient == pytest.approx((log_share[2] - log_share[0]) / (2 * h), rel=1e-6)
    assert curvature == pytest.approx((2 * log_share[1] - log_share[0] - log_share[2]) / h**2, rel=1e-4)


@pytest.mark.parametrize(
    "estimates", [lambda u: u, lambda u: 3.0 * u, lambda u: 0.6 * u, lambda u: u + 2.0, lambda u: 2.0 * u - 1.0]
)
def test_estimates_that_are_too_extreme_or_shifted_still_give_calibrated_chances(estimates):
    """After 300 rounds, bin by bin: within 0.06 where the estimates alone are wrong by up to 0.3."""
    predictions, winners = play(model, estimates, 2000)
    predicted, won = predictions[300:].ravel(), (winners[300:, None] == np.arange(4)).ravel()
    for low in np.arange(0.0, 0.8, 0.2):
        inside = (low <= predicted) & (predicted < low + 0.2)
        if inside.sum() > 300:
            assert predicted[inside].mean() == pytest.approx(won[inside].mean(), abs=0.06)


def test_the_correction_follows_what_changes():
    """First nobody wins, then always somebody: after 400 rounds the first 400 count for little."""
    chances, u = Chances(outside=True), np.zeros(3)
    for winner in [None] * 400 + [0] * 400:
        chances.learn(u, winner)
    assert chances.predict(u)[3] < 0.1
