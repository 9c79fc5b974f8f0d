"""The live table of races on a terminal: how the racers of each instance stand."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from preselect.cli.instances import make_printable
from preselect.race import Standing
from preselect.race.supervision import Watch


class LiveStandings:
    """Shows the running races on a terminal, and nothing elsewhere. Several threads may use it.

    Use `watch` for each race, and print inside `printing`, which hides the table meanwhile and lets one thread print at
    a time.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, transient=True, refresh_per_second=8)
        self._lock = threading.RLock()
        self._races: dict[object, tuple[Path, list[Standing]]] = {}

    def __enter__(self) -> Self:
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    @contextmanager
    def watch(self, file: Path) -> Iterator[Watch | None]:
        """Show a race on a file until the block ends; yields what `RaceSession.run` takes as `watch`."""
        if not self._console.is_terminal:
            yield None
            return
        race = object()
        try:
            yield partial(self._update, race, file)
        finally:
            with self._lock:
                self._races.pop(race, None)

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Hide the table while something is printed."""
        with self._lock:
            self._live.stop()
            try:
                yield
            finally:
                self._show()

    def _show(self) -> None:
        if self._console.is_terminal:
            self._live.update(self._tabulate())
            self._live.start()

    def _update(self, race: object, file: Path, standings: list[Standing]) -> None:
        with self._lock:
            self._races[race] = file, standings
            self._live.update(self._tabulate())

    def _tabulate(self) -> Table | Text:
        if not self._races:
            return Text("")
        table = Table()
        for column in ("instance", "racer", "", "s"):
            table.add_column(column, justify="right" if column == "s" else "left")
        for file, standings in self._races.values():
            for position, racer in enumerate(standings):
                name = "" if position else make_printable(file)
                table.add_row(Text(name), Text(racer.name), _describe(racer), f"{racer.seconds:.1f}")
        return table


def _describe(racer: Standing) -> str:
    return str(racer.status or ("being verified" if racer.answered else "running"))
