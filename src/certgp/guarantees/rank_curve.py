"""How evidence and guarantee grow with the rank, for every rank at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.gp import Statistics, log_evidence
from certgp.gp.evidence import NOISE_REMEDY
from certgp.guarantees.certificate import accumulation_slack
from certgp.guarantees.dominated import sharpened_trace_bound
from certgp.linalg import cholesky, eye_like, solve_lower

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RankCurve:
    """At the fitted hyper-parameters, per rank: log evidence of the low-rank model and, for maps below the kernel,
    bounds."""

    ranks: NDArray[np.int64]
    log_evidence: Array  # units of y
    elbo: Array | None  # lower bound on the exact log evidence
    kl_bound: Array | None  # upper bound on KL(exact || model at this rank)


def nested_rank_curve(unit_stats: Statistics, signal_variance: float, noise_variance: float) -> RankCurve:
    r"""The curve of a map below the kernel whose features are nested. All leading blocks of one Cholesky factor: L[:k,
    :k] is the factor of the rank-k model, so one O(r^3) serves every rank.

    log|C_k| = 2 sum_{i<=k} log L_ii and b_k'C_k^-1 b_k = sum_{i<=k} (L^-1 b)_i^2: two cumulative sums.
    """
    stats, n, s2 = unit_stats.scaled(signal_variance), unit_stats.n, noise_variance
    L = cholesky(stats.A + s2 * eye_like(stats.A), NOISE_REMEDY)
    ranks = torch.arange(1, stats.rank + 1, dtype=torch.float64)
    explained = solve_lower(L, stats.b).square().cumsum(0)
    log_det = 2.0 * L.diagonal().log().cumsum(0) + (n - ranks) * math.log(s2)
    evidence = -0.5 * ((stats.yty - explained) / s2 + log_det + n * math.log(2.0 * math.pi))
    gap = (n * signal_variance - stats.A.diagonal().cumsum(0)).clamp_min(0.0)
    slack = accumulation_slack(n, n * signal_variance)
    bounds = np.array([sharpened_trace_bound(float(g) + slack, s2) for g in gap])
    return RankCurve(np.arange(1, stats.rank + 1), evidence.numpy(), (evidence - gap / (2.0 * s2)).numpy(), bounds)


def fourier_rank_curve(unit_stats: Statistics, signal_variance: float, noise_variance: float) -> RankCurve:
    """The curve of cos/sin pairs: k of m pairs carry m / k times larger weights, so each rank has its own factor."""
    m = unit_stats.rank // 2
    evidence = []
    for k in range(1, m + 1):
        pick = torch.cat([torch.arange(k), torch.arange(m, m + k)])
        part = Statistics(unit_stats.A[pick][:, pick], unit_stats.b[pick], unit_stats.yty, unit_stats.n)
        evidence.append(log_evidence(part.scaled(signal_variance * m / k), noise_variance))
    return RankCurve(np.arange(2, 2 * m + 1, 2), np.array(evidence), None, None)
