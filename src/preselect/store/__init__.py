"""Journals of decisions and outcomes in files or databases, and the learner that records every step there."""

from preselect.store.apply import Entry, Fold
from preselect.store.beginning import compare_beginnings
from preselect.store.codec import decode_event, encode_event
from preselect.store.copy import copy_journals
from preselect.store.events import ArmChanged, ArmJoined, ArmRetired, ContextAdded, Decided, Event, Expired, Told
from preselect.store.journal import Journal
from preselect.store.learner import Learner, make_key
from preselect.store.record import Record
from preselect.store.recorded_state import Recovery, batch
from preselect.store.restore import Restoration, read_preselector, restore
from preselect.store.rounds import Round, RoundCounts, count_rounds, pair_rounds, read_counts, read_rounds
from preselect.store.storage import MAIN, About, Rejection, Row, SharedStorage, Snapshot, Storage, open_storage
from preselect.store.verify import Verification, verify

open = open_storage  # noqa: A001  # store.open(url) reads well

__all__ = [
    "MAIN",
    "About",
    "ArmChanged",
    "ArmJoined",
    "ArmRetired",
    "ContextAdded",
    "Decided",
    "Entry",
    "Event",
    "Expired",
    "Fold",
    "Journal",
    "Learner",
    "Record",
    "Recovery",
    "Rejection",
    "Restoration",
    "Round",
    "RoundCounts",
    "Row",
    "SharedStorage",
    "Snapshot",
    "Storage",
    "Told",
    "Verification",
    "batch",
    "compare_beginnings",
    "copy_journals",
    "count_rounds",
    "decode_event",
    "encode_event",
    "make_key",
    "open",
    "open_storage",
    "pair_rounds",
    "read_counts",
    "read_preselector",
    "read_rounds",
    "restore",
    "verify",
]
