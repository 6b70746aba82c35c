"""Figures of the demo and of a fit.

Protocols name the attributes that a figure needs, so that this room need not import the experiments beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from certgp.guarantees import RankCurve
from certgp.report.style import BLACK, BLUE, GREEN, SKY, SMALL, VERMILION, new_figure, save_figure, tidy
from certgp.training import History

__all__ = ["plot_curves", "plot_history", "plot_rank_curve", "plot_surface", "save_figure"]
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


def plot_history(history: History) -> Figure:
    """Objective per row against iterations and against seconds: lower is better."""
    figure = new_figure(height=2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    iterations = [record.iteration for record in history.iterations]
    left.plot(iterations, history.values, color=BLUE, marker="o", ms=3, lw=1.2)
    tidy(left, "by iteration", "iteration", "objective per row")
    right.plot(history.seconds, history.values, color=GREEN, marker="o", ms=3, lw=1.2)
    tidy(right, "by time", "seconds")
    for panel in (left, right):
        panel.grid(color=BLACK, alpha=0.12, lw=0.5)
    return figure


def plot_rank_curve(curve: RankCurve) -> Figure:
    """Evidence per row against the rank and, where they exist, the bound on the KL divergence and the held-out NLPD."""
    extra = [
        ("KL bound per row", None if curve.kl_bound is None else curve.kl_bound / curve.n_rows, VERMILION),
        ("held-out NLPD", curve.nlpd, GREEN),
    ]
    shown = [(title, values, colour) for title, values, colour in extra if values is not None]
    figure = new_figure(height=0.6 + 2.0 * (1 + len(shown)))
    panels = figure.subplots(1 + len(shown), 1, sharex=True, squeeze=False)[:, 0]
    panels[0].plot(curve.ranks, curve.log_evidence / curve.n_rows, color=BLUE, lw=1.4, label="low-rank model")
    if curve.elbo is not None:
        panels[0].plot(curve.ranks, curve.elbo / curve.n_rows, color=SKY, lw=1.2, ls="--", label="ELBO")
        top = float(curve.log_evidence.max()) / curve.n_rows
        panels[0].set_ylim(top - 3.0, top + 0.2)  # the ELBO of a tiny rank would use up the scale
    panels[0].legend(fontsize=SMALL, frameon=False)
    tidy(panels[0], "log evidence per row")
    for panel, (title, values, colour) in zip(panels[1:], shown, strict=True):
        panel.plot(curve.ranks, values, color=colour, lw=1.4)
        tidy(panel, title)
    if curve.kl_bound is not None:
        panels[1].set_yscale("log")
    panels[-1].set_xlabel("rank", fontsize=SMALL + 1)
    return figure


def _limit_curves(axes: Axes, result: CurvesLike) -> None:
    """Room for points and truth; a band that explodes where there is no point may leave the picture."""
    low, high = min(result.y.min(), result.truth.min()), max(result.y.max(), result.truth.max())
    margin = 0.35 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlim(result.grid[0], result.grid[-1])
