"""Bounds on every single prediction, conditional on the actual y.  [theory 7.4]"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.gp import LowRankPosterior, Statistics
from certgp.gp.evidence import trace_gap
from certgp.guarantees.certificate import accumulation_slack


@dataclass(frozen=True, eq=False)
class PredictionBounds:
    """Per row: the reference's latent mean, a bound on its distance to the exact mean, a bracket of the exact
    variance."""

    mean: Tensor  # (n,)
    mean_error: Tensor  # (n,)
    variance_lower: Tensor  # (n,)
    variance_upper: Tensor  # (n,)


def pointwise_bounds(
    stats: Statistics, features: Tensor, signal_variance: float, noise_variance: float
) -> PredictionBounds:
    r"""For a map below the kernel, statistics and features (n, r) with the signal variance inside:

        |mu_exact(x) - mu(x)| <= |a| [ sf tau / sqrt(tau + s2) + sqrt(e tau) ],    a = (y - Phi w) / s2
        v(x) <= v_exact(x) <= v(x) + ( sqrt(e) + |c| sqrt(tau) )^2,              c = Phi C^-1 phi(x)

    with tau = Tr(K - Phi Phi'), e = sf2 - |phi(x)|^2. Everything but phi(x) comes from r x r matrices.
    """
    posterior = LowRankPosterior.condition(stats, noise_variance)
    tau = trace_gap(stats, signal_variance) + accumulation_slack(stats.n, stats.n * signal_variance)
    w = posterior.weights
    residual = stats.yty - 2.0 * float(stats.b @ w) + float(w @ (stats.A @ w))
    residual += accumulation_slack(stats.n, stats.yty + float(w @ (stats.A @ w)))
    a = math.sqrt(max(residual, 0.0)) / noise_variance
    lost = (signal_variance - features.square().sum(1)).clamp_min(0.0) + accumulation_slack(1, signal_variance)
    # |c|^2 = phi' C^-1 A C^-1 phi
    solved = torch.cholesky_solve(features.mT, posterior.factor)
    c_norm = (solved * (stats.A @ solved)).sum(0).clamp_min(0.0).sqrt()
    variance = posterior.variance(features)
    error = a * (math.sqrt(signal_variance) * tau / math.sqrt(tau + noise_variance) + (lost * tau).sqrt())
    return PredictionBounds(
        posterior.mean(features), error, variance, variance + (lost.sqrt() + c_norm * math.sqrt(tau)).square()
    )
