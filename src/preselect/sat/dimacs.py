"""Formulas in conjunctive normal form, and the DIMACS files that hold them, plain or compressed (gzip, xz).

A literal is a variable's number, from 1, or its negative. The reader accepts what solvers accept: comments anywhere,
clauses that span lines or share one, and the `%` line that ends old benchmark files. Anything else that breaks the
format is an error that names the file and the line, because a formula that is read in part is a different problem.

A header may declare a million variables more than the text has bytes, and no more: arrays as long as the number of
variables are allocated later, and a header of 20 bytes should not be able to ask for 32 GB.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike, fspath
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import integer
from preselect.compiling import compiled
from preselect.errors import InputError
from preselect.files import read_bytes, write_bytes

Literals = NDArray[np.int32]
Integers = NDArray[np.int64]

_MAX_VARIABLES = 2**31 - 1  # literals are 32-bit integers
_SPARE_VARIABLES = 1_000_000  # how far the declared number of variables may exceed the number of bytes

_READ, _NOT_AN_INTEGER, _BEYOND_THE_HEADER, _NOT_TERMINATED = range(4)
_NEWLINE, _SPACE, _PERCENT, _MINUS, _ZERO, _COMMENT = b"\n %-0c"


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A formula in conjunctive normal form: clause j is `literals[starts[j]:starts[j + 1]]`.

    Parameters
    ----------
    variables : int
        The number of variables, which are numbered from 1. Some of them may occur in no clause.
    literals : array of int32
        The literals of all clauses, one clause after the other.
    starts : array of int64
        Where each clause starts in `literals`, and at the end the number of literals.

    Examples
    --------
    >>> formula = Formula.of(3, [[1, -2], [2, 3]])
    >>> formula.clauses, formula.literals.tolist(), formula.starts.tolist()
    (2, [1, -2, 2, 3], [0, 2, 4])
    """

    variables: int
    literals: Literals
    starts: Integers

    def __post_init__(self) -> None:
        """Check what compiled loops rely on; otherwise they would read beyond their arrays."""
        if integer(self.variables, "variables", 0) > _MAX_VARIABLES:
            raise InputError(f"{self.variables} variables are too many; a formula has at most {_MAX_VARIABLES}")
        if self.literals.dtype != np.int32 or self.starts.dtype != np.int64:
            types = f"{self.literals.dtype} and {self.starts.dtype}"
            raise InputError(f"literals and starts are arrays of {types}; convert them to int32 and int64")
        _require_bounds(self.starts, len(self.literals))
        _require_literals(self.literals, self.variables)

    @classmethod
    def of(cls, variables: int, clauses: Iterable[Sequence[int]]) -> Self:
        """Build a formula from clauses that are sequences of literals.

        Parameters
        ----------
        variables : int
            The number of variables.
        clauses : iterable of sequences of int
            Literals, clause by clause; literal 3 is variable 3, literal -3 its negation.
        """
        rows = [list(clause) for clause in clauses]
        starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
        wide = np.array([literal for row in rows for literal in row], dtype=np.int64)
        _require_literals(wide, variables)
        return cls(variables, wide.astype(np.int32), starts.astype(np.int64))

    @property
    def clauses(self) -> int:
        """The number of clauses."""
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        """Iterate over the clauses as lists of literals."""
        literals, bounds = self.literals.tolist(), self.starts.tolist()
        return (literals[start:end] for start, end in pairwise(bounds))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same number of variables, and the same clauses in the same order."""
        if not isinstance(other, Formula):
            return NotImplemented
        same_shape = self.variables == other.variables and np.array_equal(self.starts, other.starts)
        return same_shape and np.array_equal(self.literals, other.literals)

    __hash__ = None  # type: ignore[assignment]


def _require_bounds(starts: Integers, size: int) -> None:
    if starts.ndim != 1 or not len(starts) or starts[0] != 0 or starts[-1] != size or np.any(np.diff(starts) < 0):
        raise InputError(f"starts do not rise from 0 to {size}, the number of literals: {starts!r:.80}")


def _require_literals(literals: NDArray[Any], variables: int) -> None:
    if literals.ndim != 1:
        raise InputError(f"literals have shape {literals.shape}; give them as a one-dimensional array")
    wrong = (literals == 0) | (literals > variables) | (literals < -variables)
    if wrong.any():
        found = literals[wrong.argmax()]
        raise InputError(f"{found} is not a literal: with {variables} variables, literals are ±1 to ±{variables}")


def read_formula(path: str | PathLike[str]) -> Formula:
    """Read a DIMACS CNF file.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed by gzip or xz; its first bytes decide, whatever its name.
    """
    return parse_formula(read_bytes(path), fspath(path))


def parse_formula(text: bytes | str, name: str = "text") -> Formula:
    r"""Read DIMACS CNF text.

    Parameters
    ----------
    text : bytes or str
        The text, not compressed.
    name : str, default "text"
        What error messages call the text, such as the name of its file.

    Examples
    --------
    >>> list(parse_formula("c two clauses\np cnf 3 2\n1 -2 0 2\n3 0\n"))
    [[1, -2], [2, 3]]
    """
    content = text.encode(errors="replace") if isinstance(text, str) else text
    variables, clauses, line, begin = _parse_header(content, name)
    body = np.frombuffer(content, dtype=np.uint8)[begin:]
    most = len(body) // 2 + 1  # a literal or the 0 that ends a clause takes two bytes, with the space after it
    literals, starts = np.empty(most, dtype=np.int32), np.empty(most + 1, dtype=np.int64)
    found, size, status, last_line, at = _scan(body, variables, line + 1, literals, starts)
    if status != _READ:
        _refuse(status, variables, bytes(body[at : at + 40]), f"{name}, line {last_line}")
    if found != clauses:
        raise InputError(f"{name}, line {line}: the header declares {clauses} clauses, but the file has {found}")
    return Formula(variables, literals[:size].copy(), starts[: found + 1].copy())


def write_formula(formula: Formula, path: str | PathLike[str], comments: Iterable[str] = ()) -> None:
    """Write a DIMACS CNF file.

    Parameters
    ----------
    formula : Formula
        What to write.
    path : str or path
        The file, compressed if its name ends in .gz or .xz. One that exists is overwritten.
    comments : iterable of str, default ()
        Comments for the beginning of the file, each of one line or more.
    """
    write_bytes(path, format_formula(formula, comments))


def format_formula(formula: Formula, comments: Iterable[str] = ()) -> bytes:
    """The content of the file that `write_formula` writes, before it is compressed."""
    lines = [f"c {line}".rstrip() for comment in comments for line in comment.splitlines() or [""]]
    lines.append(f"p cnf {formula.variables} {formula.clauses}")
    lines.extend(" ".join(map(str, [*clause, 0])) for clause in formula)
    return ("\n".join(lines) + "\n").encode()


def _parse_header(content: bytes, name: str) -> tuple[int, int, int, int]:
    """Variables, clauses, the header's line number, and where the text after it begins."""
    line = begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin) % (len(content) + 1)  # the end of the text if there is no further line
        words = content[begin:end].split()
        line, begin = line + 1, end + 1
        if words and not words[0].startswith(b"c"):
            variables, clauses = _parse_counts(words, f"{name}, line {line}", len(content))
            return variables, clauses, line, min(begin, len(content))
    raise InputError(f"{name}, line {line}: the file ends before the header 'p cnf VARIABLES CLAUSES'")


