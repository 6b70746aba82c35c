"""The rational quadratic kernel: Gaussian kernels of many length-scales at once."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from certgp.kernels.base import Kernel
from certgp.kernels.parameters import LENGTH, SHAPE, VARIANCE
from certgp.kernels.stationary import distance_rounding, scaled_distance


class RationalQuadratic(Kernel):
    """k = sf2 (1 + r^2 / (2 alpha))^-alpha, r = |(x - x') / l|; the Gaussian kernel for alpha -> infinity.

    |k'| <= 1 / sqrt(2) and r |k'| <= 2 / e for every alpha, so ``distance_rounding`` holds.
    """

    name = "rational_quadratic"
    parameters: ClassVar = {"length_scale": LENGTH, "signal_variance": VARIANCE, "alpha": SHAPE}
    constant_diagonal, decays = True, True
    length_scale: Tensor
    alpha: Tensor  # ()

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        alpha = self.alpha.to(X.dtype)
        squares = scaled_distance(X, Z, self.length_scale).square()
        return torch.exp(-alpha * torch.log1p(squares / (2.0 * alpha)))

    def rounding(self, Z: Tensor) -> float:
        return distance_rounding(self.pick_columns(Z), self.length_scale)
