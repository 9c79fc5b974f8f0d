"""Write a page about a fitted model: how well it predicts, whether its chances are right, and its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from preselect.offline.fit import Fit, Score
from preselect.race.figures import draw_calibration
from preselect.reports.html import Cell, render, write_page
from preselect.reports.weights import Weights, read_weights

_MOST_ARMS, _MOST_COLUMNS = 50, 8
_LEAST_PREDICTIONS = 50  # with fewer there is no calibration plot


def write_fit_page(path: Path, found: Fit, title: str) -> Path:
    """Write a page about a fit and return its path.

    Parameters
    ----------
    path : Path
        The file. An earlier page is replaced once the new one is complete.
    found : Fit
        The fit.
    title : str
        The heading, such as the name of the logs.
    """
    weights = read_weights(found.preselector)
    predictions = sum(one.size for one in found.calibration)
    content = render(
        "fit.html",
        title=title,
        fit=found,
        headline=_list_headline(found),
        scores=[tabulate_score(score) for score in found.scores],
        calibration=draw_calibration(found.calibration) if predictions >= _LEAST_PREDICTIONS else None,
        predictions=predictions,
        enough=_LEAST_PREDICTIONS,
        weights=_tabulate(weights) if weights is not None else None,
        left_out=0 if weights is None else max(len(weights.arms) - _MOST_ARMS, 0),
    )
    return write_page(path, content)


def _list_headline(found: Fit) -> dict[str, Any]:
    preselector = found.preselector
    return {
        "rounds": found.rounds,
        "with an outcome": found.outcomes,
        "arms": len(preselector.arms),
        "features of a round": len(preselector.context),
        "features of arms": len(preselector.features),
    }


def tabulate_score(score: Score) -> list[str]:
    """Return the name of a score, its mean and the model's lead as text.

    >>> tabulate_score(Score("uniform", -1.5, 0.25, -1e-17, 0.0))
    ['uniform', '-1.500 ± 0.250', '+0.000 ± 0.000']
    """
    lead = "" if score.name == "the model" else f"{score.lead:+z.3f} ± {score.lead_error:.3f}"
    return [score.name, f"{score.log_likelihood:z.3f} ± {score.standard_error:.3f}", lead]


def _tabulate(weights: Weights) -> dict[str, Any]:
    """Return header and rows of the weights, with their standard deviations below."""
    kept = weights.keep(set(weights.arms[:_MOST_ARMS]), most=_MOST_COLUMNS)
    names = [*(f"{name} (feature)" for name in kept.features), *kept.arms]
    rows = [
        [name, *(Cell(f"{value:.2f}", f"± {error:.2f}") for value, error in zip(*pair, strict=True))]
        for name, *pair in zip(names, kept.values.tolist(), kept.deviations.tolist(), strict=True)
    ]
    return {"header": ["", *("usual" if name == "1" else name for name in kept.columns)], "rows": rows}
