"""Recognise files among instances that belong to the pool, or were written for it, and so are not instances."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from preselect.race.outputs import OutputFolder
from preselect.race.pool import Pool

_PAGE = b'name="generator" content="preselect'


def find_own_files(pool: Pool) -> Callable[[Path], bool]:
    """Return a function that says whether a file is the pool, its journal, a program, a table, a page or an output."""
    programs = [arm.command[0] for arm in pool.arms.values()] + list(pool.features.command[:1])
    named = [pool.path, pool.features.file or pool.path, *(Path(each) for each in programs if "/" in each)]
    own, journal = set(map(os.path.realpath, named)), os.path.realpath(pool.journal)

    @cache
    def open_outputs(folder: Path) -> OutputFolder:
        return OutputFolder(folder, [])

    def is_own(path: Path) -> bool:
        place = os.path.realpath(path)
        is_journal = place == journal or place.startswith((f"{journal}-", f"{journal}."))
        return place in own or is_journal or _is_page(path) or open_outputs(path.parent).is_ours(path)

    return is_own


def _is_page(path: Path) -> bool:
    if path.suffix != ".html":
        return False
    with path.open("rb") as file:
        return _PAGE in file.read(1 << 12)
