"""Matern kernels of smoothness 1/2, 3/2 and 5/2."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from scipy.stats import chi2
from torch import Tensor

from certgp.kernels.base import Kernel


def _distance(X: Tensor, Z: Tensor) -> Tensor:
    """|x_i - z_j| (n, m) from differences: the matrix-product form would lose half the digits near zero, where rho
    has its kink.
    """
    return torch.cdist(X, Z, compute_mode="donot_use_mm_for_euclid_dist")


def _student_scale(u: Tensor, degrees: int) -> Tensor:
    """sqrt(nu' / chi2_{nu'}) by its quantile function: u (m,) uniform -> (m,)."""
    return torch.from_numpy((degrees / chi2.ppf(u.numpy(), degrees)) ** 0.5)


def _student_log_density(omega: Tensor, degrees: int) -> Tensor:
    """Log density of the multivariate t law with identity scale, omega (m, d) -> (m,)."""
    d = omega.shape[1]
    constant = math.lgamma(0.5 * (degrees + d)) - math.lgamma(0.5 * degrees) - 0.5 * d * math.log(degrees * math.pi)
    return constant - 0.5 * (degrees + d) * torch.log1p(omega.square().sum(1) / degrees)


class Matern12(Kernel):
    """k = sf2 exp(-r), r = |(x - x') / l|."""

    name: ClassVar[str] = "matern12"

    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        return torch.exp(-_distance(X, Z))

    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        return _student_scale(u, 1)

    def spectral_log_density(self, omega: Tensor) -> Tensor:
        return _student_log_density(omega, 1)


class Matern32(Kernel):
    """k = sf2 (1 + a) exp(-a), a = sqrt(3) |(x - x') / l|."""

    name: ClassVar[str] = "matern32"

    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        a = math.sqrt(3.0) * _distance(X, Z)
        return (1.0 + a) * torch.exp(-a)

    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        return _student_scale(u, 3)

    def spectral_log_density(self, omega: Tensor) -> Tensor:
        return _student_log_density(omega, 3)


class Matern52(Kernel):
    """k = sf2 (1 + a + a^2 / 3) exp(-a), a = sqrt(5) |(x - x') / l|."""

    name: ClassVar[str] = "matern52"

    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        a = math.sqrt(5.0) * _distance(X, Z)
        return (1.0 + a + a.square() / 3.0) * torch.exp(-a)

    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        return _student_scale(u, 5)

    def spectral_log_density(self, omega: Tensor) -> Tensor:
        return _student_log_density(omega, 5)
