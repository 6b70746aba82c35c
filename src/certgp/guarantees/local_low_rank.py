"""Low rank beside local: what a low-rank map says of a local GP (V4), and low rank plus local (V8)."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import NotCertifiableError
from certgp.features import FeatureMap
from certgp.gp import Statistics
from certgp.guarantees.local_factor import LocalFactor
from certgp.guarantees.local_rows import Covariance, KernelCovariance, bound_rows
from certgp.guarantees.local_sample import mean_above
from certgp.guarantees.local_sets import nearest_before
from certgp.guarantees.rounding import divergence_rounding
from certgp.kernels import Kernel
from certgp.linalg import UNIT_ROUNDOFF, cholesky, eye_like, log_det_from_cholesky

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def divergence_above_by_map(
    local: LocalFactor, stats: Statistics, signal_variance: float, map_rounding: float
) -> float:
    """V4: KL(exact || local) <= 1/2 (sum log d_i - log det(Phi Phi' + s2 I)) for a map dominated by the kernel.

    ``stats`` are those of Phi with the signal variance inside. Rounding may bring Phi Phi' above K by n sf2 times the
    ``map_rounding``, which the noise gives up. Far above the truth wherever low rank is (docs/theorems.md).
    """
    n, rank = stats.n, stats.rank
    noise = local.noise_variance - n * signal_variance * map_rounding
    if noise <= 0.0:
        return math.inf
    factor = cholesky(stats.A + noise * eye_like(stats.A), "A + s2 I (raise noise_variance)")
    log_det = float(log_det_from_cholesky(factor)) + (n - rank) * math.log(noise)
    slack = divergence_rounding(n, rank, n * signal_variance, noise) + n * UNIT_ROUNDOFF * abs(log_det)
    return 0.5 * (local.log_determinant().upper - log_det) + slack


class ResidualCovariance:
    """R(x, z) = k(x, z) - phi(x)'phi(z) between rows [x, phi(x)]: what a map dominated by the kernel leaves of it.

    Features are taken as they were computed, so that R is positive semi-definite but for the rounding of the map
    (``deficit``).
    """

    def __init__(self, kernel: Kernel, features: FeatureMap, inputs: Tensor) -> None:
        if not features.dominated:
            raise NotCertifiableError("low rank plus local needs a map dominated by its kernel")
        self._features, self._root, self._dimension = (
            features,
            math.sqrt(float(kernel.signal_variance)),
            inputs.shape[1],
        )
        self._kernel = KernelCovariance(kernel, inputs)
        self.prior_variance = self._kernel.prior_variance
        self.deficit = len(inputs) * self.prior_variance * features.rounding()
        self.rounding = self._kernel.rounding + 2.0 * (features.rank + 4) * UNIT_ROUNDOFF * self.prior_variance

    def augment(self, X: Tensor) -> Tensor:
        """Rows [x, phi(x)] (n, d + r) of X (n, d)."""
        return torch.cat([X.double(), self._root * self._features(X.double())], 1)

    def combine(self, rows: Tensor, others: Tensor, weights: Array) -> Array:
        d = self._dimension
        explained = rows[:, d:] @ (others[:, d:].mT @ torch.from_numpy(weights))
        return np.asarray(self._kernel.combine(rows[:, :d], others[:, :d], weights) - explained.numpy())

    def variance(self, point: Tensor) -> float:
        return float(self.prior_variance - point[0, self._dimension :].square().sum())

    def weights(self, point: Tensor, rows: Tensor, noise_variance: float) -> Array:
        d, both = self._dimension, torch.cat([rows, point])
        left = self._kernel.values(both[:, :d], both[:, :d]) - both[:, d:] @ both[:, d:].mT
        R, r = left[:-1, :-1], left[:-1, -1:]
        return np.asarray(torch.linalg.solve(R + noise_variance * eye_like(R), r)[:, 0].numpy())


@torch.no_grad()
def full_scale_terms(
    covariance: Covariance,
    inputs: Tensor,
    points: Array,
    rows: Indices,
    sets: Indices,
    near: int,
    noise_variance: float,
) -> Array:
    r"""1/2 log(d_i / d_i*) of some rows (B,), from above, both variances of the residual process R + s2 I.

    ``covariance`` is R between rows ``inputs`` (N, .), as ``augment`` makes them; ``sets`` (B, m) are the model's, of
    earlier rows; ``near`` how many rows, by the coordinates ``points``, bound d_i* from below (V3 applied to R).
    """
    at = inputs[torch.from_numpy(rows)]
    own = bound_rows(covariance, at, inputs, lambda b: sets[b][sets[b] >= 0], noise_variance, before=rows)
    more = bound_rows(
        covariance, at, inputs, lambda b: nearest_before(points, int(rows[b]), near), noise_variance, before=rows
    )
    lowest = np.maximum(own.lower, more.lower)
    terms = np.log((own.upper + noise_variance) / (lowest + noise_variance)) + 8.0 * UNIT_ROUNDOFF
    return np.asarray(0.5 * terms)


def full_scale_divergence_above(
    covariance: Covariance, inputs: Tensor, points: Array, sets: Indices, near: int, noise_variance: float
) -> float:
    """V8: KL(exact || low rank + local) <= 1/2 sum log(d_i / d_i*) over all rows, both of the residual process."""
    rows = np.arange(len(inputs))
    terms = full_scale_terms(covariance, inputs, points, rows, sets, near, noise_variance)
    return float(terms.sum()) * (1.0 + 1e-12)


def full_scale_divergence_by_sample(
    covariance: Covariance,
    inputs: Tensor,
    points: Array,
    sets: Indices,
    near: int,
    noise_variance: float,
    count: int,
    delta: float,
    rng: np.random.Generator,
) -> float:
    """V8+: the sum of V8 through ``count`` rows drawn independently, but with probability delta; ``sets`` (N, m).

    Terms lie in [0, 1/2 log((k(x, x) + s2) / s2)], so the empirical Bernstein inequality bounds their mean.
    """
    n, rows = len(inputs), rng.integers(len(inputs), size=count)
    terms = full_scale_terms(covariance, inputs, points, rows, sets[rows], near, noise_variance)
    largest = 0.5 * math.log1p(covariance.prior_variance / noise_variance) * (1.0 + 1e-9)
    return n * mean_above(np.clip(terms, 0.0, largest), largest, delta) * (1.0 + 1e-12)
