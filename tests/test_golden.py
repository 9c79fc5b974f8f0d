"""Golden traces: the choices of every policy for one seed, so that a change of behaviour is seen.

After a change that is meant, write them anew with `python tests/test_golden.py` and say why in the changelog.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from preselect import Ranking, Winner, model
from preselect.policies import registry

FILE = Path(__file__).parent / "golden.json"
POLICIES = {policy.__name__: policy for policy in registry.POLICIES.values()}
CASES = [f"{policy} {feedback}" for policy in POLICIES for feedback in ("winner", "ranking")]


def trace(case):
    name, feedback = case.split()
    policy = POLICIES[name](d=4, seed=11)
    generator = np.random.default_rng(12)
    theta = generator.random(4)
    chosen = []
    for _ in range(80):
        decision = policy.select(generator.random((12, 4)), 3)
        named = decision.arms[model.sample_ranking(decision.rows @ theta, generator)]
        policy.learn(decision, Winner(named[0]) if feedback == "winner" else Ranking(named))
        chosen.append(decision.arms.tolist())
    return chosen


@pytest.mark.parametrize("case", CASES)
def test_choices_are_those_of_the_golden_trace(case):
    assert trace(case) == json.loads(FILE.read_text())[case]


if __name__ == "__main__":
    FILE.write_text("{\n" + ",\n".join(f'"{case}": {json.dumps(trace(case))}' for case in CASES) + "\n}\n")
