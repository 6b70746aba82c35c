"""The Gaussian (squared exponential) kernel with one length-scale per dimension."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from certgp.kernels.base import LOG_2PI, Kernel, centred_squared_distance
from certgp.kernels.mercer import MercerExpansion


class Gaussian(Kernel):
    r"""k(x, x') = sf2 exp(-1/2 sum_j (x_j - x'_j)^2 / l_j^2).

    In the paper's parametrisation exp(-sum_j eps_j^2 (x_j - x'_j)^2) with eps_j^2 = 1 / (2 l_j^2). Its spectral law is
    eta ~ N(0, 2 Delta), Delta = diag(eps^2), that is eta_j = g / l_j (the paper's printed density belongs to another
    convention: theory T1).
    """

    name: ClassVar[str] = "gaussian"

    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        return torch.exp(-0.5 * centred_squared_distance(X, Z))

    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        return torch.ones_like(u)

    def spectral_log_density(self, omega: Tensor) -> Tensor:
        return -0.5 * (omega.square().sum(1) + omega.shape[1] * LOG_2PI)

    def mercer(self, input_scale: Tensor) -> MercerExpansion:
        """Expansion in weighted Hermite functions, orthonormal under x_j ~ N(0, input_scale_j^2)."""
        return MercerExpansion(self.length_scale, input_scale)
