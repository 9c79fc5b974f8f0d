"""Races of commands: run k arms of a pool on an instance, stop at the first right answer, learn which arms to race."""

from preselect.race.check import ArmCheck, check_arms
from preselect.race.cluster import Cluster
from preselect.race.once import race, race_async
from preselect.race.pool import Arm, FeatureSource, Learning, Pool, read_pool
from preselect.race.result import Finish, RaceResult, Standing
from preselect.race.session import RaceSession
from preselect.race.solvers import Solver, find_solvers, write_pool
from preselect.race.success import Success
from preselect.race.supervision import LEVELS, Limits, Status

__all__ = [
    "LEVELS",
    "Arm",
    "ArmCheck",
    "Cluster",
    "FeatureSource",
    "Finish",
    "Learning",
    "Limits",
    "Pool",
    "RaceResult",
    "RaceSession",
    "Solver",
    "Standing",
    "Status",
    "Success",
    "check_arms",
    "find_solvers",
    "race",
    "race_async",
    "read_pool",
    "write_pool",
]
