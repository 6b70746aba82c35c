"""The deep table as dots: a panel a data set, a line a method, ours filled and the paper's open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.report.paper.axes import label_log_axis
from certgp.report.style import BLACK, BLUE, SMALL, VERMILION, new_figure, tidy

Row = Mapping[str, Any]
_OURS = ("DMGP", "DFGP")  # the paper's own methods
_LINE_HEIGHT, _FRAME = 0.19, 0.9  # inches


def draw(rows: Sequence[Row]) -> Figure:
    """NLPD on the left, training time on the right."""
    panels = {data: [row for row in rows if row["data"] == data] for data in dict.fromkeys(row["data"] for row in rows)}
    heights = [_FRAME + _LINE_HEIGHT * len(part) for part in panels.values()]
    figure = new_figure(sum(heights))
    axes = figure.subplots(len(panels), 2, squeeze=False, height_ratios=heights)
    for (data, part), (left, right) in zip(panels.items(), axes, strict=True):
        _dots(left, part, "nlpd")
        tidy(left, data, "NLPD (smaller is better)")
        _dots(right, part, "seconds")
        right.set_xscale("log")
        label_log_axis(right.xaxis)
        right.set_yticklabels([])
        tidy(right, "", "training time, s")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def _dots(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    """Bars are standard deviations over splits."""
    lines = range(len(rows))
    kinds = [("DMGP and DFGP, this run", VERMILION, True), ("others, this run", BLUE, False)]
    for label, colour, own in kinds:
        chosen = [(i, row) for i, row in zip(lines, rows, strict=True) if (row["method"] in _OURS) == own]
        axes.errorbar(
            [row[metric] for _, row in chosen],
            [i for i, _ in chosen],
            xerr=[row[f"{metric}_sd"] or 0.0 for _, row in chosen],
            fmt="o",
            markersize=4,
            color=colour,
            label=label,
        )
    printed = [(i, row) for i, row in zip(lines, rows, strict=True) if row[f"paper_{metric}"] is not None]
    axes.errorbar(
        [row[f"paper_{metric}"] for _, row in printed],
        [i + 0.25 for i, _ in printed],
        xerr=[row[f"paper_{metric}_sd"] for _, row in printed],
        fmt="D",
        markersize=4,
        color=BLACK,
        markerfacecolor="white",
        elinewidth=0.8,
        label="paper",
    )
    axes.set_yticks(list(lines), [row["method"] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", linewidth=0.3)
