"""Formulas in conjunctive normal form, and the DIMACS files that hold them, plain or compressed (gzip, xz).

A literal is a variable's number, from 1, or its negative. The reader takes what solvers take: comments anywhere,
clauses that span lines or share one, and the `%` line by which old benchmark files end. Whatever else does not fit the
format is an error that names the file and the line: half a formula would be another problem, and easier.
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

MOST_VARIABLES = 2**31 - 1  # literals are 32-bit integers

_READ, _NOT_AN_INTEGER, _BEYOND_THE_HEADER, _NOT_TERMINATED = range(4)
_NEWLINE, _SPACE, _PERCENT, _MINUS, _ZERO, _COMMENT = b"\n %-0c"


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """Clauses over the variables 1 to `variables`: clause j is `literals[starts[j]:starts[j + 1]]`.

    >>> formula = Formula.of(3, [[1, -2], [2, 3]])
    >>> formula.clauses, formula.literals.tolist(), formula.starts.tolist()
    (2, [1, -2, 2, 3], [0, 2, 4])
    """

    variables: int
    literals: Literals
    starts: Integers

    def __post_init__(self) -> None:
        """Check what compiled loops rely on: they would read beyond their arrays otherwise."""
        if integer(self.variables, "variables", 0) > MOST_VARIABLES:
            raise InputError(f"variables must be at most {MOST_VARIABLES}, got {self.variables}")
        if self.literals.dtype != np.int32 or self.starts.dtype != np.int64:
            kinds = f"{self.literals.dtype} and {self.starts.dtype}"
            raise InputError(f"literals and starts must be arrays of int32 and int64, got {kinds}")
        _require_bounds(self.starts, len(self.literals))
        _require_literals(self.literals, self.variables)

    @classmethod
    def of(cls, variables: int, clauses: Iterable[Sequence[int]]) -> Self:
        """The formula with the given clauses, each a sequence of literals."""
        rows = [list(clause) for clause in clauses]
        starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
        wide = np.array([literal for row in rows for literal in row], dtype=np.int64)
        _require_literals(wide, variables)
        return cls(variables, wide.astype(np.int32), starts.astype(np.int64))

    @property
    def clauses(self) -> int:
        """How many clauses there are."""
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        """The clauses as lists of literals, one after the other."""
        literals, bounds = self.literals.tolist(), self.starts.tolist()
        return (literals[start:end] for start, end in pairwise(bounds))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same variables and the same clauses in the same order."""
        if not isinstance(other, Formula):
            return NotImplemented
        same_shape = self.variables == other.variables and np.array_equal(self.starts, other.starts)
        return same_shape and np.array_equal(self.literals, other.literals)

    __hash__ = None  # type: ignore[assignment]


def _require_bounds(starts: Integers, size: int) -> None:
    if starts.ndim != 1 or not len(starts) or starts[0] != 0 or starts[-1] != size or np.any(np.diff(starts) < 0):
        raise InputError(f"starts must rise from 0 to the number of literals, {size}, got {starts!r:.80}")


def _require_literals(literals: NDArray[Any], variables: int) -> None:
    if literals.ndim != 1:
        raise InputError(f"literals must be one-dimensional, got shape {literals.shape}")
    wrong = (literals == 0) | (literals > variables) | (literals < -variables)
    if wrong.any():
        found = literals[wrong.argmax()]
        raise InputError(f"literals must be from 1 to {variables}, or the negative of that, got {found}")


def read_formula(path: str | PathLike[str]) -> Formula:
    """Read a DIMACS CNF file, plain or compressed; what its bytes begin with says which, not only its name."""
    return parse_formula(read_bytes(path), fspath(path))


def parse_formula(text: bytes | str, name: str = "text") -> Formula:
    r"""Read DIMACS CNF text; `name` is what errors call it.

    >>> list(parse_formula("c two clauses\np cnf 3 2\n1 -2 0 2\n3 0\n"))
    [[1, -2], [2, 3]]
    """
    content = text.encode(errors="replace") if isinstance(text, str) else text
    variables, clauses, line, begin = _parse_header(content, name)
    body = np.frombuffer(content, dtype=np.uint8)[begin:]
    most = len(body) // 2 + 1  # a literal takes two bytes, with the space after it, and so does the end of a clause
    literals, starts = np.empty(most, dtype=np.int32), np.empty(most + 1, dtype=np.int64)
    found, size, status, last_line, at = _scan(body, variables, line + 1, literals, starts)
    if status != _READ:
        _refuse(status, variables, bytes(body[at : at + 40]), f"{name}, line {last_line}")
    if found != clauses:
        said = f"{name}, line {line}: the header must give the number of clauses"
        raise InputError(f"{said}, got {clauses} there and {found} in the file")
    return Formula(variables, literals[:size].copy(), starts[: found + 1].copy())


def write_formula(formula: Formula, path: str | PathLike[str], comments: Iterable[str] = ()) -> None:
    """Write a DIMACS CNF file, compressed if the name ends in .gz or .xz; comments come first, one line each."""
    lines = [f"c {line}".rstrip() for comment in comments for line in comment.splitlines() or [""]]
    lines.append(f"p cnf {formula.variables} {formula.clauses}")
    lines.extend(" ".join(map(str, [*clause, 0])) for clause in formula)
    write_bytes(path, ("\n".join(lines) + "\n").encode())


def _parse_header(content: bytes, name: str) -> tuple[int, int, int, int]:
    """Variables, clauses, the header's line, and where the text after it begins."""
    wanted = "the header must be 'p cnf' and the numbers of variables and clauses"
    line = begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin) % (len(content) + 1)  # the end of the text if there is no further line
        words = content[begin:end].split()
        line, begin = line + 1, end + 1
        if not words or words[0].startswith(b"c"):
            continue
        numbers = [int(word) for word in words[2:] if word.isdigit() and len(word) < 20]
        if words[:2] != [b"p", b"cnf"] or len(words) != 4 or len(numbers) != 2:
            raise InputError(f"{name}, line {line}: {wanted}, got {_show(b' '.join(words))}")
        if numbers[0] > MOST_VARIABLES:
            raise InputError(f"{name}, line {line}: variables must be at most {MOST_VARIABLES}, got {numbers[0]}")
        return numbers[0], numbers[1], line, min(begin, len(content))
    raise InputError(f"{name}, line {line}: {wanted}, got the end of the file before any")


def _refuse(status: int, variables: int, rest: bytes, where: str) -> NoReturn:
    word = _show((rest.split() or [b""])[0])
    if status == _NOT_TERMINATED:
        raise InputError(f"{where}: the last clause must end with 0, got the end of the file; it may have been cut off")
    if status == _BEYOND_THE_HEADER:
        limit = f"at most {variables}, as the header says, or the negative of that"
        raise InputError(f"{where}: a literal must be {limit}, got {word}")
    raise InputError(f"{where}: a literal must be an integer, got {word}")


def _show(text: bytes) -> str:
    return repr(text[:40].decode(errors="replace"))


@compiled
def _scan(
    body: NDArray[np.uint8], variables: int, line: int, literals: Literals, starts: Integers
) -> tuple[int, int, int, int, int]:
    """Fill in literals and starts; clauses and literals found, how it ended, and the line and place where it did."""
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
            if value <= variables:  # beyond that, more digits make no difference
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
