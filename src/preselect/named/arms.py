"""Add, change and remove arms of a preselector."""

from __future__ import annotations

import numpy as np

from preselect.arguments import distinct_names, show
from preselect.errors import InputError
from preselect.guard import serial
from preselect.named.feedback import MISSING
from preselect.named.roster import check_terms
from preselect.named.state import NamedState
from preselect.named.values import Features, Vector, read_features
from preselect.policies import capacities
from preselect.policies.forgetting import forget_arm


class NamedArms(NamedState):
    """The part of Preselector that is about its arms and features."""

    @serial
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

    @serial
    def add(
        self,
        name: str,
        features: Features | Vector | None = None,
        *,
        group: str | None = None,
        price: float | None = None,
    ) -> None:
        """Add an arm. What has been learnt about the others stays.

        Parameters
        ----------
        name : str
            A name that no arm has yet.
        features : mapping of str to float, or sequence or array of floats, optional
            Values of the features that the constructor's arms have, by name or all in order; omitted ones are unknown.
        group : str, optional
            The group that it belongs to, if any.
        price : float, optional
            Its price, at least 0.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"the name of an arm is {show(name)}; use a string of at least one character")
        if name in self._roster:
            raise InputError(f"there is an arm {show(name)} already; use another name")
        values = read_features(name, features, self.features)
        check_terms(name, group, price)
        free = self._roster.free
        if self.identity and not free and self._joint.n_slots == self._joint.capacity:
            self.policy = capacities.widen(self.policy, self._joint, self.covariance)
        self._roster.add(name, self._joint.add(values, free.pop() if free else None))
        self._terms.set(name, group, price)
        self.version += 1

    @serial
    def remove(self, name: str) -> None:
        """Remove an arm. What was learnt about the others stays; later outcomes of decisions that chose it are refused.

        Parameters
        ----------
        name : str
            The name of the arm. Another arm may have this name later, but it inherits nothing that was learnt about
            this one, and no outcomes of its decisions.
        """
        slot = self._find(name)
        if not self.identity or forget_arm(self.policy, slot, self._joint.list_places(slot)):
            self._roster.free.append(slot)
        self._joint.remove(slot)
        self._roster.remove(name)
        self._terms.set(name, None, None)
        self.version += 1

    @serial
    def change(
        self,
        name: str,
        features: Features | Vector = MISSING,
        *,
        group: str | None = MISSING,
        price: float | None = MISSING,
    ) -> None:
        """Change the features, group or price of an arm; what is left out stays, and so does what was learnt about it.

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
        slot = self._find(name)
        group = self._terms.groups.get(name) if group is MISSING else group
        price = self._terms.prices.get(name) if price is MISSING else price
        check_terms(name, group, price)
        if features is not MISSING:
            self._joint.change(slot, read_features(name, features, self.features))
        self._terms.set(name, group, price)
        self.version += 1

    @serial
    def add_context(self, feature: str) -> None:
        """Add a feature to the context. In earlier rounds its value counts as unknown.

        Parameters
        ----------
        feature : str
            A name that no feature of the context has yet.
        """
        names = distinct_names([*self.context, feature], "context")
        self.policy = capacities.add_context(self.policy, self._joint, self.covariance)
        self.context = names
        self.version += 1
