"""After-races: once a race is over, arms that were not chosen race against the winner's time, to learn about them.

They run at low priority, k at a time. A group runs until the first of its arms answers or the time of the best arm so
far has passed. So every arm that has run, chosen or not, is behind the best one, and what is learnt is one race of all
of them, with its winner and time. Racers that lost do not run again, because they are known to be behind the winner.

An after-race has its own thread. It ends when its arms have run, or at once when a new race needs its cores; nothing is
learnt from the group that is running then.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from preselect.errors import PreselectError, StoppedError
from preselect.race.job import Job, own_folder
from preselect.race.result import RaceResult, SupervisionResult
from preselect.race.supervision import Supervision

_log = logging.getLogger(__name__)

_TICK_SECONDS = 0.25


@dataclass
class _Findings:
    """What an after-race has found so far.

    Parameters
    ----------
    winner : str or None
        The best arm of the race and of the after-race.
    seconds : float
        The winner's time; the time of the race if there is no winner.
    also : list of str
        The arms that were not chosen and have run: the winner, if it is one of them, and those known to be behind it.
    arms : dict
        By name: how each arm ended, and how many seconds after the race it was started.
    used : float
        The core time used, in seconds.
    is_stopped : bool
        Whether it was ended from outside.
    """

    winner: str | None
    seconds: float
    also: list[str] = field(default_factory=list)
    arms: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: float = 0.0
    is_stopped: bool = False

    def add(self, started: float, ended: SupervisionResult) -> None:
        """Add a group of arms that has raced."""
        for one in ended.finishes:
            kept = {key: getattr(one, key) for key in ("status", "seconds", "cpu_seconds", "detail")}
            self.arms[one.name] = {"started": started, **kept}
        self.used += sum(one.seconds for one in ended.finishes)
        if ended.void is None:
            self.also += [one.name for one in ended.finishes]
            if ended.winner is not None:
                self.winner, self.seconds = ended.winner, ended.seconds

    def to_details(self) -> dict[str, Any]:
        """Return the details that the journal keeps besides the outcome."""
        kept = ("winner", "seconds", "used", "is_stopped", "arms")
        return {key: getattr(self, key) for key in kept}

    def add_to(self, told: dict[str, Any], limit: float) -> dict[str, Any]:
        """Return the outcome of the race, as `describe_outcome` gives it, with these findings added."""
        told = {**told, "details": {**told["details"], "after_race": self.to_details()}}
        if not self.also:
            return told
        if self.winner is None:
            return {**told, "also": self.also}
        return {"details": told["details"], "winner": self.winner, "after": self.seconds / limit, "also": self.also}


class AfterRace:
    """One after-race, in a thread.

    Parameters
    ----------
    job : Job
        The race that is over.
    result : RaceResult
        How it ended.
    arms : sequence of str
        Arms that have not raced, the most instructive first.
    folder : Path
        The folder for their files, which are in folders of their own.
    on_end : callable
        Called in the thread when it has ended.
    """

    def __init__(
        self, job: Job, result: RaceResult, arms: Sequence[str], folder: Path, on_end: Callable[["AfterRace"], None]
    ) -> None:
        self.job, self.result, self.on_end, self.folder = job, result, on_end, folder
        self.groups = [tuple(arms[first : first + job.pool.k]) for first in range(0, len(arms), job.pool.k)]
        self.reserved = len(arms) * find_time(job, result)
        self._findings = _Findings(result.winner, find_time(job, result))
        self._lock = threading.Lock()
        self._supervision: Supervision | None = None
        self._began = self._group_began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="after-race", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the after-race at once, without waiting until its processes are dead."""
        with self._lock:
            if self._supervision is not None and not self._findings.is_stopped:
                self._supervision.stop()
                self._findings.used += (time.monotonic() - self._group_began) * len(self._supervision.racers)
            self._findings.is_stopped = True

    @property
    def is_running(self) -> bool:
        """Whether some of its processes may be alive."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the after-race has ended, and all its processes are dead."""
        while self._thread.is_alive():  # not one long wait: Ctrl-C may be delivered to any thread, and wakes no other
            self._thread.join(_TICK_SECONDS)

    def read_findings(self) -> _Findings:
        """Return what has been found so far."""
        with self._lock:
            found = self._findings
            return replace(found, also=list(found.also), arms=dict(found.arms))

    def _run(self) -> None:
        try:
            for group in self.groups:
                self._race(group)
        except StoppedError:
            pass
        except (PreselectError, OSError) as error:
            _log.warning("an after-race failed: %s", error)
        finally:
            self.on_end(self)

    def _race(self, group: tuple[str, ...]) -> None:
        learning, seconds = self.job.pool.learning, self._findings.seconds
        job = replace(self.job, arms=group, seconds=seconds, nice=learning.priority)
        with own_folder(self.folder, f"{job.number}-after") as folder:
            ended = self._register(job.prepare(folder)).run()
        with self._lock:
            self._supervision, started = None, self._group_began - self._began
            if not self._findings.is_stopped:  # once stopped, the outcome may have been learnt already
                self._findings.add(started, ended)

    def _register(self, supervision: Supervision) -> Supervision:
        with self._lock:
            if self._findings.is_stopped:
                raise StoppedError("the after-race was stopped")
            self._supervision, self._group_began = supervision, time.monotonic()
        return supervision


def find_time(job: Job, result: RaceResult) -> float:
    """Return the time that arms have to beat: the winner's, or the limit if there is no winner."""
    return job.pool.limits.seconds if result.winner is None else result.seconds
