"""Predictions against their bounds: densities by the KL of all rows, means and covariances by the predictive KL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from certgp.plots.style import BLACK, BLUE, GREEN, ORANGE, SKY, SMALL, new_figure, tidy
from certgp_paper.experiments.dense_gaussians import sandwich
from certgp_paper.experiments.experiment import Row

_CURVES = {
    ("gaussian", "mercer"): ("Gaussian, Mercer", BLUE, "o"),
    ("gaussian", "fourier"): ("Gaussian, Fourier", SKY, "s"),
    ("matern12", "eigendecomposition"): ("Matérn 1/2, eigenpairs", GREEN, "^"),
    ("matern12", "fourier"): ("Matérn 1/2, Fourier", ORANGE, "D"),
}


def draw(rows: Sequence[Row]) -> Figure:
    """A point for each point set and rank; filled ones in one dimension."""
    figure = new_figure(height=3.1)
    panels = figure.subplots(1, 3)
    shown = [row for row in rows if row["kl_median"] > row["rounding"]]
    for row in shown:
        for axes, x, y in zip(panels, _places(row), _heights(row), strict=True):
            _dot(axes, row, x, y)
    for axes, bounds in zip(panels, (_all_rows, _means, _covariances), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        bounds(axes, [row["kl_total"] if bounds is _all_rows else row["kl_median"] for row in shown])
        axes.grid(color=BLACK, alpha=0.12, lw=0.5)
    tidy(panels[0], "Densities", "KL of all rows, nats", "expected predictive KL, nats")
    tidy(panels[1], "Means", "predictive KL, nats", "Mahalanobis distance")
    tidy(panels[2], "Covariances", "predictive KL, nats", r"|ln $\lambda$|, $\lambda$ farthest from one")
    figure.legend(handles=_handles(shown), loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def _places(row: Row) -> tuple[float, float, float]:
    return row["kl_total"], row["kl_median"], row["kl_median"]


def _heights(row: Row) -> tuple[float, float, float]:
    farthest = max(math.log(row["eigenvalue_largest"]), -math.log(row["eigenvalue_least"]))
    return row["kl_expected"], row["distance"], farthest


def _dot(axes: Axes, row: Row, x: float, y: float) -> None:
    _, colour, marker = _CURVES[row["kernel"], row["method"]]
    axes.plot(x, y, ls="", marker=marker, ms=2.6, mew=0.6, color=colour, mfc=colour if row["D"] == 1 else "none")


def _all_rows(axes: Axes, divergences: Sequence[float]) -> None:
    """The bound is the KL of all rows itself."""
    _line(axes, divergences, lambda kl: kl, "-")


def _means(axes: Axes, divergences: Sequence[float]) -> None:
    _line(axes, divergences, lambda kl: np.sqrt(2.0 * kl), "-")


def _covariances(axes: Axes, divergences: Sequence[float]) -> None:
    """Eigenvalues above one are bounded by ln t, those below by -ln b, which is larger."""
    _line(axes, divergences, lambda kl: np.log(sandwich(kl)[1]), "-")
    _line(axes, divergences, lambda kl: -np.log(sandwich(kl)[0]), "--")


def _line(axes: Axes, divergences: Sequence[float], bound: Callable[[np.ndarray], np.ndarray], style: str) -> None:
    x = np.geomspace(min(divergences), max(divergences), 50)
    axes.plot(x, bound(x), color=BLACK, lw=1.1, ls=style)


def _handles(rows: Sequence[Row]) -> list[Line2D]:
    present = {(row["kernel"], row["method"]) for row in rows}
    handles = [
        Line2D([], [], color=colour, marker=marker, ms=4, ls="", label=label)
        for key, (label, colour, marker) in _CURVES.items()
        if key in present
    ]
    handles += [
        Line2D([], [], color=BLACK, marker="o", ms=4, ls="", mfc=face, label=f"D = {D}")
        for D, face in ((1, BLACK), (2, "none"))
        if any(row["D"] == D for row in rows)
    ]
    handles.append(Line2D([], [], color=BLACK, lw=1.1, label="bound; ln t"))
    handles.append(Line2D([], [], color=BLACK, lw=1.1, ls="--", label="-ln b"))
    return handles
