"""Somebody with a known taste for posters, who picks with the noise of a Plackett-Luce person."""

import os
import random
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
        """Return the one that is picked, in whatever order they are shown; None for none of them."""
        u = {**{name: self.utilities[name] for name in sorted(names)}, None: NONE}
        noise = self.generator.gumbel(size=len(u))
        return max(zip(u, np.array([*u.values()]) + noise, strict=True), key=lambda pair: pair[1])[0]

    def is_among_the_best(self, name, share=0.05):
        better = sum(one > self.utilities[name] for one in self.utilities.values())
        return better < share * len(self.utilities)


# decisions are chosen by seeds that depend on their ids: the same ids make the same choices in every run
def make_same_ids():
    """Return what makes ids in place of `secrets.token_hex`."""
    draw = random.Random(1)
    return lambda n: draw.randbytes(n).hex()


@contextmanager
def open_demo():
    """Start `preselect demo` with the same ids every time, and give its address."""
    code = "import secrets, picker, preselect.cli as cli; secrets.token_hex = picker.make_same_ids(); cli.main()"
    command = [sys.executable, "-c", code, "demo", "--no-browser"]
    folders = filter(None, (os.path.dirname(__file__), os.environ.get("PYTHONPATH")))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        finally:
            process.terminate()
