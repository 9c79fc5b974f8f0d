"""`Part` lets an array of the estimate be read as an attribute of its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from preselect.policies.policy import LinearPolicy


class Part:
    """An array of the estimate that can be read as an attribute of the policy."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, policy: LinearPolicy | None, owner: type) -> NDArray[Any]:
        if policy is None:  # read from the class, as help does
            return self  # type: ignore[return-value]
        array: NDArray[Any] = getattr(policy.estimate, self._name)
        return array
