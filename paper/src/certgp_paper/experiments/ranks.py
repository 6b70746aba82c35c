"""The paper's one-dimensional example at growing rank.  [paper, appendix, "Curve learning", second figure]

Five lines of panels. The paper's source does not print their ranks; its text speaks of r = 4 ("performs well with high
confidence even with r = 4") and r = 24 ("after r = 24 learns the true function accurately") for FGP. These two, two
between and 34 as in the first figure are shown, for both models in both variants, on the point sets and with the draws
of frequencies of ``curves``.

The text also says "r (i.e. eigenfunctions or spectral frequencies)". Read so, 4 and 24 are the ranks 8 and 48 of FGP,
which are computed too and not drawn.

Whether FGP is accurate from r = 24 on was left open by the ten point sets; ``FRESH_SETS`` decide it.
"""

from __future__ import annotations

from certgp_paper.experiments.cells import Cell
from certgp_paper.experiments.curve_cells import (
    POINT_SETS,
    QUICK_POINT_SETS,
    compute_curve_cell,
    curve_cell,
    curve_rows,
)
from certgp_paper.experiments.curve_problem import FOURIER, MERCER, PAPER, VARIANTS
from certgp_paper.experiments.experiment import Experiment
from certgp_paper.experiments.fresh_sets import FRESH_SETS

RANKS_SHOWN = (4, 10, 16, 24, 34)
FREQUENCIES_SHOWN = (4, 24)  # r of the text, read as a number of frequencies
_FRESH_RANKS = (24, 34, 48)  # of FGP


def _cells(quick: bool) -> list[Cell]:
    """A cell per model, rank and point set; the quick protocol has two of the ranks."""
    ranks, seeds = ((4, 24), QUICK_POINT_SETS) if quick else (RANKS_SHOWN, POINT_SETS)
    models = [(features, rank) for rank in ranks for features in (MERCER, FOURIER)]
    if not quick:
        models += [(FOURIER, 2 * frequencies) for frequencies in FREQUENCIES_SHOWN]
    cells = [
        curve_cell("ranks", variant, features, rank, seed, quick)
        for variant in VARIANTS
        for features, rank in models
        for seed in range(seeds)
    ]
    fresh = () if quick else FRESH_SETS
    return cells + [curve_cell("ranks", PAPER, FOURIER, rank, seed, quick) for rank in _FRESH_RANKS for seed in fresh]


RANKS = Experiment(
    "ranks",
    "Appendix: the curve from 25 points by MGP and FGP at growing rank",
    _cells,
    compute_curve_cell,
    curve_rows,
    score="",
)
