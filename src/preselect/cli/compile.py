"""`preselect compile`: compile everything ahead of time, for containers and continuous integration."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import numba
import numpy as np

from preselect import Kronecker, NoWinner, Ranking, Winner
from preselect.cli.progress import track
from preselect.compiling import KERNELS
from preselect.errors import InputError
from preselect.policies import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMULA = "p cnf 4 5\n1 -2 3 0\n-1 2 0\n2 3 -4 0\n-3 4 0\n1 -4 0\n"
_VARIANTS = ("newton(bonus='arm')", "newton(choose='cover')", "newton(discount=0.9)", registry.RACING)
_STEPS = (*registry.POLICIES, *_VARIANTS, "sat")


@click.command("compile", short_help="Compile everything ahead of time.")
def compile_all() -> None:
    """Compile everything ahead of time, so that no later process has to wait for it.

    Without this, each function is compiled when it is first needed, and then kept for later processes.

    \b
    In a container:
        RUN NUMBA_CACHE_DIR=/var/cache/numba preselect compile
        ENV NUMBA_CACHE_DIR=/var/cache/numba
    """
    if numba.config.DISABLE_JIT:
        raise InputError("NUMBA_DISABLE_JIT is set, so nothing is ever compiled; unset it")
    start, before = perf_counter(), _count_compiled()
    for step in track(_STEPS, "steps"):
        _compile_step(step)
    if not _list_folders():
        raise InputError("compiled functions could not be kept; set NUMBA_CACHE_DIR to a folder that can be written")
    click.echo(_summarise(_count_compiled() - before, perf_counter() - start))


def _compile_step(step: str) -> None:
    """Compile what one of the steps needs, a policy or formulas, by using it."""
    _use_formulas() if step == "sat" else _play(step)


def _play(name: str) -> None:
    """Play rounds of all kinds with a policy: contexts of every type, outcomes of every kind."""
    make, parameters = registry.parse(name)
    for d, k in ((2, 4), (12, 3)):  # kernels differ for fewer and for more features than chosen arms
        policy: Any = make(**{"seed": 0, **parameters, "d": d})
        for context in _make_contexts(d):
            decision = policy.select(context, k)
            tied = Ranking([decision.arms[:2], decision.arms[2]])
            for outcome in (Winner(decision.arms[0]), Ranking(decision.arms), tied, NoWinner()):
                policy.learn(decision, outcome)
        policy.scores(context)


def _make_contexts(d: int) -> Iterator[Any]:
    X = np.random.default_rng(0).normal(size=(9 * d, d))  # so many arms that kernels bound widths first
    yield X
    X = X[:5]
    yield from (np.ones((5, d)), X, X.astype(np.float32), Kronecker()(X[:, : d // 2], [1.0, 2.0]))


def _use_formulas() -> None:
    from preselect.sat import dimacs, features, preprocessing, saps

    formula = dimacs.parse_formula(_FORMULA)
    features.compute_features(formula)
    preprocessing.eliminate_variables(preprocessing.tidy(formula))
    saps.solve(formula, seed=0)


def _count_compiled() -> int:
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)


def _list_folders() -> list[str]:
    return sorted({kernel.stats.cache_path for kernel in KERNELS if kernel.stats.cache_path})


def _summarise(compiled: int, seconds: float) -> str:
    folders = ", ".join(_list_folders())
    if compiled:
        return f"compiled {compiled} functions in {seconds:.0f} s; they are in {folders}"
    return f"nothing had to be compiled; all functions are in {folders}"
