"""What a map dominated by the kernel loses of single rows: a log determinant, and the reverse divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from certgp.guarantees.rounding import accumulation_slack
from certgp.guarantees.scalars import log_excess

_TURN = 2.16258158706461  # where f(e) / e is largest: (1 + e)^2 ln(1 + e) = e + 2 e^2
_SLOPE = _TURN / (1.0 + _TURN) ** 2  # and its value there
_OUTWARDS = 1.0 + 1e-14  # the functions themselves round


@dataclass(frozen=True)
class RowLosses:
    """Sums over rows of concave functions of x_i = d_i / s2, d_i = k(x_i, x_i) - |phi(x_i)|^2 from above, times the
    row's weight; ``+`` merges disjoint rows.
    """

    log_sum: float  # sum ln(1 + x_i)
    reverse_sum: float  # sum of ``reverse_excess`` from above
    n: int

    def __add__(self, other: RowLosses) -> RowLosses:
        return RowLosses(self.log_sum + other.log_sum, self.reverse_sum + other.reverse_sum, self.n + other.n)

    @staticmethod
    def of(
        features: Tensor,
        signal_variance: float,
        noise_variance: float,
        map_rounding: float,
        weight: Tensor | None = None,
    ) -> RowLosses:
        """Of some rows with unit-variance features (n, r) and weights (n,) where they are not all one; ``map_rounding``
        is the map's own (``rounding``).
        """
        lost = (1.0 - features.square().sum(1)).clamp_min(0.0) + accumulation_slack(features.shape[1], 1.0)
        x = (lost + map_rounding).numpy() * (signal_variance / noise_variance)
        if weight is not None:
            x = x * weight.numpy()
        return RowLosses(float(np.log1p(x).sum()), float(reverse_excess(x).sum()), len(x))

    @property
    def log_determinant(self) -> float:
        """h, see ``log_determinant_bound``; rounding included."""
        return self.log_sum * self._outwards

    @property
    def reverse_divergence(self) -> float:
        """A bound on KL(model || exact), see ``reverse_divergence_bound``; rounding included."""
        return 0.5 * self.reverse_sum * self._outwards

    @property
    def _outwards(self) -> float:
        return 1.0 + accumulation_slack(self.n, 1.0)


def log_determinant_bound(gap: float, noise_variance: float, n: int) -> float:
    r"""ln|K + s2 I| - ln|Phi Phi' + s2 I| <= h = sum_i ln(1 + d_i / s2) <= j = N ln(1 + tau / (N s2)), Phi Phi' <= K.

    The left side is ln|I + E^1/2 S2^-1 E^1/2| <= ln|I + E / s2| because S2 >= s2 I, and Hadamard's inequality bounds a
    determinant by the product of the diagonal: that is h, which needs the rows (``RowLosses``). The logarithm is
    concave, so h <= j, which statistics know: ``gap`` = tau. [E3, E4]
    """
    return n * math.log1p(gap / (n * noise_variance)) * _OUTWARDS


def reverse_divergence_bound(gap: float, noise_variance: float, n: int) -> float:
    r"""KL(model || exact) <= 1/2 f(t) where t = tau / s2 <= e0, else <= 1/2 N F(t / N).  [K3]

    KL(model || exact) = 1/2 sum_i f(e_i) exactly, f(e) = ln(1 + e) - e / (1 + e), with e_i >= 0 the eigenvalues of
    S2^-1/2 E S2^-1/2, whose sum is at most t. f(e) / e grows up to e0 = 2.16 and falls from there, so below e0 one
    eigenvalue is the worst case; F, the least concave function above f, is the line f(e0) e / e0 up to e0 and f beyond.
    """
    t = gap / noise_variance
    if t <= _TURN:
        return 0.5 * float(_reverse_term(t)) * _OUTWARDS
    return 0.5 * n * float(reverse_excess(t / n)) * _OUTWARDS


def reverse_excess(x: ArrayLike) -> NDArray[np.float64]:
    """F(x) of ``reverse_divergence_bound`` for x >= 0, elementwise; never above ln(1 + x)."""
    values = np.asarray(x, dtype=np.float64)
    return np.where(values <= _TURN, _SLOPE * values, _reverse_term(values))


def _reverse_term(x: ArrayLike) -> NDArray[np.float64]:
    """f(x) = ln(1 + x) - x / (1 + x), where that cancels as ``log_excess`` at -x / (1 + x)."""
    values = np.asarray(x, dtype=np.float64)
    near = np.minimum(values, 1.0)
    return np.where(values <= 1.0, log_excess(-near / (1.0 + near)), np.log1p(values) - values / (1.0 + values))
