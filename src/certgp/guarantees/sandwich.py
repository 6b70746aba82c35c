"""Proposition 2: a small KL divergence brackets covariances, and single predictions with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.checks import one_number
from certgp.guarantees.scalars import log_excess

_NEWTON_STEPS = 60
_LARGEST_EXCESS, _LARGEST_LOG = 1e300, 700.0  # where b = e^-u underflows, zero is the bound
_OUTWARDS = 1e-14  # relative: the two ends are rounded away from each other


def covariance_sandwich(gamma: float) -> tuple[float, float]:
    r"""(b, t) with b S2 <= S1 <= t S2 whenever KL(N(m1, S1) || N(m2, S2)) <= gamma.  [paper, Proposition 2; theory 7.2]

    b <= 1 <= t are the two roots of x - 1 - ln x = 2 gamma (b = -W_0(-e^{-1-2 gamma}), t with W_{-1}). Newton's method
    on logarithms of their distance to one, so that gamma = 1e-14 and 1e3 are as accurate as 1.
    """
    twice = 2.0 * one_number("gamma", gamma, "be finite and not negative", lambda x: 0.0 <= x < math.inf)
    if twice == 0.0:
        return 1.0, 1.0
    if twice > _LARGEST_EXCESS:  # t would overflow on the way
        return 0.0, math.inf
    u = _lower_root(twice)
    b = math.exp(-u) * (1.0 - _OUTWARDS * (1.0 + u)) if u < _LARGEST_LOG else 0.0
    return b, _upper_root(twice) * (1.0 + _OUTWARDS)


def _upper_root(excess: float) -> float:
    """t = 1 + s with s - ln(1 + s) = excess."""
    s = math.sqrt(2.0 * excess) + excess if excess < 1.0 else excess + math.log1p(excess) + 1.0
    for _ in range(_NEWTON_STEPS):  # convex and increasing, started above the root: falls monotonically
        step = (float(log_excess(s)) - excess) * (1.0 + s) / s
        s -= step
        if abs(step) <= 1e-16 * s:
            break
    return 1.0 + s


def _lower_root(excess: float) -> float:
    """u = -ln b with u + e^-u - 1 = excess."""
    u = math.sqrt(2.0 * excess) + excess
    for _ in range(_NEWTON_STEPS):
        value = u + math.expm1(-u) if u > 1.0 else float(log_excess(math.expm1(-u)))
        step = (value - excess) / -math.expm1(-u)
        u -= step
        if abs(step) <= 1e-16 * u:
            break
    return u


def moments_within(gamma: float, variance: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""What KL(exact || model) <= gamma between predictive laws says of every single point.  [theory 7.3]

        |mean - exact mean| <= sqrt(2 gamma v),      b v <= exact variance <= t v

    v (n,) are the model's predictive variances, noise included; marginalising does not increase a KL divergence, so the
    statement holds for all points at once.
    """
    v = np.asarray(variance, dtype=np.float64)
    b, t = covariance_sandwich(gamma)
    return np.sqrt(2.0 * gamma * v) * (1.0 + _OUTWARDS), b * v, t * v
