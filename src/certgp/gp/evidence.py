"""Log evidence of a low-rank GP, its lower and upper bounds on the exact one, and its gradient: functions of
Statistics alone.

Statistics here belong to features that carry the signal variance (``Statistics.scaled``). Where rows have weights, y
and Phi stand for Q y and Q Phi, Q = diag(sqrt(weight)), and the density of y itself is that of Q y times |Q|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.gp.statistics import Cotangents, Statistics
from certgp.linalg import cholesky, eye_like, log_det_from_cholesky, solve_lower, solve_lower_transposed

NOISE_REMEDY = "A + s2 I (raise noise_variance or lower rank)"


def log_evidence(stats: Statistics, noise_variance: float) -> float:
    r"""log N(y | 0, Phi Phi' + s2 I) in O(r^3), free of N.  [paper, sec. 3.2]

    -1/2 [ (y'y - b' C^-1 b) / s2 + log|C| + (N - r) log s2 + N log 2 pi ],   C = A + s2 I = L L'   (r, r)
    """
    return _gaussian_log_density(stats, noise_variance, quadratic_noise=noise_variance)


def elbo(stats: Statistics, gap: float, noise_variance: float) -> float:
    """Variational lower bound log_evidence - Tr(K - Phi Phi') / (2 s2) <= log p(y), for maps that are dominated by the
    kernel and lose at most ``gap`` of the trace.  [Titsias 2009]
    """
    return log_evidence(stats, noise_variance) - gap / (2.0 * noise_variance)


def log_evidence_lower_bound(stats: Statistics, lost_log_determinant: float, noise_variance: float) -> float:
    """log_evidence - h / 2 <= log p(y), for maps that are dominated by the kernel, where ln|K + s2 I| is at most
    ``lost_log_determinant`` = h above the map's: the quadratic form y'S^-1 y falls as S grows. Never below the ELBO,
    whose h is Tr(K - Phi Phi') / s2.
    """
    return log_evidence(stats, noise_variance) - 0.5 * lost_log_determinant


def log_evidence_upper_bound(stats: Statistics, gap: float, noise_variance: float) -> float:
    r"""Upper bound on the exact log p(y) for maps that are dominated by the kernel and lose at most ``gap`` of the
    trace.  [Titsias 2014; theory 7.6]

    -1/2 log|Q + s2 I| - 1/2 y'(Q + (s2 + tau) I)^-1 y - N/2 log 2 pi,   Q = Phi Phi',  tau = Tr(K - Q) >= |K - Q|
    """
    return _gaussian_log_density(stats, noise_variance, quadratic_noise=noise_variance + gap)


def trace_gap(stats: Statistics) -> float:
    """tau = Tr(K - Phi Phi') = Tr K - Tr A: what the truncation lost of the prior variance; below zero by rounding."""
    return stats.kernel_trace - float(stats.A.diagonal().sum())


def _gaussian_log_density(stats: Statistics, log_det_noise: float, quadratic_noise: float) -> float:
    """-1/2 [ log|Q + s I| + y'(Q + t I)^-1 y + N log 2 pi ] with noise s in the determinant and t in the quadratic
    form.
    """
    s, t, n, r = log_det_noise, quadratic_noise, stats.n, stats.rank
    log_det = float(log_det_from_cholesky(_factor(stats, s))) + (n - r) * math.log(s)
    half = solve_lower(_factor(stats, t), stats.b)
    quadratic = (stats.yty - float(half @ half)) / t
    return -0.5 * (log_det + quadratic + n * math.log(2.0 * math.pi) - stats.log_weights)


def _factor(stats: Statistics, noise: float) -> Tensor:
    # A >= 0, so this fails only if |A| / s2 nears 1 / eps, and then it should
    return cholesky(stats.A + noise * eye_like(stats.A), NOISE_REMEDY)


@dataclass(frozen=True, eq=False)
class EvidenceGradient:
    """Derivatives of the *negative* objective at fixed variances, in terms of unit-variance statistics (A, b)."""

    value: float
    by_gram: Tensor  # dL/dA (r, r), symmetric
    by_projection: Tensor  # dL/db (r,)
    by_trace: float  # dL/d Tr K
    by_log_signal: float
    by_log_noise: float

    @property
    def cotangents(self) -> Cotangents:
        """What a gradient in the parameters of a map needs."""
        return Cotangents(self.by_gram, self.by_projection, self.by_trace)


def evidence_gradient(
    unit_stats: Statistics, signal_variance: float, noise_variance: float, objective: str
) -> EvidenceGradient:
    r"""Value and closed-form gradient of L = -log_evidence or -elbo.  [theory sec. 9]

    With g = s2 / sf2, C = A + g I, w = C^-1 b on unit-variance statistics:

        L = 1/2 [ (y'y - b'w) / s2 + log|C| + (N - r) log g + N log sf2 + N log 2 pi - sum log weight_i
                  {+ (Tr K - Tr A) / g} ]
        dL/dA = 1/2 (C^-1 + w w' / s2  {- I / g}),    dL/db = -w / s2,    dL/d Tr K = {1 / (2 g)}
    """
    n, r, sf2, s2 = unit_stats.n, unit_stats.rank, signal_variance, noise_variance
    g = s2 / sf2
    L = _factor(unit_stats, g)
    half = solve_lower(L, unit_stats.b)
    w = solve_lower_transposed(L, half)
    inverse = torch.cholesky_inverse(L)
    misfit = (unit_stats.yty - float(half @ half)) / s2
    gap = trace_gap(unit_stats) if objective == "elbo" else 0.0
    log_det = float(log_det_from_cholesky(L)) + (n - r) * math.log(g) + n * math.log(sf2)
    by_gram = 0.5 * (inverse + torch.outer(w, w) / s2)
    if objective == "elbo":
        by_gram.diagonal().sub_(0.5 / g)
    by_log_ratio = 0.5 * (float(w @ w) / sf2 + g * float(inverse.diagonal().sum()) + (n - r) - gap / g)
    by_log_noise = by_log_ratio - 0.5 * misfit  # misfit ~ 1 / s2 at fixed g / sf2
    by_log_signal = 0.5 * n - by_log_ratio
    value = 0.5 * (misfit + log_det + n * math.log(2.0 * math.pi) + gap / g - unit_stats.log_weights)
    by_trace = 0.5 / g if objective == "elbo" else 0.0
    return EvidenceGradient(value, by_gram, -w / s2, by_trace, by_log_signal, by_log_noise)
