"""The kinds of context and outcome with which the conformance suite plays rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.context import StructuredContext
from preselect.decision import Decision
from preselect.features import Kronecker, OneHot
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner

N, D, K = 6, 12, 3  # arms, features, arms to choose
MAX_ARMS = 30

MakeContext: TypeAlias = Callable[[np.random.Generator], NDArray[Any] | StructuredContext]
MakeOutcome: TypeAlias = Callable[[Decision, np.random.Generator], Outcome]

CONTEXTS: dict[str, MakeContext] = {
    "array": lambda generator: generator.random((N, D)),
    "single precision": lambda generator: generator.random((N, D), dtype=np.float32),
    "kronecker": lambda generator: Kronecker()(generator.random((N, 3)), generator.random(4)),
    "one-hot": lambda generator: OneHot(N)(generator.random(D // N)),
}


def _rank(decision: Decision, generator: np.random.Generator) -> Any:
    """Rank the chosen arms by the model; an arm's noise does not depend on its place in the decision."""
    u = decision.rows @ np.linspace(-1.0, 2.0, D) + generator.gumbel(size=MAX_ARMS)[decision.arms]
    return decision.arms[np.argsort(-u)].tolist()


def _draw_winner(decision: Decision, generator: np.random.Generator) -> Outcome:
    return Winner(_rank(decision, generator)[0], after=generator.choice([1e-6, 0.05, 0.5]))


def _draw_ties(decision: Decision, generator: np.random.Generator) -> Outcome:
    """Draw a tie for the first place, for the second, or of all arms."""
    first, *others = _rank(decision, generator)
    return Ranking([[[first, others[0]]], [first, others], [[first, *others]]][generator.integers(3)])


def _draw_nothing(decision: Decision, generator: np.random.Generator) -> Outcome:  # noqa: ARG001
    number = generator.random()
    return Void() if number < 0.5 else NoWinner(after=1.0 if number < 0.75 else None)


OUTCOMES: dict[str, MakeOutcome] = {
    "winner": _draw_winner,
    "ranking": lambda decision, generator: Ranking(_rank(decision, generator)),
    "top-2": lambda decision, generator: Ranking(_rank(decision, generator)[:2]),
    "ties": _draw_ties,
    "nothing": _draw_nothing,
}
