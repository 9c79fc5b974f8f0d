"""Self-contained HTML pages from Jinja2 templates: text is escaped, images are inside the page, nothing is fetched."""

import base64
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from preselect.files import write_whole


class Cell(NamedTuple):
    """A cell of a table that is more than its text.

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
    """Give a PNG as the value of an image's `src`, so that the page needs no other file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def write_page(path: Path, content: str) -> Path:
    """Write a page and give its path.

    Parameters
    ----------
    path : Path
        The file. An earlier page is replaced once the new one is complete.
    content : str
        The page, as `render` gives it.
    """
    write_whole(path, content)
    return path


@cache
def _templates() -> Any:
    import jinja2

    loader = jinja2.PackageLoader("preselect.reports")
    templates = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["data_url"] = _data_url
    return templates


# --- until the reports are templates

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc } .note { color: #555 }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e3e3e3 }
th { border-bottom: 2px solid #888 } td:first-child, th:first-child { text-align: left }
td.best { font-weight: 700 } img { max-width: 100% } pre { background: #f4f4f4; padding: .8rem; overflow-x: auto }
"""
_NOTHING_FROM_OUTSIDE = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(title: str, body: str, *, style: str = "") -> str:
    """A whole page; the title is text, the body HTML. Browsers are told to load nothing from elsewhere."""
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_OUTSIDE}">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style><h1>{escape(title)}</h1>{body}</html>\n"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the header is text, cells are HTML and may bring their own <td ...>.

    >>> table(["arm", "won"], [["a", "<td class=best>3"]])
    '<table><tr><th>arm</th><th>won</th></tr><tr><td>a<td class=best>3</tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(cell if cell.startswith("<td") else f"<td>{cell}" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def image(png: bytes, description: str) -> str:
    """A figure inside the page; the description, a text, is for those who do not see it."""
    content = base64.b64encode(png).decode()
    return f"<img alt='{escape(description)}' src='data:image/png;base64,{content}'>"
