"""The exact GP on the points of the curve, trained from the length-scale 1 instead of 0.2.

[paper, appendix, "Curve learning"] The paper's exact GP "has been trained using GPflow", where a length-scale begins at
1 unless one says otherwise. Cells are like those of ``curve_cells``, with code of their own: the figure's cells do not
depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certgp.estimators import GPRegressor
from certgp_paper.experiments.cells import Cell, Settings, Values, whole_number
from certgp_paper.experiments.curve_problem import (
    EXACT,
    LOW_RANK,
    PAPER,
    POINTS,
    Array,
    CurveModel,
    draw_points,
    fit_curve,
)

FAR_START = 1.0
EXACT_FROM_FAR = f"exact from {FAR_START:g}"  # in the place of a kind of features


@dataclass(frozen=True)
class _FromFar(CurveModel):
    """The exact GP of the figures from the other start."""

    @property
    def name(self) -> str:
        """As tables call it."""
        return f"exact GP from length-scale {FAR_START:g}"

    def build(self, x: Array, random_state: int) -> GPRegressor:
        """The same estimator, unfitted."""
        usual = super().build(x, random_state)
        usual.set_params(length_scale=FAR_START)
        return usual


def far_cells(family: str, seeds: range) -> list[Cell]:
    """One for each point set."""
    common: dict[str, Any] = {"variant": PAPER, "features": EXACT_FROM_FAR, "rank": POINTS, "points": POINTS}
    return [Cell(family, {**common, "seed": seed}) for seed in seeds]


def compute_far_cell(settings: Settings) -> Values:
    """Fit it, and the exact GP from the usual start beside it."""
    points, seed = (whole_number(settings, key) for key in ("points", "seed"))
    x, y = draw_points(points, seed)
    model, usual = (kind(PAPER, EXACT, points, LOW_RANK) for kind in (_FromFar, CurveModel))
    curve, exact = fit_curve(model, x, y), fit_curve(usual, x, y)
    answer: dict[str, Any] = {"model": model.name, "variance": model.variance, "draw": 0, **curve.distances(exact)}
    answer |= {"rmse": curve.rmse, "rmse_inputs": curve.rmse_inputs, "coverage": curve.coverage, "width": curve.width}
    beside = {"exact_rmse": exact.rmse, "exact_rmse_inputs": exact.rmse_inputs, "exact_width": exact.width}
    return {**beside, "answers": [answer]}
