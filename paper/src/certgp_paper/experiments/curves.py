r"""The paper's one-dimensional example: exact GP, MGP (r = 34) and FGP (r = 68).

[paper, appendix, "Curve learning via low-rank kernel approximations"] ``curve_problem`` has the problem and the models:
the paper's own, and those of certgp beside them. The figure shows one point set and one draw of frequencies. Whether
FGP is nearer to the function than the exact GP depends on both, so all models are fitted to ten point sets and FGP with
20 draws of frequencies for each. The exact GP is also trained from another start (``curve_starts``).
"""

from __future__ import annotations

from certgp_paper.experiments.cells import Cell, Settings, Values
from certgp_paper.experiments.curve_cells import (
    POINT_SETS,
    QUICK_POINT_SETS,
    compute_curve_cell,
    curve_cell,
    curve_rows,
    exact_cells,
)
from certgp_paper.experiments.curve_problem import FOURIER, FOURIER_RANK, MERCER, MERCER_RANK, VARIANTS
from certgp_paper.experiments.curve_starts import EXACT_FROM_FAR, compute_far_cell, far_cells
from certgp_paper.experiments.experiment import Experiment

_MODELS = ((MERCER, MERCER_RANK), (FOURIER, FOURIER_RANK))


def _cells(quick: bool) -> list[Cell]:
    seeds = range(QUICK_POINT_SETS if quick else POINT_SETS)
    models = [(variant, *model) for variant in VARIANTS for model in _MODELS]
    own = [curve_cell("curves", *model, seed=seed, quick=quick) for model in models for seed in seeds]
    return [*exact_cells("curves", seeds), *own, *far_cells("curves", seeds)]


def _compute(settings: Settings) -> Values:
    """``code.py`` knows which of the two makes which cells."""
    compute = compute_far_cell if settings["features"] == EXACT_FROM_FAR else compute_curve_cell
    return compute(settings)


CURVES = Experiment(
    "curves",
    "Appendix: a curve from 25 points by the exact GP, MGP (r = 34) and FGP (r = 68)",
    _cells,
    _compute,
    curve_rows,
    score="",
)
