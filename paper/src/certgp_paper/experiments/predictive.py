r"""Predictions of approximate GPs beside exact ones, and what the KL of all rows says of them.

[paper, "Approximation guarantees for GP regression"; Proposition on parameter bounds from KL] P = N(0, K + s2 I) and
Q = N(0, Sigma + s2 I) over training and test rows, which are drawn from one law of inputs, in the setting of figures 1
and 2. The predictive laws are theirs, conditioned on the training rows' responses y ~ P. With g the KL between these:

    E g <= KL of all rows,          g <= KL of all rows / eta       with probability 1 - eta
    |m1 - m2|_{C2} <= sqrt(2 g),    b(2 g) C2 <= C1 <= t(2 g) C2    always

Everything is dense algebra, by definition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp_paper.experiments import rates_setting as setting
from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.dense_gaussians import ROUNDING, Pair, Predictions, sandwich
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.rates_setting import EIGEN, FOURIER, GAUSSIAN, MERCER, NOISE

Array = NDArray[np.float64]
ETA = 0.1  # of Markov's inequality
_N_TRAIN, _N_TEST = 500, 100
_DIMENSIONS, _SEEDS, _DRAWS = (1, 2), 10, 200
_RANKS = {
    (MERCER, 1): (1, 2, 3, 4, 5),
    (MERCER, 2): (1, 3, 6, 10, 15),
    (EIGEN, 1): (2, 6, 20, 60, 200),
    (EIGEN, 2): (2, 6, 20, 60, 200),
    (FOURIER, 1): (2, 6, 20, 60, 200),
    (FOURIER, 2): (2, 6, 20, 60, 200),
}
_RESPONSES = 2  # their stream of random numbers, beside those of points and frequencies


def _cells(quick: bool) -> list[Cell]:
    dimensions, seeds = ((1,), 1) if quick else (_DIMENSIONS, _SEEDS)
    return [
        Cell("predictive", {"kernel": name, "method": method, "D": D, "N": _N_TRAIN, "test": _N_TEST, "seed": seed})
        for D in dimensions
        for seed in range(seeds)
        for name, method in setting.CURVES
    ]


@torch.no_grad()
def _compute(settings: Settings) -> Values:
    name, method = str(settings["kernel"]), str(settings["method"])
    n, n_test, D, seed = (whole_number(settings, key) for key in ("N", "test", "D", "seed"))
    draw = setting.normal_inputs if name == GAUSSIAN else setting.uniform_inputs
    X = draw(n + n_test, D, np.random.default_rng(seed))
    K = setting.kernel(name)(X, X)
    ranks = _RANKS[method, D]
    exact = _with_noise(K)
    white = np.random.default_rng([seed, _RESPONSES]).normal(size=(n, _DRAWS))
    y = np.linalg.cholesky(exact[:n, :n]) @ white
    found = [_compare(Pair(exact, _with_noise(Sigma)), y) for Sigma in _approximations(name, method, X, K, ranks, seed)]
    by_rank = [{"rank": rank, **figures} for rank, figures in zip(ranks, found, strict=True)]
    return {"draws": _DRAWS, "eta": ETA, "rounding": ROUNDING * len(X), "by_rank": by_rank}


def _with_noise(K: Tensor) -> Array:
    return np.asarray(K.numpy() + NOISE * np.eye(len(K)))


def _approximations(name: str, method: str, X: Tensor, K: Tensor, ranks: Sequence[int], seed: int) -> list[Tensor]:
    """Sigma (N, N) at each rank; of random frequencies the first ones of a pool."""
    if method == EIGEN:
        values, vectors = torch.linalg.eigh(K)
        return [vectors[:, -rank:] * values[-rank:] @ vectors[:, -rank:].mT for rank in ranks]
    if method == MERCER:
        features = setting.mercer_map(X.shape[1], ranks[-1])(X)
        return [features[:, :rank] @ features[:, :rank].mT for rank in ranks]
    pool = setting.fourier_map(name, X.shape[1], ranks[-1] // 2, seed)
    waves = pool(X).unflatten(1, (2, -1)) * math.sqrt(ranks[-1])  # cosines, then sines
    return [torch.einsum("nwi,mwi->nm", *[waves[:, :, : rank // 2]] * 2) / rank for rank in ranks]


def _compare(joint: Pair, y: Array) -> dict[str, float | int]:
    """Divergences, distances, and in how many draws each bound is exceeded by more than rounding.

    Of draws there are the medians, and of the KL the (1 - eta)-quantile; b and t are those of its median. ``above``
    counts draws that exceed what the KL of all rows / eta bounds.
    """
    predictions = Predictions.given(joint, len(y))
    distances = predictions.distances(y)
    kl = predictions.covariances.kl + 0.5 * np.square(distances)
    least, largest = predictions.covariances.eigenvalues[[0, -1]]
    rounding, limit = ROUNDING * len(joint.exact), np.full_like(kl, joint.kl / ETA)
    outside, outside_limit = (_outside(least, largest, gamma + rounding) for gamma in (kl, limit))
    far, far_limit = (distances > np.sqrt(2.0 * (gamma + rounding)) for gamma in (kl, limit))
    b, t = sandwich(np.maximum(np.median(kl, keepdims=True), 0.0))
    return {
        "kl_total": joint.kl,
        "kl_train": predictions.train.kl,
        "kl_expected": predictions.expected_kl,
        "kl_median": float(np.median(kl)),
        "kl_quantile": float(np.quantile(kl, 1.0 - ETA)),
        "distance": float(np.median(distances)),
        "eigenvalue_least": float(least),
        "eigenvalue_largest": float(largest),
        "b": float(b[0]),
        "t": float(t[0]),
        "means_far": int(far.sum()),
        "covariances_outside": int(outside.sum()),
        "kl_above": int((kl > limit + rounding).sum()),
        "moments_above": int((far_limit | outside_limit).sum()),
    }


def _outside(least: float, largest: float, gammas: Array) -> NDArray[np.bool_]:
    """Do the eigenvalues leave the interval from b(2 gamma) to t(2 gamma)?"""
    b, t = sandwich(gammas)
    return np.asarray((least < b) | (largest > t))


def _rows(finished: Sequence[Finished]) -> list[Row]:
    """One row per rank, with how large each bound is beside what it bounds."""
    return [
        {**cell.cell.settings, **{key: cell[key] for key in ("draws", "eta", "rounding")}, **figures}
        | {"chain_gap": figures["kl_expected"] - (figures["kl_total"] - figures["kl_train"])}
        | _ratios(figures, cell["eta"], cell["rounding"])
        for cell in finished
        for figures in cell["by_rank"]
    ]


def _ratios(figures: Values, eta: float, rounding: float) -> dict[str, float | None]:
    """Bound over what it bounds; of covariances lengths of intervals that hold one, in logarithms. None in rounding."""
    if min(figures["kl_expected"], figures["kl_median"]) <= rounding:
        return dict.fromkeys(("kl_ratio", "markov_ratio", "mean_ratio", "covariance_ratio"))
    spread = max(figures["eigenvalue_largest"], 1.0) / min(figures["eigenvalue_least"], 1.0)
    return {
        "kl_ratio": figures["kl_total"] / figures["kl_expected"],
        "markov_ratio": figures["kl_total"] / eta / figures["kl_quantile"],
        "mean_ratio": math.sqrt(2.0 * figures["kl_median"]) / figures["distance"],
        "covariance_ratio": math.log(figures["t"] / figures["b"]) / math.log(spread),
    }


PREDICTIVE = Experiment(
    "predictive",
    "Predictive densities, means and covariances against their bounds",
    _cells,
    _compute,
    _rows,
    score="",
)
