"""The bodies of requests and answers. The OpenAPI document is made from these classes, and they check bodies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Values = dict[_Name, float | None] | list[float | None]
_Seconds = Annotated[float, Meta(gt=0, le=31_622_400)]

Status = Literal["waiting", "told", "expired", "void"]
_Kind = Literal["winner", "ranking", "no-winner", "void"]
_Place = str | list[str]  # a place of a ranking: an arm, or tied arms

PROBLEM = "application/problem+json"  # the media type of problem documents

_MOST_OUTCOMES = 1000  # in one batch


class NewPreselector(Struct, frozen=True, forbid_unknown_fields=True):
    """What a preselector is made from, with the names of `preselect.Preselector`.

    Parameters
    ----------
    arms : list of str, or object
        The names of the arms; or each name with its features, by name or in order.
    context : list of str
        The names of the features that describe a round.
    policy : str
        A policy of the library by name, such as "newton" or "thompson(ridge=2.0)".
    identity : bool
        Whether every arm has weights of its own.
    nobody_may_win : bool
        Whether rounds may end without a winner, from which the policy then learns.
    covariance : "full", "blocks" or null
        How the uncertainty of the weights is kept; see `preselect.Preselector`.
    groups : object
        The group of each arm that belongs to one.
    prices : object
        The price of each arm that has one.
    expires_s : float or null
        After how many seconds a decision without an outcome expires, unless the decision has its own limit; null for
        the service's limit.
    """

    arms: list[_Name] | dict[_Name, _Values] = msgspec.field(default_factory=list)
    context: list[_Name] = msgspec.field(default_factory=list)
    policy: Annotated[str, Meta(min_length=1, max_length=1000)] = "newton"
    identity: bool = True
    nobody_may_win: bool = False
    covariance: Literal["full", "blocks"] | None = None
    groups: dict[_Name, _Name] = msgspec.field(default_factory=dict)
    prices: dict[_Name, Annotated[float, Meta(ge=0)]] = msgspec.field(default_factory=dict)
    expires_s: _Seconds | None = None


class ArmTerms(Struct, frozen=True, forbid_unknown_fields=True):
    """An arm's features, group and price; they replace all that was given before.

    Parameters
    ----------
    features : object or list of float
        Values of the features that arms have, by name or all in order; those left out are unknown.
    group : str or null
        The group that it belongs to.
    price : float or null
        Its price.
    """

    features: _Values = msgspec.field(default_factory=dict)
    group: _Name | None = None
    price: Annotated[float, Meta(ge=0)] | None = None


class NewDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to choose, with the names of `Preselector.select`.

    Parameters
    ----------
    k : int
        How many arms to choose.
    context : object, list of float or null
        The features of the round; null for a value that is not known.
    eligible : list of str or null
        The arms to choose from; null for all of them.
    include : list of str or null
        Arms that have to be in the set.
    at_most : object or null
        How many arms of a group may be in the set.
    budget : float or null
        The most that the set may cost.
    groups : object or null
        The groups of some arms in this round only.
    propensities : bool
        Whether to return the probability with which each arm was chosen.
    request_id : str or null
        A name that you give this request, unique in its preselector. The same request again gives the same decision.
    expires_s : float or null
        After how many seconds the decision expires if no outcome arrives.
    explain : bool
        Whether to say why each arm was chosen.
    label : str
        What the round is about.
    """

    k: Annotated[int, Meta(ge=1)]
    context: _Values | None = None
    eligible: list[_Name] | None = None
    include: list[_Name] | None = None
    at_most: dict[_Name, Annotated[int, Meta(ge=0)]] | None = None
    budget: Annotated[float, Meta(ge=0)] | None = None
    groups: dict[_Name, _Name | None] | None = None
    propensities: bool = False
    request_id: Annotated[str, Meta(min_length=1, max_length=200, pattern="^[!-~]+$")] | None = None
    expires_s: _Seconds | None = None
    explain: bool = False
    label: Annotated[str, Meta(max_length=1000)] = ""


class NewOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """How a round ended: exactly one of winner, ranking, ratings and outcome, with the names of `Preselector.learn`.

    Parameters
    ----------
    winner : str or null
        The chosen arm that won; null if nobody did, and the policy is to learn from that.
    ranking : list of str, or of lists of str
        The chosen arms, or the best of them, best first; arms that are tied are in a list.
    ratings : object
        A number for every chosen arm, the higher the better.
    outcome : "no-winner" or "void"
        "no-winner" if nobody won, "void" if the round does not count.
    after : float or null
        How long the round took, as a share of the time limit, from 0 to 1.
    details : object
        Anything else to keep with the outcome. Nothing is learnt from it.
    """

    winner: _Name | UnsetType | None = UNSET
    ranking: list[_Name | list[_Name]] | UnsetType = UNSET
    ratings: dict[_Name, float] | UnsetType = UNSET
    outcome: Literal["no-winner", "void"] | UnsetType = UNSET
    after: Annotated[float, Meta(ge=0, le=1)] | None = None
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class NumberedOutcome(NewOutcome, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An outcome of a batch, with the decision that it ends.

    Parameters
    ----------
    id : str
        The decision.
    """

    id: _Name


class OutcomeBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Outcomes of several decisions, which may belong to different preselectors.

    Parameters
    ----------
    outcomes : list of NumberedOutcome
        At most 1000.
    """

    outcomes: Annotated[list[NumberedOutcome], Meta(max_length=_MOST_OUTCOMES)]


class Arm(Struct, frozen=True):
    """An arm as it is now."""

    features: dict[str, float | None]
    group: str | None = None
    price: float | None = None


class Description(Struct, frozen=True):
    """A preselector: its configuration and counts.

    `version` counts the changes that its state has seen, `number` the events of its journal.
    """

    name: str
    policy: str
    context: list[str]
    features: list[str]
    identity: bool
    nobody_may_win: bool
    covariance: str | None
    arms: dict[str, Arm]
    created: float
    version: int
    number: int
    decisions: int
    waiting: int
    told: int
    void: int
    expired: int


class Listing(Struct, frozen=True):
    """All preselectors that the key may see, by name."""

    preselectors: list[Description]


class ArmExplanation(Struct, frozen=True):
    """Why an arm is in a set; see `preselect.ArmExplanation`."""

    name: str
    role: str
    chance: float | None
    utility: float | None
    standard_error: float | None
    lower: float | None
    upper: float | None
    contributions: dict[str, float | None] | None


class Explanation(Struct, frozen=True):
    """Why a set was chosen, by what is known now; see `preselect.Explanation`."""

    round: int
    policy: str
    arms: list[ArmExplanation]
    nobody: float | None
    changes: int
    note: str


class ToldOutcome(Struct, frozen=True):
    """An outcome as it is kept: its kind, the winner or the ranking, and when it was reported."""

    kind: _Kind
    names: list[_Place]
    at: float
    after: float | None = None
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class Decision(Struct, frozen=True, omit_defaults=True):
    """A decision: the chosen arms, best first, and its status. Times are seconds since 1970.

    `version` is that of the state with which it was chosen, `round` counts decisions from 1. `explanation` and
    `context` are there if they were asked for.
    """

    id: str
    preselector: str
    status: Status
    names: list[str]
    scores: list[float | None]
    version: int
    round: int
    decided: float
    expires: float | None = None
    label: str = ""
    propensities: list[float] | None = None
    outcome: ToldOutcome | None = None
    explanation: Explanation | None = None
    context: dict[str, float | None] | None = None


class Ending(Struct, frozen=True, omit_defaults=True):
    """The state of a decision after an outcome was reported.

    `is_new` is false if the same outcome was reported before. `detail` says why nothing could be learnt from it, such
    as that an arm has left.
    """

    id: str
    status: Status
    is_new: bool
    detail: str = ""


class Result(Struct, frozen=True, omit_defaults=True):
    """The result for one outcome of a batch: the status that it would have had on its own."""

    id: str
    status: int
    detail: str = ""


class Results(Struct, frozen=True):
    """The results for the outcomes of a batch, in the same order."""

    results: list[Result]


class Estimate(Struct, frozen=True):
    """What is believed about an arm; see `preselect.Estimate`."""

    utility: float | None
    standard_error: float | None
    lower: float | None
    upper: float | None
    chance: float | None


class FeatureWeight(Struct, frozen=True):
    """What one standard deviation of a feature adds to an arm's log-utility; see `preselect.FeatureWeight`."""

    weight: float | None
    standard_error: float | None


class Weights(Struct, frozen=True):
    """What is believed about every arm in a context, about the features of arms, and the chance that nobody wins."""

    arms: dict[str, Estimate]
    nobody: float | None
    version: int
    features: dict[str, FeatureWeight]


class Round(Struct, frozen=True, omit_defaults=True):
    """A decision with its outcome, if there is one yet; `number` is its place in the journal."""

    number: int
    id: str
    status: Status
    decided: float
    chosen: list[str]
    utilities: list[float | None]
    label: str = ""
    outcome: ToldOutcome | None = None


class Rounds(Struct, frozen=True):
    """A page of rounds. Give `next` as `after` to get the next page; it is null if there is none yet."""

    rounds: list[Round]
    next: int | None


class Update(Struct, frozen=True):
    """What subscribers get, at most twice a second: counts and new rounds of a preselector."""

    number: int
    version: int
    decisions: int
    waiting: int
    told: int
    void: int
    expired: int
    rounds: list[Round]


class Problem(Struct, frozen=True, omit_defaults=True):
    """A problem document (RFC 9457)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    errors: list[Mistake] = msgspec.field(default_factory=list)


class Mistake(Struct, frozen=True):
    """What is wrong in a body, and where: a JSON pointer."""

    pointer: str
    detail: str
