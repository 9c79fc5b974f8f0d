"""`Job`: a race that can be run on this machine or sent to another one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from preselect.files import make_private_folder
from preselect.race.answers import make_answer_check
from preselect.race.instance_features import Instance
from preselect.race.pool import Pool
from preselect.race.supervision import Supervision, Watch
from preselect.race.values import make_judge


@dataclass(frozen=True)
class Job:
    """Arms of a pool that race on an instance.

    Parameters
    ----------
    pool : Pool
        The pool.
    instance : Instance
        What they race on.
    arms : tuple of str
        Their names.
    number : int
        The number of the decision; together with the pool's seed it determines the seeds of the racers.
    level : str, optional
        How processes are contained; by default in the best way that the machine allows.
    seconds : float, optional
        After how many seconds the race ends without a winner; by default the pool's limit, which is what commands are
        told in any case.
    nice : int, default 0
        The nice value of the racers, from 0 to 19: the higher, the more they yield to other processes.
    """

    pool: Pool
    instance: Instance
    arms: tuple[str, ...]
    number: int
    level: str | None = None
    seconds: float | None = None
    nice: int = 0

    def prepare(self, folder: Path, watch: Watch | None = None) -> Supervision:
        """Make the arms ready to race, with their files in a folder."""
        pool = self.pool
        seed, *seeds = np.random.SeedSequence((pool.seed, self.number)).generate_state(1 + len(self.arms)) >> 1
        names = zip(self.arms, seeds, strict=True)
        return Supervision(
            [pool.make_racer(name, self.instance.path, int(own)) for name, own in names],
            pool.limits if self.seconds is None else pool.shorten(self.seconds).limits,
            folder=folder,
            seed=int(seed),
            check=make_answer_check(pool, self.instance),
            judge=make_judge(pool, self.instance.path, folder, level=self.level),
            watch=watch,
            level=self.level,
            nice=self.nice,
        )


@contextmanager
def own_folder(parent: Path, name: str) -> Iterator[Path]:
    """Give a race a folder for its files, and remove it afterwards; the parent is removed with its last folder."""
    folder = parent / name
    while not _make_folder(folder):
        pass
    try:
        yield folder
    finally:
        with suppress(RecursionError):  # if a racer has left very deeply nested folders
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            parent.rmdir()


def _make_folder(folder: Path) -> bool:
    """Make a private folder in a private one; False if another race removed the outer one at the same moment."""
    try:
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
    except FileNotFoundError:
        return False
    return True
