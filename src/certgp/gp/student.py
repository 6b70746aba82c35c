r"""Student-t noise: a Gaussian whose precision is drawn anew for every row.

    y | f, l ~ N(f, s2 / l),   l ~ Gamma(nu / 2, nu / 2)     so that   y | f ~ f + s t_nu

Given l a row is one of weight l, so a GP with such noise is fitted by weighted fits: with q(f) of the weighted GP,
E l = (nu + 1) / (nu + E (y - f)^2 / s2) is the next weight.  [Lange, Little and Taylor 1989; Kuss 2006, ch. 5]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaincinv, gammaln, logsumexp
from torch import Tensor

from certgp.gp.noise import Noise, NoiseInputs

Array = NDArray[np.float64]
_LEAST_PRECISION = 1e-8  # deviations of up to ten thousand s have the density of the t
_ABOVE = 1e-10  # probability of precisions above the nodes
_STEPS = 20  # of a single row's weight


def student_weights(second_moments: Tensor, scale: float, degrees_of_freedom: float) -> Tensor:
    """E l_i = (nu + 1) / (nu + e_i / s2) (n,) from e_i = weight_i E (y_i - f_i)^2."""
    return (degrees_of_freedom + 1.0) / (degrees_of_freedom + second_moments / scale)


def second_moments(residuals: Tensor, latent_variance: Tensor, noise_variance: Tensor | float) -> Tensor:
    r"""E (y_i - f_i)^2 given all rows (n,), from rows predicted without their own targets: with f_i ~ N(m_i, v_i) given
    the others, r_i = y_i - m_i, and kappa = s2_i / (s2_i + v_i),  E (y_i - f_i)^2 = (kappa r_i)^2 + kappa v_i.
    """
    kappa = noise_variance / (noise_variance + latent_variance)
    return (kappa * residuals).square() + kappa * latent_variance


@dataclass(frozen=True)
class StudentNoise:
    """Observations scatter around f as s t_nu, in standardised units; the same at every row."""

    degrees_of_freedom: float  # nu > 2
    scale: float  # s2

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        r"""Precisions l_k (K,) and probabilities (K,) of a finite mixture of N(0, s2 / l_k) that stands for s t_nu.

        The trapezoidal rule in t = log l. The integrand falls faster than exponentially upwards and like exp(nu t / 2)
        downwards, and its width is about sqrt(2 / (nu + 1)): with steps of 0.7 times that the density errs by less than
        1e-5 of itself.
        """
        half = 0.5 * self.degrees_of_freedom
        high = float(gammaincinv(half, 1.0 - _ABOVE)) / half
        step = 0.7 * math.sqrt(2.0 / (self.degrees_of_freedom + 1.0))
        t = np.arange(math.log(_LEAST_PRECISION), math.log(high) + step, step)
        log_density = half * math.log(half) - gammaln(half) + half * (t - np.exp(t))
        return np.exp(t), np.exp(log_density - logsumexp(log_density))

    def log_density(self, residuals: Array, latent_variance: Array, weight: Array | float = 1.0) -> Array:
        """log of N(0, v_i) convolved with the noise of a row of this weight, at residuals (n,)."""
        from certgp.gp.mixture import mixture_log_density

        precisions, shares = self.nodes
        variances = latent_variance + self.scale / (precisions[:, None] * weight)
        return mixture_log_density(residuals, np.zeros_like(variances), variances, shares)

    def weigh(self, residuals: Tensor, latent_variance: Tensor, weight: Tensor) -> Tensor:
        """E l_i (n,) of further rows with known weights, from what a model that has not seen them says of each."""
        factors = torch.ones_like(residuals)
        for _ in range(_STEPS):
            noise = self.scale / (weight * factors)
            moments = weight * second_moments(residuals, latent_variance, noise)
            factors = student_weights(moments, self.scale, self.degrees_of_freedom)
        return factors

    def at(self, rows: NoiseInputs) -> Noise:
        """Of new observations at n rows: alike at all of them."""
        precisions, shares = self.nodes
        return Noise(torch.from_numpy(shares), torch.from_numpy(self.scale / precisions)[:, None])

    def describe(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values for a file."""
        return {}, {"kind": "student", "degrees_of_freedom": self.degrees_of_freedom, "scale": self.scale}
