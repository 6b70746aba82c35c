"""Training time and memory of the linear models against the number of rows."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLUE, GREEN, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.axes import label_log_axis

_COLOURS = {"SGPR": GREEN, "FGP": VERMILION, "MGP": BLUE}
_LINES = {"song": "-", "buzz": "--", "electric": ":"}


def draw(rows: Sequence[Row]) -> Figure:
    """Two panels, both axes logarithmic."""
    figure = new_figure(3.2)
    left, right = figure.subplots(1, 2)
    lowest = min(row["rank"] for row in rows)
    for axes, column in ((left, "training_seconds"), (right, "peak_gb")):
        _draw_lines(axes, [row for row in rows if row["rank"] == lowest], column)
        axes.set_xscale("log")
        axes.set_yscale("log")
    label_log_axis(right.yaxis)
    tidy(left, f"rank {lowest}: training, one thread", "rows (simulated)", "CPU seconds, 300 epochs")
    tidy(right, "peak memory, rows included", "rows (simulated)", "GB")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def _draw_lines(axes: Axes, rows: Sequence[Row], column: str) -> None:
    for name, method in dict.fromkeys((row["width_of"], row["method"]) for row in rows):
        part = sorted(
            (row for row in rows if (row["width_of"], row["method"]) == (name, method)), key=lambda row: row["N"]
        )
        axes.plot(
            [row["N"] for row in part],
            [max(row[column], 1e-4) for row in part],
            _LINES.get(name, "-"),
            marker="o",
            markersize=3,
            linewidth=1.0,
            color=_COLOURS.get(method, "gray"),
            label=f"{method}, D = {part[0]['D']}",
        )
