"""The table and the figure of docs/studies/coverage.md, from the results of `preselect study coverage`.

python benchmarks/coverage.py results/coverage docs/images/coverage.png
"""

import sys
from pathlib import Path

import numpy as np
from scipy import stats

from preselect.reports.figures import BLACK, GREY, VERMILION, label_axes, new_figure, to_png
from preselect.study import Results
from preselect.study.coverage import _bound_wald

EDGES = [20, 50, 100, 200, 500, 1000, 2000, 4000]
COLOURS = {"cppl": VERMILION, "newton": BLACK}


def average(results, measure):
    """The mean of a measure between the edges, for each setting, policy and repetition."""
    found = {}
    for (setting, policy), sums in results.load(measure).items():
        rounds = results.space_checkpoints(setting)
        at = np.stack([np.interp(EDGES, rounds, row) for row in sums])
        found[setting, policy] = np.diff(at, axis=1) / np.diff(EDGES)
    return found


def draw(values):
    middles = np.sqrt(np.array(EDGES[1:], dtype=float) * EDGES[:-1])
    with new_figure(10.0, 3.4) as figure:
        panels = figure.subplots(1, 3)
        for (setting, policy), missed in values["missed"].items():
            style = {"color": COLOURS.get(policy, GREY), "linestyle": "-" if setting.d == 5 else "--", "marker": "."}
            label = f"{policy}, d = {setting.d}"
            panels[0].plot(middles, missed.mean(axis=0), label=label, **style)
            error = values["error"][setting, policy]
            panels[1].plot(middles, error.mean(axis=0), **style)
            panels[1].plot(middles, np.quantile(error, 0.95, axis=0), **{**style, "marker": "", "alpha": 0.4})
            panels[2].plot(middles, values["wald"][setting, policy].mean(axis=0), **style)
        panels[1].plot(middles, 8.0 / np.sqrt(middles), color=GREY, linestyle=":")
        for d, dash in ((5, "-"), (10, "--")):
            panels[2].plot(middles, [_bound_wald(d, int(t)) for t in middles], color=GREY, linestyle=dash)
        titles = ("arms outside their width", "‖θ − θ*‖, mean and 95 %", "Wald statistic, mean")
        for panel, title in zip(panels, titles, strict=True):
            panel.set_xscale("log")
            label_axes(panel, "round", "")
            panel.set_title(title, fontsize=9)
        panels[0].set_ylim(-0.004, 0.12)
        panels[1].set_yscale("log")
        panels[2].set_yscale("log")
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return to_png(figure)


def main():
    results = Results.open(sys.argv[1])
    values = {measure: average(results, measure) for measure in results.plan.measures}
    for measure, found in values.items():
        for (setting, policy), each in found.items():
            print(f"{measure:<8} {policy:<8} {setting!s:<12}", *(f"{value:8.4f}" for value in each.mean(axis=0)))
    for (setting, policy), each in values["wald"].items():
        limits = stats.f.ppf(0.95, setting.d, np.array(EDGES[1:]) - setting.d)
        shares = (each > limits).mean(axis=0)
        print(f"above 95 % of F {policy:<8} {setting!s:<12}", *(f"{share:5.0%}" for share in shares))
    Path(sys.argv[2]).write_bytes(draw(values))


if __name__ == "__main__":
    main()
