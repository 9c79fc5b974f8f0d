"""The requests to a service, and how to read their answers; nothing here uses the network."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import numpy as np

from preselect.client.served_decision import ServedDecision, read_estimates, read_feature_weights
from preselect.errors import InputError
from preselect.named.estimates import Estimates, FeatureWeight
from preselect.named.feedback import MISSING
from preselect.outcomes import NoWinner, Void

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Request(Generic[Answer]):
    """One request, and how its answer is read. Sending it again is harmless: every one of them is idempotent."""

    method: str
    path: str
    read: Callable[[Any], Answer]
    body: Any = None

    @property
    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode()


def create(name: str, arms: Any, context: Iterable[str], options: Mapping[str, Any]) -> Request[None]:
    """Make a preselector."""
    given = {arm: _simplify(features) for arm, features in arms.items()} if isinstance(arms, Mapping) else list(arms)
    body = {"arms": given, "context": list(context), **_keep_given(options)}
    return Request("PUT", _locate(name), _ignore, body)


def describe(name: str) -> Request[dict[str, Any]]:
    """Describe a preselector."""
    return Request("GET", _locate(name), dict)


def list_names() -> Request[list[str]]:
    """List the names of all preselectors."""
    return Request("GET", "/v1/preselectors", lambda answer: [one["name"] for one in answer["preselectors"]])


def put_arm(name: str, arm: str, features: Any, group: str | None, price: float | None) -> Request[None]:
    """Add an arm, or change it."""
    body = _keep_given({"features": _simplify(features), "group": group, "price": price})
    return Request("PUT", f"{_locate(name)}/arms/{_quote(arm)}", _ignore, body)


def retire_arm(name: str, arm: str) -> Request[None]:
    """Remove an arm."""
    return Request("DELETE", f"{_locate(name)}/arms/{_quote(arm)}", _ignore)


def decide(name: str, context: Any, k: int | None, options: Mapping[str, Any]) -> Request[ServedDecision]:
    """Choose arms; the request has a name, so that sending it again is harmless."""
    if k is None:
        raise InputError("say how many arms to choose, such as k=3")
    lists = {one: None if options.get(one) is None else list(options[one]) for one in ("eligible", "include")}
    body = {"k": k, **_keep_given({**options, **lists, "context": _simplify(context)})}
    body.setdefault("request_id", secrets.token_hex(16))
    return Request("POST", f"{_locate(name)}/decisions", ServedDecision.from_answer, body)


def find_decision(id: str) -> Request[ServedDecision]:
    """Find a decision, with its explanation."""
    return Request("GET", f"/v1/decisions/{_quote(id)}", ServedDecision.from_answer)


def tell(decision: ServedDecision | str, told: Mapping[str, Any]) -> Request[bool]:
    """Report the outcome of a decision."""
    return Request("PUT", f"/v1/decisions/{_quote(_identify(decision))}/outcome", lambda answer: answer["is_new"], told)


def tell_many(outcomes: Iterable[tuple[ServedDecision | str, Mapping[str, Any]]]) -> Iterator[Request[list[Any]]]:
    """Report the outcomes of several decisions, a thousand in each request."""
    every = [{"id": _identify(decision), **describe_outcome(**told)} for decision, told in outcomes]
    for first in range(0, len(every), 1000):
        part = {"outcomes": every[first : first + 1000]}
        yield Request("POST", "/v1/outcomes", lambda answer: list(answer["results"]), part)


def estimate(name: str, context: Any) -> Request[Estimates]:
    """Estimate all arms in a context."""
    return Request("GET", _locate_weights(name, context), read_estimates)


def weigh_features(name: str, context: Any) -> Request[dict[str, FeatureWeight]]:
    """Estimate the weights of the arms' features in a context."""
    return Request("GET", _locate_weights(name, context), read_feature_weights)


def _locate_weights(name: str, context: Any) -> str:
    asked = "" if context is None else f"?context={quote(json.dumps(_simplify(context)), safe='')}"
    return f"{_locate(name)}/weights{asked}"


def read_rounds(name: str, after: int) -> Request[tuple[list[dict[str, Any]], int | None]]:
    """Read a page of rounds, and after which number the next begins."""
    path = f"{_locate(name)}/rounds?after={int(after)}&limit=1000"
    return Request("GET", path, lambda answer: (list(answer["rounds"]), answer["next"]))


def describe_outcome(
    *,
    winner: Any = MISSING,
    ranking: Any = None,
    ratings: Any = None,
    outcome: Any = None,
    after: float | None = None,
    details: Any = None,
) -> dict[str, Any]:
    """Return the arguments of `learn` in the form that the service takes."""
    if not (outcome is None or isinstance(outcome, (NoWinner, Void))):
        raise InputError(f"outcome is {outcome!r:.80}; use NoWinner() or Void(), or give a winner, ranking or ratings")
    kind = outcome and ("void" if isinstance(outcome, Void) else "no-winner")
    places = ranking and [place if isinstance(place, str) else list(place) for place in ranking]
    given = {"ranking": places, "ratings": ratings and dict(ratings), "outcome": kind, "details": details}
    told = {**_keep_given(given), **_keep_given({"after": after if outcome is None else outcome.after})}
    return told if winner is MISSING else {"winner": winner, **told}


def _identify(decision: ServedDecision | str) -> str:
    if not isinstance(decision, (ServedDecision, str)):
        raise InputError(f"decision is {decision!r:.80}; give what select returned, or its id")
    return decision if isinstance(decision, str) else decision.id


def _simplify(values: Any) -> Any:
    """Return values of features for JSON: by name or in order, None for those that are unknown."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: _simplify_number(value) for name, value in values.items()}
    return [_simplify_number(value) for value in np.asarray(values, dtype=object).tolist()]


def _simplify_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _keep_given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _locate(name: str) -> str:
    return f"/v1/preselectors/{_quote(name)}"


def _quote(name: str) -> str:
    if not (isinstance(name, str) and name):
        raise InputError(f"{name!r:.80} is not a name; use a string")
    return quote(name, safe="")


def _ignore(_: Any) -> None:
    return None
