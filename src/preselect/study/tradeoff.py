"""The figure of after-races: what is reached against what they cost."""

from pathlib import Path
from typing import Any

import numpy as np

from preselect.files import write_whole
from preselect.reports.figures import BLACK, GREY, label_axes, new_figure, to_png, to_svg
from preselect.study.results import Results

_NAME = "after-races"

_Curve = list[tuple[float, float]]  # CPU time of after-races, and the ratio, for each budget


def write_tradeoff(results: Results) -> Path | None:
    """Draw the first ratio of the first policy against the first quotient; return the PNG, None if nothing varies.

    Parameters
    ----------
    results : Results
        What to draw: settings that differ in `after` make up a curve.
    """
    curves = _trace(results)
    if max(map(len, curves.values()), default=0) < 2:
        return None
    path = results.folder / f"{_NAME}.png"
    with new_figure(8.0, 4.5) as figure:
        _draw(figure.subplots(), results, curves)
        write_whole(path, to_png(figure))
        write_whole(path.with_suffix(".svg"), to_svg(figure))
    return path


def _trace(results: Results) -> dict[str, _Curve]:
    """Return the curve of each scenario and k, and of the median over them for each budget."""
    found, plan = results.compute_ratios(), results.plan
    costs = next((found[name] for name in plan.quotients if name in found), {})
    ratios = next((values for name, values in found.items() if name not in plan.quotients), {})
    curves: dict[str, _Curve] = {}
    groups: dict[str, _Curve] = {}
    for setting in sorted(plan.settings, key=lambda one: getattr(one, "after", 0.0)):
        if (key := (setting, plan.policies[0])) in costs:
            point = costs[key], ratios[key]
            curves.setdefault(str(setting._replace(after=0.0)), []).append(point)
            groups.setdefault(plan.name_group(setting), []).append(point)
    lasting = {name: curve for name, curve in curves.items() if len(curve) > 1}
    if len(lasting) > 1 and len({setting.k for setting in plan.settings}) == 1:
        lasting["median"] = [(x, y) for x, y in (np.median(points, axis=0).tolist() for points in groups.values())]
    return lasting


def _draw(panel: Any, results: Results, curves: dict[str, _Curve]) -> None:
    for number, (name, curve) in enumerate(curves.items()):
        style = {"color": BLACK, "linewidth": 2.4} if name == "median" else {"linewidth": 1.0, "alpha": 0.8}
        panel.plot(*zip(*curve, strict=True), marker="osv^DP*X"[number % 8], markersize=4, label=name, **style)
    panel.axhline(1.0, color=GREY, linestyle=":", linewidth=1.0)
    panel.set_yscale("log")
    for write in (panel.yaxis.set_major_formatter, panel.yaxis.set_minor_formatter):
        write("{x:g}")
    label_axes(panel, next(iter(results.plan.quotients)), next(iter(results.compute_ratios())))
    panel.set_title(f"{results.plan.policies[0]}, with after-races of several budgets", fontsize=10)
    panel.grid(alpha=0.3)
    panel.figure.legend(loc="outside right center", fontsize=8, frameon=False)
