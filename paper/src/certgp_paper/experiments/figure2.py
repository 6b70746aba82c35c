r"""Figure 2: KL(exact || low rank) against the rank in one dimension, with certificates beside it.

[paper, "Experimental rates of convergence"] Left Fourier features, right the Mercer expansion (Gaussian kernel) and the
eigendecomposition of K (Matern kernel); the figure prints no numbers. Inputs are those of a seed: normal ones first,
then uniform ones from the same generator; the figure shows seed 0. Fourier features are drawn ten times.

Certificates: the paper's t / 2 and the sharpened 1/2 (t - ln(1 + t)) where Sigma <= K, and the interval R1 through a
reference dominated by the kernel, which also serves Fourier features. An eigendecomposition of K has no use for R1:
whoever has it knows the divergence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.features import FeatureMap
from certgp.guarantees import Interval, certify_through
from certgp_paper.experiments import rates_setting as setting
from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.low_rank_kl import (
    ExactLaw,
    FourierKL,
    eigendecomposition_gaps,
    eigendecomposition_kl,
    nested_gaps,
    trace_bounds,
    truncation_kl,
)
from certgp_paper.experiments.rates_setting import EIGEN, GAUSSIAN, MATERN, MERCER, NOISE

Array = NDArray[np.float64]
_DRAWS = 10
_SEEDS = {5000: 1, 1000: 5}  # point sets for each N, the paper's first
_MERCER_RANKS = tuple(range(1, 13))
_EIGEN_RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 50, 70, 100, 140, 200)
_FOURIER_RANKS = (2, 4, 6, 8, 10, 14, 20, 30, 50, 70, 100, 140, 200)
_ALL_TERMS = 60  # terms of the expansion that give K to rounding: q^60 = 1e-55 in the mean, and enough for outliers
_REFERENCE_RANKS = {GAUSSIAN: 40, MATERN: 800}


def _cells(quick: bool) -> list[Cell]:
    runs = [(500, 0)] if quick else [(n, seed) for n, seeds in _SEEDS.items() for seed in range(seeds)]
    return [
        Cell("figure2", {"kernel": name, "method": method, "N": n, "seed": seed})
        for n, seed in runs
        for name, method in setting.CURVES
    ]


def _compute(settings: Settings) -> Values:
    name, method = str(settings["kernel"]), str(settings["method"])
    n, seed = whole_number(settings, "N"), whole_number(settings, "seed")
    rng = np.random.default_rng(seed)
    X = setting.normal_inputs(n, 1, rng)
    if name == MATERN:
        X = setting.uniform_inputs(n, 1, rng)
    if method == MERCER:
        return _mercer(X)
    return _eigendecomposition(X) if method == EIGEN else _fourier(name, X, seed)


def _mercer(X: Tensor) -> Values:
    ranks = list(_MERCER_RANKS)
    features = setting.mercer_map(1, ranks[-1])
    with torch.no_grad():
        everything = setting.mercer_map(1, _ALL_TERMS)(X)
    paper, sharp = trace_bounds(nested_gaps(everything)[: ranks[-1]], NOISE)
    intervals = _intervals(features, GAUSSIAN, X, ranks)
    return {
        "ranks": ranks,
        "kl": [[truncation_kl(everything, rank, NOISE) for rank in ranks]],
        "trace_paper": paper.tolist(),
        "trace_sharp": sharp.tolist(),
        "lower": [interval.lower for interval in intervals],
        "upper": [interval.upper for interval in intervals],
    }


def _eigendecomposition(X: Tensor) -> Values:
    ranks = list(_EIGEN_RANKS)
    with torch.no_grad():
        K = setting.kernel(MATERN)(X, X)
    values = torch.linalg.eigvalsh(K).clamp_min(0.0).numpy()
    paper, sharp = trace_bounds(eigendecomposition_gaps(values)[ranks], NOISE)
    return {
        "ranks": ranks,
        "kl": [eigendecomposition_kl(values, NOISE)[ranks].tolist()],
        "trace_paper": paper.tolist(),
        "trace_sharp": sharp.tolist(),
        "lower": None,
        "upper": None,
    }


def _fourier(name: str, X: Tensor, seed: int) -> Values:
    """All draws share one factor of the exact law; the reference certifies the first of them."""
    ranks = list(_FOURIER_RANKS)
    with torch.no_grad():
        law = ExactLaw(setting.kernel(name)(X, X), NOISE)
    pools = [setting.fourier_map(name, 1, ranks[-1] // 2, seed, draw) for draw in range(_DRAWS)]
    divergences = [FourierKL(law, pool, X) for pool in pools]
    intervals = _intervals(pools[0], name, X, ranks)
    return {
        "ranks": ranks,
        "kl": [[divergence(rank // 2) for rank in ranks] for divergence in divergences],
        "trace_paper": None,
        "trace_sharp": None,
        "lower": [interval.lower for interval in intervals],
        "upper": [interval.upper for interval in intervals],
    }


def _intervals(features: FeatureMap, name: str, X: Tensor, ranks: Sequence[int]) -> list[Interval]:
    """What certificate R1 says of the leading ranks of a map."""
    reference = setting.reference(features, name, X, _REFERENCE_RANKS[name])
    return [certify_through(reference, rank).kl for rank in ranks]


def _rows(finished: Sequence[Finished]) -> list[Row]:
    return [row for cell in finished for row in _rows_of(cell)]


def _rows_of(cell: Finished) -> list[Row]:
    """One row per rank: mean, standard deviation, least and largest KL over the draws; certificates of the first."""
    kl = np.asarray(cell["kl"], dtype=np.float64)  # (draws, ranks)
    bounds = ("trace_paper", "trace_sharp", "lower", "upper")
    return [
        {
            **cell.cell.settings,
            "rank": rank,
            "draws": len(kl),
            "kl": float(kl[:, i].mean()),
            "kl_sd": float(kl[:, i].std(ddof=1)) if len(kl) > 1 else None,
            "kl_least": float(kl[:, i].min()),
            "kl_largest": float(kl[:, i].max()),
            "kl_first": float(kl[0, i]),
            **{key: None if cell[key] is None else cell[key][i] for key in bounds},
        }
        for i, rank in enumerate(cell["ranks"])
    ]


FIGURE2 = Experiment(
    "figure2",
    "Figure 2: KL against the rank in one dimension, and certificates of it",
    _cells,
    _compute,
    _rows,
    score="",
)
