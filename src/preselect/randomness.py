"""The numbers from which the seeds of decisions are counted."""

from __future__ import annotations

import hashlib

import numpy as np

_SEEDS = 1 << 52  # seeds of policies are smaller, so that every JSON reader keeps them exact


def make_root(seed: int | None) -> int:
    """Return the number from which the seeds of a policy's decisions are counted; a random one without a seed."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]) % _SEEDS


def hash_root(text: str) -> int:
    """Return a root that depends on the text form of a value."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % _SEEDS
