"""Check that every arm of a pool works: each runs alone, by default on tiny formulas with known answers."""

from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from preselect.errors import InputError
from preselect.race.answers import SATISFIABLE, UNSATISFIABLE, make_answer_check, read_claims
from preselect.race.instance_features import Instance
from preselect.race.pool import Arm, Pool
from preselect.race.result import Finish
from preselect.race.supervision import Status, Supervision
from preselect.race.values import make_judge
from preselect.sat import dimacs

_WITH_MODEL = dimacs.Formula.of(3, [[1, -2], [2, 3], [-1, -3]])
_WITHOUT_MODEL = dimacs.Formula.of(2, [[1, 2], [1, -2], [-1, 2], [-1, -2]])
_MAX_SECONDS, _MAX_SECONDS_WITHOUT_MODEL = 30.0, 3.0  # local search always takes the second, because it proves nothing
_MAX_OUTPUT = 2**20  # bytes of output to keep: more than an answer about a tiny formula takes
_QUICK_SECONDS = 0.1


class ArmCheck(NamedTuple):
    """The result of checking an arm.

    Parameters
    ----------
    arm : str
        The arm's name.
    ok : bool
        Whether it can race.
    seconds : float or None
        Time to its first answer; None without an answer.
    message : str
        What is wrong and what to do about it, or how fast it answers.
    """

    arm: str
    ok: bool
    seconds: float | None
    message: str


def check_arms(pool: Pool, folder: Path, *, instance: str | PathLike[str] | None = None) -> list[ArmCheck]:
    """Run every arm of a pool alone on an instance, or on two tiny formulas: a satisfiable and an unsatisfiable one.

    An arm may fail to recognise the unsatisfiable formula, as local search does, but must not call it satisfiable.

    Parameters
    ----------
    pool : Pool
        The pool whose arms to check, within its limits and at most 30 seconds each.
    folder : Path
        Where the arms' outputs are written.
    instance : str or path, optional
        The file to run them on; needed if they are not SAT solvers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if instance is not None and not Path(instance).is_file():
        raise InputError(f"{fspath(instance)!r} is not a file; name an instance to check the arms on")
    if instance is not None:
        return [_measure(pool, name, Instance(Path(instance)), folder)[0] for name in pool.arms]
    if not pool.is_for_sat:
        raise InputError(f"the arms of {pool.path} are not SAT solvers; name a small, easy instance to check them on")
    easy, impossible = (Instance(folder / f"{name}.cnf") for name in ("satisfiable", "unsatisfiable"))
    dimacs.write_formula(_WITH_MODEL, easy.path)
    dimacs.write_formula(_WITHOUT_MODEL, impossible.path)
    return [_check_on_both(pool, name, easy, impossible, folder) for name in pool.arms]


def _check_on_both(pool: Pool, name: str, easy: Instance, impossible: Instance, folder: Path) -> ArmCheck:
    first, finish = _measure(pool, name, easy, folder)
    if not first.ok:
        return first
    if _claims(finish, UNSATISFIABLE):
        return first._replace(ok=False, message="calls a satisfiable formula unsatisfiable; do not race it")
    second, finish = _check(pool.shorten(_MAX_SECONDS_WITHOUT_MODEL), name, impossible, folder)
    if _claims(finish, SATISFIABLE) and (second.ok or finish.status == Status.WRONG_ANSWER):
        return first._replace(ok=False, message="calls an unsatisfiable formula satisfiable; do not race it")
    if second.ok:
        return first
    if finish.status in (Status.TIMEOUT, Status.NO_ANSWER):
        return first._replace(message=f"{first.message}; does not recognise unsatisfiable formulas")
    return second._replace(message=f"on an unsatisfiable formula: {second.message}")


def _measure(pool: Pool, name: str, instance: Instance, folder: Path) -> tuple[ArmCheck, Finish]:
    """Check an arm, a second time if it is slow: the first start may have compiled something."""
    first = _check(pool.shorten(_MAX_SECONDS), name, instance, folder)
    if (first[0].seconds or 0.0) < _QUICK_SECONDS:
        return first
    again = _check(pool.shorten(_MAX_SECONDS), name, instance, folder)
    return min(first, again, key=lambda both: both[0].seconds or _MAX_SECONDS) if again[0].ok else first


def _claims(finish: Finish, answer: str) -> bool:
    return answer in read_claims(finish.output, finish.exit_code)


def _check(pool: Pool, name: str, instance: Instance, folder: Path) -> tuple[ArmCheck, Finish]:
    racers, check = [pool.make_racer(name, instance.path, pool.seed)], make_answer_check(pool, instance)
    judge = make_judge(pool, instance.path, folder)
    result = Supervision(
        racers, pool.limits, folder=folder, seed=pool.seed, check=check, judge=judge, keep=_MAX_OUTPUT
    ).run()
    finish = result.finishes[0]
    problem = _describe_problem(pool.arms[name], finish, pool.limits.seconds)
    if result.infrastructure:
        problem = f"could not be raced: {result.infrastructure}; check its verifier and pattern"
    seconds = finish.seconds if finish.status == Status.WON else None
    answers = "answers" if finish.value is None else f"answers with value {finish.value:.10g}"
    return ArmCheck(name, not problem, seconds, problem or f"{answers} in {finish.seconds:.2f} s"), finish


def _describe_problem(arm: Arm, finish: Finish, seconds: float) -> str:
    """Say what is wrong and what to do about it; an empty string if nothing is."""
    table, printed = f"[arms.{arm.name}]", _quote_output(finish)
    expected = " or ".join(map(str, arm.success.exit_codes))
    if arm.success.pattern:
        expected = f"output that matches {arm.success.pattern!r}"
    match finish.status:
        case Status.WON:
            return ""
        case Status.WRONG_ANSWER:
            trust = f'write verifier = "none" in [arms.{arm.name}.success] to trust it'
            advice = f"make it print s and v lines, or {trust}" if arm.success.verifier == "model" else trust
            return f"its answer fails the verification: {finish.detail}; {advice}"
        case Status.NOT_STARTED:
            return f"{finish.detail}; install {arm.command[0]}, or correct the command in {table}"
        case Status.TIMEOUT:
            return f"no answer within {seconds:g} s; check its options in {table}, or raise limits.seconds"
        case Status.MEMORY:
            return f"{finish.detail}; raise limits.memory"
        case Status.NO_ANSWER if arm.success.value is not None and finish.exit_code in arm.success.exit_codes:
            return f"{finish.detail}, {printed}; correct the value in [success], or the command in {table}"
        case Status.NO_ANSWER:
            return f"exit code {finish.exit_code} instead of {expected}, {printed}; correct the command in {table}"
        case _:
            return f"{finish.status}: {finish.detail}, {printed}; run it by hand to see why"


def _quote_output(finish: Finish) -> str:
    """Quote the beginning of what it printed: of its standard error, or else of its standard output."""
    for printed in (finish.errors, finish.output):
        lines = [line for line in printed[:400].decode(errors="replace").splitlines() if line.strip()]
        if lines:
            return f"it printed {' / '.join(lines[:3])!r:.200}"
    return "it printed nothing"
