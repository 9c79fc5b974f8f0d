"""A journal of decisions and outcomes on disk, and the learner that records every step there."""

from preselect.store.journal import Event, Journal
from preselect.store.learner import Entry, Learner, Recovery
from preselect.store.rounds import Round, RoundCounts, count_rounds, read_rounds
from preselect.store.verify import Verification, verify

__all__ = [
    "Entry",
    "Event",
    "Journal",
    "Learner",
    "Recovery",
    "Round",
    "RoundCounts",
    "Verification",
    "count_rounds",
    "read_rounds",
    "verify",
]
