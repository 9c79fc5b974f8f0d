"""A decision: the value that `select` returns and `learn` takes back, now, late or never."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.errors import InputError


class Decision:
    """The k selected arms, best first, with everything that learning needs to know about them.

    A frozen value: attributes cannot be set and the arrays are read-only, because feedback may arrive long after the
    arms have changed. Policies make decisions; to make one yourself, use `Decision.of`. As one is made in every round,
    construction is cheap: scores, widths and rows lie one after another in one block, which the kernels fill.

    Parameters
    ----------
    arms : array of k integers
        Positions of the selected arms in the context that was shown, best first.
    numbers : array of k (2 + d) numbers
        The k scores, the k widths, then the k rows of d joint features, one after another.
    d : int
        Number of joint features.
    ids : array of k integers
        The identities of the arms; `arms` itself if the context names none.
    round : int
        Number of the decision, counted by the policy from 1.
    """

    __slots__ = ("_arms", "_d", "_ids", "_numbers", "_round")

    def __init__(
        self, arms: NDArray[np.int64], numbers: NDArray[np.float64], d: int, ids: NDArray[np.int64], round: int
    ) -> None:
        arms.setflags(False)  # type: ignore[call-arg]  # by position: three times as fast as by keyword
        numbers.setflags(False)  # type: ignore[call-arg]
        if ids is not arms:
            ids.setflags(False)  # type: ignore[call-arg]
        self._arms = arms
        self._numbers = numbers
        self._d = d
        self._ids = ids
        self._round = round

    @classmethod
    def of(
        cls,
        *,
        arms: NDArray[np.int64],
        rows: NDArray[np.float64],
        scores: NDArray[np.float64],
        widths: NDArray[np.float64],
        ids: NDArray[np.int64],
        round: int,
    ) -> Self:
        """Make a decision from its parts, which are copied.

        Parameters
        ----------
        arms : array of k integers
            Positions of the selected arms, best first.
        rows : array of k x d numbers
            Their joint features.
        scores, widths : arrays of k numbers
            What the arms were ranked by, and the part of it that is there for exploration.
        ids : array of k integers
            The identities of the arms; equal to `arms` if they are known by position.
        round : int
            Number of the decision, counted from 1.
        """
        k = len(arms)
        if rows.ndim != 2 or not len(rows) == len(scores) == len(widths) == len(ids) == k:
            sizes = [len(rows), len(scores), len(widths), len(ids)]
            raise InputError(f"there are {k} arms, but rows, scores, widths and ids have the lengths {sizes}")
        numbers = np.concatenate((scores, widths, rows.ravel()), dtype=np.float64)
        return cls(arms.astype(np.int64), numbers, rows.shape[1], ids.astype(np.int64), round)

    @property
    def arms(self) -> NDArray[np.int64]:
        """Positions of the selected arms in the context that was shown, best first."""
        return self._arms

    @property
    def scores(self) -> NDArray[np.float64]:
        """What the policy ranked the arms by: log-utilities, with the widths added."""
        return self._numbers[: len(self._arms)]

    @property
    def widths(self) -> NDArray[np.float64]:
        """The part of each score that is there for exploration; `scores - widths` is the plain estimate."""
        return self._numbers[len(self._arms) : 2 * len(self._arms)]

    @property
    def rows(self) -> NDArray[np.float64]:
        """The joint features of the arms, k x d."""
        return self._numbers[2 * len(self._arms) :].reshape(len(self._arms), self._d)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Scores, widths and rows, one after another."""
        return self._numbers

    @property
    def d(self) -> int:
        """Number of joint features."""
        return self._d

    @property
    def ids(self) -> NDArray[np.int64]:
        """The identities of the arms: equal to `arms` unless the context names them."""
        return self._ids

    @property
    def round(self) -> int:
        """Number of the decision, counted by the policy from 1."""
        return self._round

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (self._arms, self._numbers, self._d, self._ids, self._round)

    def __repr__(self) -> str:
        return f"Decision(round={self.round}, arms={self.arms.tolist()}, scores={self.scores.round(4).tolist()})"


class NamedDecision(Decision):
    """A decision that knows the names of its arms.

    Parameters
    ----------
    decision : Decision
        What the policy decided.
    names : tuple of str
        The names of its arms, in the same order.
    """

    __slots__ = ("_names",)

    def __init__(self, decision: Decision, names: tuple[str, ...]) -> None:
        super().__init__(decision.arms, decision.numbers, decision.d, decision.ids, decision.round)
        self._names = names

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen arms, best first."""
        return self._names

    def __reduce__(self) -> tuple[Any, ...]:
        plain = Decision(self.arms, self.numbers, self.d, self.ids, self.round)
        return NamedDecision, (plain, self._names)

    def __repr__(self) -> str:
        return f"NamedDecision(round={self.round}, names={list(self.names)}, scores={self.scores.round(4).tolist()})"
