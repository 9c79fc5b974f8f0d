"""Limits of what the service accepts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from preselect.errors import InputError, RequestError
from preselect.serve.schemas import ArmTerms, NewDecision, NewPreselector


@dataclass(frozen=True)
class ServiceLimits:
    """The most that requests may ask for.

    Parameters
    ----------
    body : int, default 1 MiB
        Bytes of a body.
    arms : int, default 10000
        Arms of a preselector.
    features : int, default 1000
        Features of the context, and features of the arms.
    k : int, default 100
        Arms of a set.
    rate : float, default 5000
        Requests a second with one key; in a burst of one second, twice as many.
    queue : int, default 2048
        Requests that wait to be written; the next are refused.
    waiting : int, default 1000000
        Decisions of a preselector that wait for an outcome; the next are refused.
    streams : int, default 200
        Streams that are open at once.
    expires_s : float, default 86400
        Seconds after which a decision expires unless it or its preselector says otherwise.
    patience_s : float, default 30
        Seconds that a client may take to send a request or to accept an answer.
    """

    body: int = 1 << 20
    arms: int = 10_000
    features: int = 1_000
    k: int = 100
    rate: float = 5_000.0
    queue: int = 2_048
    waiting: int = 1_000_000
    streams: int = 200
    expires_s: float = 86_400.0
    patience_s: float = 30.0

    def check_preselector(self, new: NewPreselector) -> None:
        """Refuse a preselector that is too large.

        Parameters
        ----------
        new : NewPreselector
            What a caller wants.
        """
        _require_at_most(len(new.arms), self.arms, "arms")
        _require_at_most(len(new.context), self.features, "features of the context")
        if isinstance(new.arms, Mapping):
            _require_at_most(max(map(len, new.arms.values()), default=0), self.features, "features of arms")
        if ":" in new.policy.partition("(")[0]:
            raise InputError(f"policy is {new.policy!r:.80}; over HTTP only policies of the library can be used")

    def check_arm(self, terms: ArmTerms) -> None:
        """Refuse an arm that has too many features.

        Parameters
        ----------
        terms : ArmTerms
            What a caller wants.
        """
        _require_at_most(len(terms.features), self.features, "features of arms")

    def check_decision(self, new: NewDecision) -> None:
        """Refuse a decision about too many arms.

        Parameters
        ----------
        new : NewDecision
            What a caller wants.
        """
        if new.k > self.k:
            raise InputError(f"k={new.k} is too many; this service chooses at most {self.k} at once")
        if new.request_id is not None and new.request_id.endswith("\n"):  # which the pattern lets through
            raise InputError("request_id ends with a line break; leave that out")


def check_depth(value: Any, argument: str, most: int = 32) -> None:
    """Refuse a value whose lists and objects are nested too deeply."""
    inside = [value]
    for _ in range(most):
        inside = [one for outer in inside for one in _list_inside(outer)]
        if not inside:
            return
    raise InputError(f"{argument} is nested more than {most} levels deep; make it flatter")


def _list_inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


class Rates:
    """How fast keys may make requests: a bucket for each, which refills steadily.

    Parameters
    ----------
    rate : float
        Requests a second; the bucket holds twice as many.
    now : callable, optional
        The clock, in seconds.
    """

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._left: dict[str, tuple[float, float]] = {}  # for each key: how many tokens were left, and when

    def take(self, key: str) -> None:
        """Take a token from the bucket of a key; raise a RequestError if it is empty.

        Parameters
        ----------
        key : str
            The public part of a key that exists, so that there are no more buckets than keys.
        """
        most, now = 2.0 * self._rate, self._now()
        left, then = self._left.get(key, (most, now))
        left = min(most, left + (now - then) * self._rate)
        if left < 1.0:
            self._left[key] = left, now
            raise RequestError(
                429, f"more than {self._rate:g} requests a second with this key; wait", {"Retry-After": "1"}
            )
        self._left[key] = left - 1.0, now


def _require_at_most(found: int, most: int, what: str) -> None:
    if found > most:
        raise InputError(f"{found} {what} are too many; this service takes at most {most}")
