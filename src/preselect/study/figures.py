"""Figures of a study. Colours are Okabe and Ito's, made for colour-blind readers, and lines differ in dash too."""

import math
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from preselect.study.regret import standard_error
from preselect.study.results import Results

_STYLES = {
    "cppl": ("#D55E00", "-"),
    "max-theta": ("#0072B2", (0, (5, 1))),
    "epsilon-greedy": ("#009E73", "--"),
    "mm": ("#E69F00", "-."),
    "random": ("#999999", ":"),
    "newton": ("#000000", "-"),
    "thompson": ("#56B4E9", "-"),
    "ofu-mnl": ("#CC79A7", "--"),
    "ucb-mnl": ("#CC79A7", "-."),
    "ts-mnl": ("#56B4E9", "-."),
    "colstim": ("#E69F00", (0, (5, 1))),
    "linucb": ("#009E73", ":"),
    "epoch-greedy": ("#882255", "--"),
}
_SPARE_STYLES = [("#CC79A7", "-"), ("#56B4E9", "--"), ("#000000", "-."), ("#882255", ":"), ("#0072B2", ":")]
_YLABELS = {"best_arm": "cumulative regret", "top_k": "cumulative top-k regret"}


def styles(policies: tuple[str, ...]) -> dict[str, tuple[str, Any]]:
    """Colour and dash of each policy: the same in every figure unless it has parameters of its own."""
    spare = cycle(_SPARE_STYLES)
    return {policy: _STYLES.get(policy) or next(spare) for policy in policies}


def regret_figure(results: Results, measure: str = "best_arm") -> Any:
    """Mean cumulative regret with standard errors, one panel per scenario, on a logarithmic scale."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    plan, curves, rounds = results.plan, results.load(measure), results.plan.checkpoints
    columns = min(3, len(plan.scenarios))
    lines = math.ceil(len(plan.scenarios) / columns)
    with mpl.rc_context({"svg.hashsalt": "preselect", "font.size": 9}):
        figure = Figure(figsize=(max(6.0, 3.5 * columns), 2.5 * lines + 1.2), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False, sharey="row")
        for place, scenario in enumerate(plan.scenarios):
            panel = panels[place // columns, place % columns]
            for policy, (colour, dash) in styles(plan.policies).items():
                values = curves.get((scenario, policy))
                if values is None:
                    continue
                mean, error = values.mean(axis=0), np.nan_to_num(standard_error(values))
                panel.plot(rounds, mean, color=colour, linestyle=dash, linewidth=1.6, label=policy)
                panel.fill_between(rounds, np.maximum(mean - error, 1e-9), mean + error, color=colour, alpha=0.35, lw=0)
            panel.set_yscale("log")
            panel.set_xlim(0, plan.horizon)
            panel.set_title(f"n = {scenario.n}, d = {scenario.d}, k = {scenario.k}", fontsize=9)
            panel.grid(alpha=0.3)
            if place % columns == 0:
                panel.set_ylabel(_YLABELS[measure])
            if place + columns >= len(plan.scenarios):
                panel.set_xlabel("round")
        for panel in panels.ravel()[len(plan.scenarios) :]:
            panel.remove()
        for row in panels:  # rows share their scale, which is cut below only when all lines are there
            row[0].set_ylim(bottom=max(row[0].get_ylim()[0], row[0].get_ylim()[1] / 3000))
        labels = {
            policy: handle
            for panel in figure.axes
            for handle, policy in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            labels.values(), labels, loc="outside lower center", ncols=min(5, max(1, len(labels))), frameon=False
        )
        repetitions = max((len(values) for values in curves.values()), default=0)
        figure.suptitle(
            f"variation: {plan.variation}, feedback: {plan.feedback}\n"
            f"mean ± standard error of {repetitions} repetitions, log scale",
            fontsize=10,
        )
    return figure


def write_figures(results: Results) -> list[Path]:
    """The figure of each regret as PNG and SVG."""
    written = []
    for measure, name in (("best_arm", "regret"), ("top_k", "top-k-regret")):
        figure = regret_figure(results, measure)
        for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
            written.append(results.folder / f"{name}.{suffix}")
            figure.savefig(written[-1], **options)
    return written
