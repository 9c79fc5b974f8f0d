"""Formulas of four families in equal shares: random 3-SAT, graph colouring, pigeonholes, parity.

Each formula depends only on the seed, its family and its number, so a larger set begins with a smaller one. Sizes are
chosen so that within a few seconds most formulas are solved by some solver, and few by all.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path

import numpy as np

import preselect
from preselect.errors import InputError
from preselect.sat import dimacs
from preselect.sat.colouring import Colouring
from preselect.sat.dimacs import Formula

Clauses = list[list[int]]
Named = tuple[str, Formula]  # what its file name says about the formula, and the formula


# --- random 3-SAT -----------------------------------------------------------------------------------------------------

RANDOM_SIZES = (190, 250)  # variables, from and to
RANDOM_RATIOS = (4.0, 4.6)  # clauses per variable; at 4.26 half of large formulas have a model


def random_formula(draw: np.random.Generator) -> Named:
    """Draw three different variables for each clause and negate each by a coin; satisfiable or not by chance."""
    variables, ratio = int(draw.integers(*RANDOM_SIZES, endpoint=True)), draw.uniform(*RANDOM_RATIOS)
    rows = [draw.choice(variables, 3, replace=False) + 1 for _ in range(round(ratio * variables))]
    clauses = [(row * draw.choice((-1, 1), 3)).tolist() for row in rows]
    return f"n{variables}-r{ratio:.2f}", Formula.of(variables, clauses)


# --- small-world colouring --------------------------------------------------------------------------------------------

COLOURING_SIZES = (100, 150)  # vertices
COLOURING_DEGREES = ((12, 5), (16, 6))  # average number of neighbours, and colours: hardly enough
COLOURING_RATIOS = (1.0, 0.95, 0.9, 0.8)  # from a random graph towards the ring


def colouring_formula(draw: np.random.Generator) -> Named:
    """Colour a small-world graph with few colours; satisfiable or not by chance."""
    vertices, ratio = int(draw.integers(*COLOURING_SIZES, endpoint=True)), float(draw.choice(COLOURING_RATIOS))
    neighbours, colours = draw.choice(COLOURING_DEGREES).tolist()
    graph = Colouring(
        vertices=vertices, ratio=ratio, seed=int(draw.integers(2**31)), neighbours=neighbours, colours=colours
    )
    return f"n{vertices}-c{colours}-p{ratio:g}", graph.formula()


# --- pigeonholes ------------------------------------------------------------------------------------------------------

PIGEONHOLE_HOLES = (6, 7, 8, 8, 8, 9)  # drawn from these; with 10, hardly any solver answers within seconds


def pigeonhole_formula(draw: np.random.Generator) -> Named:
    """Put one pigeon more than there are holes into holes for one pigeon each; never satisfiable."""
    holes = int(draw.choice(PIGEONHOLE_HOLES))
    formula = Formula.of((holes + 1) * holes, pigeonhole_clauses(holes))
    return f"h{holes}", disguise(formula, draw)


def pigeonhole_clauses(holes: int) -> Clauses:
    """Put every pigeon into a hole, and no two into the same. Variable p H + h + 1: pigeon p is in hole h."""
    inside = np.arange(1, (holes + 1) * holes + 1).reshape(holes + 1, holes)
    shared = [[-int(a), -int(b)] for hole in inside.T for a, b in combinations(hole, 2)]
    return [*inside.tolist(), *shared]


def disguise(formula: Formula, draw: np.random.Generator) -> Formula:
    """Rename and negate variables, and shuffle the clauses and their literals; the formula stays as hard."""
    names = (draw.permutation(formula.variables) + 1) * draw.choice((-1, 1), formula.variables)
    renamed = [[int(np.sign(literal) * names[abs(literal) - 1]) for literal in clause] for clause in formula]
    order = draw.permutation(len(renamed))
    return Formula.of(formula.variables, [draw.permutation(renamed[position]).tolist() for position in order])


# --- parity -----------------------------------------------------------------------------------------------------------

PARITY_GRAPHS = ((3, 56, 90), (4, 28, 44))  # degree, vertices from and to, even
PARITY_SYSTEM_SIZES = (120, 180)  # variables


def parity_formula(draw: np.random.Generator) -> Named:
    """By a coin, make a graph with an odd total charge, or a system of equations with a solution."""
    if draw.random() < 0.5:
        degree, least, most = draw.choice(PARITY_GRAPHS).tolist()
        vertices = 2 * int(draw.integers(least // 2, most // 2, endpoint=True))
        return f"graph{vertices}-d{degree}", parity_graph(vertices, degree=degree, odd=True, draw=draw)
    variables = int(draw.integers(*PARITY_SYSTEM_SIZES, endpoint=True))
    return f"system{variables}", parity_system(variables, draw)


def parity_graph(vertices: int, *, degree: int, odd: bool, draw: np.random.Generator) -> Formula:
    """Give each vertex of a random connected regular graph a charge, the parity of the edges at it.

    Edges are the variables. Every edge counts at both ends, so there is no solution if the charges add up to an odd
    number (Tseitin 1968, Urquhart 1987).
    """
    edges = _regular_graph(vertices, degree, draw)
    charges = draw.integers(0, 2, vertices)
    charges[0] ^= (int(charges.sum()) + odd) % 2
    at = [[number for number, edge in enumerate(edges, start=1) if vertex in edge] for vertex in range(vertices)]
    clauses = [row for edge_numbers, charge in zip(at, charges, strict=True) for row in parity(edge_numbers, charge)]
    return disguise(Formula.of(len(edges), clauses), draw)


def parity_system(variables: int, draw: np.random.Generator) -> Formula:
    """Make as many equations of three variables as there are variables, each in three equations, with a solution."""
    rows = _three_in_three(variables, draw)
    solution = draw.integers(0, 2, variables)
    clauses = [clause for row in rows for clause in parity((row + 1).tolist(), int(solution[row].sum() % 2))]
    return disguise(Formula.of(variables, clauses), draw)


def parity(variables: list[int], charge: int) -> Clauses:
    """Say how many of some variables are true, modulo 2: a clause rules out each assignment with the wrong parity.

    >>> parity([1, 2], 1)
    [[1, 2], [-1, -2]]
    """
    signs = product((1, -1), repeat=len(variables))
    return [
        [sign * variable for sign, variable in zip(row, variables, strict=True)]
        for row in signs
        if row.count(-1) % 2 != charge
    ]


def _three_in_three(variables: int, draw: np.random.Generator) -> np.ndarray:
    """Draw rows of three different variables in which every variable occurs three times."""
    while True:
        columns = [draw.permutation(variables) for _ in range(3)]
        rows = np.column_stack(columns)
        if all(len(set(row)) == 3 for row in rows.tolist()):
            return rows


def _regular_graph(vertices: int, degree: int, draw: np.random.Generator) -> list[tuple[int, int]]:
    """Pair the ends of edges at random until there are no loops, no double edges and one component."""
    while True:
        ends = np.sort(draw.permutation(np.repeat(np.arange(vertices), degree)).reshape(-1, 2), axis=1)
        edges = {(int(a), int(b)) for a, b in ends if a != b}
        if len(edges) == len(ends) and _is_connected(vertices, edges):
            return sorted(edges)


def _is_connected(vertices: int, edges: set[tuple[int, int]]) -> bool:
    reached, waiting = {0}, [0]
    while waiting:
        here = waiting.pop()
        for edge in edges:
            if here in edge:
                other = edge[0] + edge[1] - here
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
    return len(reached) == vertices


# --- all of them ------------------------------------------------------------------------------------------------------

FAMILIES: dict[str, Callable[[np.random.Generator], Named]] = {
    "random": random_formula,
    "colouring": colouring_formula,
    "pigeonhole": pigeonhole_formula,
    "parity": parity_formula,
}


def make(number: int, seed: int) -> Named:
    """Make the instance with this number, and its file name; families take turns."""
    position = number % len(FAMILIES)
    family = list(FAMILIES)[position]
    label, formula = FAMILIES[family](np.random.default_rng((seed, position, number // len(FAMILIES))))
    return f"{family}-{number // len(FAMILIES):03d}-{label}.cnf", formula


def write_all(folder: Path, *, count: int, seed: int) -> Iterator[Path]:
    """Write the instances one by one into a new or empty folder."""
    if count < 1 or seed < 0:
        raise InputError(f"count={count}, seed={seed}: use a count of at least 1 and a seed of at least 0")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; name a new folder, or empty it")
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name, formula = make(number, seed)
        dimacs.write_formula(formula, folder / name, [f"instance {number} of seed {seed}"])
        yield folder / name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("cnf"), help="a new folder (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")
    parser.add_argument("--count", type=int, default=200, help="how many (default %(default)s)")
    options = parser.parse_args()
    renew = "\r\033[K" if sys.stderr.isatty() else ""
    try:
        for done, path in enumerate(write_all(options.out, count=options.count, seed=options.seed), start=1):
            if renew:
                print(f"{renew}[{done}/{options.count}] {path.name}", end="", file=sys.stderr, flush=True)
    except (preselect.PreselectError, OSError) as error:
        sys.exit(f"instances: {error}")
    print(f"{renew}{options.out}: {options.count} instances", file=sys.stderr)


if __name__ == "__main__":
    main()
