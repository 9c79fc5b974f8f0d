"""Decisions, which `select` returns and `learn` takes back together with an outcome, now, later or never."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import as_floats, as_integers, integer, require_finite, show
from preselect.errors import InputError

_DOUBLE = np.dtype(np.float64)
_make = object.__new__
_FORMAT = "preselect decision of positions, 1"


class Decision:
    """The k selected arms, best first, with everything that learning needs to know about them.

    Attributes cannot be set and the arrays are read-only, because feedback may arrive long after the arms have changed.
    Policies make decisions; to make one yourself, use `Decision.of`. One is made in every round, so construction is
    cheap: scores and widths share one array, which the kernels fill.

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
    seed : int, default 0
        The seed of the random numbers with which it was made.
    """

    __slots__ = ("_arms", "_bounds", "_ids", "_round", "_rows", "_seed")

    def __init__(
        self,
        arms: NDArray[np.int64],
        bounds: NDArray[np.float64],
        rows: NDArray[np.float64],
        ids: NDArray[np.int64],
        round: int,
        seed: int = 0,
    ) -> None:
        try:
            for array in (arms, rows, ids):
                array.setflags(write=False)
            k = len(arms)
            fits = k == len(rows) == len(ids) and len(bounds) == 2 * k and rows.ndim == 2 and rows.dtype == _DOUBLE
        except (AttributeError, TypeError):
            fits = False
        if not fits:  # kernels would read beyond the rows
            raise InputError("arms, bounds, rows and ids do not fit together; make decisions with Decision.of")
        self._arms = arms
        self._bounds = bounds
        self._rows = rows
        self._ids = ids
        self._round = round
        self._seed = seed

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
        parts = rows, scores, widths, ids = (
            as_floats(rows, "rows", 2),
            as_floats(scores, "scores", 1),
            as_floats(widths, "widths", 1),
            as_integers(ids, "ids", "one integer per arm"),
        )
        arms = as_integers(arms, "arms", "distinct positions of arms").copy()
        if any(len(part) != len(arms) for part in parts):
            sizes = [len(part) for part in parts]
            raise InputError(f"there are {len(arms)} arms, but rows, scores, widths and ids have the lengths {sizes}")
        if len(np.unique(arms)) < len(arms) or np.any(arms < 0):
            raise InputError(f"arms should be distinct positions of arms, not {show(arms)}")
        require_finite(rows, "rows")
        return cls(arms, np.concatenate((scores, widths)), rows.copy(), ids.copy(), integer(round, "round", 0))

    @property
    def arms(self) -> NDArray[np.int64]:
        """Positions of the selected arms in the context that was shown, best first."""
        return self._arms

    @property
    def scores(self) -> NDArray[np.float64]:
        """The values by which the policy ranked the arms: log-utilities plus widths. A leader has the largest."""
        return _freeze(self._bounds[: len(self._arms)])

    @property
    def widths(self) -> NDArray[np.float64]:
        """The part of each score that is there for exploration; `scores - widths` is the plain estimate.

        A leader is given the width of its strongest rival, so that no other arm has a larger score.
        """
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

    @property
    def seed(self) -> int:
        """The seed of its random numbers: with the same state and arguments it gives the same decision."""
        return self._seed

    def to_json(self) -> str:
        """Return the decision as JSON, from which `from_json` restores it exactly, to the last bit."""
        return json.dumps(
            {
                "format": _FORMAT,
                "arms": self._arms.tolist(),
                "scores": list_values(self.scores),
                "widths": list_values(self.widths),
                "rows": list_values(self._rows),
                "ids": self._ids.tolist(),
                "round": self._round,
                "seed": self._seed,
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Make the decision that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON text.
        """
        found = read_json(text, _FORMAT)
        with refuse_damage():
            k = len(found["arms"])
            rows = read_values(found["rows"]).reshape(k, -1)
            bounds = read_values([*found["scores"], *found["widths"]])
            arms, ids = (np.array(found[name], dtype=np.int64) for name in ("arms", "ids"))
            if not (arms.shape == ids.shape == (k,) and len(bounds) == 2 * k):
                raise ValueError("arms, ids, scores and widths have different lengths")
            return cls(arms, bounds, rows, ids, int(found["round"]), int(found["seed"]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (self._arms, self._bounds, self._rows, self._ids, self._round, self._seed)

    def __repr__(self) -> str:
        return f"Decision(round={self.round}, arms={self.arms.tolist()}, scores={self.scores.round(4).tolist()})"


def make_decision(
    arms: NDArray[np.int64],
    bounds: NDArray[np.float64],
    rows: NDArray[np.float64],
    ids: NDArray[np.int64],
    round: int,
    seed: int,
) -> Decision:
    """Make a decision from parts that are known to fit together: no checks, because one is made in every round."""
    arms.setflags(False)  # type: ignore[call-arg]  # by position: three times as fast as by keyword
    rows.setflags(False)  # type: ignore[call-arg]
    if ids is not arms:
        ids.setflags(False)  # type: ignore[call-arg]
    made = _make(Decision)
    made._arms = arms
    made._bounds = bounds
    made._rows = rows
    made._ids = ids
    made._round = round
    made._seed = seed
    return made


def _freeze(view: NDArray[np.float64]) -> NDArray[np.float64]:
    view.setflags(write=False)
    return view


def list_values(values: NDArray[np.float64]) -> list[Any]:
    """Return numbers for JSON, in nested lists: as decimals that give the same bits, None for NaN."""
    return [list_values(one) if one.ndim else None if np.isnan(one) else float(one) for one in values]


def read_values(values: Any) -> NDArray[np.float64]:
    """Return the array that `list_values` turned into lists."""
    array = np.array(values, dtype=object)
    flat = [float("nan") if one is None else _read_number(one) for one in array.ravel()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def _read_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r:.40} is not a number")
    return float(value)


def read_json(text: str | bytes, form: str) -> dict[str, Any]:
    """Return the JSON object in a text; raise an InputError unless it has this form."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"the decision is not JSON: {show(text)}") from None
    if not isinstance(found, dict) or found.get("format") != form:
        raise InputError(f"the text is not a {form!r}, as to_json writes it: {show(text)}")
    return found


@contextmanager
def refuse_damage() -> Iterator[None]:
    """Turn any error in reading a decision into an InputError of one sentence."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"the decision is damaged: {type(error).__name__} {error}"[:200]) from None
