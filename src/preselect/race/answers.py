"""Whether an answer of a SAT solver can be right: the built-in verifier `"model"` of a pool.

A model is looked up in the output's `v` lines and put into every clause. Variables that it leaves out count as false,
and its end, the 0, may be missing: what satisfies all clauses is a model, however it was written. That there is no
model is taken on the solver's word; who wants proof names a proof checker as the verifier.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from preselect.race.instance_features import Instance
from preselect.race.pool import Pool
from preselect.race.supervision import Check, Racer
from preselect.sat.dimacs import Formula

_SATISFIABLE, _UNSATISFIABLE = "SATISFIABLE", "UNSATISFIABLE"
_MEANING = {10: _SATISFIABLE, 20: _UNSATISFIABLE}  # of exit codes, as the SAT competitions agreed

_STATUS_LINE = re.compile(rb"^s[ \t]+([^\r\n]*)", re.MULTILINE)
_VALUE_LINE = re.compile(rb"^v(?:[ \t]([^\n]*))?\r?$", re.MULTILINE)
_PARTS_OF_NUMBERS = b"0123456789- \t\r"
_MISPLACED_MINUS = re.compile(rb"-(?:(?!\d)|(?<=\d-))")  # no digit after it, or one before; begins with a byte: fast


def checker(pool: Pool, instance: Instance) -> Check | None:
    """What checks answers on an instance, for the arms whose verifier is "model"; None if no arm's is."""
    checked = {name for name, arm in pool.arms.items() if arm.success.verifier == "model"}
    if not checked:
        return None

    def check(racer: Racer, output: Path, exit_code: int) -> str | None:
        return wrong_model(instance.formula, output, exit_code) if racer.name in checked else None

    return check


def wrong_model(formula: Formula, output: Path, exit_code: int | None = None) -> str | None:
    """Why an answer is wrong, or None if nothing speaks against it; the exit code must fit if it is known."""
    content = output.read_bytes()
    said = stated(content)
    meant = _MEANING.get(exit_code) if exit_code is not None else None
    if len(said) != 1:
        lines = " and ".join(f"'s {word}'" for word in said[:3]) or "none"
        return f"its output must have one answer, 's {_SATISFIABLE}' or 's {_UNSATISFIABLE}', got {lines}"
    if said[0] not in _MEANING.values():
        return f"its output must say 's {_SATISFIABLE}' or 's {_UNSATISFIABLE}', got 's {said[0]}'"
    if meant not in (None, said[0]):
        return f"exit code {exit_code} means {meant}, but its output says 's {said[0]}'"
    return None if said[0] == _UNSATISFIABLE else _wrong_values(formula, content)


def stated(output: bytes) -> list[str]:
    r"""What the `s` lines of an output say, without repetitions.

    >>> stated(b"c solving\ns SATISFIABLE\nv 1 0\n")
    ['SATISFIABLE']
    """
    words = (found.decode(errors="replace").strip()[:40] for found in _STATUS_LINE.findall(output))
    return list(dict.fromkeys(words))


def claims(output: bytes, exit_code: int | None) -> set[str]:
    """All that an output and an exit code say about whether there is a model."""
    return {*stated(output), *([_MEANING[exit_code]] if exit_code in _MEANING else [])}


def answer_of(output: bytes, exit_code: int | None) -> str | None:
    """SATISFIABLE or UNSATISFIABLE, if an output or an exit code says so and the other does not contradict."""
    said = claims(output, exit_code) & set(_MEANING.values())
    return said.pop() if len(said) == 1 else None


def _wrong_values(formula: Formula, content: bytes) -> str | None:
    lines = _VALUE_LINE.findall(content)
    if not lines:
        return "it says that there is a model, but its output has no v lines"
    text = b" ".join(lines)
    strange = text.translate(None, _PARTS_OF_NUMBERS)[:20] or _around_misplaced_minus(text)
    if strange:
        return f"its v lines must hold integers, got {strange.decode(errors='replace')!r} there"
    return _wrong_literals(formula, _first_model(np.fromstring(text, dtype=np.int64, sep=" ")))


def _around_misplaced_minus(text: bytes) -> bytes:
    found = _MISPLACED_MINUS.search(text)
    return text[max(found.start() - 5, 0) : found.end() + 5] if found else b""


def _first_model(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers up to the first 0, which ends a model."""
    ends = np.flatnonzero(numbers == 0)
    return numbers[: ends[0]] if len(ends) else numbers


def _wrong_literals(formula: Formula, literals: NDArray[np.int64]) -> str | None:
    beyond = (literals > formula.variables) | (literals < -formula.variables)
    if beyond.any():
        return f"its literals must be from 1 to {formula.variables}, or the negative, got {literals[beyond.argmax()]}"
    true, false = (np.zeros(formula.variables + 1, dtype=np.bool_) for _ in range(2))
    true[literals[literals > 0]] = True
    false[-literals[literals < 0]] = True
    both = true & false
    if both.any():
        return f"its v lines say both {both.argmax()} and -{both.argmax()}"
    return _wrong_clause(formula, true)


def _wrong_clause(formula: Formula, true: NDArray[np.bool_]) -> str | None:
    satisfied = true[np.abs(formula.literals)] == (formula.literals > 0)
    before = np.concatenate(([0], np.cumsum(satisfied)))
    unsatisfied = before[formula.starts[1:]] == before[formula.starts[:-1]]
    return f"clause {unsatisfied.argmax() + 1} is not satisfied by its v lines" if unsatisfied.any() else None
