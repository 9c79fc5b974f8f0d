"""Which arms of a pool are worth starting: their programs exist, and do not take too long to start.

Before every choice, arms whose program does not exist or is not executable are left out. A file beside the journal,
`pool.journal.starts`, holds what only an attempt can show: races add the arms that could not be started, and `preselect
race check` adds how long each arm takes to answer a tiny instance, which is hardly more than the time to start. What
the file says about an arm counts until the command, the environment or the program changes.

An arm is left out while its start alone takes longer than each of the last ten races took: it could not have won any of
them. One race that takes longer, or that nobody wins, brings it back. The recorded decision says which arms were left
out, so that a replay makes the same choice.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from preselect.errors import PreselectError
from preselect.race.check import ArmCheck
from preselect.race.pool import Arm, Pool
from preselect.race.result import Finish, PastRace
from preselect.race.supervision import Status
from preselect.store.rounds import Round

_RACES = 10  # that are remembered
_PERMANENT = ("no such command", "not executable", "Exec format error")  # errors that would occur again

ROUNDS = 60  # how many rounds of the journal to search for the last races


class Starts:
    """What is known about how the arms of a pool start.

    Parameters
    ----------
    pool : Pool
        The pool. Its journal has the file beside it.
    elsewhere : bool, default False
        Whether the arms run on other machines, whose programs cannot be looked at.
    """

    def __init__(self, pool: Pool, *, elsewhere: bool = False) -> None:
        self.pool, self.elsewhere = pool, elsewhere
        self.path = pool.journal.with_name(f"{pool.journal.name}.starts")
        self._known = _read(self.path)
        self._failed: dict[str, str] = {}  # in this process
        self._times: deque[float] = deque(maxlen=_RACES)  # times of the last races, in seconds

    def recall(self, rounds: Iterable[Round]) -> None:
        """Recall the times of earlier races."""
        for race in map(PastRace.from_details, rounds):
            if race.is_timed and race.seconds is not None:
                self._times.append(race.seconds if race.is_solved else max(race.seconds, race.limit or 0.0))

    def note_race(self, finishes: Iterable[Finish], seconds: float | None) -> None:
        """Note which arms could not be started, and how long the race took (the limit if nobody won, None if void)."""
        for finish in finishes:
            if finish.status == Status.NOT_STARTED:
                self._failed[finish.name] = finish.detail
                if finish.detail.startswith(_PERMANENT) and not self.elsewhere:
                    self.note(finish.name, error=finish.detail)
        if seconds is not None:
            self._times.append(seconds)

    def note(self, name: str, *, seconds: float | None = None, error: str | None = None) -> None:
        """Write down how long an arm takes to start, or why it does not."""
        about = {"program": _identify(self.pool.arms[name]), "seconds": seconds, "error": error}
        self._known = {**_read(self.path), name: about}
        with suppress(OSError):  # it is only a help
            _write(self.path, self._known)

    def note_checks(self, checks: Iterable[ArmCheck]) -> None:
        """Note how long arms took to answer a tiny instance; one that works now has no error."""
        for check in checks:
            if check.ok:
                self.note(check.arm, seconds=check.seconds)

    def find_errors(self) -> dict[str, str]:
        """Find the arms that cannot be started, and why."""
        found = {name: self._find_error(arm) for name, arm in self.pool.arms.items()}
        return {name: error for name, error in found.items() if error is not None}

    def _find_error(self, arm: Arm) -> str | None:
        error = self._failed.get(arm.name)
        return error or (None if self.elsewhere else _find_program(arm)[1] or self._recall(arm, "error"))

    def _recall(self, arm: Arm, what: str) -> Any:
        known = self._known.get(arm.name, {})
        return known.get(what) if known.get("program") == _identify(arm) else None

    def list_eligible(self, k: int) -> list[str]:
        """List the arms to choose from; raise a PreselectError if there are fewer than k."""
        errors = self.find_errors()
        able = [name for name in self.pool.arms if name not in errors]
        if len(able) < k:
            reasons = "; ".join(f"{name}: {error}" for name, error in errors.items())
            raise PreselectError(
                f"k={k}, but only {len(able)} arms of {self.pool.path} can be started: {reasons}; "
                f"see `preselect race check {self.pool.path}`"
            )
        cost = {name: self._find_cost(name) for name in able}
        worth = {name for name in able if cost[name] <= max(self._times, default=cost[name])}
        worth.update(sorted(able, key=lambda name: (name not in worth, cost[name]))[:k])
        return [name for name in able if name in worth]

    def _find_cost(self, name: str) -> float:
        """Return the seconds that an arm takes to start; 0 if that is unknown, or if the first answer does not win."""
        known = None if self.elsewhere or self.pool.better else self._recall(self.pool.arms[name], "seconds")
        return float(known) if isinstance(known, int | float) else 0.0


def _find_program(arm: Arm) -> tuple[str, str | None]:
    """Find the file that an arm executes, as the supervisor will; or return why there is none."""
    name, variables = arm.command[0], {**os.environ, **arm.environment}
    path = variables.get("PATH", os.defpath)
    found = shutil.which(name, path=path)
    if found:
        return found, None
    there = shutil.which(name, os.F_OK, path=path)
    return "", f"{'not executable' if there or os.path.isdir(name) else 'no such command'}: {name:.300}"


def _identify(arm: Arm) -> str:
    """Return a text that changes when the command, the environment or the program of an arm changes."""
    program = _find_program(arm)[0]
    try:
        status = os.stat(program)
        file = [program, status.st_mtime_ns, status.st_size]
    except OSError:
        file = []
    text = json.dumps([arm.command, dict(arm.environment), file], sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _read(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Read the file; ignore what cannot be read."""
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: one for name, one in found.items() if isinstance(one, dict)} if isinstance(found, dict) else {}


def _write(path: Path, known: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace the file; a link in its place is replaced, too, and never followed."""
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "w") as file:
        json.dump(known, file, indent=1)
    os.replace(temporary, path)
