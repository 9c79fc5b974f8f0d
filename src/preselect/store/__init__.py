"""The journal of decisions and outcomes, and the learner whose every step is in it."""

from preselect.store.journal import Event, Journal
from preselect.store.learner import Entry, Learner, Recovered
from preselect.store.rounds import Round, RoundCounts, count_rounds, read_rounds
from preselect.store.verify import Replay, replay

__all__ = [
    "Entry",
    "Event",
    "Journal",
    "Learner",
    "Recovered",
    "Replay",
    "Round",
    "RoundCounts",
    "count_rounds",
    "read_rounds",
    "replay",
]
