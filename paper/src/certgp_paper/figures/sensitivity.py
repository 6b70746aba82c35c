"""NLPD and training time over the rank, a line for each embedding dimension; the paper's dashed with open markers.

Times of this run are CPU seconds: other programs ran beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLUE, GREEN, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.axes import label_log_axis, mark_with_star, star_handle

_COLOURS = {1: BLUE, 2: VERMILION, 3: GREEN}
_METRICS = {"nlpd": "NLPD", "cpu_seconds": "training time, s"}
_IN_PAPER = {"nlpd": "paper_nlpd", "cpu_seconds": "paper_seconds"}
_SIZE_LABELS = {"DMGP": "eigenfunctions per dimension", "DFGP": "frequencies"}
_PANEL_HEIGHT = 1.9  # inches


def draw(rows: Sequence[Row]) -> Figure:
    """A column for each method; for each data set a line of panels of NLPD and one of training time."""
    data = list(dict.fromkeys(row["data"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = [(name, metric) for name in data for metric in _METRICS]
    figure = new_figure(0.4 + _PANEL_HEIGHT * len(lines))
    panels = figure.subplots(len(lines), len(methods), squeeze=False, sharey="row")
    for (name, metric), axes in zip(lines, panels, strict=True):
        for method, panel in zip(methods, axes, strict=True):
            own = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            _lines(panel, own, metric)
            title = mark_with_star(f"{name}, {method}", own) if metric == "nlpd" else ""
            label = _METRICS[metric] if method == methods[0] else ""
            tidy(panel, title, _SIZE_LABELS.get(method, "size") if metric == "cpu_seconds" else "", label)
    handles = [*panels[0, 0].get_legend_handles_labels()[0], *star_handle(rows)]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def _lines(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    sizes = sorted({row["m"] for row in rows})
    for d in sorted({row["d"] for row in rows}):
        part = sorted((row for row in rows if row["d"] == d), key=lambda row: row["m"])
        colour = _COLOURS.get(d, "gray")
        axes.errorbar(
            [row["m"] for row in part],
            [row[metric] for row in part],
            yerr=[row.get(f"{metric}_sd") or 0.0 for row in part],
            fmt="o-",
            markersize=3,
            color=colour,
            label=f"d = {d}",
        )
        printed = [row for row in part if row[_IN_PAPER[metric]] is not None]
        axes.plot(
            [row["m"] for row in printed],
            [row[_IN_PAPER[metric]] for row in printed],
            "D--",
            markersize=3,
            linewidth=0.8,
            color=colour,
            markerfacecolor="white",
            label=f"paper, d = {d}",
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    if metric == "cpu_seconds":
        axes.set_yscale("log")
        label_log_axis(axes.yaxis)
