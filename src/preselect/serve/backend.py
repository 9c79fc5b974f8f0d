"""`Backend`: what the app requires of the part that keeps the preselectors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, TypeVar

from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.serve.schemas import (
    ArmTerms,
    Decision,
    Description,
    Ending,
    NewDecision,
    NewOutcome,
    NewPreselector,
    NumberedOutcome,
    Result,
    Rounds,
    Update,
    Weights,
)
from preselect.store import Record

_Result = TypeVar("_Result")


class Backend(Protocol):
    """Keeps preselectors by name, decides and learns. Whatever a call has returned is durable.

    The app has checked that bodies fit their schemas and the limits of the service; the backend checks whether they fit
    the preselector. Every call may raise: InputError if the arguments cannot be used (422), NotFoundError (404),
    ConflictError (409), ExpiredError (410), OverloadedError (503, nothing has happened) and JournalError (503, the
    storage failed: the caller may try again).

    `within` is the preselector to which the caller's key is limited, if any: decisions of others are not found.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether another process writes, and nothing can be changed here."""

    async def start(self) -> None:
        """Open what is stored and replay it; the service is ready when this returns."""

    async def create(self, name: str, new: NewPreselector) -> tuple[Description, bool]:
        """Make a preselector, and say whether it is new. A different one of the same name is a conflict."""

    async def describe(self, name: str) -> Description:
        """Describe a preselector."""

    async def describe_all(self) -> list[Description]:
        """Describe all preselectors, by name."""

    async def put_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[Description, bool]:
        """Add an arm, or change it; say whether it is new."""

    async def retire_arm(self, name: str, arm: str) -> None:
        """Retire an arm."""

    async def decide(self, name: str, new: NewDecision) -> tuple[Decision, bool]:
        """Choose, and say whether the decision is new. The same `request_id` again gives the same decision.

        A request of the same `request_id` that asks for something else is a conflict.
        """

    async def find_decision(self, id: str, within: str | None, explain: bool) -> Decision:
        """Find a decision, with its outcome and, if wanted and its arms are still there, an explanation."""

    async def tell(self, id: str, outcome: NewOutcome, within: str | None) -> Ending:
        """Learn from an outcome. Reporting it again changes nothing; a different one is a conflict."""

    async def tell_many(self, outcomes: Sequence[NumberedOutcome], within: str | None) -> list[Result]:
        """Learn from several outcomes, in one commit; each has its own result."""

    async def weights(self, name: str, context: Values | None) -> Weights:
        """Estimate all arms in a context; without one, as if its features were unknown."""

    async def rounds(self, name: str, after: int, limit: int) -> Rounds:
        """Read a page of rounds, in the order of their decisions, that come after a number."""

    async def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """Read the next durable events after a number, in order, at most `limit` of them."""

    async def inspect(self, name: str, read: Callable[[Preselector], _Result]) -> _Result:
        """Return what a function reads from the present state; it has to be quick and change nothing."""

    def subscribe(self, name: str, after: int | None) -> AsyncIterator[Update]:
        """Return updates about a preselector: the first at once, then at most two a second, when there is news.

        `after` is the number of the last update that the caller has seen; the first update then has all rounds since.
        """

    async def is_ready(self) -> bool:
        """Whether replay has finished and the storage can be written; if writing failed before, it is tried again."""

    async def close(self) -> None:
        """Answer what has been accepted, then close."""
