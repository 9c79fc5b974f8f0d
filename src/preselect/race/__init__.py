"""Races of commands: run k arms of a pool on an instance, stop at the first right answer, learn which arms to race."""

from preselect.race.pool import Arm, FeatureSource, Pool, Success
from preselect.race.pool_file import read_pool
from preselect.race.result import RaceResult
from preselect.race.session import RaceSession, race, race_async
from preselect.race.supervision import Finish, Limits, Standing

__all__ = [
    "Arm",
    "FeatureSource",
    "Finish",
    "Limits",
    "Pool",
    "RaceResult",
    "RaceSession",
    "Standing",
    "Success",
    "race",
    "race_async",
    "read_pool",
]
