"""Rankings of PrefLib: strict or with ties, complete (.soc, .toc) or not (.soi, .toi)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from preselect.arguments import show
from preselect.errors import InputError

KINDS = {".soc", ".soi", ".toc", ".toi"}
_COMPLETE = {".soc", ".toc"}
_RANKING = r"(\d+|\{\d+(,\d+)*\})"
_VOTE = re.compile(rf"[1-9]\d*:{_RANKING}(,{_RANKING})*")


def read_preflib(path: Path) -> dict[str, list[Any]]:
    """Return a file of PrefLib as columns of logs: a round for each voter, which shows all alternatives.

    A file lists equal votes together, so the rounds are shuffled, always in the same way: otherwise the last ones, on
    which a fit is tested, would be unlike those before them.

    Parameters
    ----------
    path : Path
        A file .soc, .soi, .toc or .toi.
    """
    instance = _parse(path)
    names = {number: str(name) for number, name in instance.alternatives_name.items()}
    if len(set(names.values())) < len(names):
        names = {number: f"{number}: {name}" for number, name in names.items()}
    _check_votes(path, names)
    orders = [order for order, times in instance.multiplicity.items() for _ in range(times)]
    columns: dict[str, list[Any]] = {"round": [], "arm": [], "place": []}
    for voter in np.random.default_rng(0).permutation(len(orders)).tolist():
        place = {number: position for position, tied in enumerate(orders[voter], start=1) for number in tied}
        columns["round"] += [voter + 1] * len(names)
        columns["arm"] += names.values()
        columns["place"] += [place.get(number) for number in names]
    return columns


def _parse(path: Path) -> Any:
    from preflibtools.instances import OrdinalInstance

    instance = OrdinalInstance()
    try:
        instance.parse_str(path.read_text(encoding="utf-8"), path.suffix.lower()[1:])
    except OSError:
        raise
    except Exception:  # preflibtools may raise anything on other files
        _refuse(path)
    if not instance.alternatives_name or not instance.multiplicity:
        _refuse(path)
    return instance


def _refuse(path: Path) -> None:
    raise InputError(
        f"{path} is not a file of PrefLib: it should name the alternatives as in '# ALTERNATIVE NAME 1: tea', "
        "and then list votes as in '5: 1,2,3'"
    ) from None


def _check_votes(path: Path, names: dict[int, str]) -> None:
    """Say which line is wrong, if one is: preflibtools reads what it can and drops the rest."""
    expected = "all alternatives" if path.suffix.lower() in _COMPLETE else "alternatives"
    for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        vote = "".join(line.split())
        if not vote or vote.startswith("#"):
            continue
        ranked = [int(number) for number in re.findall(r"\d+", vote.partition(":")[2])]
        known = len(set(ranked)) == len(ranked) and set(ranked) <= names.keys()
        if not _VOTE.fullmatch(vote) or not known or (path.suffix.lower() in _COMPLETE and len(ranked) < len(names)):
            raise InputError(
                f"{path}, line {place}: {show(line)} should be a number of voters, a colon and {expected}, "
                "as numbers from the head of the file, each once"
            )