def _parse_counts(words: list[bytes], where: str, size: int) -> list[int]:
    """Variables and clauses from the header of a text of `size` bytes."""
    numbers = [int(word) for word in words[2:] if word.isdigit() and len(word) < 20]
    if words[:2] != [b"p", b"cnf"] or len(words) != 4 or len(numbers) != 2:
        raise InputError(f"{where}: expected the header 'p cnf VARIABLES CLAUSES', found {_show(b' '.join(words))}")
    if numbers[0] > _MAX_VARIABLES:
        raise InputError(f"{where}: {numbers[0]} variables are too many; a formula has at most {_MAX_VARIABLES}")
    if numbers[0] > size + _SPARE_VARIABLES:
        declared = f"the header declares {numbers[0]} variables, far more than {size} bytes of text can use"
        raise InputError(f"{where}: {declared}; number the variables without large gaps")
    return numbers


def _refuse(status: int, variables: int, rest: bytes, where: str) -> NoReturn:
    word = _show((rest.split() or [b""])[0])
    if status == _NOT_TERMINATED:
        raise InputError(f"{where}: the file ends within a clause, before its final 0; it may have been cut off")
    if status == _BEYOND_THE_HEADER:
        raise InputError(f"{where}: literal {word}, but the header declares only {variables} variables")
    raise InputError(f"{where}: expected an integer literal, found {word}")


def _show(text: bytes) -> str:
    return repr(text[:40].decode(errors="replace"))


@compiled
def _scan(
    body: NDArray[np.uint8], variables: int, line: int, literals: Literals, starts: Integers
) -> tuple[int, int, int, int, int]:
    """Fill in literals and starts; returns the numbers of clauses and literals, how it ended and where."""
    at = size = clauses = 0
    starts[0] = 0
    line_begins = True
    while at < body.shape[0]:
        byte = body[at]
        if byte <= _SPACE:
            if byte == _NEWLINE:
                line += 1
                line_begins = True
            at += 1
            continue
        if line_begins and byte == _COMMENT:
            while at < body.shape[0] and body[at] != _NEWLINE:
                at += 1
            continue
        if line_begins and byte == _PERCENT:
            break
        line_begins = False
        began = at
        if byte == _MINUS:
            at += 1
        digits_begin = at
        value = 0
        while at < body.shape[0] and body[at] > _SPACE:
            digit = int(body[at]) - _ZERO
            if digit < 0 or digit > 9:
                return clauses, size, _NOT_AN_INTEGER, line, began
            if value <= variables:  # larger values are refused anyway, and must not overflow
                value = 10 * value + digit
            at += 1
        if at == digits_begin:
            return clauses, size, _NOT_AN_INTEGER, line, began
        if value > variables:
            return clauses, size, _BEYOND_THE_HEADER, line, began
        if value == 0:
            clauses += 1
            starts[clauses] = size
        else:
            literals[size] = -value if byte == _MINUS else value
            size += 1
    complete = size == starts[clauses]
    return clauses, size, _READ if complete else _NOT_TERMINATED, line, at
