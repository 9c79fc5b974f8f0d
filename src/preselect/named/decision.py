"""A decision about named arms, with all that learning from its outcome needs, anywhere and at any time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import join_names, show
from preselect.decision import Decision, list_values, read_json, read_values, refuse_damage
from preselect.errors import InputError

_FORMAT = "preselect decision, 1"
_MOST = 2**256 - 1  # the largest seed, and the largest count


class NamedDecision:
    """The chosen arms by name, best first, with what was known about them and about the round, before any scaling.

    It cannot be changed. It can wait in a queue or a database as JSON, and any preselector that knows its arms and
    features can learn from it, even if its arms joined in another order.

    Parameters
    ----------
    names : tuple of str
        The chosen arms, best first.
    bounds : array of 2 k numbers
        The k scores, then the k widths.
    context : array of numbers
        The features of the round, as they were given; NaN for those that were not known.
    features : array of k x m numbers or None
        The features of the arms, as they were given. None in records of earlier versions; then those that the arms have
        now are used.
    labels : pair of tuples of str
        The names of the context's features, and of the arms' features.
    round : int
        Number of the decision, counted from 1.
    seed : int or None
        The seed of its random numbers; None in records of earlier versions.
    version : int
        The version of the state that chose: how many changes the preselector had seen.
    included : tuple of str, default ()
        The arms that had to be chosen.
    propensities : tuple of float, optional
        The probability with which each of the arms was chosen, if it was asked for and the policy is random.
    departures : int, optional
        How many arms had left by then. It shows that an arm which joined later under the same name is a different one.
        None in records of earlier versions; then arms are told apart by their names alone.
    """

    __slots__ = (
        "_bounds",
        "_context",
        "_departures",
        "_features",
        "_included",
        "_labels",
        "_names",
        "_propensities",
        "_round",
        "_seed",
        "_version",
    )

    def __init__(
        self,
        names: tuple[str, ...],
        bounds: NDArray[np.float64],
        context: NDArray[np.float64],
        features: NDArray[np.float64] | None,
        labels: tuple[tuple[str, ...], tuple[str, ...]],
        round: int,
        seed: int | None,
        version: int,
        included: tuple[str, ...] = (),
        propensities: tuple[float, ...] | None = None,
        departures: int | None = None,
    ) -> None:
        if not (_are_names(names) and isinstance(labels, tuple) and len(labels) == 2 and all(map(_are_names, labels))):
            raise InputError(f"names and labels are tuples of distinct names, not {show(names)} and {show(labels)}")
        (c, m), k = map(len, labels), len(names)
        fits = {
            "bounds": _is_array(bounds, 2 * k),
            "context": _is_array(context, c),
            "features": features is None or _is_array(features, k, m),
            "included": _are_names(included) and set(included) <= set(names),
            "propensities": propensities is None or _are_chances(propensities, k),
            "round, seed or version": all(map(_is_count, (round, version, _or_zero(seed), _or_zero(departures)))),
        }
        if not all(fits.values()):
            wrong = next(part for part, fit in fits.items() if not fit)
            raise InputError(
                f"the {wrong} of the decision cannot be right; make decisions with select, choose or from_json"
            )
        self._set(names, bounds, context, features, labels, round, seed, version, included, propensities, departures)

    def _set(
        self,
        names: tuple[str, ...],
        bounds: NDArray[np.float64],
        context: NDArray[np.float64],
        features: NDArray[np.float64] | None,
        labels: tuple[tuple[str, ...], tuple[str, ...]],
        round: int,
        seed: int | None,
        version: int,
        included: tuple[str, ...],
        propensities: tuple[float, ...] | None,
        departures: int | None,
    ) -> None:
        for array in (bounds, context, features):
            if array is not None:
                array.setflags(False)  # type: ignore[call-arg]  # by position: three times as fast as by keyword
        self._names, self._bounds, self._context, self._features = names, bounds, context, features
        self._labels, self._round, self._seed, self._version = labels, round, seed, version
        self._included, self._propensities, self._departures = included, propensities, departures

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen arms, best first."""
        return self._names

    @property
    def arms(self) -> NDArray[np.int64]:
        """The places in the set, from 0 to k - 1, which outcomes such as Winner(0) refer to."""
        return np.arange(len(self._names))

    @property
    def scores(self) -> NDArray[np.float64]:
        """The values by which the policy ranked the arms: log-utilities plus widths. A leader has the largest."""
        return self._bounds[: len(self._names)]

    @property
    def widths(self) -> NDArray[np.float64]:
        """The part of each score that is there for exploration; `scores - widths` is the plain estimate.

        A leader has the width of its strongest rival, so that no other arm has a larger score.
        """
        return self._bounds[len(self._names) :]

    @property
    def context(self) -> NDArray[np.float64]:
        """The features of the round, as they were given; NaN for those that were not known."""
        return self._context

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The features of the arms, as they were given, k x m; None if they were not recorded."""
        return self._features

    @property
    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the context's features, and of the arms' features."""
        return self._labels

    @property
    def round(self) -> int:
        """Number of the decision, counted from 1."""
        return self._round

    @property
    def seed(self) -> int | None:
        """The seed of its random numbers: with the same state and arguments it gives the same decision."""
        return self._seed

    @property
    def version(self) -> int:
        """The version of the state that chose: how many changes the preselector had seen."""
        return self._version

    @property
    def included(self) -> tuple[str, ...]:
        """The arms that had to be chosen."""
        return self._included

    @property
    def propensities(self) -> tuple[float, ...] | None:
        """The probability with which each arm was chosen; None unless it was asked for and the policy is random."""
        return self._propensities

    @property
    def departures(self) -> int | None:
        """How many arms had left when the decision was made; None if that was not recorded."""
        return self._departures

    def to_json(self) -> str:
        """Return the decision as JSON, from which `from_json` restores it exactly, to the last bit."""
        context, features = self._labels
        known = None if self._features is None else list_values(self._features.T)
        return json.dumps(
            {
                "format": _FORMAT,
                "names": self._names,
                "scores": list_values(self.scores),
                "widths": list_values(self.widths),
                "context": dict(zip(context, list_values(self._context), strict=True)),
                "features": None if known is None else dict(zip(features, known, strict=True)),
                "round": self._round,
                "seed": self._seed,
                "version": self._version,
                **self._list_extras(),
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
            return cls._read(found)

    @classmethod
    def _read(cls, found: Mapping[str, Any]) -> Self:
        names, context, features = _read_names(found["names"]), found["context"], found["features"]
        labels = _read_names(context), _read_names(features or ())
        known = None
        if features is not None:
            known = np.ascontiguousarray(read_values(list(features.values())).reshape(len(labels[1]), len(names)).T)
        bounds, seed = read_values([*found["scores"], *found["widths"]]), found["seed"]
        return cls(
            names,
            bounds,
            read_values(list(context.values())),
            known,
            labels,
            int(found["round"]),
            None if seed is None else int(seed),
            int(found["version"]),
            *_read_extras(found),
        )

    def to_record(self) -> tuple[dict[str, Any], bytes]:
        """Return plain values and, exact to the last bit, the bytes of all numbers."""
        values = {
            "chosen": list(self._names),
            "scores": self.scores.tolist(),
            "widths": self.widths.tolist(),
            "round": self._round,
            "seed": self._seed,
            "version": self._version,
            "labels": [list(one) for one in self._labels],
            **self._list_extras(),
        }
        known = np.empty(0) if self._features is None else self._features
        parts = (self._bounds, known, self._context)
        return values, b"".join(part.astype("<f8").tobytes() for part in parts)

    @classmethod
    def from_record(cls, values: Mapping[str, Any], numbers: bytes) -> Self:
        """Make the decision that `to_record` returned; raise KeyError, TypeError or ValueError if anything is missing.

        Parameters
        ----------
        values : mapping
            The plain values, by name. Those of earlier versions have `d`, and no seed.
        numbers : bytes
            Scores, widths, features of the arms, joint features (in earlier versions only), features of the context.
        """
        found = np.frombuffer(numbers, dtype="<f8").astype(np.float64)
        names, old = _read_names(values["chosen"]), "labels" not in values
        k = len(names)
        skipped = k * int(values["d"]) if old else 0
        of_context = tuple(values.get("context") or ()) if old else _read_names(values["labels"][0])
        m = values.get("features") if old else len(values["labels"][1])
        bounds, rows, known, context = np.split(found, np.cumsum((2 * k, skipped, k * (m or 0))))
        if old and m is None:  # `numbers` lacks the values of the context
            context = read_values(list((values.get("context") or {}).values()))
        of_arms = None if old else _read_names(values["labels"][1])
        if len(rows) != skipped or len(known) != k * (m or 0) or len(context) != len(of_context):
            raise ValueError("the numbers do not fit the arms")
        features = None if m is None else known.reshape(k, m)
        labels = of_context, of_arms or tuple(map(str, range(m or 0)))
        counts = int(values["round"]), values.get("seed"), int(values.get("version", 0))
        return cls(names, bounds, context, features, labels, *counts, *_read_extras(values))

    def _list_extras(self) -> dict[str, Any]:
        """Return the values that only few decisions have."""
        chances = self._propensities and list(self._propensities)
        extras = {"included": list(self._included), "propensities": chances, "departures": self._departures}
        return {name: value for name, value in extras.items() if value or value == 0}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedDecision) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self._names, self._round, self._seed, self._version))

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = self._bounds, self._context, self._features
        counts = self._round, self._seed, self._version
        extras = self._included, self._propensities, self._departures
        return NamedDecision, (self._names, *arrays, self._labels, *counts, *extras)

    def __repr__(self) -> str:
        return f"NamedDecision(round={self.round}, names={list(self.names)}, scores={self.scores.round(4).tolist()})"


