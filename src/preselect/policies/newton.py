"""Newton, the default: online Newton on the Plackett-Luce likelihood, and optimism by contrast with the leader."""

from numpy.typing import ArrayLike

from preselect.arguments import number, one_of
from preselect.kernels.types import CONTRAST, PLAIN
from preselect.policies.linear import Width
from preselect.policies.online_newton import OnlineNewton

_FORMS = {"contrast": CONTRAST, "arm": PLAIN}


class Newton(OnlineNewton):
    """Online Newton on the likelihood, upper confidence bounds on what an arm may have over the leader.

    Our own; the estimate (see OnlineNewton) is the online Laplace approximation, or extended Kalman filter, known for
    generalised linear models. Under Plackett-Luce only differences between arms are ever observed, so what matters of
    an arm i is how far it may lie above the leader b, the arm with the largest estimate:

        u_i - u_b + beta sqrt((x_i - x_b)' P (x_i - x_b)),                              bonus="contrast"

    by which the k - 1 companions of the leader are chosen. bonus="arm" is the plain form u_i + beta sqrt(x_i' P x_i).

    precision and beta are in units of log-utility: with features of size 1, precision 1 expects utilities that differ
    by factors of about e. If you know what theta looks like, say so: for theta uniform on [0, 1]^d it is mean=0.5,
    precision=12.

    >>> policy = Newton(d=2, mean=[1.0, -1.0], seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "this library"

    def __init__(
        self,
        *,
        d: int,
        beta: float = 2.0,
        mean: ArrayLike = 0.0,
        precision: ArrayLike = 1.0,
        bonus: str = "contrast",
        discount: float = 1.0,
        outside: bool = False,
        choose: str = "best",
        seed: int | None = None,
    ) -> None:
        super().__init__(
            d=d, mean=mean, precision=precision, discount=discount, outside=outside, choose=choose, seed=seed
        )
        self.beta = number(beta, "beta", least=0.0)
        self.bonus = one_of(bonus, "bonus", tuple(_FORMS))

    def _width(self) -> Width:
        return self.P, self.beta, _FORMS[self.bonus]
