"""Show the progress of a command on standard error: a bar on a terminal, otherwise a line for every tenth.

Work that takes no longer than `_PATIENCE` seconds writes no lines.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_PATIENCE = 2.0  # seconds before the first line of progress in a log

_Item = TypeVar("_Item")


class Bar:
    """A bar on a terminal, or lines elsewhere: call `advance` after each item, or `update` with the counts."""

    def __init__(self, progress: Progress, what: str, total: int | None) -> None:
        self._progress, self._what, self._total, self._done = progress, what, total, 0
        self._task, self._began = progress.add_task("", total=total), monotonic()

    def restart(self, done: int, total: int) -> None:
        """Say how many items were done before the work began; the estimate of the remaining time ignores them."""
        self._done, self._total = done, total
        self._progress.reset(self._task, completed=done, total=total)

    def advance(self, description: str | None = None) -> None:
        """Count one more item as done; the description, if there is one, is shown beside the bar."""
        self.update(self._done + 1, self._total, description)

    def update(self, done: int, total: int | None, description: str | None = None) -> None:
        """Show how many items are done, and of how many if that is known."""
        before, self._done, self._total = self._done, done, total
        self._progress.update(self._task, completed=done, total=total, description=description or None)
        if self._progress.disable and total and done * 10 // total > before * 10 // total:
            self._print_line()

    def _print_line(self) -> None:
        if monotonic() - self._began >= _PATIENCE:
            self._progress.console.print(f"{self._done} of {self._total} {self._what}", highlight=False)


@contextmanager
def show_progress(what: str, total: int | None = None) -> Iterator[Bar]:
    """Show the progress of a block of work on `total` items; None if that is not known yet."""
    console = Console(stderr=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{what},"),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.description}", markup=False),
    )
    on_terminal = sys.stdout is not None and sys.stdout.isatty()  # otherwise output must not move to the console
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=on_terminal
    ) as progress:
        yield Bar(progress, what, total)


def track(items: Sequence[_Item], what: str) -> Iterator[_Item]:
    """Yield the items one by one and show how many are done."""
    with show_progress(what, len(items)) as bar:
        for item in items:
            yield item
            bar.advance()
