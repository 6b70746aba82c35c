"""Spectral laws at unit length-scale: multivariate t, whose limit of infinite degrees of freedom is normal.

k(x, x') = E cos(omega'(x - x')) with omega = c g, g ~ N(0, I) and c = sqrt(nu' / chi2(nu')). There is one c per
*frequency*, so the limit is the isotropic Matern kernel of smoothness nu' / 2 in any dimension. The Gaussian kernel has
c = 1.
"""

from __future__ import annotations

import math

import torch
from scipy.stats import chi2
from torch import Tensor

_LOG_2PI = math.log(2.0 * math.pi)


def radius_scale(u: Tensor, degrees: float) -> Tensor:
    """c by its quantile function: u (m,) uniform on (0, 1) -> (m,)."""
    if math.isinf(degrees):
        return torch.ones_like(u)
    return torch.from_numpy((degrees / chi2.ppf(u.numpy(), degrees)) ** 0.5)


def log_density(omega: Tensor, degrees: float) -> Tensor:
    """Log density of the law with identity scale, omega (m, d) -> (m,)."""
    d = omega.shape[1]
    if math.isinf(degrees):
        return -0.5 * (omega.square().sum(1) + d * _LOG_2PI)
    constant = math.lgamma(0.5 * (degrees + d)) - math.lgamma(0.5 * degrees) - 0.5 * d * math.log(degrees * math.pi)
    return constant - 0.5 * (degrees + d) * torch.log1p(omega.square().sum(1) / degrees)
