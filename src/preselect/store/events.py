"""The events of a journal: one immutable class for each kind.

    ArmJoined     arm        an arm joins
    ArmChanged    change     an arm has other features, another group or price
    ArmRetired    retire     an arm leaves
    ContextAdded  context    contexts have another feature
    Decided       decision   k arms were chosen
    Told          outcome    how a decision ended
    Expired       expired    no outcome came in time
    Noted         note       the outcome so far, which counts if no more is reported

Applying all events in order gives the state (`preselect.store.apply`). Only `preselect.store.codec` writes events as
rows and reads them. Bodies are JSON with a version `v`; those of version 1 have no `v`, and are read too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from preselect.arguments import join_names, show
from preselect.errors import InputError
from preselect.named.decision import NamedDecision
from preselect.named.feedback import MISSING, make_outcome
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner, list_ties

WINNER, RANKING, NO_WINNER, VOID = "winner", "ranking", "no-winner", "void"

_KINDS: dict[type[Outcome], str] = {Winner: WINNER, Ranking: RANKING, NoWinner: NO_WINNER, Void: VOID}

Place: TypeAlias = str | tuple[str, ...]  # a place of a ranking: an arm, or tied arms


@dataclass(frozen=True, slots=True)
class ArmJoined:
    """An arm joins.

    Parameters
    ----------
    name : str
        The arm.
    features : mapping of str to float or None
        Its features by name; None for those that are not known.
    group : str, optional
        The group that it belongs to.
    price : float, optional
        Its price.
    """

    kind: ClassVar[str] = "arm"

    name: str
    features: Mapping[str, float | None] = field(default_factory=dict)
    group: str | None = None
    price: float | None = None


@dataclass(frozen=True, slots=True)
class ArmChanged:
    """The features, group or price of an arm change; what is left out stays.

    Parameters
    ----------
    name : str
        The arm.
    features : mapping of str to float or None, optional
        All its features from now on.
    group : str or None, optional
        The group that it belongs to from now on; None for none.
    price : float or None, optional
        Its price from now on; None for none.
    """

    kind: ClassVar[str] = "change"

    name: str
    features: Mapping[str, float | None] = MISSING
    group: str | None = MISSING
    price: float | None = MISSING


@dataclass(frozen=True, slots=True)
class ArmRetired:
    """An arm leaves.

    Parameters
    ----------
    name : str
        The arm.
    """

    kind: ClassVar[str] = "retire"

    name: str


@dataclass(frozen=True, slots=True)
class ContextAdded:
    """The context has one more feature from now on.

    Parameters
    ----------
    feature : str
        Its name.
    """

    kind: ClassVar[str] = "context"

    feature: str


@dataclass(frozen=True, slots=True)
class Decided:
    """k arms were chosen. Make one with `Decided.of`; `decision` has what learning needs.

    Parameters
    ----------
    chosen : tuple of str
        The arms, best first.
    numbers : bytes
        As little-endian float64: scores, widths, the arms' features (k x m), the features of the context.
    labels : pair of tuples of str
        The names of the features of the context, and of those of arms; None for the latter in old journals.
    round : int
        Number of the decision, counted from 1.
    seed : int or None
        The seed of its random numbers; None in old journals.
    version : int
        The version of the state that chose: how many changes it had seen.
    k : int
        How many arms were asked for.
    label : str, default ""
        What the round is about.
    eligible : tuple of str, optional
        The arms to choose from; all of them by default.
    rules : mapping, default {}
        The rules for the set, as in `Preselector.choose`: include, at_most, budget, groups.
    included : tuple of str, default ()
        The arms that had to be chosen.
    propensities : tuple of float, optional
        The probability of each of the arms, if that was asked for.
    key : str, optional
        Its public id.
    request : str, optional
        The caller's name for the request: the same request again gives the same decision.
    expires : float, optional
        When it expires, in seconds since 1970.
    departures : int, optional
        How many arms had left before, so that a later arm of the same name does not learn from it; None in old
        journals.
    """

    kind: ClassVar[str] = "decision"

    chosen: tuple[str, ...]
    numbers: bytes
    labels: tuple[tuple[str, ...], tuple[str, ...] | None]
    round: int
    seed: int | None
    version: int
    k: int
    label: str = ""
    eligible: tuple[str, ...] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)
    included: tuple[str, ...] = ()
    propensities: tuple[float, ...] | None = None
    key: str | None = None
    request: str | None = None
    expires: float | None = None
    departures: int | None = None

    @classmethod
    def of(cls, decision: NamedDecision, **more: Any) -> Self:
        """Make the event of a decision.

        Parameters
        ----------
        decision : NamedDecision
            What `Preselector.choose` returned.
        **more
            k, label, eligible, rules, key, request and expires, as in the class.
        """
        of_context, of_arms = decision.labels
        features, context = decision.features, decision.context
        known = b"" if features is None else features.astype("<f8", copy=False).tobytes()
        return cls(
            decision.names,
            decision._bounds.astype("<f8", copy=False).tobytes() + known + context.astype("<f8", copy=False).tobytes(),
            (of_context, None if features is None else of_arms),
            decision.round,
            decision.seed,
            decision.version,
            included=decision.included,
            propensities=decision.propensities,
            departures=decision.departures,
            **more,
        )

    @property
    def decision(self) -> NamedDecision:
        """The decision, as `Preselector.choose` returned it."""
        found, k = np.frombuffer(self.numbers, "<f8").astype(np.float64), len(self.chosen)
        of_context, of_arms = self.labels
        at = len(found) - len(of_context)
        features = None if of_arms is None else found[2 * k : at].reshape(k, len(of_arms))
        labels, counts = (of_context, of_arms or ()), (self.round, self.seed, self.version)
        extras = self.included, self.propensities, self.departures
        return NamedDecision(self.chosen, found[: 2 * k], found[at:], features, labels, *counts, *extras)

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores by which the policy ranked the arms."""
        return struct.unpack_from(f"<{len(self.chosen)}d", self.numbers)

    @property
    def widths(self) -> tuple[float, ...]:
        """The part of each score that is there for exploration."""
        k = len(self.chosen)
        return struct.unpack_from(f"<{k}d", self.numbers, 8 * k)

    @property
    def context(self) -> dict[str, float | None]:
        """The features of the round by name; None for those that were not known."""
        names = self.labels[0]
        values = struct.unpack_from(f"<{len(names)}d", self.numbers, len(self.numbers) - 8 * len(names))
        return {name: None if math.isnan(value) else value for name, value in zip(names, values, strict=True)}


