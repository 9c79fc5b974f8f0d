"""Shared by all backends: turn requests into calls of the library, and events into answers."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from preselect.errors import ConflictError, InputError, NotFoundError
from preselect.named.decision import NamedDecision
from preselect.named.feedback import make_outcome
from preselect.named.roster import describe_rules
from preselect.named.values import Values, read_context, read_features
from preselect.outcomes import NoWinner, Void
from preselect.preselector import Preselector
from preselect.randomness import hash_root
from preselect.serve import problems, schemas
from preselect.serve.schemas import ArmTerms, NewDecision, NewOutcome, NewPreselector, NumberedOutcome
from preselect.store.events import VOID, Decided, Expired, Told

_COUNTS = ("decisions", "waiting", "told", "void", "expired")


class Past(NamedTuple):
    """A stored decision: its number, its time, its event, and what ended it and when."""

    number: int
    at: float
    decided: Decided
    ended: float | None = None
    ending: Told | Expired | None = None


def make_preselector(new: NewPreselector) -> Preselector:
    """Make the preselector that a request asks for."""
    return Preselector(
        new.arms,
        new.context,
        policy=new.policy,
        identity=new.identity,
        nobody_may_win=new.nobody_may_win,
        covariance=new.covariance,
        groups=new.groups or None,
        prices=new.prices or None,
        seed=0,  # decisions bring their own seeds
    )


def warm_up() -> None:
    """Compile, or load from the cache, what the first requests would have to wait for."""
    arms = {"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {"x": 3.0}}
    for policy in ("newton", "newton(precision=0.001)"):  # the second takes long steps, which another kernel computes
        preselector = Preselector(arms, ["y"], policy=policy, seed=0)
        decision = preselector.select({"y": 1.0}, k=2)
        preselector.learn(decision, winner=decision.names[0])
        again = preselector.select({"y": 1.0}, k=2)
        preselector.learn(again, ranking=again.names[::-1])


def make_id() -> str:
    """Return the public id of a new decision, which nobody can guess: 26 digits, 104 bits."""
    return secrets.token_hex(13)


def choose(
    preselector: Preselector, new: NewDecision, id: str, now: float, expires_s: float
) -> tuple[NamedDecision, Decided]:
    """Choose what a request asks for; the seed depends only on the id."""
    rules = describe_rules(new.include, new.at_most, new.budget, new.groups)
    decision = preselector.choose(
        new.context, new.k, seed=hash_root(id), eligible=new.eligible, propensities=new.propensities, **rules
    )
    decided = Decided.of(
        decision,
        k=new.k,
        label=new.label,
        eligible=None if new.eligible is None else tuple(new.eligible),
        rules=rules,
        key=id,
        request=new.request_id,
        expires=now + (expires_s if new.expires_s is None else new.expires_s),
    )
    return decision, decided


def require_same_request(decided: Decided, new: NewDecision) -> None:
    """Raise a ConflictError if an earlier request of the same `request_id` asked for something else."""
    rules = describe_rules(new.include, new.at_most, new.budget, new.groups)
    asked = new.k, None if new.eligible is None else tuple(new.eligible), rules, new.label
    if asked != (decided.k, decided.eligible, dict(decided.rules), decided.label) or not _is_same_context(decided, new):
        raise ConflictError(f"request_id {new.request_id!r:.80} was used for a different request before; use a new one")


def _is_same_context(decided: Decided, new: NewDecision) -> bool:
    names = list(decided.labels[0])
    try:
        given = read_context(new.context, names)
    except InputError:
        return False
    return {name: None if math.isnan(value) else value for name, value in zip(names, given, strict=True)} == (
        decided.context
    )


def list_arguments(new: NewOutcome) -> dict[str, Any]:
    """Return a reported outcome as the arguments of `learn`."""
    given: dict[str, Any] = {
        name: value
        for name in ("winner", "ranking", "ratings", "outcome")
        if (value := getattr(new, name)) is not msgspec.UNSET
    }
    if "outcome" in given:
        void = given["outcome"] == VOID
        if void and new.after is not None:
            raise InputError(f"after={new.after} needs a winner or no-winner; a void round has no time")
        given["outcome"] = Void() if void else NoWinner(new.after)
    elif new.after is not None:
        given["after"] = new.after
    return given


def make_told(decided: Decided, new: NewOutcome, nobody_may_win: bool) -> Told:
    """Return the event of a reported outcome; raise an InputError if it does not fit the decision."""
    decision = decided.decision
    outcome = make_outcome(decision, **list_arguments(new), nobody_may_win=nobody_may_win)
    return Told.of(decision, outcome, details=new.details, key=decided.key)


def _describe_arms(preselector: Preselector) -> dict[str, schemas.Arm]:
    """Return all arms as they are now."""
    groups, prices = preselector.groups, preselector.prices
    return {name: schemas.Arm(preselector.arm(name), groups.get(name), prices.get(name)) for name in preselector.arms}


def has_terms(preselector: Preselector, arm: str, terms: ArmTerms) -> bool:
    """Whether an arm already has these features, group and price."""
    wanted = read_features(arm, terms.features, preselector.features).tolist()
    known = [math.nan if value is None else value for value in preselector.arm(arm).values()]
    same = all(one == other or (one != one and other != other) for one, other in zip(wanted, known, strict=True))
    return same and (preselector.groups.get(arm), preselector.prices.get(arm)) == (terms.group, terms.price)


def describe_decision(name: str, past: Past, preselector: Preselector | None = None) -> schemas.Decision:
    """Return a decision as callers see it; with a preselector, also an explanation if there can be one."""
    decided, told = past.decided, past.ending if isinstance(past.ending, Told) else None
    return schemas.Decision(
        decided.key or str(past.number),
        name,
        find_status(past.ending),
        list(decided.chosen),
        list(decided.scores),
        decided.version,
        decided.round,
        past.at,
        decided.expires,
        decided.label,
        None if decided.propensities is None else list(decided.propensities),
        None if told is None else _describe_told(told, past.ended or past.at),
        None if preselector is None else _explain(preselector, decided),
        None if preselector is None else decided.context,
    )


def find_status(ending: Told | Expired | None) -> schemas.Status:
    """Return how far a decision has come, given what ended it."""
    if ending is None:
        return "waiting"
    if isinstance(ending, Expired):
        return "expired"
    return "void" if ending.outcome == VOID else "told"


def _describe_told(told: Told, at: float) -> schemas.ToldOutcome:
    names = [place if isinstance(place, str) else list(place) for place in told.names]
    return schemas.ToldOutcome(told.outcome, names, at, told.after, dict(told.details))  # type: ignore[arg-type]


def _explain(preselector: Preselector, decided: Decided) -> schemas.Explanation | None:
    try:
        found = preselector.explain(decided.decision).to_dict()
    except InputError:  # one of the decision's arms has left
        return None
    return msgspec.convert(found, schemas.Explanation)


def describe_round(past: Past) -> schemas.Round:
    """Return a round as callers see it."""
    decided, told = past.decided, past.ending if isinstance(past.ending, Told) else None
    return schemas.Round(
        past.number,
        decided.key or str(past.number),
        find_status(past.ending),
        past.at,
        list(decided.chosen),
        [score - width for score, width in zip(decided.scores, decided.widths, strict=True)],
        decided.label,
        None if told is None else _describe_told(told, past.ended or past.at),
    )


def make_page(past: Iterable[Past], limit: int) -> schemas.Rounds:
    """Return a page of at most `limit` rounds; `past` has one more if another page follows."""
    found = [describe_round(one) for one in past]
    page = found[:limit]
    return schemas.Rounds(page, page[-1].number if len(found) > limit else None)


def estimate(preselector: Preselector, context: Values | None) -> schemas.Weights:
    """Return what is believed about every arm."""
    if not preselector.arms:
        return schemas.Weights({}, None, preselector.version, {})
    known = dict.fromkeys(preselector.context) if context is None else context
    found = preselector.estimates(known)
    arms = {name: schemas.Estimate(*_list_values(one)) for name, one in found.items()}
    weights = preselector.feature_weights(known).items()
    features = {name: schemas.FeatureWeight(one.weight, one.standard_error) for name, one in weights}
    return schemas.Weights(arms, found.nobody, preselector.version, features)


def _list_values(one: Any) -> tuple[float | None, ...]:
    return one.utility, one.standard_error, one.lower, one.upper, one.chance


def describe(
    name: str, new: NewPreselector, preselector: Preselector, created: float, number: int, counts: Mapping[str, int]
) -> schemas.Description:
    """Return a preselector as callers see it."""
    return schemas.Description(
        name,
        new.policy,
        preselector.context,
        preselector.features,
        preselector.identity,
        new.nobody_may_win,
        new.covariance,
        _describe_arms(preselector),
        created,
        preselector.version,
        number,
        **{one: counts.get(one, 0) for one in _COUNTS},
    )


def make_update(number: int, version: int, counts: Mapping[str, int], rounds: list[schemas.Round]) -> schemas.Update:
    """Return the update that subscribers get."""
    return schemas.Update(number, version, **{one: counts.get(one, 0) for one in _COUNTS}, rounds=rounds)


def require_arm(preselector: Preselector, arm: str) -> None:
    """Raise a NotFoundError if there is no such arm."""
    if arm not in preselector.arms:
        raise NotFoundError(f"there is no arm {arm!r:.100}")


def require_same_outcome(before: Told, now: Told) -> None:
    """Raise a ConflictError if another outcome was reported before."""
    if not now.says_the_same(before):
        raise ConflictError(f"decision {now.key} has a different outcome already: {before.outcome}")


def tell_each(
    tell: Callable[[str, NewOutcome, str | None], schemas.Ending],
    outcomes: Iterable[NumberedOutcome],
    within: str | None,
) -> list[schemas.Result]:
    """Report outcomes one after another; an error in one of them does not stop the others."""
    results = []
    for one in outcomes:
        try:
            ending = tell(one.id, one, within)
        except InputError as error:
            results.append(schemas.Result(one.id, problems.find_status(error), str(error)))
        else:
            results.append(schemas.Result(one.id, 201 if ending.is_new else 200, ending.detail))
    return results
