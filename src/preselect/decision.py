"""A decision: the value that `select` returns and `learn` takes back, now, late or never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.errors import InputError


class Decision:
    """The k selected arms, best first, with everything that learning needs to know about them.

    A frozen value: attributes cannot be set and the arrays are read-only, because feedback may arrive long after the
    arms have changed. Policies make decisions; to make one yourself, use `Decision.of`. As one is made in every round,
    construction is cheap: scores and widths lie one after the other in one array, which the kernels fill.

    Parameters
    ----------
    arms : array of k integers
        Positions of the selected arms in the context that was shown, best first.
    bounds : array of 2 k numbers
        The k scores, then the k widths.
    rows : array of k x d numbers
        The joint features of the arms.
    ids : array of k integers
        The identities of the arms; `arms` itself if the context names none.
    round : int
        Number of the decision, counted by the policy from 1.
    """

    __slots__ = ("_arms", "_bounds", "_ids", "_round", "_rows")

    def __init__(
        self,
        arms: NDArray[np.int64],
        bounds: NDArray[np.float64],
        rows: NDArray[np.float64],
        ids: NDArray[np.int64],
        round: int,
    ) -> None:
        arms.setflags(False)  # type: ignore[call-arg]  # by position: three times as fast as by keyword
        rows.setflags(False)  # type: ignore[call-arg]
        if ids is not arms:
            ids.setflags(False)  # type: ignore[call-arg]
        self._arms = arms
        self._bounds = bounds
        self._rows = rows
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
        bounds = np.concatenate((scores, widths), dtype=np.float64)
        copies = arms.astype(np.int64), bounds, np.array(rows, dtype=np.float64, order="C"), ids.astype(np.int64)
        return cls(*copies, round)

    @property
    def arms(self) -> NDArray[np.int64]:
        """Positions of the selected arms in the context that was shown, best first."""
        return self._arms

    @property
    def scores(self) -> NDArray[np.float64]:
        """What the policy ranked the arms by: log-utilities, with the widths added."""
        return _freeze(self._bounds[: len(self._arms)])

    @property
    def widths(self) -> NDArray[np.float64]:
        """The part of each score that is there for exploration; `scores - widths` is the plain estimate."""
        return _freeze(self._bounds[len(self._arms) :])

    @property
    def rows(self) -> NDArray[np.float64]:
        """The joint features of the arms, k x d."""
        return self._rows

    @property
    def d(self) -> int:
        """Number of joint features."""
        d: int = self._rows.shape[1]
        return d

    @property
    def ids(self) -> NDArray[np.int64]:
        """The identities of the arms: equal to `arms` unless the context names them."""
        return self._ids

    @property
    def round(self) -> int:
        """Number of the decision, counted by the policy from 1."""
        return self._round

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (self._arms, self._bounds, self._rows, self._ids, self._round)

    def __repr__(self) -> str:
        return f"Decision(round={self.round}, arms={self.arms.tolist()}, scores={self.scores.round(4).tolist()})"


def _freeze(view: NDArray[np.float64]) -> NDArray[np.float64]:
    view.setflags(write=False)
    return view


class NamedDecision(Decision):
    """A decision that knows its arms by name and what was known about them, before any scaling.

    Parameters
    ----------
    decision : Decision
        What the policy decided.
    names : tuple of str
        The names of its arms, in the same order.
    context : array of numbers
        The features of the round, as they were given; NaN for those that were not known.
    features : array of k x m numbers, optional
        The features of the arms, as they were given. None in records of earlier versions: then they are those that the
        arms of these names have.
    """

    __slots__ = ("_context", "_features", "_names")

    def __init__(
        self,
        decision: Decision,
        names: tuple[str, ...],
        context: NDArray[np.float64],
        features: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(decision._arms, decision._bounds, decision._rows, decision._ids, decision._round)
        self._names = names
        self._context = _freeze(context)
        self._features = None if features is None else _freeze(features)

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen arms, best first."""
        return self._names

    @property
    def context(self) -> NDArray[np.float64]:
        """The features of the round, as they were given; NaN for those that were not known."""
        return self._context

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The features of the arms, as they were given, k x m; None if the decision does not say."""
        return self._features

    def to_record(self) -> tuple[dict[str, Any], bytes]:
        """Return plain values and, exact to the last bit, the bytes of all arrays; ids are not kept."""
        values = {
            "chosen": list(self.names),
            "arms": self.arms.tolist(),
            "scores": self.scores.tolist(),
            "widths": self.widths.tolist(),
            "round": self.round,
            "d": self.d,
        }
        known = np.empty((len(self.names), 0)) if self.features is None else self.features
        if known.size or self.context.size:
            values["features"] = known.shape[1]
        parts = (self.scores, self.widths, self.rows, known, self.context)
        return values, b"".join(part.astype("<f8").tobytes() for part in parts)

    @classmethod
    def from_record(cls, values: Mapping[str, Any], numbers: bytes) -> Self:
        """Make the decision that `to_record` returned; a KeyError, TypeError or ValueError if anything is missing.

        Parameters
        ----------
        values : mapping
            The plain values, by name. Earlier versions have the context only here, a mapping of names to values.
        numbers : bytes
            Scores, widths, rows, features of the arms and of the context.
        """
        found = np.frombuffer(numbers, dtype="<f8").astype(np.float64)
        arms, chosen, d = np.array(values["arms"], dtype=np.int64), tuple(values["chosen"]), int(values["d"])
        k, m = len(arms), values.get("features")
        bounds, rows, features, context = np.split(found, np.cumsum((2 * k, k * d, k * (m or 0))))
        if len(chosen) != k or len(rows) != k * d or len(features) != k * (m or 0) or (m is None and len(context)):
            raise ValueError("arms and numbers do not belong together")
        plain = Decision(arms, bounds, rows.reshape(k, d), arms, int(values["round"]))
        if m is None:
            return cls(plain, chosen, np.array(list(values.get("context", {}).values()), dtype=np.float64))
        return cls(plain, chosen, context, features.reshape(k, m))

    def __reduce__(self) -> tuple[Any, ...]:
        plain = Decision(self._arms, self._bounds, self._rows, self._ids, self._round)
        return NamedDecision, (plain, self._names, self._context, self._features)

    def __repr__(self) -> str:
        return f"NamedDecision(round={self.round}, names={list(self.names)}, scores={self.scores.round(4).tolist()})"
