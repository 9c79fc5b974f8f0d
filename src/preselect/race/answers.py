"""Check the answers of SAT solvers: the built-in verifier `"model"` of a pool.

The model is read from the `v` lines of the output and tried on every clause. Variables that it leaves out are false,
and the final 0 may be missing. The claim that a formula is unsatisfiable is trusted; to check proofs, use a proof
checker as the verifier.
"""

import re

import numpy as np
from numpy.typing import NDArray

from preselect.race.instance_features import Instance
from preselect.race.pool import Pool
from preselect.race.supervision import AnswerCheck, Racer
from preselect.sat.dimacs import Formula

SATISFIABLE, UNSATISFIABLE = "SATISFIABLE", "UNSATISFIABLE"

EXIT_CODES = {SATISFIABLE: 10, UNSATISFIABLE: 20}  # the convention of the SAT competitions

_ANSWERS = {code: answer for answer, code in EXIT_CODES.items()}
_STATUS_LINE = re.compile(rb"^s[ \t]+([^\r\n]*)", re.MULTILINE)
_VALUE_LINE = re.compile(rb"^v(?:[ \t]([^\n]*))?\r?$", re.MULTILINE)
_CHARACTERS_OF_NUMBERS = b"0123456789- \t\r"
_MISPLACED_MINUS = re.compile(rb"-(?:(?!\d)|(?<=\d-))")  # begins with a literal byte, so that searching is fast


def make_answer_check(pool: Pool, instance: Instance) -> AnswerCheck | None:
    """Return a function that checks answers on an instance for the arms whose verifier is "model"; None without any."""
    names = {name for name, arm in pool.arms.items() if arm.success.verifier == "model"}
    if not names:
        return None

    def check(racer: Racer, output: bytes, exit_code: int) -> str | None:
        return _find_error(instance.formula, output, exit_code) if racer.name in names else None

    return check


def _find_error(formula: Formula, output: bytes, exit_code: int | None = None) -> str | None:
    """Return why an answer is wrong, or None; an exit code must agree with the output."""
    statuses = _read_statuses(output)
    if len(statuses) != 1 or statuses[0] not in (SATISFIABLE, UNSATISFIABLE):
        found = " and ".join(f"'s {status}'" for status in statuses[:3]) or "no s line"
        return f"its output has {found} instead of either 's {SATISFIABLE}' or 's {UNSATISFIABLE}'"
    meaning = None if exit_code is None else _ANSWERS.get(exit_code)
    if meaning not in (None, statuses[0]):
        return f"exit code {exit_code} means {meaning}, but its output says 's {statuses[0]}'"
    return None if statuses[0] == UNSATISFIABLE else _find_error_in_values(formula, output)


def _read_statuses(output: bytes) -> list[str]:
    r"""Read the `s` lines of an output, without repetitions.

    >>> _read_statuses(b"c solving\ns SATISFIABLE\nv 1 0\n")
    ['SATISFIABLE']
    """
    found = (line.decode(errors="replace").strip()[:40] for line in _STATUS_LINE.findall(output))
    return list(dict.fromkeys(found))


def read_claims(output: bytes, exit_code: int | None) -> set[str]:
    """Read everything that an output and an exit code claim about a formula."""
    return {*_read_statuses(output), *([_ANSWERS[exit_code]] if exit_code in _ANSWERS else [])}


def read_answer(output: bytes, exit_code: int | None) -> str | None:
    """Read SATISFIABLE or UNSATISFIABLE from an output or an exit code; None if neither says so, or they disagree."""
    claims = read_claims(output, exit_code) & {SATISFIABLE, UNSATISFIABLE}
    return claims.pop() if len(claims) == 1 else None


def _find_error_in_values(formula: Formula, content: bytes) -> str | None:
    lines = _VALUE_LINE.findall(content)
    if not lines:
        return "it claims a model, but its output has no v lines"
    text = b" ".join(lines)
    strange = text.translate(None, _CHARACTERS_OF_NUMBERS)[:20] or _find_misplaced_minus(text)
    if strange:
        return f"its v lines hold {strange.decode(errors='replace')!r}, but only integers belong there"
    return _find_error_in_literals(formula, _cut_at_zero(np.fromstring(text, dtype=np.int64, sep=" ")))


def _find_misplaced_minus(text: bytes) -> bytes:
    """Return a minus sign that has no digit after it or one before it, with its surroundings; empty if all are fine."""
    found = _MISPLACED_MINUS.search(text)
    return text[max(found.start() - 5, 0) : found.end() + 5] if found else b""


def _cut_at_zero(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers before the first 0, which ends a model."""
    ends = np.flatnonzero(numbers == 0)
    return numbers[: ends[0]] if len(ends) else numbers


def _find_error_in_literals(formula: Formula, literals: NDArray[np.int64]) -> str | None:
    beyond = (literals > formula.variables) | (literals < -formula.variables)
    if beyond.any():
        return f"its v lines hold {literals[beyond.argmax()]}, but the formula has {formula.variables} variables"
    true, false = (np.zeros(formula.variables + 1, dtype=np.bool_) for _ in range(2))
    true[literals[literals > 0]] = True
    false[-literals[literals < 0]] = True
    both = true & false
    if both.any():
        return f"its v lines hold both {both.argmax()} and -{both.argmax()}"
    return _find_unsatisfied_clause(formula, true)


def _find_unsatisfied_clause(formula: Formula, true: NDArray[np.bool_]) -> str | None:
    satisfied = true[np.abs(formula.literals)] == (formula.literals > 0)
    before = np.concatenate(([0], np.cumsum(satisfied)))
    unsatisfied = before[formula.starts[1:]] == before[formula.starts[:-1]]
    return f"its v lines do not satisfy clause {unsatisfied.argmax() + 1}" if unsatisfied.any() else None
