"""Small-world graph colouring instances (SWGCP; Gent, Hoos, Prosser and Walsh 1999): between a ring and a random graph.

With ratio 0 the graph is a ring lattice, in which each vertex is joined to its nearest neighbours; with ratio 1 it is a
random graph with as many edges. In between, the edges that both graphs have are kept, a share `ratio` of the edges of
the random graph alone is added, and as many edges of the ring alone are left out. No solution is planted: whether a
colouring exists is left to chance.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.sat.dimacs import Formula

_MAX_LITERALS = 10_000_000  # larger formulas take over a gigabyte of memory while they are written


@dataclass(frozen=True, slots=True)
class Colouring:
    """A graph colouring instance, drawn at random; equal parameters give equal instances.

    Parameters
    ----------
    vertices : int
        The number of vertices, at least 3.
    ratio : float
        How random the graph is, from 0 (a ring lattice) to 1 (a random graph).
    seed : int
        The seed of the random edges, not negative.
    neighbours : int, default 10
        The neighbours that a vertex has on average: an even number below `vertices`.
    colours : int, default 6
        The colours to choose from. The formula has at most 10 million literals, which are
        `vertices * colours * (colours + neighbours)`.
    """

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
            wanted = f"use an even number below vertices={self.vertices}, half of them on each side"
            raise InputError(f"neighbours={self.neighbours} does not fit into the ring; {wanted}")
        literals = self.vertices * self.colours * (self.colours + self.neighbours)
        if literals > _MAX_LITERALS:
            raise InputError(f"the formula would have {literals} literals; at most {_MAX_LITERALS} are possible")

    @property
    def name(self) -> str:
        """A file name that holds all parameters."""
        ratio = "0" if self.ratio == 0.0 else f"2^{math.log2(self.ratio):.4g}"
        return f"colouring-n{self.vertices}-k{self.neighbours}-c{self.colours}-p{ratio}-s{self.seed}.cnf"

    def edges(self) -> NDArray[np.int64]:
        """The sorted edges of the graph, one row each, with the smaller vertex first."""
        n, generator = self.vertices, np.random.default_rng((self.seed, self.vertices))
        ring = _make_ring(n, self.neighbours)
        pairs = n * (n - 1) // 2
        wild = _decode_pairs(generator.choice(pairs, size=len(ring), replace=False, shuffle=False), n)
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
        """The formula that has a model for each colouring; variable v C + c + 1 says that vertex v has colour c.

        Its clauses say that each vertex has a colour, has no second one, and differs from its neighbours.
        """
        n, C = self.vertices, self.colours
        has = np.arange(1, n * C + 1).reshape(n, C)
        first, second = np.triu_indices(C, 1)
        two = np.stack((has[:, first].ravel(), has[:, second].ravel()), axis=1)
        edges = self.edges()
        same = np.stack((has[edges[:, 0]].ravel(), has[edges[:, 1]].ravel()), axis=1)
        literals = np.concatenate((has.ravel(), -two.ravel(), -same.ravel()))
        lengths = np.concatenate((np.full(n, C), np.full(len(two) + len(same), 2)))
        return Formula(n * C, literals.astype(np.int32), np.concatenate(([0], np.cumsum(lengths))))


def _make_ring(n: int, neighbours: int) -> NDArray[np.int64]:
    """Edges between vertices that are at most `neighbours` / 2 steps apart; fewer where the ring is too short."""
    ends = (np.arange(n)[:, None] + np.arange(1, neighbours // 2 + 1)) % n
    starts = np.broadcast_to(np.arange(n)[:, None], ends.shape)
    edges = np.sort(np.stack((starts.ravel(), ends.ravel()), axis=1), axis=1)
    return np.unique(edges, axis=0)


def _decode_pairs(numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The pairs of vertices with the given numbers, from 0 to n (n - 1) / 2 - 1, by rows of the upper triangle."""
    before = np.arange(n) * (2 * n - np.arange(n) - 1) // 2  # pairs in the rows above
    first = np.searchsorted(before, numbers, side="right") - 1
    return np.stack((first, numbers - before[first] + first + 1), axis=1)
