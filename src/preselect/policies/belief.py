"""The base of policies with a Gaussian belief: Newton, Thompson and Nearby; with one covariance or with blocks."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import boolean, integer, show
from preselect.context import Context, Floats, Mask
from preselect.errors import InputError
from preselect.kernels.types import PLAIN
from preselect.policies import persistence
from preselect.policies.estimators import (
    BlockNewton,
    OnlineNewton,
    make_newton,
    simplify,
)
from preselect.policies.part import Part
from preselect.policies.persistence import Arrays
from preselect.policies.policy import LinearPolicy


class BeliefPolicy(LinearPolicy):
    """A policy with a Gaussian belief about theta that is updated by every outcome; its parameters are Newton's."""

    has_blocks = True
    estimate: Any  # OnlineNewton or BlockNewton
    discount: float
    A, P, pace = Part(), Part(), Part()

    def __init__(
        self,
        *,
        d: int,
        mean: ArrayLike,
        precision: ArrayLike,
        discount: float,
        outside: bool,
        blocks: tuple[int, int] | None,
        seed: int | None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.blocks = None if blocks is None else _as_blocks(blocks)
        self._columns = self.d if self.blocks is None else sum(self.blocks)
        self.estimate = self._make_estimate(mean=mean, precision=precision, discount=discount)
        self.mean, self.precision = simplify(mean), simplify(precision)
        self.discount, self.outside = self.estimate.discount, boolean(outside, "outside")

    def _make_estimate(self, **parameters: Any) -> Any:
        return make_newton(self.d, self.blocks, **parameters)

    def _find_uncertainties(self, context: Context) -> Floats:
        return self._score_all(context, (self.estimate.covariance, 1.0, 0.0, PLAIN))[1]  # standard errors

    def _draw_belief(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw the utilities of all arms jointly from the belief, given their means u: n x draws."""
        drawn: Floats = self.estimate.draw(context, u, draws, generator)
        return drawn

    def adopt(self, block: Floats, seen: Mask, outcomes: int, without_winner: int) -> None:  # noqa: ARG002
        """Replace the belief by one that was fitted elsewhere, and count its outcomes as if they had been learnt here.

        Parameters
        ----------
        block : array of (1 + 2 d) x d numbers
            theta, minus the Hessian of the log-posterior there, and its inverse.
        seen : array of d booleans
            Which features were not zero in these outcomes.
        outcomes : int
            How many outcomes there were.
        without_winner : int
            How many of them had no winner.
        """
        if not isinstance(self.estimate, OnlineNewton):
            raise InputError("a covariance in blocks cannot start from a fit; use covariance='full'")
        self.estimate.adopt(block, outcomes)
        self.rounds, self.observations, self.no_winners = outcomes, outcomes - without_winner, without_winner

    def widen_blocks(self, d: int, blocks: tuple[int, int]) -> Self:
        """Return this policy, which has blocks, with one more feature in each block and each group of shared features.

        Parameters
        ----------
        d : int
            The number of features then.
        blocks : tuple of two int
            The sizes of the blocks then.
        """
        header, arrays = persistence.collect_state(self)
        wider = type(self)(**{**header["parameters"], "d": d, "blocks": blocks})
        if isinstance(wider.estimate, BlockNewton):
            arrays = wider._widen_block_arrays(arrays)
        return persistence.resume(wider, header, arrays)

    def _widen_block_arrays(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a policy with one feature less in each block, with room for that feature."""
        wider: Arrays = self.estimate.widen_blocks(arrays)
        return wider

    def split(self, blocks: tuple[int, int]) -> Self:
        """Return this policy with its covariance in blocks; what is between the blocks is dropped.

        Parameters
        ----------
        blocks : tuple of two int
            How many features all arms share, and how many after them belong to each arm.
        """
        header, arrays = persistence.collect_state(self)
        divided = type(self)(**{**header["parameters"], "blocks": blocks})
        if isinstance(self.estimate, OnlineNewton) and isinstance(divided.estimate, BlockNewton):
            arrays = {**arrays, **divided.estimate.split(self.estimate)}
        return persistence.resume(divided, header, arrays)


def _as_blocks(blocks: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(blocks, (tuple, list)) or len(blocks) != 2:
        raise InputError(
            f"blocks is {show(blocks)}; say how many features all arms share and how many are an arm's own"
        )
    return integer(blocks[0], "blocks[0]", 0), integer(blocks[1], "blocks[1]", 1)
