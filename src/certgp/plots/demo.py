"""The figure of ``certgp demo``."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from certgp.plots.style import SMALL, new_figure, tidy

Array = NDArray[np.float64]


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
