"""Races of commands: run k of a pool on an instance, stop at the first right answer, learn which to race."""

from preselect.race.pool import Pool, read_pool
from preselect.race.result import RaceResult
from preselect.race.session import Races, race, race_async

__all__ = ["Pool", "RaceResult", "Races", "race", "race_async", "read_pool"]
