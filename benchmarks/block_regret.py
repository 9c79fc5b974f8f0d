"""Regret with a covariance in blocks, as a share of that with the whole covariance.

The rounds are those of `preselect study synthetic --variation fixed-arms`, shown so that arms have weights of their
own: as arm ⊗ context, or as a Preselector shows them, (arm's features, arm) ⊗ (1, context). Both policies meet the same
contexts and the same luck.
"""

import argparse
import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import numpy as np

import preselect
from preselect.environments.synthetic import FixedArms
from preselect.joint_features import JointFeatures

SETTINGS = [(20, 5, 3), (50, 5, 3), (50, 10, 5)]  # n, d, k


class Rounds(FixedArms):
    """Fixed arms whose context can be seen apart from them."""

    def _draw_contexts(self, rounds):
        self._apart = self._generator.random((rounds, 1, self.d))
        return self.arms * self._apart

    def advance(self):
        self.context()
        return self._apart[self._now, 0]


class OwnWeights:
    """Arm ⊗ context."""

    def __init__(self, arms, has_blocks):  # noqa: ARG002
        self._join = preselect.OneHot(len(arms))
        self.d, self.blocks = arms.size, (0, arms.shape[1])

    def show(self, context):
        return self._join(context)

    def see(self, context):
        pass

    def renew(self):
        return None


def join_features(arms, has_blocks):
    """(arm's features, arm) ⊗ (1, context), scaled by what has been seen."""
    joint = JointFeatures(arms.shape[1], arms.shape[1], capacity=len(arms), has_blocks=has_blocks)
    for features in arms:
        joint.add(features)
    joint.renew()
    return joint


def play(n, d, k, join, has_blocks, options, repetition):
    """Return the regret of the best arm after one repetition."""
    rounds = Rounds(n, d, seed=np.random.SeedSequence((options.seed, repetition)))
    joint = join(rounds.arms, has_blocks)
    policy = preselect.Newton(d=joint.d, blocks=joint.blocks if has_blocks else None, seed=repetition)
    truths, arms = [], []
    for _ in range(options.horizon):
        context = rounds.advance()
        decision = policy.select(joint.show(context), k)
        truths.append(rounds.truth())
        arms.append(decision.arms)
        policy.learn(decision, rounds.outcome(decision))
        joint.see(context)
        change = joint.renew()
        if change is not None:
            policy.transform(change)
    return rounds.measure(np.array(truths), np.array(arms))["best_arm"].sum()


def compare(n, d, k, name, join, options):
    runs = range(options.first, options.first + options.repetitions)
    full, blocks = (np.array([play(n, d, k, join, b, options, r) for r in runs]) for b in (False, True))
    ratio = blocks.mean() / full.mean()
    error = (blocks - ratio * full).std(ddof=1) / full.mean() / np.sqrt(len(full))
    print(
        f"({n}, {d}, {k})  {name:<24} whole {full.mean():6.1f}  blocks {blocks.mean():6.1f}  {ratio:.2f} ± {error:.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=40, help="at least 2 (default %(default)s)")
    parser.add_argument("--horizon", type=int, default=2000, help="rounds (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first repetition (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for n, d, k in SETTINGS:
        compare(n, d, k, "own weights", OwnWeights, options)
        compare(n, d, k, "features and own weights", join_features, options)


if __name__ == "__main__":
    main()