@dataclass(frozen=True, slots=True)
class Told:
    """How a decision ended. Make one with `Told.of`.

    Parameters
    ----------
    outcome : str
        "winner", "ranking", "no-winner" or "void".
    names : tuple of str, or of tuples of str, default ()
        The winner, or the ranking, best first; arms that are tied in a tuple.
    after : float, optional
        How long the round took, as a share of the time limit.
    details : mapping, default {}
        What else was reported; nothing is learnt from it.
    decision : int or None
        The number of the decision in its journal; None while it is not known.
    key : str, optional
        The public id of the decision.
    also : tuple of str, default ()
        Arms that competed alongside the chosen ones.
    """

    kind: ClassVar[str] = "outcome"

    outcome: str
    names: tuple[Place, ...] = ()
    after: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    decision: int | None = None
    key: str | None = None
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, made: NamedDecision, outcome: Outcome, /, *, also: tuple[str, ...] = (), **more: Any) -> Self:
        """Make the event of an outcome; raise an InputError if it does not fit the decision.

        Parameters
        ----------
        made : NamedDecision
            The decision.
        outcome : Outcome
            How it ended.
        also : tuple of str, default ()
            Arms that competed alongside the chosen ones.
        **more
            details, decision and key, as in the class.
        """
        kind = next((kind for known, kind in _KINDS.items() if isinstance(outcome, known)), None)
        if kind is None:
            raise InputError(f"outcome is {show(outcome)}; use a Winner, Ranking, NoWinner or Void")
        every = made.names + also
        places = list_ties(outcome.positions(np.arange(len(every))))
        named = [tuple([every[position] for position in tied]) for tied in places]
        ranked = tuple([tied if len(tied) > 1 else tied[0] for tied in named])
        return cls(kind, ranked, outcome.after, also=also, **more)

    def make_outcome(self, decision: NamedDecision) -> Outcome:
        """Make the outcome that `learn` takes; raise an InputError if it does not fit the decision.

        Parameters
        ----------
        decision : NamedDecision
            The decision.
        """
        kind, names, after = self.outcome, self.names, self.after
        if kind == WINNER and len(names) == 1:
            winner: Any = names[0]  # a tie is refused
            return make_outcome(decision, winner=winner, after=after, also=self.also)
        if kind == NO_WINNER and not names:
            return NoWinner(after)
        if kind in (RANKING, VOID) and after is not None:
            raise InputError(f"after={after!r:.80} needs a winner or NoWinner; a {kind} has no time")
        if kind == RANKING:
            return make_outcome(decision, ranking=names, also=self.also)
        if kind == VOID and not names:
            return Void()
        raise InputError(f"the kind of an outcome is {kind!r:.80}; use {join_names(_KINDS.values())}")

    def says_the_same(self, other: Told) -> bool:
        """Whether both describe the same outcome, apart from details.

        Parameters
        ----------
        other : Told
            What was reported before.
        """
        ours, theirs = ((one.outcome, one.names, one.after, one.also) for one in (self, other))
        return ours == theirs


@dataclass(frozen=True, slots=True)
class Expired:
    """A decision expired without an outcome. No outcome is accepted any more, and nothing is learnt.

    Parameters
    ----------
    decision : int or None
        The number of the decision in its journal; None while it is not known.
    key : str, optional
        The public id of the decision.
    """

    kind: ClassVar[str] = "expired"

    decision: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """What is known so far about how a decision ended; nothing is learnt from it until it is reported.

    Parameters
    ----------
    told : Told
        The outcome to report if no more becomes known.
    """

    kind: ClassVar[str] = "note"

    told: Told


Event: TypeAlias = ArmJoined | ArmChanged | ArmRetired | ContextAdded | Decided | Told | Expired | Noted
