"""Explanations of decisions: why each arm was chosen, and what its utility is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from preselect.context import Floats
from preselect.named.estimates import Estimate
from preselect.named.tables import render_table, write_count, write_number, write_share

_LEADER, _CHALLENGER, _INCLUDED, _EXPLORED = "leader", "challenger", "included", "explored"

_MOST_SHOWN = 6  # how many contributions of an arm the text shows; the dictionary has all
_HEADER = ("arm", "role", "wins", "utility", "contributions")


@dataclass(frozen=True)
class ArmExplanation:
    """Why an arm is in a set.

    Parameters
    ----------
    name : str
        The arm.
    role : str
        "leader": it has the best estimate of the set. "challenger": it may be better than it seems, or is next best.
        "included": the caller asked for it. "explored": the set was drawn at random.
    estimate : Estimate
        Its utility, how uncertain that is, and its chance of winning in the set.
    contributions : mapping of str to float, or None
        What each feature adds to the utility, which is the sum of all. With an arm feature "price" and a context
        feature "size", "price" is what the arm's price adds; "itself" what is known about this arm besides its
        features; "price × size" and "itself × size" how the context changes these. Features are scaled, so that 0 is
        usual. None if the policy has no weights.
    """

    name: str
    role: str
    estimate: Estimate
    contributions: Mapping[str, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        one = self.estimate
        return {
            "name": self.name,
            "role": self.role,
            "chance": one.chance,
            "utility": one.utility,
            "standard_error": one.standard_error,
            "lower": one.lower,
            "upper": one.upper,
            "contributions": None if self.contributions is None else dict(self.contributions),
        }

    def list_cells(self) -> list[str]:
        """Return the cells of the arm's row in a table."""
        one = self.estimate
        error = "" if one.standard_error is None else f" ± {write_number(one.standard_error)}"
        return [self.name, self.role, write_share(one.chance), write_number(one.utility) + error, self._list_most()]

    def _list_most(self) -> str:
        """Return the largest contributions, and the sum of the others."""
        ordered = sorted((self.contributions or {}).items(), key=lambda item: -abs(item[1]))
        shown = [f"{label} {value:+z.3f}" for label, value in ordered[:_MOST_SHOWN]]
        if len(ordered) > _MOST_SHOWN:
            rest = sum(value for _, value in ordered[_MOST_SHOWN:])
            shown.append(f"{len(ordered) - _MOST_SHOWN} others {rest:+z.3f}")
        return ", ".join(shown)


@dataclass(frozen=True)
class Explanation:
    """Why a set was chosen, judged by what is known now; print it, or show it in a notebook.

    Parameters
    ----------
    arms : tuple of ArmExplanation
        The chosen arms, in the order of the decision.
    nobody : float or None
        The chance that none of them wins; None if there is always a winner.
    policy : str
        The name of the policy's class.
    round : int
        Number of the decision.
    changes : int
        How many changes the state has seen since the decision; below 0 if it was chosen with a newer state than this.
    """

    arms: tuple[ArmExplanation, ...]
    nobody: float | None
    policy: str
    round: int
    changes: int

    @property
    def note(self) -> str:
        """A caution for readers; empty if none is needed."""
        notes = []
        if any(arm.contributions is None for arm in self.arms):
            notes.append(f"{self.policy} has no weights for features, so utilities have no parts.")
        if self.changes > 0:
            notes.append(
                f"The state has changed {write_count(self.changes, 'time')} since the decision; figures are as of now."
            )
        elif self.changes < 0:
            notes.append("This was decided with a newer state than the one that explains it.")
        return " ".join(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "round": self.round,
            "policy": self.policy,
            "arms": [arm.to_dict() for arm in self.arms],
            "nobody": self.nobody,
            "changes": self.changes,
            "note": self.note,
        }

    def __str__(self) -> str:
        lines = [f"Decision {self.round}, by {self.policy}"]
        cells = [arm.list_cells() for arm in self.arms]
        sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for name, role, chance, utility, parts in cells:
            lines.append(
                f"  {name:{sizes[0]}}  {role:{sizes[1]}}  wins {chance:>{sizes[2]}}  utility {utility:>{sizes[3]}}"
            )
            lines += [f"      {parts}"] if parts else []
        lines += [] if self.nobody is None else [f"  nobody wins {write_share(self.nobody)}"]
        return "\n".join([*lines, self.note] if self.note else lines)

    def _repr_html_(self) -> str:
        rows = [arm.list_cells() for arm in self.arms]
        if self.nobody is not None:
            rows.append(["(nobody)", "", write_share(self.nobody), "", ""])
        return render_table(_HEADER, rows, f"Decision {self.round}, by {self.policy}. {self.note}".strip())


def name_contributions(
    parts: Floats, features: Sequence[str], context: Sequence[str], identity: bool
) -> list[dict[str, float]]:
    """Return contributions by name for each arm, given k x m x p numbers for (its features, itself) ⊗ (1, context)."""
    labels = _list_labels([*features, *["itself"] * identity], context)
    return [dict(zip(labels, one.ravel().tolist(), strict=True)) for one in parts]


def _list_labels(of_arms: Sequence[str], context: Sequence[str]) -> list[str]:
    """List the names of joint features; names that would be equal get a number.

    >>> _list_labels(["price", "itself"], ["size"])
    ['price', 'price × size', 'itself', 'itself × size']
    """
    labels: list[str] = []
    for label in (" × ".join((one, *other)) for one in of_arms for other in [(), *((name,) for name in context)]):
        number, unique = 2, label
        while unique in labels:
            number, unique = number + 1, f"{label} ({number})"
        labels.append(unique)
    return labels


def find_roles(estimates: Floats, included: Sequence[bool], explored: bool) -> list[str]:
    """Return the role of each arm, given the estimates by which the arms were chosen.

    >>> import numpy as np
    >>> find_roles(np.array([0.5, 2.0, 1.0]), [False, False, True], explored=False)
    ['challenger', 'leader', 'included']
    """
    others = _EXPLORED if explored else _CHALLENGER
    roles = [_INCLUDED if one else others for one in included]
    free = [place for place, one in enumerate(included) if not one]
    if free and not explored:
        roles[max(free, key=lambda place: (estimates[place], -place))] = _LEADER
    return roles
