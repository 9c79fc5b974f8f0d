"""Logs of a world in which all is known: how arms are shown, how they win, and what a policy really wins."""

from functools import partial
from itertools import combinations, permutations

import numpy as np

from preselect import logs
from preselect.offline import evaluate
from preselect.offline.choosing import train

N, K = 5, 2
SETS = np.array(list(combinations(range(N), K)))
ARMS = [f"a{i}" for i in range(N)]


class LoggedWorld:
    """Five arms, of which two are shown, drawn one after the other by a softmax of scores that know a little.

    Parameters
    ----------
    seed : int
        Decides tastes, contexts, choices and outcomes.
    outside : bool
        Whether nobody may win.
    bend : float
        How far log-utilities are from linear in the context. Whoever keeps the logs knows it; a linear model does not.
    """

    def __init__(self, seed, outside=True, bend=0.0):
        self.generator = np.random.default_rng(seed)
        self.outside, self.bend = float(outside), bend
        self.own, self.weights = self.generator.normal(size=N), self.generator.normal(size=(N, 2))
        self.waves = self.generator.normal(size=(N, 2))

    def utilities(self, c):
        """Log-utilities of the arms in each of T contexts, T x N."""
        linear = 0.7 * self.own - self.outside + 0.7 * c @ self.weights.T
        return linear + self.bend * np.sin(3.0 * c @ self.waves.T)

    def set_chances(self, c):
        """The probability with which each set is shown, T x sets."""
        known = self.utilities(c) if self.bend else self.own + c @ self.weights.T  # what it knows of the taste
        score = np.exp(0.4 * known)
        total = np.zeros((len(c), len(SETS)))
        for order in permutations(range(K)):
            left = score.sum(axis=1, keepdims=True) * np.ones((1, len(SETS)))
            p = np.ones_like(total)
            for place in order:
                chosen = score[:, SETS[:, place]]
                p *= chosen / left
                left = left - chosen
            total += p
        return total

    def win_chances(self, c):
        """Each arm's chance to win within each set, T x sets x K."""
        v = np.exp(self.utilities(c))[:, SETS]
        return v / (v.sum(axis=2, keepdims=True) + self.outside)

    def play(self, rounds):
        """Return the logs of some rounds."""
        c = self.generator.normal(size=(rounds, 2))
        chances = self.set_chances(c)
        p = arm_chances(chances)
        picked = (chances.cumsum(axis=1) > self.generator.random((rounds, 1))).argmax(axis=1)
        wins = self.win_chances(c)[np.arange(rounds), picked]
        won = wins.cumsum(axis=1) > self.generator.random((rounds, 1))
        winner = np.where(won.any(axis=1), won.argmax(axis=1), -1)  # -1: nobody
        shown = SETS[picked]
        table = {name: [] for name in ("round", "arm", "shown", "place", "propensity", "set_propensity")}
        for t in range(rounds):
            place = {int(shown[t, winner[t]]): 1} if winner[t] >= 0 else {}
            seen = set(shown[t].tolist())
            table["round"] += [t] * N
            table["arm"] += ARMS
            table["shown"] += [arm in seen for arm in range(N)]
            table["place"] += [place.get(arm) for arm in range(N)]
            table["propensity"] += p[t].tolist()
            table["set_propensity"] += [chances[t, picked[t]]] * N
        contexts = {f"context.c{i}": np.repeat(c[:, i], N) for i in range(2)}
        return logs.read({**table, **contexts})

    def true_value(self, measure, choose, rounds=20_000):
        """Return what a policy really wins; choose(c) returns its probability of each set in each of T contexts."""
        c = np.random.default_rng(1).normal(size=(rounds, 2))
        wins, chosen = self.win_chances(c), choose(c)
        if measure == "picks":
            return float((chosen * wins.sum(axis=2)).sum(axis=1).mean())
        chances = self.set_chances(c)
        each = np.stack([(chances * (wins * (arm == SETS)).sum(axis=2)).sum(axis=1) for arm in range(N)], axis=1)
        return float((arm_chances(chosen) * each / arm_chances(chances)).sum(axis=1).mean())


def arm_chances(chances):
    """Each arm's probability to be shown, T x N, given those of sets."""
    return np.stack([chances[:, (arm == SETS).any(axis=1)].sum(axis=1) for arm in range(N)], axis=1)


GREEDY = "newton(beta=0)"


def evaluate_with_truth(world, rounds, draws=5):
    """Yield two policies, what each really wins in a world, and what logs of that world say about it."""
    table, outside = world.play(rounds), bool(world.outside)
    options = {"identity": True, "nobody_may_win": outside}
    learnt = round(0.4 * rounds)
    made = {policy: train(policy, table.take(0, learnt), options, seed=0) for policy in (GREEDY, "random")}
    found = evaluate(table, made, learn_from=0.4, nobody_may_win=outside, draws=draws)
    choose = {
        GREEDY: partial(_take_best, made[GREEDY]),
        "random": lambda c: np.full((len(c), len(SETS)), 1 / len(SETS)),
    }
    for value in found.policies[1:]:
        yield value.policy, world.true_value(found.measure, choose[value.policy]), value


def _take_best(preselector, c):
    """The set of the arms with the largest utilities by a preselector, with probability 1."""
    T = len(c)
    slots = np.tile([preselector._find(arm) for arm in ARMS], T)
    rows = preselector._joint.rows(slots, np.empty((T * N, 0)), np.repeat(c, N, axis=0))
    u = (rows @ preselector.policy.theta).reshape(T, N)
    best = u[:, SETS].sum(axis=2).argmax(axis=1)
    return np.eye(len(SETS))[best]


def _take_any(c):
    return np.full((len(c), len(SETS)), 1.0 / len(SETS))
