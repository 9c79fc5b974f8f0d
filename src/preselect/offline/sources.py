"""Read logs from any source: a table, a journal, a file of PrefLib, or one of the sushi data."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from preselect.arguments import join_names
from preselect.errors import InputError
from preselect.logs import Logs, Problem, check, preflib, read
from preselect.logs.columns import Source
from preselect.logs.sushi import read_sushi
from preselect.store import Journal, Round, open_storage
from preselect.store.events import NO_WINNER, RANKING, WINNER, Decided
from preselect.store.rounds import pair_rounds

_SQLITE = b"SQLite format 3\x00"


def read_logs(source: Source, *, name: str | None = None) -> Logs:
    """Read logs from a table, a journal of decisions and outcomes, or a file of PrefLib or of the sushi data.

    Parameters
    ----------
    source : path, open text file, mapping of columns, or data frame
        A CSV or Parquet file; a journal; a file of PrefLib (.soc, .soi, .toc, .toi), in which every voter is a round
        that shows all alternatives, in random order, because equal votes stand together in the file; rankings of the
        sushi data (.order), with the files beside them that describe people and items; or a table in memory.
    name : str, optional
        Which of the journals in a file, such as the name of a preselector of the service; needed if there are several.
    """
    return read(_convert(source, name))


def check_logs(source: Source, *, name: str | None = None) -> list[Problem]:
    """Return all problems of logs, in the order of their rows.

    Parameters
    ----------
    source : path, open text file, mapping of columns, or data frame
        As `read_logs` takes it.
    name : str, optional
        Which of the journals in a file.
    """
    return check(_convert(source, name))


def _convert(source: Source, name: str | None) -> Source:
    """Return a journal, a file of PrefLib or one of the sushi data as columns, anything else as it is."""
    if not isinstance(source, (str, PathLike)):
        return source
    path = Path(source)
    if path.suffix.lower() in preflib.KINDS:
        return preflib.read_preflib(path)
    if path.suffix.lower() == ".order":
        return read_sushi(path)
    if _is_journal(path):
        return _read_journal(path, name)
    if name is not None:
        raise InputError(f"{path} is a table, not a journal, and holds no {name!r}; drop the name (name, --name)")
    return source


def _is_journal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _read_journal(path: Path, name: str | None) -> dict[str, list[Any]]:
    """Return the rounds of a journal that have an outcome other than void, as columns."""
    rows: list[dict[str, Any]] = []
    with Journal.read(path, _find_name(path) if name is None else name) as journal:
        for one, made, _ in pair_rounds(journal):
            if one.kind in (WINNER, RANKING, NO_WINNER):
                rows += _list_rows(one, made)
    if not rows:
        raise InputError(f"{path} has no round with an outcome yet")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _find_name(path: Path) -> str:
    """Return the name of the only journal in a file."""
    with open_storage(path) as storage:
        names = storage.journals()
    if not names:
        raise InputError(f"{path} holds no journal yet")
    if len(names) > 1:
        raise InputError(f"{path} holds several journals; name one of {join_names(names)} (name, --name)")
    return names[0]


def _list_rows(one: Round, made: Decided) -> list[dict[str, Any]]:
    """Return the rows of a round: the arms that were chosen, and those that competed alongside them."""
    tied = [name if isinstance(name, tuple) else (name,) for name in one.names]
    place = {arm: position for position, arms in enumerate(tied, start=1) for arm in arms}
    context = {f"context.{name}": value for name, value in made.context.items()}
    known, features = made.decision, made.labels[1] or ()
    besides = [{"arm": arm} for arm in one.also]
    chosen: list[dict[str, Any]] = [{"arm": arm} for arm in one.chosen]
    for position, row in enumerate(chosen):
        if known.features is not None:
            values = known.features[position].tolist()
            row |= {f"arm.{name}": value for name, value in zip(features, values, strict=True)}
        if made.propensities is not None:
            row["propensity"] = made.propensities[position]
    head = {"round": one.number}
    return [head | row | {"place": place.get(row["arm"])} | context for row in chosen + besides]
