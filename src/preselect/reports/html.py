"""Self-contained HTML pages from Jinja2 templates: text is escaped, images are inside the page, nothing is fetched."""

import base64
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from preselect.files import write_whole

_BREAK = re.compile(r"([-_./])(?=\w)")
_UNIT = re.compile(r"(\S+, \w{1,2})$")  # such as "at least, s"


class Cell(NamedTuple):
    """A table cell with more than text.

    Parameters
    ----------
    text : str
        What it says.
    small : str, default ""
        A second line, in small print.
    best : bool, default False
        Whether it is bold.
    background : str, default ""
        A CSS colour behind it, such as "rgba(0, 114, 178, 0.3)".
    """

    text: str
    small: str = ""
    best: bool = False
    background: str = ""


def render(template: str, **values: Any) -> str:
    """Fill in a template of the folder `templates`; every value is escaped unless it is Markup.

    Parameters
    ----------
    template : str
        File name of the template, such as "study.html".
    **values : Any
        The variables of the template.
    """
    page: str = _templates().get_template(template).render(**values)
    return page


def _data_url(png: bytes) -> str:
    """Return a PNG as the value of an image's `src`, so that the page needs no other file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def is_page(beginning: bytes) -> bool:
    """Return whether a file that begins like this is a page that `write_page` wrote."""
    return beginning.startswith(b"<!doctype html>") and b'<meta name="generator" content="preselect">' in beginning


def _mark_breaks(text: object) -> Any:
    """Allow line breaks after _ - . and /, so that a narrow column need not break a name inside a word."""
    from markupsafe import Markup, escape

    return Markup(_UNIT.sub(r'<span class="unit">\1</span>', _BREAK.sub(r"\1<wbr>", str(escape(text)))))


def write_page(path: Path, content: str) -> Path:
    """Write a page and return its path.

    Parameters
    ----------
    path : Path
        The file. An earlier page is replaced once the new one is complete.
    content : str
        The page, as `render` returns it.
    """
    write_whole(path, content)
    return path


@cache
def _templates() -> Any:
    import jinja2

    folders = ("templates", "static")
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader("preselect.reports", folder) for folder in folders])
    templates = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"data_url": _data_url, "breakable": _mark_breaks}
    return templates
