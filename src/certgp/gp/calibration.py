"""Noise that held-out rows confirm."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

Array = NDArray[np.float64]
# a model may claim a fifth of the scatter it leaves, not less; upwards there is room for a network that has learned its
# few rows by heart (docs/decisions/0018)
_LOG_SCALES = (-1.5, math.log(1_000.0))


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """log N(y | mean, variance), number by number."""
    return np.asarray(-0.5 * (np.log(2.0 * np.pi * variance) + np.square(y - mean) / variance))


def gaussian_nlpd(y: Array, mean: Array, variance: Array) -> float:
    """Mean of -log N(y | mean, variance) over rows (n,)."""
    return -float(np.mean(gaussian_log_density(y, mean, variance)))


def noise_scale(y: Array, mean: Array, latent_variance: Array, noise_variance: float | Array) -> float:
    r"""k = argmin over k in [0.22, 1000] of the mean of -log N(y | mean, latent_variance + k noise_variance).

    The evidence sees the noise only on rows that the model was fitted to, where a flexible model (a network) leaves too
    small residuals; rows it has not seen (n,) tell what scatter remains. Their noise variances may differ (n,).
    """

    def nlpd(log_scale: float) -> float:
        return gaussian_nlpd(y, mean, latent_variance + math.exp(log_scale) * noise_variance)

    found = minimize_scalar(nlpd, bounds=_LOG_SCALES, method="bounded")
    return math.exp(float(found.x))
