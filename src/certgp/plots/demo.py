"""Figures of ``certgp demo``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from certgp.plots.style import BLACK, BLUE, SKY, SMALL, VERMILION, new_figure, tidy

Array = NDArray[np.float64]


def plot_curves(
    x: Array, y: Array, grid: Array, truth: Array, answers: Mapping[str, tuple[Array, Array, Array]]
) -> Figure:
    """A panel per model: points (x, y), and along the grid the truth, the model's mean and its 95 % band.

    ``answers`` has each model's mean, lower and upper end (g,) under the title of its panel.
    """
    figure = new_figure(height=0.6 + 1.9 * len(answers))
    panels = figure.subplots(len(answers), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for panel, (title, (mean, lower, upper)) in zip(panels, answers.items(), strict=True):
        panel.fill_between(grid, lower, upper, color=SKY, alpha=0.4, lw=0, label="95% band of f")
        panel.plot(grid, truth, color=VERMILION, lw=1.2, label="truth f")
        panel.plot(grid, mean, color=BLUE, lw=1.4, ls="--", label="mean")
        panel.plot(x, y, "x", color=BLACK, ms=4, mew=0.9, label=f"{len(x)} points")
        tidy(panel, title, ylabel="y")
    # room for points and truth; a band that explodes where there is no point may leave the picture
    low, high = min(y.min(), truth.min()), max(y.max(), truth.max())
    panels[0].set_ylim(low - 0.35 * (high - low), high + 0.35 * (high - low))
    panels[0].set_xlim(grid[0], grid[-1])
    panels[-1].set_xlabel("x", fontsize=SMALL + 1)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def plot_surface(axis: Array, truth: Array, mean: Array, std: Array, n_train: int) -> Figure:
    """Truth and mean (g, g) on one colour scale, and below them the error and the standard deviation on another."""
    figure = new_figure(height=5.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    height = float(np.abs(truth).max())
    # corners hold few rows and would use up the scale of everything else
    small = float(np.quantile(np.concatenate([np.abs(mean - truth).ravel(), std.ravel()]), 0.99))
    top = [("truth", truth), (f"mean from {n_train:,} rows", mean)]
    bottom = [
        ("error |mean - truth|", np.abs(mean - truth)),
        ("standard deviation of the surface", std),
    ]
    for row, (images, limits, colours) in enumerate(
        [(top, (-height, height), "PuOr"), (bottom, (0.0, small), "cividis")]
    ):
        for panel, (title, values) in zip(panels[row], images, strict=True):
            mesh = panel.pcolormesh(axis, axis, values, vmin=limits[0], vmax=limits[1], cmap=colours, shading="gouraud")
            panel.set_aspect("equal")
            tidy(panel, title, "first input" if row else "", "" if panel is panels[row, 1] else "second input")
        bar = figure.colorbar(mesh, ax=panels[row], shrink=0.95, extend="max" if row else "neither")
        bar.set_label("in units of y", fontsize=SMALL)
        bar.ax.tick_params(labelsize=SMALL)
    return figure
