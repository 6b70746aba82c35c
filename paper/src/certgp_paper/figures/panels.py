"""One panel of a curve and a model's answer to it: points, truth, mean, band."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, PURPLE, SKY, SMALL, VERMILION, tidy
from certgp_paper.experiments.experiment import Row

# the band of the text's variance over that of the released code, which is never narrower
_BAND = (SKY, 0.4, "95 % band of f: exact or DTC variance")
_BANDS = {"dtc": _BAND, "lowrank": (PURPLE, 0.45, "low-rank variance")}


def models(rows: Sequence[Row]) -> list[Row]:
    """The rows that hold a model's scores."""
    return [row for row in rows if row["kind"] == "scores"]


def draw_panel(axes: Axes, rows: Sequence[Row], shown: Sequence[Row]) -> None:
    """Bands, truth, mean and training points; ``shown`` are the scores of a model with one or both variances."""
    points = [row for row in rows if row["kind"] == "point"]
    heights = [row["truth"] for row in points]
    for row in sorted(shown, key=lambda row: row["variance"] != "dtc"):
        curve = [each for each in rows if each["kind"] == "curve" and each["model"] == row["model"]]
        x = [each["x"] for each in curve]
        colour, alpha, label = _BANDS.get(row["variance"], _BAND)
        lower, upper = [each["lower"] for each in curve], [each["upper"] for each in curve]
        axes.fill_between(x, lower, upper, color=colour, alpha=alpha, lw=0, label=label)
        heights += [each["truth"] for each in curve]
    axes.plot(x, [each["truth"] for each in curve], color=VERMILION, lw=1.0, label="f")
    axes.plot(x, [each["mean"] for each in curve], color=BLUE, lw=1.1, ls="--", label="mean")
    axes.plot(
        [row["x"] for row in points],
        [row["truth"] for row in points],
        "x",
        color=BLACK,
        ms=3.5,
        mew=0.8,
        label=f"{len(points)} points",
    )
    margin = 0.35 * (max(heights) - min(heights))
    axes.set_ylim(min(heights) - margin, max(heights) + margin)  # a band that explodes may leave the picture
    axes.set_xlim(x[0], x[-1])


def title(axes: Axes, text: str, xlabel: str, ylabel: str) -> None:
    """Labels of a panel, small enough for several side by side."""
    tidy(axes, text, xlabel, ylabel)
    axes.set_title(text, fontsize=SMALL, loc="left")


def shared_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend above all panels, with every label once."""
    found: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in found}
    order = sorted(found, key=lambda label: label not in {band[2] for band in _BANDS.values()})  # bands first
    handles = [found[label] for label in order]
    figure.legend(handles, order, loc="outside upper center", ncols=5, fontsize=SMALL, frameon=False, columnspacing=1.2)
