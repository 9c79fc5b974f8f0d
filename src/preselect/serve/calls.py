"""The table of all calls of the service: path, role, body, query and answers of each.

The app dispatches by this table, and the OpenAPI document is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from preselect.serve.keys import Role
from preselect.serve.schemas import (
    ArmTerms,
    Decision,
    Description,
    Ending,
    Listing,
    NewDecision,
    NewOutcome,
    NewPreselector,
    OutcomeBatch,
    Results,
    Rounds,
    Update,
    Weights,
)

_MOST_ROUNDS = 1000  # on one page


@dataclass(frozen=True)
class _Query:
    """A parameter of the query."""

    name: str
    schema: dict[str, Any]
    description: str


@dataclass(frozen=True)
class Call:
    """One method of one path.

    `refusals` are the statuses with which it may be refused, besides those of every call.
    """

    method: str
    path: str
    name: str
    role: Role
    summary: str
    answers: dict[int, type[Any] | None]
    body: type[Any] | None = None
    refusals: tuple[int, ...] = ()
    queries: tuple[_Query, ...] = ()
    media: str = "application/json"
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.path.strip("/").split("/")))


_PRESELECTOR = "/v1/preselectors/{name}"

CALLS: tuple[Call, ...] = (
    Call(
        "PUT",
        _PRESELECTOR,
        "create",
        "admin",
        "Make a preselector",
        {201: Description, 200: Description},
        NewPreselector,
        (409, 422),
    ),
    Call("GET", "/v1/preselectors", "describe_all", "reader", "List all preselectors", {200: Listing}),
    Call("GET", _PRESELECTOR, "describe", "reader", "Describe a preselector", {200: Description}, refusals=(404,)),
    Call(
        "PUT",
        _PRESELECTOR + "/arms/{arm}",
        "put_arm",
        "admin",
        "Let an arm join, or change it",
        {201: Description, 200: Description},
        ArmTerms,
        (404, 422),
    ),
    Call(
        "DELETE", _PRESELECTOR + "/arms/{arm}", "retire_arm", "admin", "Let an arm leave", {204: None}, refusals=(404,)
    ),
    Call(
        "POST",
        _PRESELECTOR + "/decisions",
        "decide",
        "client",
        "Choose k arms for a round",
        {201: Decision, 200: Decision},
        NewDecision,
        (404, 409, 422),
    ),
    Call(
        "GET",
        "/v1/decisions/{id}",
        "find_decision",
        "reader",
        "See how far a decision has come, and why it was made",
        {200: Decision},
        refusals=(404, 422),
        queries=(_Query("explain", {"type": "boolean", "default": True}, "Whether to say why each arm was chosen."),),
    ),
    Call(
        "PUT",
        "/v1/decisions/{id}/outcome",
        "tell",
        "client",
        "Report the outcome of a decision",
        {201: Ending, 200: Ending},
        NewOutcome,
        (404, 409, 410, 422),
    ),
    Call(
        "POST",
        "/v1/outcomes",
        "tell_many",
        "client",
        "Report up to 1000 outcomes at once; each has its own status",
        {200: Results},
        OutcomeBatch,
        (422,),
    ),
    Call(
        "GET",
        _PRESELECTOR + "/weights",
        "weights",
        "reader",
        "What is believed about every arm, with standard errors",
        {200: Weights},
        refusals=(404, 422),
        queries=(
            _Query("context", {"type": "string"}, 'The context as JSON, such as {"size": 3}; by default unknown.'),
        ),
    ),
    Call(
        "GET",
        _PRESELECTOR + "/rounds",
        "rounds",
        "reader",
        "Read rounds, a page at a time",
        {200: Rounds},
        refusals=(404, 422),
        queries=(
            _Query("after", {"type": "integer", "minimum": 0, "default": 0}, "The number after which to begin."),
            _Query(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": _MOST_ROUNDS, "default": 100},
                "How many rounds to read.",
            ),
        ),
    ),
    Call(
        "GET",
        _PRESELECTOR + "/stream",
        "stream",
        "reader",
        "Follow a preselector: server-sent events, at most two a second",
        {200: Update},
        refusals=(404, 422),
        media="text/event-stream",
    ),
)
