"""The facade: arms and features by name, any policy, arms that join later, scaling learnt on the way, save and load."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect import state
from preselect.arguments import number
from preselect.context import Floats, StructuredContext
from preselect.decision import Decision
from preselect.errors import InputError, StateFileError
from preselect.features import Scaling, arm_features
from preselect.outcomes import Outcome, Ranking, Winner
from preselect.policies import Policy, registry
from preselect.policies import load as load_policy

Values = Mapping[str, float | None] | Sequence[float | None] | NDArray[Any]

_MOST_FEATURES = 5000


class NamedDecision(Decision):
    """A decision that knows the names of its arms."""

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


def require_one_outcome(
    winner: str | None, ranking: Iterable[str] | None, outcome: Outcome | None, after: float | None
) -> None:
    """Check that one way to tell what came of a decision is given, and a time with a winner only."""
    given = [way for way in (winner, ranking, outcome) if way is not None]
    if len(given) != 1:
        raise InputError(f"learn must be given one of winner, ranking or outcome, got {len(given)}")
    if winner is None and after is not None:
        raise InputError(f"after must come with a winner, got {after!r:.80} without; NoWinner takes it as an argument")


class Preselector:
    """Chooses k of some named arms for a context, and learns from who wins.

    `arms` lists names, or maps each name to its features. `context` names the features of a round. The joint features
    are (arm's features, arm's identity) ⊗ (1, context): every arm has weights of its own, for itself and for each
    context feature, beside those that its features share with other arms. With identity=False only shared ones, for
    arms so many, or so short-lived, that little is learnt about each. Numbers may have any scale (see Scaling).

    `policy` is a name with or without parameters, as in "newton(beta=1.0)"; `preselect policies` lists them.

    >>> preselector = Preselector(["a", "b", "c"], context=["size"], seed=0)
    >>> decision = preselector.select({"size": 3.0}, k=2)
    >>> preselector.learn(decision, winner=decision.names[1])
    >>> preselector.add("d")
    >>> sorted(preselector.scores({"size": 1.0}))
    ['a', 'b', 'c', 'd']
    """

    def __init__(
        self,
        arms: Iterable[str] | Mapping[str, Mapping[str, float | None]] = (),
        context: Iterable[str] = (),
        *,
        policy: str = registry.DEFAULT,
        identity: bool = True,
        seed: int | None = None,
    ) -> None:
        described = arms if isinstance(arms, Mapping) else {name: {} for name in _distinct(arms, "arms")}
        self.context = _distinct(context, "context")
        self.features = list(dict.fromkeys(feature for features in described.values() for feature in features))
        self.identity = bool(identity)
        if not (self.identity or self.features):
            raise InputError("arms must have features if identity is False, got none: nothing would tell them apart")
        self._position: dict[str, int] = {}
        self._values = np.empty((0, len(self.features)))
        self._arm_scaling, self._context_scaling = Scaling(len(self.features)), Scaling(len(self.context))
        self._capacity = max(len(described), 1) if self.identity else 0
        make, parameters = registry.parse(policy)
        self.policy: Policy = make(**{"seed": seed, **parameters, "d": self._d(self._capacity)})
        for name, features in described.items():
            self.add(name, features)

    @property
    def arms(self) -> list[str]:
        """Names of the arms, in the order in which they joined."""
        return list(self._position)

    def arm(self, name: str) -> dict[str, float | None]:
        """The features that an arm was given; None for missing ones."""
        values = self._values[self._known(name, "name")]
        return {
            feature: None if np.isnan(value) else float(value)
            for feature, value in zip(self.features, values, strict=True)
        }

    def add(self, name: str, features: Mapping[str, float | None] | None = None) -> None:
        """Let another arm join. Features that it is not given, or given as None, are missing."""
        if not isinstance(name, str) or name in self._position:
            raise InputError(f"name must be a text that no arm has yet, got {name!r:.80}")
        given = {} if features is None else features
        strange = [feature for feature in given if feature not in self.features]
        if strange:
            raise InputError(f"features of {name} must be among {self.features}, got {strange}")
        values = np.array([_number(given.get(feature), f"{feature} of {name}") for feature in self.features])
        if self.identity and len(self._position) == self._capacity:
            self._make_room(2 * self._capacity)
        self._arm_scaling.learn(values)
        self._values = np.vstack((self._values, values))
        self._position[name] = len(self._position)

    def select(
        self, context: Values | None = None, k: int = 1, *, eligible: Iterable[str] | None = None
    ) -> NamedDecision:
        """Choose k arms for a context, best first: values by name, or in order; None or NaN for missing ones."""
        values = self._row(context)
        positions = (
            None if eligible is None else [self._known(name, "eligible") for name in _names(eligible, "eligible")]
        )
        decision = self.policy.select(self._shown(values), k, eligible=positions)
        self._context_scaling.learn(values)
        every = self.arms
        return NamedDecision(decision, tuple(every[arm] for arm in decision.arms))

    def learn(
        self,
        decision: NamedDecision,
        *,
        winner: str | None = None,
        ranking: Iterable[str] | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
    ) -> None:
        """Take in who won, or the ranking of the chosen arms or of the best of them, or another outcome.

        `after` goes with a winner: how long the race took, as a share of its time limit.
        """
        require_one_outcome(winner, ranking, outcome, after)
        if not isinstance(decision, NamedDecision):
            raise InputError(f"decision must be what select returned, got {decision!r:.80}")
        if winner is not None:
            told: Outcome | None = Winner(_chosen(decision, winner, "winner"), after)
        elif ranking is not None:
            told = Ranking([_chosen(decision, name, "ranking") for name in _names(ranking, "ranking")])
        else:
            told = outcome
        self.policy.learn(self._current(decision), told)  # type: ignore[arg-type]  # checked there

    def scores(self, context: Values | None = None) -> dict[str, float]:
        """What each arm would be ranked by in this context now."""
        return dict(zip(self.arms, self.policy.scores(self._shown(self._row(context))).tolist(), strict=True))

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that decides what is chosen next."""
        state.write(path, "Preselector", *self._parts())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return cls._restore(state.read(path).expect("Preselector"))

    def to_bytes(self) -> bytes:
        """What `save` writes; equal states give equal bytes."""
        return state.pack("Preselector", *self._parts())

    @classmethod
    def from_bytes(cls, content: bytes, source: str | PathLike[str] = "content") -> Self:
        """Make again what `to_bytes` gave; errors name the source that the bytes are from."""
        return cls._restore(state.unpack(content, source).expect("Preselector"))

    def _parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        policy_header, policy_arrays = self.policy._collect_state()
        header = {
            "arms": self.arms,
            "context": self.context,
            "features": self.features,
            "identity": self.identity,
            "capacity": self._capacity,
            "policy": {"kind": self.policy.kind, **policy_header},
        }
        arrays = {f"policy.{name}": array for name, array in policy_arrays.items()}
        arrays |= {"values": self._values, "arm_scaling": self._arm_scaling.seen}
        return header, {**arrays, "context_scaling": self._context_scaling.seen}

    @classmethod
    def _restore(cls, file: state.StateFile) -> Self:
        try:
            header, arrays = dict(file.header), dict(file.arrays)
            preselector = cls.__new__(cls)
            preselector.context, preselector.features = list(header["context"]), list(header["features"])
            preselector.identity, preselector._capacity = bool(header["identity"]), int(header["capacity"])
            preselector._position = {name: position for position, name in enumerate(header["arms"])}
            preselector._values = _shaped(arrays["values"], (len(preselector._position), len(preselector.features)))
            preselector._arm_scaling, preselector._context_scaling = (
                Scaling(len(preselector.features)),
                Scaling(len(preselector.context)),
            )
            preselector._arm_scaling.seen = _shaped(arrays["arm_scaling"], preselector._arm_scaling.seen.shape)
            preselector._context_scaling.seen = _shaped(
                arrays["context_scaling"], preselector._context_scaling.seen.shape
            )
            kind = Policy._kinds.get(header["policy"]["kind"])
            if kind is None:
                raise ValueError(f"its policy, {header['policy']['kind']}, has not been imported")
            inner = {
                name.removeprefix("policy."): array for name, array in arrays.items() if name.startswith("policy.")
            }
            preselector.policy = kind._restore(state.StateFile(file.path, file.kind, header["policy"], inner))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateFileError(f"{file.path} is not a complete Preselector state: {error}") from None
        return preselector

    def __repr__(self) -> str:
        return f"Preselector(arms={self.arms}, context={self.context}, policy={self.policy!r})"

    def _make_room(self, capacity: int) -> None:
        """Widen the policy for so many arms, or change nothing if it cannot be done."""
        self.policy = self.policy.widen(self._d(capacity))
        self._capacity = capacity

    def _d(self, capacity: int) -> int:
        d = (len(self.features) + capacity) * (1 + len(self.context))
        if d > _MOST_FEATURES:
            raise InputError(
                f"arms and context must give at most {_MOST_FEATURES} joint features, got {d}: "
                "say identity=False, or name fewer features"
            )
        return d

    def _shown(self, values: Floats) -> StructuredContext:
        identities = np.eye(len(self._position), self._capacity)
        z = arm_features(self._arm_scaling(self._values), identities)
        return StructuredContext(z, np.concatenate(([1.0], self._context_scaling(values))))

    def _row(self, context: Values | None) -> Floats:
        """The context's values in order; NaN where they are missing."""
        given = () if context is None else context
        if isinstance(given, Mapping):
            if set(given) != set(self.context):
                raise InputError(f"context must give {self.context}, got {list(given)}; None says that one is missing")
            given = [given[name] for name in self.context]
        if len(given) != len(self.context):
            raise InputError(f"context must have {len(self.context)} values, {self.context}, got {len(given)}")
        return np.array([_number(value, name) for value, name in zip(given, self.context, strict=True)])

    def _known(self, name: str, argument: str) -> int:
        if name not in self._position:
            raise InputError(f"{argument} must name arms among {self.arms}, got {name!r:.80}")
        return self._position[name]

    def _current(self, decision: Decision) -> Decision:
        """The decision, with zeros for the identities of arms that have joined since."""
        if self.policy.d is None or decision.d >= self.policy.d:
            return decision
        rows = np.hstack((decision.rows, np.zeros((len(decision.arms), self.policy.d - decision.d))))
        return Decision.of(
            arms=decision.arms,
            rows=rows,
            scores=decision.scores,
            widths=decision.widths,
            ids=decision.ids,
            round=decision.round,
        )


def load(path: str | PathLike[str]) -> Preselector | Policy:
    """Read any policy or preselector that `save` wrote; a policy class of your own must have been imported."""
    file = state.read(path)
    return Preselector._restore(file) if file.kind == "Preselector" else load_policy(path)


def _chosen(decision: NamedDecision, name: str, argument: str) -> int:
    if name not in decision.names:
        raise InputError(f"{argument} must name arms that were chosen, {list(decision.names)}, got {name!r:.80}")
    return int(decision.arms[decision.names.index(name)])


def _names(given: Iterable[str], argument: str) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{argument} must be a list of names, got {given!r:.80}")
    return list(given)


def _distinct(given: Iterable[str], argument: str) -> list[str]:
    found = _names(given, argument)
    if len(set(found)) < len(found) or not all(isinstance(name, str) for name in found):
        raise InputError(f"{argument} must be distinct names, got {found!r:.80}")
    return found


def _number(value: float | None, name: str) -> float:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return float("nan")
    return number(value, name)


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> Floats:
    if array.shape != shape or array.dtype != np.float64:
        raise ValueError(f"an array has shape {array.shape}, expected {shape}")
    return array
