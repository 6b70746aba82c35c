"""One panel of a curve and a model's answer to it: points, truth, mean, band."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, SKY, SMALL, VERMILION, tidy
from certgp_paper.experiments.experiment import Row


def models(rows: Sequence[Row]) -> list[Row]:
    """The rows that hold a model's scores, one per panel."""
    return [row for row in rows if row["kind"] == "scores"]


def draw_panel(axes: Axes, rows: Sequence[Row], model: str) -> None:
    """Band, truth, mean and training points of one model."""
    curve = [row for row in rows if row["kind"] == "curve" and row["model"] == model]
    points = [row for row in rows if row["kind"] == "point"]
    x = [row["x"] for row in curve]
    lower, upper = [row["lower"] for row in curve], [row["upper"] for row in curve]
    axes.fill_between(x, lower, upper, color=SKY, alpha=0.4, lw=0, label="95% band of f")
    axes.plot(x, [row["truth"] for row in curve], color=VERMILION, lw=1.2, label="truth f")
    axes.plot(x, [row["mean"] for row in curve], color=BLUE, lw=1.3, ls="--", label="mean")
    axes.plot(
        [row["x"] for row in points],
        [row["truth"] for row in points],
        "x",
        color=BLACK,
        ms=4,
        mew=0.9,
        label=f"{len(points)} points",
    )
    heights = [row["truth"] for row in [*curve, *points]]
    margin = 0.35 * (max(heights) - min(heights))
    axes.set_ylim(min(heights) - margin, max(heights) + margin)  # a band that explodes may leave the picture
    axes.set_xlim(x[0], x[-1])


def title(axes: Axes, text: str, xlabel: str, ylabel: str) -> None:
    """Labels of a panel, small enough for two side by side."""
    tidy(axes, text, xlabel, ylabel)
    axes.set_title(text, fontsize=SMALL + 1, loc="left")


def shared_legend(figure: Figure, axes: Axes) -> None:
    """One legend above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False)
