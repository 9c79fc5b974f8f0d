"""`Estimates`: what a preselector believes about each arm in a context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from preselect.named.tables import render_table, write_number, write_share, write_table

_CONFIDENCE = 1.96  # standard errors on either side of an estimate: 95 % of a normal distribution

_HEADER = ("arm", "utility", "error", "lower", "upper", "wins")


@dataclass(frozen=True)
class Estimate:
    """What is believed about one arm.

    Parameters
    ----------
    utility : float
        The estimated log-utility. Unless nobody may win, only differences between arms mean anything. (For "linucb" it
        is a chance of winning, for "mm" the logarithm of the worth.)
    standard_error : float or None
        The standard error of the difference between this utility and the mean of the arms that it is compared with; if
        nobody may win, of the utility itself. None if the policy keeps no measure of it.
    lower, upper : float or None
        The utility minus and plus 1.96 standard errors.
    chance : float or None
        The chance of winning among the arms that it is compared with, if the utilities are as estimated; None if it is
        not one of them.
    """

    utility: float
    standard_error: float | None
    lower: float | None
    upper: float | None
    chance: float | None


@dataclass(frozen=True)
class FeatureWeight:
    """What is believed about a feature of the arms.

    Parameters
    ----------
    weight : float
        What one standard deviation of the feature adds to an arm's log-utility.
    standard_error : float or None
        How uncertain that is; None if the policy keeps no measure of it.
    """

    weight: float
    standard_error: float | None


class Estimates(Mapping[str, Estimate]):
    """The estimates of all arms in a context, by name: `estimates["a"].utility`.

    Parameters
    ----------
    by_name : mapping of str to Estimate
        The estimates.
    nobody : float or None
        The chance that nobody wins; None if there is always a winner.
    among : tuple of str
        The arms that chances and standard errors compare with.
    """

    def __init__(self, by_name: Mapping[str, Estimate], nobody: float | None, among: tuple[str, ...]) -> None:
        self._by_name, self.nobody, self.among = dict(by_name), nobody, among

    def __getitem__(self, name: str) -> Estimate:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        arms = {name: asdict(one) for name, one in self._by_name.items()}
        return {"arms": arms, "nobody": self.nobody, "among": list(self.among)}

    def _list_rows(self) -> list[list[str]]:
        """List the arms, largest utility first."""
        ordered = sorted(self._by_name.items(), key=lambda item: -item[1].utility)
        rows = [
            [name, *map(write_number, (one.utility, one.standard_error, one.lower, one.upper)), write_share(one.chance)]
            for name, one in ordered
        ]
        return rows if self.nobody is None else [*rows, ["(nobody)", "0.000", *"---", write_share(self.nobody)]]

    def __repr__(self) -> str:
        return write_table(_HEADER, self._list_rows())

    def _repr_html_(self) -> str:
        return render_table(_HEADER, self._list_rows())


def make_estimate(utility: float, error: float | None, chance: float | None) -> Estimate:
    """Return an estimate with its bounds."""
    if error is None:
        return Estimate(utility, None, None, None, chance)
    reach = _CONFIDENCE * error
    return Estimate(utility, error, utility - reach, utility + reach, chance)
