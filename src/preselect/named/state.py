"""The state of a preselector, and how it is saved and loaded."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self, TypeAlias

from numpy.typing import NDArray

from preselect import state
from preselect.arguments import boolean, distinct_names, integer
from preselect.guard import Guarded, serial
from preselect.joint_features import JointFeatures
from preselect.named.roster import Roster, Terms
from preselect.policies import Policy, persistence

AnyPath: TypeAlias = str | PathLike[str]


class NamedState(Guarded):
    """The base of Preselector: named arms, their features, and the policy that learns about them."""

    context: list[str]
    features: list[str]
    identity: bool
    version: int
    policy: Policy
    covariance: str | None
    _roster: Roster
    _terms: Terms
    _joint: JointFeatures
    _has_warned: bool

    @property
    def arms(self) -> list[str]:
        """The names of the arms, in the order in which they joined."""
        return list(self._roster.names)

    @property
    def groups(self) -> dict[str, str]:
        """The group of each arm that belongs to one."""
        return dict(self._terms.groups)

    @property
    def prices(self) -> dict[str, float]:
        """The price of each arm that has one."""
        return dict(self._terms.prices)

    @serial
    def save(self, path: AnyPath) -> None:
        """Write everything on which future choices depend to a file.

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

    @serial
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
            Where the bytes come from, for error messages.
        """
        return cls._restore(state.unpack(content, source).expect("Preselector"))

    def _collect_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        policy_header, policy_arrays = persistence.collect_state(self.policy)
        header = {
            "arms": self.arms,
            "context": self.context,
            "features": self.features,
            "identity": self.identity,
            "changes": self.version,
            "capacity": self._joint.capacity,
            "covariance": self.covariance,
            "n_slots": self._joint.n_slots,
            "scaled": self._joint.counts,
            "policy": {"kind": self.policy.kind, **policy_header},
            **self._roster.to_header(),
            **self._terms.to_header(),
        }
        arrays = {f"policy.{name}": array for name, array in policy_arrays.items()}
        return header, arrays | self._joint.arrays()

    @classmethod
    def _restore(cls, file: state.StateFile) -> Self:
        with persistence.explain_restoring(file.path, "Preselector"):
            preselector = cls.__new__(cls)
            preselector._set_state(file.header, file.arrays)
            preselector.policy = persistence.restore_within(file, "policy", preselector._joint.d)
            preselector._joint.has_blocks = getattr(preselector.policy, "blocks", None) is not None
        return preselector

    def _set_state(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.context, self.features = (distinct_names(header[name], name) for name in ("context", "features"))
        self.identity = boolean(header["identity"], "identity")
        self.version = integer(header.get("changes", 0), "changes", 0)
        self._has_warned = True  # restoring and replaying are no reason to warn
        self.covariance = header.get("covariance")
        names = distinct_names(header["arms"], "arms")
        n_slots = integer(header.get("n_slots", len(names)), "n_slots", len(names))
        self._roster = Roster.read(header, names, n_slots)
        self._terms = Terms.read(header, self._roster)
        least, most = (n_slots, max(n_slots, 1) * 2) if self.identity else (0, 0)
        capacity = integer(header["capacity"], "capacity", least, most)
        self._joint = JointFeatures(len(self.features), len(self.context), capacity)
        self._joint.restore(arrays, n_slots, header.get("scaled"))

    def _find(self, name: str) -> int:
        return self._roster.find(name)
