"""Small-world graph colouring instances (SWGCP; Gent, Hoos, Prosser and Walsh 1999): between a ring and a random graph.

With ratio 0 the graph is a ring lattice, each vertex joined to its nearest neighbours; with ratio 1 a random graph with
as many edges. Between them, edges that both have are kept, a share `ratio` of those only in the random graph is taken,
and of those only in the ring the rest. Nothing is planted: whether a colouring exists is left to chance.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.sat.dimacs import Formula


@dataclass(frozen=True, slots=True)
class Colouring:
    """The instance with these parameters: `vertices`, each joined to `neighbours` on average, `colours`, `ratio`."""

    vertices: int
    ratio: float
    seed: int
    neighbours: int = 10
    colours: int = 6

    def __post_init__(self) -> None:
        integer(self.vertices, "vertices", 3)
        integer(self.seed, "seed", 0)
        integer(self.colours, "colours", 1)
        number(self.ratio, "ratio", least=0.0, most=1.0)
        if integer(self.neighbours, "neighbours", 2) % 2 or self.neighbours >= self.vertices:
            raise InputError(
                f"neighbours must be even and below vertices={self.vertices}, half on each side, got {self.neighbours}"
            )

    @property
    def name(self) -> str:
        """A file name that says it all."""
        ratio = "0" if self.ratio == 0.0 else f"2^{math.log2(self.ratio):.4g}"
        return f"colouring-n{self.vertices}-k{self.neighbours}-c{self.colours}-p{ratio}-s{self.seed}.cnf"

    def edges(self) -> NDArray[np.int64]:
        """The graph: one row per edge, the smaller vertex first, sorted."""
        n, generator = self.vertices, np.random.default_rng((self.seed, self.vertices))
        ring = _ring(n, self.neighbours)
        pairs = n * (n - 1) // 2
        wild = _pairs(generator.choice(pairs, size=len(ring), replace=False, shuffle=False), n)
        ring_codes, wild_codes = ring @ (n, 1), wild @ (n, 1)
        only_ring, only_wild = np.setdiff1d(ring_codes, wild_codes), np.setdiff1d(wild_codes, ring_codes)
        taken = round(self.ratio * len(only_wild))
        codes = np.concatenate(
            (
                np.intersect1d(ring_codes, wild_codes),
                generator.permutation(only_wild)[:taken],
                generator.permutation(only_ring)[taken:],
            )
        )
        return np.column_stack(np.divmod(np.sort(codes), n))

    def formula(self) -> Formula:
        """A vertex has a colour, no two colours, and not that of a neighbour. Variable v C + c + 1: v has colour c."""
        n, C = self.vertices, self.colours
        has = np.arange(1, n * C + 1).reshape(n, C)
        first, second = np.triu_indices(C, 1)
        two = np.stack((has[:, first].ravel(), has[:, second].ravel()), axis=1)
        edges = self.edges()
        same = np.stack((has[edges[:, 0]].ravel(), has[edges[:, 1]].ravel()), axis=1)
        literals = np.concatenate((has.ravel(), -two.ravel(), -same.ravel()))
        lengths = np.concatenate((np.full(n, C), np.full(len(two) + len(same), 2)))
        return Formula(n * C, literals.astype(np.int32), np.concatenate(([0], np.cumsum(lengths))))


def _ring(n: int, neighbours: int) -> NDArray[np.int64]:
    """Edges between vertices at most half of `neighbours` steps apart; fewer if the ring is too short for them."""
    ends = (np.arange(n)[:, None] + np.arange(1, neighbours // 2 + 1)) % n
    starts = np.broadcast_to(np.arange(n)[:, None], ends.shape)
    edges = np.sort(np.stack((starts.ravel(), ends.ravel()), axis=1), axis=1)
    return np.unique(edges, axis=0)


def _pairs(numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The pairs of vertices that numbers from 0 to n (n - 1) / 2 - 1 stand for, row by row of the upper triangle."""
    before = np.arange(n) * (2 * n - np.arange(n) - 1) // 2  # pairs in the rows above
    first = np.searchsorted(before, numbers, side="right") - 1
    return np.stack((first, numbers - before[first] + first + 1), axis=1)
