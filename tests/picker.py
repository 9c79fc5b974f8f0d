"""Somebody with a known taste for posters, who picks with the noise of a Plackett-Luce person."""

import re
import subprocess
import sys
from contextlib import contextmanager

import numpy as np

from preselect.serve.picking.catalogue import make_catalogue

SPREAD = 3.0  # standard deviation of the utilities of all posters: of three random ones the best is picked in 82 %
NONE = -SPREAD  # the utility of picking none of them


class Picker:
    """Utilities are sums of weights times features, each in standard deviations."""

    def __init__(self, seed):
        catalogue = make_catalogue()
        self.generator = np.random.default_rng(seed)
        arms = catalogue["preselector"]["arms"]
        X = np.array([list(one.values()) for one in arms.values()])
        strength = {one["feature"]: one["strength"] for one in catalogue["dials"] + catalogue["pattern_dials"]}
        weights = self.generator.normal(size=X.shape[1]) * [strength[name] for name in next(iter(arms.values()))]
        worth = ((X - X.mean(axis=0)) / X.std(axis=0)) @ weights
        self.utilities = dict(zip(arms, (SPREAD * worth / worth.std()).tolist(), strict=True))

    def pick(self, names):
        """Return the one that is picked; None for none of them."""
        u = np.array([*(self.utilities[name] for name in names), NONE])
        place = int(np.argmax(u + self.generator.gumbel(size=len(u))))
        return names[place] if place < len(names) else None

    def is_among_the_best(self, name, share=0.05):
        better = sum(one > self.utilities[name] for one in self.utilities.values())
        return better < share * len(self.utilities)


@contextmanager
def open_demo():
    """Start `preselect demo`, and give its address."""
    command = [sys.executable, "-m", "preselect", "demo", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        finally:
            process.terminate()