def name_decision(
    decision: Decision,
    arms: list[str],
    context: NDArray[np.float64],
    features: NDArray[np.float64],
    labels: tuple[tuple[str, ...], tuple[str, ...]],
    version: int,
    include: Sequence[int],
    propensities: tuple[float, ...] | None,
    departures: int,
) -> NamedDecision:
    """Give names to a decision about positions among these arms; without checks, because one is made in every round."""
    made = object.__new__(NamedDecision)
    names, included = (tuple([arms[arm] for arm in some]) for some in (decision._arms.tolist(), include))
    known = names, decision._bounds, context, features, labels
    made._set(*known, decision._round, decision._seed, version, included, propensities, departures)
    return made


def arrange_values(
    decision: NamedDecision, context: list[str], features: list[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the values of a decision's context and of its arms' features, in the order of these names.

    Records of earlier versions, which have no seed, did not name the features of arms.
    """
    if not isinstance(decision, NamedDecision):
        raise InputError(f"decision is {show(decision)}; give what select returned")
    of_context, of_arms = decision._labels
    values, known = _arrange(decision._context, of_context, context, "context"), decision._features
    if known is None or decision._seed is None:
        return values, known
    return values, _arrange(known, of_arms, features, "arms")


def _arrange(values: NDArray[np.float64], given: tuple[str, ...], wanted: list[str], what: str) -> NDArray[np.float64]:
    """Reorder values, whose last axis has the names `given`, to the names `wanted`; NaN for missing ones."""
    if list(given) == wanted:
        return values
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise InputError(
            f"the decision has {join_names(unknown)}, but the features of the {what} are {join_names(wanted)} here"
        )
    arranged = np.full((*values.shape[:-1], len(wanted)), np.nan)
    arranged[..., [wanted.index(name) for name in given]] = values
    return arranged


def _read_names(names: Any) -> tuple[str, ...]:
    found = tuple(names)
    if not all(isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise TypeError(f"{names!r:.60} are not distinct names")
    return found


def _are_names(names: Any) -> bool:
    return isinstance(names, tuple) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _or_zero(value: Any) -> Any:
    return 0 if value is None else value


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _is_array(values: Any, *shape: int) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == shape


def _are_chances(values: Any, k: int) -> bool:
    return (
        isinstance(values, tuple)
        and len(values) == k
        and all(type(one) is float and 0.0 <= one <= 1.0 for one in values)
    )


def _read_extras(found: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[float, ...] | None, int | None]:
    included, propensities = _read_names(found.get("included", ())), found.get("propensities")
    chances = None if propensities is None else tuple(read_values(propensities).tolist())
    departures = found.get("departures")
    return included, chances, None if departures is None else int(departures)
