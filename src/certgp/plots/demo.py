"""Figures of functions of two inputs: one whose truth is known, and the map of ``certgp demo``."""

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


def plot_map(longitude: Array, latitude: Array, mean: Array, std: Array, places: Array, label: str) -> Figure:
    """Mean and standard deviation (h, g) on a grid of the Earth, one above the other, with the places learned from."""
    figure = new_figure(height=5.6)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    images = [
        ("prediction", mean, "YlGnBu"),
        (f"standard deviation, and the {len(places):,} places learned from", std, "Reds"),
    ]
    for panel, (title, values, colours) in zip(panels, images, strict=True):
        mesh = panel.pcolormesh(longitude, latitude, values, cmap=colours, shading="nearest", rasterized=True)
        panel.set_aspect("equal")
        tidy(panel, title, "longitude" if panel is panels[1] else "", "latitude")
        bar = figure.colorbar(mesh, ax=panel, shrink=0.72)
        bar.set_label(label, fontsize=SMALL)
        bar.ax.tick_params(labelsize=SMALL)
    panels[1].plot(places[:, 0], places[:, 1], ".", color="black", markersize=0.7, alpha=0.5)
    return figure
