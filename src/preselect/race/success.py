"""What counts as an answer, and which answer is best: the table [success] of a pool file.

By default the first right answer wins. With a `value`, all racers run to their end or to the time limit, and the one
with the best value wins.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from preselect.arguments import one_of
from preselect.errors import InputError
from preselect.race.pool_values import (
    Table,
    check_keys,
    read_boolean,
    read_exit_codes,
    read_pattern,
    read_value,
    read_verifier,
)

_KEYS = ("exit_codes", "pattern", "verifier", "value", "unfinished")
_BETTER = ("smaller", "larger")


@dataclass(frozen=True)
class Success:
    """What counts as an answer.

    Parameters
    ----------
    exit_codes : tuple of int, default (10, 20)
        Exit codes that mean an answer; by default (0,) in a pool file with values.
    pattern : str, optional
        A regular expression that the output of an answer matches; the exit code does not matter then.
    verifier : str or tuple of str, default "none"
        "model" checks the output of SAT solvers (see `preselect.race.answers`), "none" trusts every answer, and a
        command with the placeholder {output} exits with 0 if the answer is right.
    value : str or tuple of str, optional
        How good an answer is: the last match of a regular expression with one group in the output, or a command with
        the placeholder {output} that prints a number. Without it the first answer is the best.
    better : str, optional
        Which values are better, "smaller" or "larger".
    unfinished : bool, default False
        Whether an arm that is stopped at the time limit counts with the value of what it has printed until then.
    """

    exit_codes: tuple[int, ...] = (10, 20)
    pattern: str | None = None
    verifier: str | tuple[str, ...] = "none"
    value: str | tuple[str, ...] | None = None
    better: str | None = None
    unfinished: bool = False


def read_pool_success(table: Table, folder: Path, *, is_for_sat: bool) -> Success:
    """Read the table [success] of a pool, from which the arms inherit."""
    better = one_of(table["better"], "success.better", _BETTER) if "better" in table else None
    if "value" in table and better is None:
        raise InputError('success.better is missing; write "smaller" or "larger"')
    if better is None:
        default = Success(verifier="model" if is_for_sat else "none")
    else:
        default = Success(exit_codes=(0,), better=better)
    return read_success({key: table[key] for key in table if key != "better"}, "success", default, folder)


def read_success(table: Table, name: str, default: Success, folder: Path) -> Success:
    """Read a table [success]; `default` has the values of the keys that are missing there."""
    if "better" in table:
        raise InputError(f"{name}.better does not belong here; write it into [success], for all arms alike")
    check_keys(table, f"{name}.", _KEYS)
    if "exit_codes" in table and "pattern" in table:
        raise InputError(f"{name} has both exit_codes and pattern; remove one of them")
    found = default
    if "exit_codes" in table:
        found = replace(found, exit_codes=read_exit_codes(table["exit_codes"], f"{name}.exit_codes"), pattern=None)
    if "pattern" in table:
        found = replace(found, pattern=read_pattern(table["pattern"], f"{name}.pattern"))
    if "verifier" in table:
        found = replace(found, verifier=read_verifier(table["verifier"], f"{name}.verifier", folder))
    return _read_value(table, name, found, folder)


def _read_value(table: Table, name: str, found: Success, folder: Path) -> Success:
    if ("value" in table or "unfinished" in table) and found.better is None:
        raise InputError(
            f'{name} has value or unfinished, but success.better is missing; write "smaller" or "larger" there'
        )
    if found.better is not None and found.verifier == "model":
        raise InputError(f'{name}.verifier is "model", but answers with values are not models; use "none" or a command')
    if "value" in table:
        value = read_value(table["value"], f"{name}.value", folder)
        found = replace(found, value=value, unfinished=isinstance(value, str))
    if "unfinished" in table:
        found = replace(found, unfinished=read_boolean(table["unfinished"], f"{name}.unfinished"))
    return found
