"""Add, change and remove arms of a learner, and record it."""

from __future__ import annotations

from typing import Any

from preselect.named.feedback import MISSING
from preselect.named.values import Features, Vector
from preselect.store.events import ArmChanged, ArmJoined, ArmRetired, ContextAdded
from preselect.store.recorded_state import RecordedState


class RecordedArms(RecordedState):
    """The part of Learner that is about arms and features."""

    def add(
        self,
        name: str,
        features: Features | Vector | None = None,
        *,
        group: str | None = None,
        price: float | None = None,
    ) -> None:
        """Add an arm, as Preselector.add does.

        Parameters
        ----------
        name : str
            A name that no arm has yet.
        features : mapping of str to float, or sequence or array of floats, optional
            The arm's features. Those left out are unknown.
        group : str, optional
            The group that it belongs to, if any.
        price : float, optional
            Its price, at least 0.
        """
        with self._step():
            arms = self._fold.preselector
            arms.add(name, features, group=group, price=price)
            self._draft(ArmJoined(name, arms.arm(name), group, arms.prices.get(name)))

    def change(
        self,
        name: str,
        features: Features | Vector = MISSING,
        *,
        group: str | None = MISSING,
        price: float | None = MISSING,
    ) -> None:
        """Change the features, group or price of an arm, as Preselector.change does.

        Parameters
        ----------
        name : str
            The name of the arm.
        features : mapping of str to float, or sequence or array of floats, optional
            All its features from now on; omitted ones are unknown.
        group : str or None, optional
            The group that it belongs to from now on; None for none.
        price : float or None, optional
            Its price from now on; None for none.
        """
        with self._step():
            arms = self._fold.preselector
            arms.change(name, features, group=group, price=price)
            known: Any = MISSING if features is MISSING else arms.arm(name)
            self._draft(ArmChanged(name, known, group, MISSING if price is MISSING else arms.prices.get(name)))

    def remove(self, name: str) -> None:
        """Remove an arm, as Preselector.remove does. Later outcomes of decisions that chose it teach nothing.

        Parameters
        ----------
        name : str
            The name of the arm.
        """
        with self._step():
            self._fold.preselector.remove(name)
            self._draft(ArmRetired(name))

    def add_context(self, feature: str) -> None:
        """Add a feature to the context, as Preselector.add_context does.

        Parameters
        ----------
        feature : str
            A name that no feature of the context has yet.
        """
        with self._step():
            self._fold.preselector.add_context(feature)
            self._draft(ContextAdded(feature))
