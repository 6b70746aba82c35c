"""Weights a ~ S^-1 y by the Lanczos steps of a local model's factor, and what they prove about the exact GP."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certgp.guarantees.certificate import Interval
from certgp.guarantees.exact_covariance import ExactCovariance
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DualWeights:
    """Any a (N,), with what is left of y = S a: a bound on sqrt(rho'S^-1 rho), rho = y - S a, and y'S^-1 y."""

    weights: Array
    residual: float
    quadratic: Interval


def judge_weights(covariance: ExactCovariance, y: Array, weights: Array) -> DualWeights:
    r"""One product with S. As S >= s2 I, rho'S^-1 rho <= |rho|^2 / s2; and completing the square,

    y'S^-1 y = 2 y'a - a'S a + rho'S^-1 rho.
    """
    image = covariance.multiply(weights[:, None])[:, 0]
    s2, length, n = covariance.noise_variance, float(np.linalg.norm(weights)), len(y)
    # the product is that of float kernel values, |S~ - S| <= e s2, and its sums are rounded
    lost = (covariance.relative * s2 + covariance.spill) * length
    rho = float(np.linalg.norm(y - image)) * (1.0 + 1e-12) + lost + 4.0 * UNIT_ROUNDOFF * float(np.linalg.norm(y))
    residual = rho / math.sqrt(s2)
    value = float(2.0 * (y @ weights) - weights @ image)
    terms = 2.0 * float(np.abs(y) @ np.abs(weights)) + float(np.abs(weights) @ np.abs(image))
    slack = lost * length + (n + 4) * UNIT_ROUNDOFF * terms
    return DualWeights(weights, residual, Interval(value - slack, value + slack + residual**2))
