"""Random numbers that belong to one decision, so that the same seed always gives the same choice."""

from __future__ import annotations

import hashlib

import numpy as np

_SEEDS = 1 << 52  # seeds of policies are smaller, so that every JSON reader keeps them exact


class Randomness:
    """The random numbers of one decision. Most decisions need none, so the generator is made when it is first used.

    Parameters
    ----------
    seed : int
        The seed of the decision, at least 0.
    """

    __slots__ = ("_generator", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @property
    def is_used(self) -> bool:
        """Whether any number has been asked for."""
        return hasattr(self, "_generator")

    @property
    def generator(self) -> np.random.Generator:
        """The generator; every use advances it."""
        try:
            return self._generator
        except AttributeError:  # not made yet
            self._generator: np.random.Generator = np.random.default_rng(self.seed)
            return self._generator


def make_root(seed: int | None) -> int:
    """Return the number from which the seeds of a policy's decisions are counted; a random one without a seed."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]) % _SEEDS


def hash_root(text: str) -> int:
    """Return a root that depends on the text form of a value."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % _SEEDS
