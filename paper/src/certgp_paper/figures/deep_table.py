"""The deep table as dots: a panel a data set, a line a method, ours filled and the paper's open.

Means over different splits prove nothing, so ours are over the splits that all methods of a panel have. Times of this
run are CPU seconds of one thread, the paper's wall seconds of 32 cores.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.deep_cells import PAPER_VARIANT
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.axes import label_log_axis

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
        tidy(left, f"{data}: {_over(part[0])}", "NLPD (smaller is better)")
        _dots(right, part, "cpu_seconds", "seconds")
        right.set_xscale("log")
        label_log_axis(right.xaxis)
        right.set_yticklabels([])
        tidy(right, "", "training, s (ours CPU, paper 32 cores)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def _over(row: Row) -> str:
    splits = str(row["shared_splits"]).split()
    if not splits:
        return "methods share no split"
    return f"means over splits {', '.join(splits)}" if len(splits) > 1 else f"split {splits[0]}"


def _name(row: Row) -> str:
    return f"{row['method']}, paper's recipe" if row.get("variant") == PAPER_VARIANT else str(row["method"])


def _dots(axes: Axes, rows: Sequence[Row], metric: str, printed_as: str | None = None) -> None:
    """Bars are standard deviations over splits."""
    printed_as = printed_as or metric
    lines = range(len(rows))
    kinds = [("DMGP and DFGP, this run", VERMILION, True), ("others, this run", BLUE, False)]
    for label, colour, own in kinds:
        chosen = [(i, row) for i, row in zip(lines, rows, strict=True) if (row["method"] in _OURS) == own]
        found = [(i, row) for i, row in chosen if row[f"{metric}_shared"] is not None]
        axes.errorbar(
            [row[f"{metric}_shared"] for _, row in found],
            [i for i, _ in found],
            xerr=[row[f"{metric}_shared_sd"] or 0.0 for _, row in found],
            fmt="o",
            markersize=4,
            color=colour,
            label=label,
        )
    printed = [(i, row) for i, row in zip(lines, rows, strict=True) if row[f"paper_{printed_as}"] is not None]
    axes.errorbar(
        [row[f"paper_{printed_as}"] for _, row in printed],
        [i + 0.25 for i, _ in printed],
        xerr=[row[f"paper_{printed_as}_sd"] for _, row in printed],
        fmt="D",
        markersize=4,
        color=BLACK,
        markerfacecolor="white",
        elinewidth=0.8,
        label="paper",
    )
    axes.set_yticks(list(lines), [_name(row) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", linewidth=0.3)
