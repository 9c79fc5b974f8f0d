"""Whether every arm of a pool works: each is run alone, on tiny formulas whose answers are known."""

from os import PathLike
from pathlib import Path
from typing import NamedTuple

from preselect.errors import InputError
from preselect.race.answers import checker, claims
from preselect.race.instance_features import Instance
from preselect.race.pool import Arm, Pool
from preselect.race.supervision import Finish, Status, supervise
from preselect.sat import dimacs

_SATISFIABLE = dimacs.Formula.of(3, [[1, -2], [2, 3], [-1, -3]])
_UNSATISFIABLE = dimacs.Formula.of(2, [[1, 2], [1, -2], [-1, 2], [-1, -2]])
_MOST_SECONDS, _MOST_SECONDS_WITHOUT_MODEL = 30.0, 3.0  # local search uses all of the latter


class Trial(NamedTuple):
    """How an arm did: whether it can race, the seconds to its first answer, and what there is to say about it."""

    arm: str
    ok: bool
    seconds: float | None
    said: str


def try_arms(pool: Pool, folder: Path, *, instance: str | PathLike[str] | None = None) -> list[Trial]:
    """Run every arm, one at a time, with its files in a folder: on an instance, or on tiny formulas if none is given.

    There are two of these, one with a model and one without. Not to find out that there is none is no fault, for local
    search never does; to say something else than the truth is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if instance is not None:
        return [_try(pool.limited(_MOST_SECONDS), name, Instance(Path(instance)), folder)[0] for name in pool.arms]
    if not _speaks_dimacs(pool):
        raise InputError("instance must be given for a pool that is not about SAT, got none; name a small, easy one")
    easy, impossible = (Instance(folder / f"{name}.cnf") for name in ("satisfiable", "unsatisfiable"))
    dimacs.write_formula(_SATISFIABLE, easy.path)
    dimacs.write_formula(_UNSATISFIABLE, impossible.path)
    return [_try_both(pool, name, easy, impossible, folder) for name in pool.arms]


def _speaks_dimacs(pool: Pool) -> bool:
    return pool.features.kind == "sat" or any(arm.success.verifier == "model" for arm in pool.arms.values())


def _try_both(pool: Pool, name: str, easy: Instance, impossible: Instance, folder: Path) -> Trial:
    first, finish = _try(pool.limited(_MOST_SECONDS), name, easy, folder)
    if not first.ok:
        return first
    if _says(finish, "UNSATISFIABLE"):
        return Trial(name, False, first.seconds, "says that a formula with a model has none; do not race it")
    second, finish = _try(pool.limited(_MOST_SECONDS_WITHOUT_MODEL), name, impossible, folder)
    if _says(finish, "SATISFIABLE") and (second.ok or finish.status == Status.WRONG_ANSWER):
        return Trial(name, False, first.seconds, "says that a formula without a model has one; do not race it")
    if second.ok:
        return first
    if finish.status in (Status.TIMEOUT, Status.NO_ANSWER):
        return first._replace(said=f"{first.said}; does not find out that a formula has no model")
    return second._replace(said=f"on a formula without a model: {second.said}")


def _says(finish: Finish, answer: str) -> bool:
    return answer in claims(finish.output.read_bytes() if finish.output.exists() else b"", finish.exit_code)


def _try(pool: Pool, name: str, instance: Instance, folder: Path) -> tuple[Trial, Finish]:
    limits = pool.limits
    result = supervise(
        [pool.racer(name, instance.path, pool.seed)],
        folder=folder,
        seconds=limits.seconds,
        memory=limits.memory,
        output=limits.output,
        seed=pool.seed,
        check=checker(pool, instance),
    )
    finish = result.finishes[0]
    wrong = _why_wrong(pool.arms[name], finish, limits.seconds)
    if result.infrastructure:
        wrong = f"it could not be raced: {result.infrastructure}; look at its verifier and pattern"
    seconds = finish.seconds if finish.status == Status.WON else None
    return Trial(name, not wrong, seconds, wrong or f"answers in {finish.seconds:.2f} s"), finish


def _why_wrong(arm: Arm, finish: Finish, seconds: float) -> str:
    """What is wrong and what to do, or nothing."""
    settings, printed = f"[arms.{arm.name}]", _first_lines(finish)
    codes = " or ".join(map(str, arm.success.exit_codes))
    wanted = f"output that matches {arm.success.pattern!r}" if arm.success.pattern else codes
    match finish.status:
        case Status.WON:
            return ""
        case Status.WRONG_ANSWER:
            advice = f'make it print s and v lines, or say verifier = "none" in [arms.{arm.name}.success] to trust it'
            return f"its answer does not pass the verifier: {finish.detail}; {advice}"
        case Status.NOT_STARTED:
            return f"{finish.detail}; install {arm.command[0]}, or correct the command in {settings}"
        case Status.TIMEOUT:
            return f"no answer within {seconds:g} s; look at its options in {settings}, or raise limits.seconds"
        case Status.MEMORY:
            return f"{finish.detail or 'too much memory'}; raise limits.memory"
        case Status.NO_ANSWER:
            return f"exit code {finish.exit_code} instead of {wanted}{printed}; correct the command in {settings}"
        case _:
            return f"{finish.status}: {finish.detail}{printed}; run it by hand to see why"


def _first_lines(finish: Finish) -> str:
    """The beginning of what it printed, its standard error if there is any."""
    for place in (finish.errors, finish.output):
        if place.exists():
            with place.open("rb") as file:
                lines = [line for line in file.read(400).decode(errors="replace").splitlines() if line.strip()]
            if lines:
                return f", it printed {' / '.join(lines[:3])!r:.200}"
    return ", it printed nothing"
