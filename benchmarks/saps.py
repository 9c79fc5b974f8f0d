"""Steps per second of SAPS on a colouring instance with 3000 variables and 23 000 clauses, for five parametrizations.

For comparison, the same run measures how many passes per second numpy makes over an array with a number per clause, as
a reference for the speed of the machine at the time: smoothing as published is one such pass.
"""

from time import perf_counter

import numpy as np

from preselect.sat import DEFAULT, EFFECTIVE, Colouring, Search

PARAMETRIZATIONS = {"default": DEFAULT, **{f"no. {i}": EFFECTIVE[i - 1] for i in (2, 9, 12, 14)}}
SECONDS = 1.0


def measure_rate(work, units):
    """Units of work per second, measured for about a second."""
    done, start = 0, perf_counter()
    while perf_counter() - start < SECONDS:
        work()
        done += units
    return done / (perf_counter() - start)


def main():
    formula = Colouring(500, 2.0**-7, seed=1).formula()
    penalties = np.ones(formula.clauses)
    print(f"SAPS on {formula.variables} variables and {formula.clauses} clauses\n")
    print(f"{'parametrization':>16} {'million steps/s':>16} {'steps per pass over the clauses':>32}")
    for name, parameters in PARAMETRIZATIONS.items():
        search = Search(formula, parameters, seed=0)
        search.run(1000)
        steps = measure_rate(lambda search=search: search.run(10_000), 10_000)
        passes = measure_rate(lambda: np.add(penalties, 1e-9, out=penalties), 1)
        print(f"{name:>16} {steps / 1e6:16.2f} {steps / passes:32.1f}", flush=True)
        if search.solved:
            print("                 solved in the meantime: the rate counts steps that were not taken")


if __name__ == "__main__":
    main()
