"""TS-MNL (Cheung and Simchi-Levi 2017): Thompson sampling from the posterior of the multinomial logit model."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.context import Context, Floats
from preselect.kernels import history
from preselect.policies.gaussian import utilities
from preselect.policies.history import WholeHistory
from preselect.policies.policy import Mask, candidates, described

_TAILS = 5.0  # degrees of freedom of the proposals


class TSMNL(WholeHistory):
    """Draws theta from the posterior given the whole history, and takes the k best arms of the draw.

    The posterior is that of the prior N(mean, 1 / precision) and the Plackett-Luce likelihood, not a Gaussian one:
    Metropolis-Hastings steps start from the draw before, `steps` of them for each draw, with independent proposals from
    a t distribution shaped like its Laplace approximation, whose tails reach farther than the posterior's.

    Adapted: their customer may choose nothing (an outside option) and products have revenues, with which they solve for
    the best assortment of the drawn model; here one of the k arms wins and all revenues are equal, for which it is the
    top k of the draw. They allow any prior.

    The width of a chosen arm is how far the draw lies above the estimate, and may be negative. `scores` gives the
    estimates that have the largest posterior density.

    >>> policy = TSMNL(d=2, mean=[1.0, -1.0], precision=1e6, seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "Cheung and Simchi-Levi 2017"
    _state = (*WholeHistory._state, "draw")

    def __init__(
        self,
        *,
        d: int,
        mean: ArrayLike = 0.0,
        precision: ArrayLike = 1.0,
        steps: int = 5,
        every: int = 1,
        choose: str = "best",
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, mean=mean, precision=precision, every=every, choose=choose, seed=seed)
        self.steps = integer(steps, "steps", 1)
        self.draw = self.theta.copy()

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        if self.choose == "cover":
            return super()._choose(context, k, eligible)
        estimate = self._score(context)[0]  # first, because it refuses bad input before anything is drawn
        drawn = self._draw(context, estimate, 1)[:, 0]
        return described(context, self._best(drawn, candidates(eligible, len(estimate)), k), drawn, drawn - estimate)

    def _draw(self, context: Context, u: Floats, draws: int) -> Floats:  # noqa: ARG002
        return utilities(context, self._draw_theta(draws))

    def _draw_theta(self, draws: int) -> Floats:
        """Draws of theta from the posterior, as rows."""
        steps = draws * self.steps
        normal = self._generator.standard_normal((steps, self.d)) @ np.linalg.cholesky(self.P).T
        proposals = self.theta + normal * np.sqrt(_TAILS / self._generator.chisquare(_TAILS, (steps, 1)))
        chances = np.log(self._generator.random(steps))
        drawn = np.empty((draws, self.d))
        history.metropolis(
            self.history,
            self.sizes,
            self.lengths,
            self._outcomes,
            self._prior,
            self._estimate,
            _TAILS,
            proposals,
            chances,
            self.draw,
            drawn,
        )
        return drawn
