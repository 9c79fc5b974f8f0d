"""`Engine`: what the writer's thread calls; implementations need not care about threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

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


class Engine(Protocol):
    """The calls of a Backend, for one thread. All steps of a `batch` are durable when it ends, or none has happened."""

    is_read_only: bool

    def start(self) -> None:
        """Open what is stored and replay it."""

    def batch(self) -> AbstractContextManager[None]:
        """Collect steps for one commit; if it fails, raise a JournalError, and none of them has happened."""

    def create(self, name: str, new: NewPreselector) -> tuple[Description, bool]:
        """See Backend."""

    def describe(self, name: str) -> Description:
        """See Backend."""

    def describe_all(self) -> list[Description]:
        """See Backend."""

    def put_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[Description, bool]:
        """See Backend."""

    def retire_arm(self, name: str, arm: str) -> None:
        """See Backend."""

    def decide(self, name: str, new: NewDecision) -> tuple[Decision, bool]:
        """See Backend."""

    def find_decision(self, id: str, within: str | None, explain: bool) -> Decision:
        """See Backend."""

    def tell(self, id: str, outcome: NewOutcome, within: str | None) -> Ending:
        """See Backend."""

    def tell_many(self, outcomes: Sequence[NumberedOutcome], within: str | None) -> list[Result]:
        """See Backend."""

    def weights(self, name: str, context: Values | None) -> Weights:
        """See Backend."""

    def rounds(self, name: str, after: int, limit: int) -> Rounds:
        """See Backend."""

    def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """See Backend."""

    def inspect(self, name: str, read: Callable[[Preselector], Any]) -> Any:
        """See Backend."""

    def update(self, name: str, after: int | None) -> Update:
        """Return the counts of a preselector, and its newest rounds after a number."""

    def expire_due(self) -> int:
        """Expire the decisions that are due, and return how many; a step of a batch."""

    def check(self) -> None:
        """Write something that changes nothing; raise a JournalError if the storage cannot be written."""

    def close(self) -> None:
        """Close what is stored."""
