"""The facade: arms and features by name, any policy, arms that join later, features of any scale, save and load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from os import PathLike
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect import state
from preselect.arguments import distinct_names, integer, join_names, number, warn_about_one
from preselect.context import Floats
from preselect.decision import Decision, NamedDecision
from preselect.errors import InputError, StateFileError
from preselect.feedback import Names, make_outcome
from preselect.outcomes import NoWinner, Outcome
from preselect.policies import Policy, persistence, registry
from preselect.scaling import JointFeatures

AnyPath: TypeAlias = str | PathLike[str]
Features: TypeAlias = Mapping[str, float | None]  # by name; None, NaN or left out: not known
Values: TypeAlias = Features | Sequence[float | None] | NDArray[Any]  # of a context: by name, or in its order

_MAX_FEATURES = 5000


class Preselector:
    """Chooses k of some named arms for a context, and learns from which of them wins.

    Every arm has weights of its own: one for itself and one for each feature of the context. What arms have in common
    is learnt through their features. Features may have any scale, because they are scaled by what has been seen of them
    so far (see Scaling), and any of them may be missing. Only `learn` renews the scaling, from time to time, and what
    was learnt follows it. In the paper's terms the joint features of an arm are (its features, its identity) ⊗ (1,
    context).

    Parameters
    ----------
    arms : iterable of str, or mapping of str to mapping, default ()
        The names of the arms; or each name with the arm's features as numbers by name.
    context : iterable of str, default ()
        The names of the features that describe a round.
    policy : str, default "newton"
        A policy by name, with or without parameters, such as "newton(beta=1.0)", or your own as "module:Class".
        `preselect policies` lists them.
    identity : bool, default True
        Whether every arm has weights of its own. With False only arm features count: for arms that are so numerous or
        short-lived that little can be learnt about each.
    seed : int, optional
        Makes the choices reproducible. Without a seed they differ from run to run.

    Examples
    --------
    >>> preselector = Preselector(["a", "b", "c"], context=["size"], seed=0)
    >>> decision = preselector.select({"size": 3.0}, k=2)
    >>> preselector.learn(decision, winner=decision.names[1])
    >>> preselector.add("d")
    >>> sorted(preselector.scores({"size": 1.0}))
    ['a', 'b', 'c', 'd']
    """

    def __init__(
        self,
        arms: Names | Mapping[str, Features] = (),
        context: Names = (),
        *,
        policy: str = registry.DEFAULT,
        identity: bool = True,
        seed: int | None = None,
    ) -> None:
        features_of = arms if isinstance(arms, Mapping) else {name: {} for name in distinct_names(arms, "arms")}
        self.context = distinct_names(context, "context")
        self.features = list(dict.fromkeys(feature for features in features_of.values() for feature in features))
        self.identity, self._has_warned = bool(identity), False
        if not (self.identity or self.features):
            raise InputError("with identity=False arms differ by their features only; give them some")
        self._position: dict[str, int] = {}
        capacity = max(len(features_of), 1) if self.identity else 0
        self._joint = JointFeatures(len(self.features), len(self.context), capacity)
        make, parameters = registry.parse(policy)
        self.policy: Policy = make(**{"seed": seed, **parameters, "d": self._count_joint_features(capacity)})
        for name, features in features_of.items():
            self.add(name, features)
        self._joint.renew()

    @property
    def arms(self) -> list[str]:
        """The names of the arms, in the order in which they joined."""
        return list(self._position)

    def arm(self, name: str) -> dict[str, float | None]:
        """The features of an arm, by name; None for those that are not known.

        Parameters
        ----------
        name : str
            The name of the arm.
        """
        values = self._joint.values[self._find(name)]
        return {
            feature: None if np.isnan(value) else float(value)
            for feature, value in zip(self.features, values, strict=True)
        }

    def add(self, name: str, features: Features | None = None) -> None:
        """Let another arm join. What has been learnt about the others stays.

        Parameters
        ----------
        name : str
            A name that no arm has yet.
        features : mapping of str to float, optional
            Values of the features that the constructor's arms have; omitted ones are unknown.
        """
        if not isinstance(name, str):
            raise InputError(f"the name of an arm is {name!r:.80}; use a string")
        if name in self._position:
            raise InputError(f"there is an arm {name!r:.80} already; use another name")
        given = {} if features is None else features
        unknown = [str(feature) for feature in given if feature not in self.features]
        if unknown:
            raise InputError(
                f"{name!r:.40} has {join_names(unknown)}, but the features of arms are {join_names(self.features)}"
            )
        values = np.array([_as_value(given.get(feature), f"{feature} of {name}") for feature in self.features])
        if self.identity and len(self._position) == self._joint.capacity:
            self._make_room(2 * self._joint.capacity)
        self._joint.add(values)
        self._position[name] = len(self._position)

    def select(
        self, context: Values | None = None, k: int | None = None, *, eligible: Names | None = None
    ) -> NamedDecision:
        """Choose k arms for a round.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round: numbers by name, or in the order in which they were named in the constructor.
            None or NaN stands for a value that is not known. Leave it out if the preselector has no context features.
        k : int
            How many arms to choose; always given. The winner of a set of one teaches only policies with `outside`.
        eligible : iterable of str, optional
            The arms to choose from; all of them by default.

        Returns
        -------
        NamedDecision
            `names` are the chosen arms, best first. Give it back to `learn` with the outcome, now or later.
        """
        values = self._as_row(context)
        allowed = None if eligible is None else distinct_names(eligible, "eligible")
        positions = None if allowed is None else [self._find(name) for name in allowed]
        k = self._check_count(k, allowed)
        if k == 1 and not (self.policy.outside or self._has_warned):
            self._has_warned = True
            warn_about_one()
        decision = self.policy.select(self._joint.show(values), k, eligible=positions)
        self._joint.see(values)
        every = self.arms
        names = tuple(every[arm] for arm in decision.arms)
        return NamedDecision(decision, names, values, self._joint.values[decision.arms])

    def learn(
        self,
        decision: NamedDecision,
        *,
        winner: str | None = None,
        ranking: Names | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
    ) -> None:
        """Learn from the outcome of a decision: give a winner, a ranking or another outcome.

        Parameters
        ----------
        decision : NamedDecision
            What `select` returned, in this round or in an earlier one.
        winner : str, optional
            The chosen arm that won.
        ranking : iterable of str, optional
            The chosen arms, or the best of them, best first.
        outcome : Outcome, optional
            Any other outcome, such as NoWinner() or Void().
        after : float, optional
            With a winner: how long the race took, as a share of its time limit, from 0 to 1.
        """
        made = make_outcome(decision, winner, ranking, outcome, after)
        arms = np.array([self._find(name) for name in decision.names])
        self._check_decision(decision)
        if self._teaches(made, decision):
            self._renew_scaling()
        self.policy.learn(self._scale(decision, arms), made)

    def scores(self, context: Values | None = None) -> dict[str, float]:
        """What the policy would rank each arm by in a context now, by name.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        return dict(zip(self.arms, self.policy.scores(self._joint.show(self._as_row(context))).tolist(), strict=True))

    def save(self, path: AnyPath) -> None:
        """Write everything that future choices depend on to a file.

        Parameters
        ----------
        path : str or path
            The file. One that exists is replaced whole or not at all.
        """
        state.write(path, "Preselector", *self._collect_state())

    @classmethod
    def load(cls, path: AnyPath) -> Self:
        """Read a preselector that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file. If its policy is a class of your own, import that class first.
        """
        return cls._restore(state.read(path).expect("Preselector"))

    def to_bytes(self) -> bytes:
        """The content that `save` would write; equal states give equal bytes."""
        return state.pack("Preselector", *self._collect_state())

    @classmethod
    def from_bytes(cls, content: bytes, source: AnyPath = "content") -> Self:
        """Make a preselector from what `to_bytes` returned.

        Parameters
        ----------
        content : bytes
            What `to_bytes` returned.
        source : str or path, default "content"
            Where the bytes are from, for error messages.
        """
        return cls._restore(state.unpack(content, source).expect("Preselector"))

    def _collect_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        policy_header, policy_arrays = persistence.collect_state(self.policy)
        header = {
            "arms": self.arms,
            "context": self.context,
            "features": self.features,
            "identity": self.identity,
            "capacity": self._joint.capacity,
            "scaled": [self._joint.contexts, self._joint.scaled_contexts, self._joint.scaled_arms],
            "policy": {"kind": self.policy.kind, **policy_header},
        }
        arrays = {f"policy.{name}": array for name, array in policy_arrays.items()}
        return header, arrays | self._joint.arrays()

    @classmethod
    def _restore(cls, file: state.StateFile) -> Self:
        try:
            preselector = cls.__new__(cls)
            preselector._set_state(file.header, file.arrays)
            preselector.policy = _restore_policy(file)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateFileError(f"{file.path} is not a complete Preselector state: {error}") from None
        return preselector

    def _set_state(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.context, self.features = list(header["context"]), list(header["features"])
        self.identity = bool(header["identity"])
        self._has_warned = True  # what is restored or replayed is not new
        self._position = {name: position for position, name in enumerate(header["arms"])}
        self._joint = JointFeatures(len(self.features), len(self.context), int(header["capacity"]))
        self._joint.restore(arrays, len(self._position), header.get("scaled"))

    __copy__ = deepcopy  # a shallow copy would share some of what is learnt

    def __repr__(self) -> str:
        return f"Preselector(arms={self.arms}, context={self.context}, policy={self.policy!r})"

    def _make_room(self, capacity: int) -> None:
        """Widen the policy to this many arms; if that is impossible, nothing changes."""
        self.policy = self.policy.widen(self._count_joint_features(capacity))
        self._joint.make_room(capacity)

    def _count_joint_features(self, capacity: int) -> int:
        d = (len(self.features) + capacity) * (1 + len(self.context))
        if d > _MAX_FEATURES:
            raise InputError(
                f"arms and context make {d} joint features, and at most {_MAX_FEATURES} are possible; "
                "use identity=False, or fewer features"
            )
        return d

    def _as_row(self, context: Values | None) -> Floats:
        """The values of a context in order; NaN where they are not known."""
        given = () if context is None else context
        if isinstance(given, Mapping):
            given = [given[name] for name in self._check_names(given)]
        elif isinstance(given, str) or not hasattr(given, "__len__"):
            raise InputError(f"context is {given!r:.80}; give values by name, or a list of them")
        if len(given) != len(self.context):
            raise InputError(f"context has length {len(given)}, but its features are {join_names(self.context)}")
        return np.array([_as_value(value, name) for value, name in zip(given, self.context, strict=True)])

    def _check_names(self, context: Features) -> list[str]:
        missing = [name for name in self.context if name not in context]
        if missing:
            raise InputError(f"the context lacks {join_names(missing)}; give None for a value that is not known")
        unknown = [str(name) for name in context if name not in self.context]
        if unknown:
            raise InputError(f"the context has {join_names(unknown)}, but its features are {join_names(self.context)}")
        return self.context

    def _check_count(self, k: int | None, eligible: list[str] | None) -> int:
        if k is None:
            raise InputError("say how many arms to choose, such as k=3")
        allowed = self.arms if eligible is None else eligible
        if integer(k, "k", 1) > len(allowed):
            raise InputError(f"k={k} is too many; the arms to choose from are {join_names(allowed)}")
        return k

    def _find(self, name: str) -> int:
        if name not in self._position:
            raise InputError(f"there is no arm {name!r:.80}; the arms are {join_names(self.arms)}")
        return self._position[name]

    def _check_decision(self, decision: NamedDecision) -> None:
        features = self._joint.values.shape[1] if decision.features is None else decision.features.shape[1]
        if len(decision.context) != len(self.context) or features != len(self.features):
            raise InputError(
                f"the decision is another preselector's, with {len(decision.context)} features of the context and "
                f"{features} of arms; this one has {len(self.context)} and {len(self.features)}"
            )

    def _teaches(self, outcome: Outcome, decision: NamedDecision) -> bool:
        if isinstance(outcome, NoWinner):
            return self.policy.outside
        return isinstance(outcome, Outcome) and outcome.positions(decision.arms).size > 0

    def _renew_scaling(self) -> None:
        """Scale by what has been seen by now, if that is due; what was learnt follows."""
        change = self._joint.renew()
        if change is not None:
            self.policy.transform(change)

    def _scale(self, decision: NamedDecision, arms: NDArray[np.int64]) -> Decision:
        """What the policy learns from: the decision with joint features as they are scaled now."""
        features = self._joint.values[arms] if decision.features is None else decision.features
        rows = self._joint.rows(arms, features, decision.context)
        return Decision(decision._arms, decision._bounds, rows, arms, decision.round)


def load(path: AnyPath) -> Preselector | Policy:
    """Read any policy or preselector that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file. If its policy is a class of your own, import that class first.
    """
    file = state.read(path)
    return Preselector._restore(file) if file.kind == "Preselector" else persistence.restore(file)


def _restore_policy(file: state.StateFile) -> Policy:
    header, prefix = file.header["policy"], "policy."
    arrays = {name.removeprefix(prefix): array for name, array in file.arrays.items() if name.startswith(prefix)}
    return persistence.restore(state.StateFile(file.path, header["kind"], header, arrays))


def _as_value(value: float | None, name: str) -> float:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return float("nan")
    return number(value, name)
