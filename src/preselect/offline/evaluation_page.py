"""Write a page about what policies would have won on logs, with warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from preselect.offline.estimates import Interval
from preselect.offline.evaluate import Evaluation, PolicyValue
from preselect.reports.figures import BLUE, GREY, VERMILION, label_axes, new_figure, shorten_name, to_png
from preselect.reports.html import render, write_page

_FEW = 50.0  # with fewer effective rounds, intervals are too narrow
_FEW_WINS = 5.0  # with fewer effective wins, doubly robust intervals are too narrow
_METHODS = {"observed": GREY, "self-normalised": BLUE, "doubly robust": VERMILION, "the model": GREY}


def list_warnings(found: Evaluation) -> list[str]:
    """Return a warning for each policy about which the logs tell little; there is none for what was logged.

    Parameters
    ----------
    found : Evaluation
        The evaluation.
    """
    return [sentence for value in found.policies[1:] for sentence in _find_warnings(value)]


def _find_warnings(value: PolicyValue) -> list[str]:
    warnings = []
    if value.effective < _FEW:
        warnings.append(
            f"{value.policy}: only about {value.effective:.0f} rounds count for it, too few for reliable intervals; "
            "use more rounds, or a policy closer to that of the logs"
        )
    elif value.effective_wins < _FEW_WINS:
        warnings.append(
            f"{value.policy}: only about {value.effective_wins:.0f} wins count for it, too few for reliable intervals; "
            "use more rounds"
        )
    if value.support.high < 1.0:
        warnings.append(
            f"{value.policy}: its weights average {value.support.value:.2f} instead of 1, so it may show arms that the "
            "logs never show; only the model can say anything about these"
        )
    return warnings


def write_evaluation_page(path: Path, found: Evaluation, title: str) -> Path:
    """Write a page about an evaluation and return its path.

    Parameters
    ----------
    path : Path
        The file. An earlier page is replaced once the new one is complete.
    found : Evaluation
        The evaluation.
    title : str
        The heading, such as the name of the logs.
    """
    content = render(
        "evaluation.html",
        title=title,
        evaluation=found,
        warnings=list_warnings(found),
        rows=[row for value in found.policies for row in _tabulate(value)],
        figure=_draw(found),
    )
    return write_page(path, content)


def _tabulate(value: PolicyValue) -> list[list[Any]]:
    rows = []
    for place, (method, estimate, lead) in enumerate(value.estimates):
        is_weighted = method in ("self-normalised", "doubly robust")
        effective = f"{value.effective:.0f}" if is_weighted else ""
        by = format_interval(lead, "+") if any(lead) else ""
        rows.append(["" if place else value.policy, method, format_interval(estimate), by, effective])
    return rows


def format_interval(interval: Interval, sign: str = "") -> str:
    """Return an estimate and its interval as text; with "+" as the sign, numbers that are not negative have one, too.

    >>> format_interval(Interval(-1e-17, -0.25, 1e-17), "+")
    '+0.000 [-0.250, +0.000]'
    """
    value, low, high = (f"{number:{sign}z.3f}" for number in interval)  # z: nothing that rounds to zero is negative
    return f"{value} [{low}, {high}]"


def _draw(found: Evaluation) -> bytes:
    """Draw every estimate with its interval, policies from top to bottom."""
    rows = [(value.policy, *one) for value in found.policies for one in value.estimates]
    with new_figure(8.0, 0.8 + 0.3 * len(rows)) as figure:
        panel = figure.subplots()
        for place, (_, method, (value, low, high), _) in enumerate(rows):
            style = {"color": _METHODS[method], "linestyle": "--" if method == "the model" else "-"}
            panel.plot([low, high], [-place, -place], linewidth=2.0, **style)
            panel.plot([value], [-place], "o", color=style["color"], markersize=5.0)
        names = [f"{shorten_name(policy)}, {method}" for policy, method, *_ in rows]
        panel.set_yticks([-place for place in range(len(rows))], names)
        label_axes(panel, f"{found.measure} per round", "")
    return to_png(figure)
