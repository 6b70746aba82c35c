"""The periodic kernel: a Gaussian kernel on circles."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from certgp.kernels.base import Kernel
from certgp.kernels.gaussian import gaussian_correlation, gaussian_rounding
from certgp.kernels.parameters import LENGTH, VARIANCE, Parameter
from certgp.linalg import UNIT_ROUNDOFF


class Periodic(Kernel):
    r"""k(x, x') = sf2 exp(-2 sum_j sin^2(pi (x_j - x'_j) / p_j) / l_j^2).  [MacKay 1998]

    With w(x) = (cos 2 pi x_j / p_j, sin 2 pi x_j / p_j) in R^2d it is the Gaussian kernel of length-scales l_j on
    w(x), because |w_j(x) - w_j(x')|^2 = 4 sin^2(pi (x_j - x'_j) / p_j). So l_j measures arcs and has no unit.
    """

    name = "periodic"
    parameters: ClassVar = {
        "length_scale": Parameter(per_dimension=True, log_bounds=(-4.0, 4.0)),
        "period": LENGTH,
        "signal_variance": VARIANCE,
    }
    constant_diagonal = True
    length_scale: Tensor  # (d,) or ()
    period: Tensor  # (d,) or ()

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return gaussian_correlation(self._circles(X), self._circles(Z), self._arcs(X))

    def rounding(self, Z: Tensor) -> float:
        """That of the Gaussian kernel on the circles, and of the circles.

        The remainder of x / p is exact, so an angle errs by at most 19 u however far x is out, and w_j by 22 u. Both
        ends move a distance by at most 44 u |1 / l|, and a Gaussian correlation by 0.61 times as much.
        """
        own = self.pick_columns(Z.detach().double())
        arcs = self._arcs(own).detach()
        circles = 32.0 * UNIT_ROUNDOFF * math.sqrt(float(arcs[: own.shape[1]].pow(-2).sum()))
        return gaussian_rounding(self._circles(own).detach(), arcs) + circles

    def _circles(self, X: Tensor) -> Tensor:
        """w(x), (n, 2 d)."""
        period = self.period.to(X.dtype).expand(X.shape[1])
        angle = (2.0 * math.pi) * (torch.fmod(X, period) / period)
        return torch.cat([angle.cos(), angle.sin()], dim=1)

    def _arcs(self, X: Tensor) -> Tensor:
        """The length-scales of w(x), (2 d,)."""
        return self.length_scale.expand(X.shape[1]).repeat(2)
