"""Figures of ``certgp demo``. Protocols name the attributes that a figure needs, since results come from above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from certgp.plots.style import BLACK, BLUE, SKY, SMALL, VERMILION, new_figure, tidy

Array = NDArray[np.float64]


class CurveLike(Protocol):
    """One model's answer along a line."""

    @property
    def name(self) -> str: ...
    @property
    def mean(self) -> Array: ...
    @property
    def lower(self) -> Array: ...
    @property
    def upper(self) -> Array: ...
    @property
    def rmse_inputs(self) -> float: ...


class CurvesLike(Protocol):
    """Points, truth and models along a line."""

    @property
    def x(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def grid(self) -> Array: ...
    @property
    def truth(self) -> Array: ...
    @property
    def curves(self) -> Sequence[CurveLike]: ...


class SurfaceLike(Protocol):
    """Truth, mean and standard deviation over a square grid."""

    @property
    def axis(self) -> Array: ...
    @property
    def truth(self) -> Array: ...
    @property
    def mean(self) -> Array: ...
    @property
    def std(self) -> Array: ...
    @property
    def n_train(self) -> int: ...


def plot_curves(result: CurvesLike) -> Figure:
    """One panel per model: points, truth, mean and the band that holds the truth with probability 0.95."""
    figure = new_figure(height=0.6 + 1.9 * len(result.curves))
    panels = figure.subplots(len(result.curves), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for panel, curve in zip(panels, result.curves, strict=True):
        panel.fill_between(result.grid, curve.lower, curve.upper, color=SKY, alpha=0.4, lw=0, label="95% band of f")
        panel.plot(result.grid, result.truth, color=VERMILION, lw=1.2, label="truth f")
        panel.plot(result.grid, curve.mean, color=BLUE, lw=1.4, ls="--", label="mean")
        panel.plot(result.x, result.y, "x", color=BLACK, ms=4, mew=0.9, label=f"{len(result.x)} points")
        tidy(panel, f"{curve.name}: RMSE {curve.rmse_inputs:.3f} for x like the data", ylabel="y")
    _limit_curves(panels[0], result)
    panels[-1].set_xlabel("x", fontsize=SMALL + 1)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def plot_surface(result: SurfaceLike) -> Figure:
    """Truth and mean on one colour scale, and below them the error and the standard deviation on another."""
    figure = new_figure(height=5.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    height = float(np.abs(result.truth).max())
    # corners hold few rows and would use up the scale of everything else
    small = float(np.quantile(np.concatenate([np.abs(result.mean - result.truth).ravel(), result.std.ravel()]), 0.99))
    top = [("truth", result.truth), (f"mean from {result.n_train:,} rows", result.mean)]
    bottom = [
        ("error |mean - truth|", np.abs(result.mean - result.truth)),
        ("standard deviation of the surface", result.std),
    ]
    for row, (images, limits, colours) in enumerate(
        [(top, (-height, height), "PuOr"), (bottom, (0.0, small), "cividis")]
    ):
        for panel, (title, values) in zip(panels[row], images, strict=True):
            mesh = panel.pcolormesh(
                result.axis, result.axis, values, vmin=limits[0], vmax=limits[1], cmap=colours, shading="gouraud"
            )
            panel.set_aspect("equal")
            tidy(panel, title, "first input" if row else "", "" if panel is panels[row, 1] else "second input")
        bar = figure.colorbar(mesh, ax=panels[row], shrink=0.95, extend="max" if row else "neither")
        bar.set_label("in units of y", fontsize=SMALL)
        bar.ax.tick_params(labelsize=SMALL)
    return figure


def _limit_curves(axes: Axes, result: CurvesLike) -> None:
    """Room for points and truth; a band that explodes where there is no point may leave the picture."""
    low, high = min(result.y.min(), result.truth.min()), max(result.y.max(), result.truth.max())
    margin = 0.35 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlim(result.grid[0], result.grid[-1])
