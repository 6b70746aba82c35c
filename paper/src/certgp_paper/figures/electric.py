"""NLPD and training time against the number of training points; baselines on all of them are dashed."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.axes import label_log_axis, mark_with_star, star_handle

_COLOURS = {
    "DFGP": VERMILION,
    "DMGP": BLUE,
    "SVIGP": GREEN,
    "SGPR": SKY,
    "DKL": ORANGE,
    "RFEDGP": PURPLE,
    "DNN+S": BLACK,
}


def draw(rows: Sequence[Row]) -> Figure:
    """Two panels for each data set."""
    names = list(dict.fromkeys(str(row["data"]) for row in rows))
    figure = new_figure(0.4 + 2.8 * len(names))
    panels = figure.subplots(len(names), 2, squeeze=False)
    for name, (left, right) in zip(names, panels, strict=True):
        some = [row for row in rows if row["data"] == name]
        for axes, metric in ((left, "nlpd"), (right, "cpu_seconds")):
            _lines(axes, some, metric)
            _log_ticks(axes, sorted({row["rows"] for row in some}))
        right.set_yscale("log")
        label_log_axis(right.yaxis)
        title = mark_with_star(name, some)
        tidy(left, f"{title}: NLPD", "training rows", "NLPD (smaller is better)")
        tidy(right, f"{title}: training time", "training rows", "CPU seconds")
    handles = [*panels[0, 0].get_legend_handles_labels()[0], *star_handle(rows)]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def _log_ticks(axes: Axes, counts: Sequence[int]) -> None:
    """A logarithmic axis with a tick at each number of rows."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{count:,}" for count in counts], rotation=45)
    axes.minorticks_off()


def _lines(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    """Means over the splits that all methods have, with bars of a standard deviation where there are several."""
    for method in dict.fromkeys(row["method"] for row in rows):
        part = sorted((row for row in rows if row["method"] == method), key=lambda row: row["rows"])
        colour, means = _COLOURS.get(method, "gray"), [_shared(row, metric) for row in part]
        if part[-1]["baseline"]:
            axes.axhline(means[-1], linestyle="--", linewidth=1.0, color=colour, label=f"{method}, all rows")
            continue
        counts = [row["rows"] for row in part]
        axes.plot(counts, means, "o-", markersize=3, color=colour, label=method)
        spread = [row.get(f"{metric}_shared_sd") or 0.0 for row in part]
        if any(spread):
            axes.errorbar(counts, means, spread, fmt="none", linewidth=0.8, color=colour)


def _shared(row: Row, metric: str) -> float:
    """Over the shared splits, or over all where there are none yet."""
    found = row.get(f"{metric}_shared")
    return float(row[metric] if found is None else found)
