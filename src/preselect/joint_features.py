"""Joint features of named arms in a context: (arm's features, arm's identity) ⊗ (1, context), all of them scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer
from preselect.block_context import BlockContext
from preselect.context import Floats, Integers, OneHotContext, StructuredContext
from preselect.scaling import Change, Scaling, is_possible

_RENEWAL = 2  # the scaling is renewed when this many times as many contexts have been seen
_MEMORY = 0.5  # the weight of what was seen before the last renewal
_CAUTION = 16.0  # deviations are enlarged until many more contexts than this have been seen
_SHARE = 8  # with blocks, arms are rescaled once an eighth of them is new, because that takes time for every arm


class JointFeatures:
    """(arm's features, arm's identity) ⊗ (1, context), scaled: what a policy is shown of named arms and a context.

    The scaling in use changes only in `renew`, never because a context is shown or an arm joins: otherwise the meaning
    of a policy's weights would change without anything being learnt. An arm is known by its slot, the number of its
    identity.

    Parameters
    ----------
    features : int
        How many features an arm has.
    context : int
        How many features a context has.
    capacity : int
        How many arms have an identity; 0 for none.
    has_blocks : bool, default False
        Whether the policy keeps a covariance in blocks, and so has to be shown slots instead of identities.
    """

    def __init__(self, features: int, context: int, capacity: int, has_blocks: bool = False) -> None:
        self._values = np.empty((0, features))
        self.n_slots, self.joined = 0, 0  # slots used so far, and how often an arm joined or changed
        self.capacity, self.has_blocks = capacity, has_blocks
        self.arm_scaling, self.context_scaling = Scaling(features), Scaling(context)
        self.seen = Scaling(context)  # all contexts; `context_scaling` is a copy from the last renewal
        self.contexts, self.scaled_contexts, self.scaled_arms = 0, 0, 0
        self._arms: Floats | None = None

    @property
    def values(self) -> Floats:
        """The features of the arms, as they were given, one row for each slot; NaN for what is not known."""
        return self._values[: self.n_slots]

    @property
    def d(self) -> int:
        """The number of joint features."""
        return (self._values.shape[1] + self.capacity) * (1 + self.seen.size)

    @property
    def blocks(self) -> tuple[int, int]:
        """How many joint features all arms share, and how many are an arm's own."""
        columns = 1 + self.seen.size
        return self._values.shape[1] * columns, columns

    @property
    def counts(self) -> list[int]:
        """Contexts seen by now, and by the last renewal; arms that had joined by the last renewal, and by now."""
        return [self.contexts, self.scaled_contexts, self.scaled_arms, self.joined]

    def list_places(self, slot: int) -> Integers:
        """Return the columns of the joint features that belong to a slot."""
        shared, size = self.blocks
        return shared + slot * size + np.arange(size)

    def add(self, values: Floats, slot: int | None = None) -> int:
        """Add an arm with these features, in a free slot or a new one; return the slot."""
        if slot is None:
            slot = self.n_slots
            if slot == len(self._values):
                longer = np.empty((2 * slot + 1, len(values)))
                longer[:slot] = self._values
                self._values = longer
            self.n_slots += 1
        self.change(slot, values)
        return slot

    def change(self, slot: int, values: Floats) -> None:
        """Change the features of an arm."""
        self.values[slot] = values
        self.joined += 1
        self._arms = None

    def remove(self, slot: int) -> None:
        """Remove an arm, so that the scaling no longer depends on it."""
        self.values[slot] = np.nan
        self._arms = None

    def make_room(self, capacity: int) -> None:
        """Make room for this many identities."""
        self.capacity = capacity
        self._arms = None

    def add_context(self) -> Change:
        """Add a feature to contexts; return how the others change, because longer rows are scaled down."""
        size = self.seen.size
        for name in ("context_scaling", "seen"):
            setattr(self, name, Scaling.of(np.column_stack((getattr(self, name).seen, np.zeros(3)))))
        factors = np.append(np.full(size, np.sqrt(size / (size + 1.0))), 1.0)
        arms = np.stack((np.ones(self._values.shape[1]), np.zeros(self._values.shape[1])))
        return Change(arms, np.stack((factors, np.zeros(size + 1))))

    def show(self, context: Floats, slots: Integers | None = None) -> StructuredContext:
        """Return what a policy is shown of some arms in a context, or of all slots in order."""
        c = self._complete(context)
        if self.has_blocks:
            return self._show_blocks(self._scale_all(), np.arange(self.n_slots), slots, c)
        if not self._values.shape[1]:
            ids = np.arange(self.n_slots) if slots is None else slots
            return OneHotContext(self.capacity, c, None if slots is None and len(ids) == self.capacity else ids)
        if self._arms is None:
            self._arms = self._join(np.arange(self.n_slots), self.values)
        return StructuredContext(self._arms, c) if slots is None else StructuredContext(self._arms[slots], c, slots)

    def show_rows(self, slots: Integers, values: Floats, context: Floats) -> StructuredContext:
        """Return what a policy is shown of arms with the given features in a context."""
        c = self._complete(context)
        if self.has_blocks:
            return self._show_blocks(self._scale(values), slots, None, c)
        return StructuredContext(self._join(slots, values), c, slots)

    def see(self, context: Floats) -> None:
        """Count a context in the statistics from which the next scaling is made."""
        if self.seen.size:
            self.seen.learn(context)
        self.contexts += 1

    def see_all(self, contexts: Floats) -> None:
        """Replace all contexts seen so far by these, one per row, and scale by them."""
        self.seen, self.contexts = Scaling.fit(contexts), len(contexts)
        self.renew()

    def see_rows(self, values: Floats) -> None:
        """Scale features that are the same for all arms now, but were not in earlier rounds, by all these rows."""
        same = ~self.arm_scaling.varied
        if same.any():
            seen = self.arm_scaling.seen.copy()
            seen[:, same] = Scaling.fit(values[:, same]).seen
            self.arm_scaling, self._arms = Scaling.of(seen), None

    def rows(self, arms: Integers, values: Floats, context: Floats) -> Floats:
        """Return the joint features of arms with the given features, in one context or in one for each arm."""
        c = self._complete(context)
        if context.ndim == 2:
            joined: Floats = (self._join(arms, values)[:, :, None] * c[:, None, :]).reshape(len(arms), -1)
            return joined
        if self.has_blocks:
            return self._show_blocks(self._scale(values), arms, None, c).rows(np.arange(len(arms)))
        if not self._values.shape[1]:
            return OneHotContext(self.capacity, c, None).rows(arms)
        return (self._find_joined(arms, values)[:, :, None] * c).reshape(len(arms), -1)

    def deviations(self, context: Floats) -> Floats:
        """Return what one standard deviation of each of the arms' features adds to the joint features in a context."""
        features, columns = self._values.shape[1], 1 + len(context)
        own = columns if self.has_blocks else self.capacity * columns
        shared = np.kron(np.eye(features), self._complete(context)) * 0.5 * self._weight * self.arm_scaling.unit
        return np.hstack((shared, np.zeros((features, own))))

    def renew(self) -> Change | None:
        """Renew the scaling from what has been seen so far; return how that changes features, None if it is not due.

        It is due when arms have joined, and when twice as many contexts have been seen as at the last renewal, so it
        becomes rarer and rarer. After a renewal, what was seen before counts half, so that the scaling follows a drift.
        """
        due, joined = self.contexts >= _RENEWAL * max(self.scaled_contexts, 1), self._have_joined()
        arms = self._fit_arms() if joined and self.arm_scaling.size else self.arm_scaling
        context = self._adopt_seen() if due and self.seen.size else self.context_scaling
        if joined:
            self.scaled_arms = self.joined
        if due:
            self.scaled_contexts = self.contexts
            count, mean, squares = self.seen.seen
            self.seen = Scaling.of(np.stack((_MEMORY * count, mean, _MEMORY * squares)))
        if arms is self.arm_scaling and context is self.context_scaling:
            return None
        change = self._compare(arms, context)
        self.arm_scaling, self.context_scaling, self._arms = arms, context, None
        return change

    def _have_joined(self) -> bool:
        enough = self.scaled_arms // _SHARE if self.has_blocks else 0
        return self.joined > self.scaled_arms + max(enough - 1, 0)

    def _fit_arms(self) -> Scaling:
        """Return a scaling by the arms; features that they no longer differ in keep theirs, and so their weights."""
        found, before = Scaling.fit(self.values), self.arm_scaling
        return Scaling.of(np.where(before.varied & ~found.varied, before.seen, found.seen))

    def _adopt_seen(self) -> Scaling:
        """Return a scaling by the contexts seen so far; while they are few, its deviations are larger.

        A deviation that is much too small would cut off most values, and no later change could undo that.
        """
        count, mean, squares = self.seen.seen
        return Scaling.of(np.stack((count, mean, squares * (1.0 + _CAUTION / np.maximum(count, 1.0)))))

    def arrays(self) -> dict[str, Floats]:
        """Return what state files keep, apart from counts."""
        return {
            "values": self.values,
            "arm_scaling": self.arm_scaling.seen,
            "context_scaling": self.context_scaling.seen,
            "context_seen": self.seen.seen,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]], n: int, counts: Sequence[int] | None) -> None:
        """Restore the arrays of n slots and the counts from a state file; earlier versions wrote fewer counts."""
        found = {"context_seen": arrays["context_scaling"], **arrays}
        expected = {**self.arrays(), "values": np.empty((n, self._values.shape[1]))}
        for name, array in expected.items():
            if found[name].shape != array.shape or found[name].dtype != np.float64:
                raise ValueError(f"{name} has shape {found[name].shape}, expected {array.shape}")
            if np.isinf(found[name]).any() or (name != "values" and not is_possible(found[name])):
                raise ValueError(f"{name} has impossible entries")
        self._values, self.n_slots = found["values"], n
        self.arm_scaling, self.context_scaling, self.seen = (
            Scaling.of(found[name]) for name in ("arm_scaling", "context_scaling", "context_seen")
        )
        contexts = int(self.seen.seen[0].max(initial=0.0))
        known = [contexts, contexts, n] if counts is None else [integer(count, "scaled", 0) for count in counts]
        self.contexts, self.scaled_contexts, self.scaled_arms, self.joined = known if len(known) > 3 else [*known, n]

    def _compare(self, arms: Scaling, context: Scaling) -> Change:
        factors, shifts = self.arm_scaling.change_to(arms)
        return Change(np.stack((factors, 0.5 * shifts)), np.stack(self.context_scaling.change_to(context)))

    def _show_blocks(self, arms: Floats, slots: Integers, some: Integers | None, context: Floats) -> BlockContext:
        if some is not None:
            arms, slots = arms[some], slots[some]
        return BlockContext(arms, slots, context, self._weight, self.capacity)

    @property
    def _weight(self) -> float:
        """What features and identities are multiplied by, so that rows have the length 1 on average."""
        return float(np.sqrt(0.5)) if self._values.shape[1] and self.capacity else 1.0

    def _scale(self, values: Floats) -> Floats:
        """The features of arms, as they are shown with blocks."""
        return self._weight * 0.5 * self.arm_scaling(values)

    def _scale_all(self) -> Floats:
        if self._arms is None:
            self._arms = self._scale(self.values)
        return self._arms

    def _find_joined(self, arms: Integers, values: Floats) -> Floats:
        """Do what `_join` does, without scaling arms again that have not changed since they were last shown."""
        if self._arms is not None and values.tobytes() == self._values[arms].tobytes():
            return self._arms[arms]
        return self._join(arms, values)

    def _join(self, arms: Integers, values: Floats) -> Floats:
        """Return scaled features and one-hot identities of arms, in equal parts, as rows of length 1 on average.

        So a policy's prior says the same about an arm, however many features describe it.
        """
        identities = np.zeros((len(arms), self.capacity))
        if self.capacity:
            identities[np.arange(len(arms)), arms] = 1.0
        parts = [part for part in (0.5 * self.arm_scaling(values), identities) if part.shape[1]]
        joined: Floats = np.hstack(parts) / np.sqrt(len(parts))
        return joined

    def _complete(self, context: Floats) -> Floats:
        features = np.ones((*context.shape[:-1], 1 + context.shape[-1]))
        if context.shape[-1]:
            features[..., 1:] = self.context_scaling(context)
        return features
