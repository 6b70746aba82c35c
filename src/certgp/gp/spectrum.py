"""The evidence of fixed statistics at ever new variances: one eigendecomposition, then no operation of O(r^3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError
from certgp.gp.evidence import NOISE_REMEDY, trace_gap
from certgp.gp.statistics import Statistics
from certgp.linalg import UNIT_ROUNDOFF


@dataclass(frozen=True, eq=False)
class SpectralGradient:
    """Derivatives of the negative objective as ``EvidenceGradient`` has them, where dL/dA is known by its factors."""

    value: float
    by_projection: Tensor  # G_b = dL/db (r,)
    by_log_signal: float
    by_log_noise: float
    _vectors: Tensor  # V (r, r)
    _inverse: Tensor  # diag of (E + g I)^-1 (r,)
    _weights: Tensor  # w (r,)
    _noise: float  # s2
    _by_trace: float  # {1 / (2 g)}

    def by_features(self, features: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """dL/dPhi = 2 Phi G_A + y G_b' (n, r) of some rows, in O(n r^2), as ``Cotangents`` has it."""
        phi, V, w = features.double().mT, self._vectors, self._weights
        cotangent = V @ ((V.mT @ phi) * self._inverse[:, None])
        cotangent.addr_(w, (w / self._noise) @ phi)
        if self._by_trace > 0.0:
            cotangent.sub_(phi, alpha=2.0 * self._by_trace)
        cotangent.addr_(self.by_projection, y.double())
        if weight is not None:
            cotangent.mul_(weight)
        return cotangent.to(features.dtype).mT


@dataclass(frozen=True, eq=False)
class GramSpectrum:
    """Unit-variance statistics with A = V E V' (r, r), E = diag(e)."""

    statistics: Statistics
    values: Tensor  # e (r,), at least 0
    vectors: Tensor  # V (r, r)
    projection: Tensor  # V'b (r,)

    @classmethod
    def of(cls, unit_stats: Statistics) -> GramSpectrum:
        """O(r^3), once (docs/decisions/0060)."""
        try:
            values, vectors = torch.linalg.eigh(unit_stats.A)
        except RuntimeError as error:  # numbers that are none
            raise NotPositiveDefiniteError(
                f"the {unit_stats.rank} x {unit_stats.rank} matrix A has no eigenvalues"
            ) from error
        return cls(unit_stats, values.clamp_min(0.0), vectors, vectors.mT @ unit_stats.b)

    def gradient(self, signal_variance: float, noise_variance: float, objective: str) -> SpectralGradient:
        r"""``evidence_gradient`` in O(r^2): with g = s2 / sf2 and p = V'b,

        w = V (E + g I)^-1 p,   b'w = sum p_i^2 / (e_i + g),   log|C| = sum log(e_i + g),   Tr C^-1 = sum 1 / (e_i + g)
        2 Phi dL/dA = Phi V (E + g I)^-1 V' + Phi w w' / s2  {- Phi / g}
        """
        stats, sf2, s2, p = self.statistics, signal_variance, noise_variance, self.projection
        n, r, g = stats.n, stats.rank, noise_variance / signal_variance
        shifted = self.values + g
        if not g > UNIT_ROUNDOFF * float(shifted.max()):
            raise NotPositiveDefiniteError(f"the {r} x {r} matrix {NOISE_REMEDY} is not positive definite in float64")
        inverse = shifted.reciprocal()
        scaled = p * inverse
        misfit = (stats.yty - float(p @ scaled)) / s2
        gap = trace_gap(stats) if objective == "elbo" else 0.0
        log_det = float(shifted.log().sum()) + (n - r) * math.log(g) + n * math.log(sf2)
        by_log_ratio = 0.5 * (float(scaled @ scaled) / sf2 + g * float(inverse.sum()) + (n - r) - gap / g)
        value = 0.5 * (misfit + log_det + n * math.log(2.0 * math.pi) + gap / g - stats.log_weights)
        w = self.vectors @ scaled
        by_trace = 0.5 / g if objective == "elbo" else 0.0
        by_log_signal, by_log_noise = 0.5 * n - by_log_ratio, by_log_ratio - 0.5 * misfit
        return SpectralGradient(value, -w / s2, by_log_signal, by_log_noise, self.vectors, inverse, w, s2, by_trace)
