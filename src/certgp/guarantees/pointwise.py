"""Bounds on every single prediction, conditional on the actual y.  [theory 7.4]"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.gp import LowRankPosterior, Statistics
from certgp.guarantees.rounding import accumulation_slack, certified_gap, solution_rounding, weights_error
from certgp.linalg import UNIT_ROUNDOFF


@dataclass(frozen=True, eq=False)
class PredictionBounds:
    """Per row: the reference's latent mean, a bound on its distance to the exact mean, a bracket of the exact
    variance."""

    mean: Tensor  # (n,)
    mean_error: Tensor  # (n,)
    variance_lower: Tensor  # (n,)
    variance_upper: Tensor  # (n,)


class PointwiseBounds:
    r"""For a map dominated by the kernel, statistics and features (n, r) with the signal variance inside:

        |mu_exact(x) - mu(x)| <= |a| [ sf tau / sqrt(tau + s2) + sqrt(e tau) ],    a = (y - Phi w) / s2
        v(x) <= v_exact(x) <= v(x) + ( sqrt(e) + |c| sqrt(tau) )^2,              c = Phi C^-1 phi(x)

    with tau = Tr(K - Phi Phi'), e = sf2 - |phi(x)|^2. Everything but phi(x) comes from r x r matrices. In any case the
    exact variance is at most sf2. Where rows have weights, y, Phi and K are Q y, Q Phi and Q K Q, Q the diagonal matrix
    of their roots. Weights w that were computed are not C^-1 b: with d a bound on |w - C^-1 b|_C, the mean is off by at
    most sqrt(phi'C^-1 phi) d and |a| by at most d / s2.
    """

    def __init__(
        self, stats: Statistics, signal_variance: float, noise_variance: float, map_rounding: float = 0.0
    ) -> None:
        self.posterior = LowRankPosterior.condition(stats, noise_variance)
        self._statistics = stats
        self._signal_variance, self._noise_variance = signal_variance, noise_variance
        self._tau = certified_gap(stats, map_rounding)
        self.excess = stats.kernel_trace * map_rounding  # of Phi Phi' over K, by rounding, at most
        self._lost_rounding = accumulation_slack(1, signal_variance) + signal_variance * map_rounding
        self.relative = solution_rounding(stats, noise_variance)  # of quadratic forms in C^-1
        w = self.posterior.weights
        explained = float(w @ (stats.A @ w))
        residual = stats.yty - 2.0 * float(stats.b @ w) + explained
        # terms of weights that cancel each other may be far larger than their sum
        terms = math.sqrt(stats.yty) + math.sqrt(float(stats.A.diagonal().sum())) * float(w.norm())
        residual += accumulation_slack(stats.n, terms**2)
        self._weights_error = weights_error(stats, self.posterior)
        self.residual_norm = (math.sqrt(max(residual, 0.0)) + self._weights_error) / noise_variance  # |a|

    def __call__(self, features: Tensor) -> PredictionBounds:
        """Bounds at the rows behind these features (n, r)."""
        sf2, tau = self._signal_variance, self._tau
        lost = (sf2 - features.square().sum(1)).clamp_min(0.0) + self._lost_rounding
        variance = self.posterior.variance(features)
        # lost * tau underflows where targets of 1e-85 are not standardised
        factor = mean_error_factor(tau, sf2, self._noise_variance, self.excess)
        error = self.residual_norm * (factor + lost.sqrt() * math.sqrt(tau))
        error = error + self._mean_rounding(features, variance)
        upper = variance + (lost.sqrt() + self._c_norm(features, variance) * math.sqrt(tau)).square()
        rounding, relative = accumulation_slack(1, sf2), self.relative
        upper = (upper * (1.0 + relative) + rounding).nan_to_num(nan=sf2).clamp_max(sf2)
        lower = (variance * (1.0 - min(relative, 1.0)) - rounding).clamp_min(0.0)
        return PredictionBounds(self.posterior.mean(features), error, lower, upper)

    def _mean_rounding(self, features: Tensor, variance: Tensor) -> Tensor:
        """How far phi'w as computed may be from phi'C^-1 b: by the weights, and by the product itself."""
        size: Tensor = features.norm(dim=1)
        deviation = size / math.sqrt(self._noise_variance)  # sqrt(phi'C^-1 phi) in any case
        if math.isfinite(self.relative):
            found = (variance / self._noise_variance).sqrt() * math.sqrt(1.0 + self.relative)
            deviation = torch.minimum(deviation, found)
        product = features.shape[1] * UNIT_ROUNDOFF * float(self.posterior.weights.norm())
        return deviation * self._weights_error + size * product

    def _c_norm(self, features: Tensor, variance: Tensor) -> Tensor:
        """|c| = sqrt(phi' C^-1 A C^-1 phi), and what its own rounding may hide: rho sqrt(v / s2)."""
        solved = torch.cholesky_solve(features.mT, self.posterior.factor)
        norm = (solved * (self._statistics.A @ solved)).sum(0).clamp_min(0.0).sqrt()
        return norm + self.relative * (variance / self._noise_variance).sqrt()


def mean_error_factor(tau: float, signal_variance: float, noise_variance: float, excess: float = 0.0) -> float:
    """sf [tau / sqrt(tau + s2) + excess / s]: how much of |a| the rows' trace gap lets through to any mean, and how
    much features that rounding may have brought above the kernel, by at most ``excess`` in the norm of K.
    """
    share = tau / math.sqrt(tau + noise_variance) + excess / math.sqrt(noise_variance)
    return math.sqrt(signal_variance) * share  # the other product may underflow


def pointwise_bounds(
    stats: Statistics, features: Tensor, signal_variance: float, noise_variance: float, map_rounding: float = 0.0
) -> PredictionBounds:
    """``PointwiseBounds`` at one set of features."""
    return PointwiseBounds(stats, signal_variance, noise_variance, map_rounding)(features)
