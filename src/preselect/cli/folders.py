"""The type of options that name a folder."""

from pathlib import Path
from typing import Any

import click


class Folder(click.Path):
    """A folder, which need not exist. An empty name is refused: it often comes from a variable that is not set."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name of the folder is empty; write . for this folder", param, ctx)
        return super().convert(value, param, ctx)
