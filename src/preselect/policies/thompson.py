"""Thompson sampling (Thompson 1933; for linear utilities Agrawal and Goyal 2013) with the Plackett-Luce likelihood."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import number, one_of
from preselect.context import Context, Floats
from preselect.policies.online_newton import OnlineNewton
from preselect.policies.policy import Mask, candidates, described


class Thompson(OnlineNewton):
    """Draws theta from the belief of online Newton, once for all slots or once for each, and takes the best arms.

    A draw is one theta for all arms, because arms share it: draws per arm would be independent where beliefs are not.
    Adapted: Agrawal and Goyal choose one arm and see a reward; here draws="one" takes the top k of one draw, and
    draws="slot" fills slot after slot with the best arm left in a new draw. Their Gaussian posterior of linear
    regression becomes the belief of OnlineNewton; `scale` multiplies its standard deviations.

    The width of a chosen arm is how far the draw lies above the estimate, and may be negative. `scores` gives the plain
    estimates.

    >>> policy = Thompson(d=2, mean=[1.0, -1.0], precision=1e6, seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "Agrawal and Goyal 2013"

    def __init__(
        self,
        *,
        d: int,
        draws: str = "one",
        scale: float = 1.0,
        mean: ArrayLike = 0.0,
        precision: ArrayLike = 1.0,
        discount: float = 1.0,
        outside: bool = False,
        choose: str = "best",
        seed: int | None = None,
    ) -> None:
        super().__init__(
            d=d, mean=mean, precision=precision, discount=discount, outside=outside, choose=choose, seed=seed
        )
        self.draws = one_of(draws, "draws", ("one", "slot"))
        self.scale = number(scale, "scale", least=0.0)

    def _draw(self, context: Context, u: Floats, draws: int) -> Floats:
        return u[:, None] + self.scale * (super()._draw(context, u, draws) - u[:, None])

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        if self.choose == "cover":
            return super()._choose(context, k, eligible)
        estimate = self._score(context)[0]  # first, because it refuses bad input before anything is drawn
        left = candidates(eligible, len(estimate))
        if self.draws == "one":
            drawn = self._draw(context, estimate, 1)[:, 0]
            arms = self._best(drawn, left, k)
        else:
            by_slot = self._draw(context, estimate, k)
            arms, drawn = np.empty(k, dtype=np.int64), np.empty(len(estimate))
            for slot in range(k):
                arms[slot : slot + 1] = self._best(by_slot[:, slot], left, 1)
                drawn[arms[slot]] = by_slot[arms[slot], slot]
                left = left[left != arms[slot]]
        return described(context, arms, drawn, drawn - estimate)
