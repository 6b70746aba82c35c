"""The Gaussian (squared exponential) kernel with one length-scale per dimension."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from certgp.kernels.base import LOG_2PI, Kernel
from certgp.kernels.mercer import MercerExpansion


class Gaussian(Kernel):
    r"""k(x, x') = sf2 exp(-1/2 sum_j (x_j - x'_j)^2 / l_j^2).

    In the paper's parametrisation exp(-sum_j eps_j^2 (x_j - x'_j)^2) with eps_j^2 = 1 / (2 l_j^2). Its spectral law is
    eta ~ N(0, 2 Delta), Delta = diag(eps^2), that is eta_j = g / l_j (the paper's printed density belongs to another
    convention: theory T1).
    """

    name: ClassVar[str] = "gaussian"

    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        centre = Z.detach().mean(
            0
        )  # centring keeps the cancellation of |x|^2 + |z|^2 - 2 x'z at the scale of the spread
        K: Tensor = _GaussianCorrelation.apply(X - centre, Z - centre)  # type: ignore[no-untyped-call]
        return K.mT

    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        return torch.ones_like(u)

    def spectral_log_density(self, omega: Tensor) -> Tensor:
        return -0.5 * (omega.square().sum(1) + omega.shape[1] * LOG_2PI)

    def mercer(self, input_scale: Tensor) -> MercerExpansion:
        """Expansion in weighted Hermite functions, orthonormal under x_j ~ N(0, input_scale_j^2)."""
        return MercerExpansion(self.length_scale, input_scale)


class _GaussianCorrelation(torch.autograd.Function):
    r"""K = exp(-|z_i - x_j|^2 / 2), (m, n), in one array; its pull-back needs K alone.

    The exponent is one matrix product, [z, -|z|^2 / 2, 1] [x, 1, -|x|^2 / 2]'. With T = G * K:

        dL/dZ = T X - diag(T 1) Z,  dL/dX = T'Z - diag(T'1) X.
    """

    @staticmethod
    def forward(ctx: Any, X: Tensor, Z: Tensor) -> Tensor:
        left = torch.cat([Z, -0.5 * Z.square().sum(1, keepdim=True), Z.new_ones((len(Z), 1))], 1)
        right = torch.cat([X, X.new_ones((len(X), 1)), -0.5 * X.square().sum(1, keepdim=True)], 1)
        K = (left @ right.mT).clamp_(max=0.0).exp_()
        ctx.save_for_backward(X, Z, K)
        return K

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (X, Z, K), (G,) = ctx.saved_tensors, grad_outputs
        T = G * K
        by_X = _pulled(T.mT, Z, X) if ctx.needs_input_grad[0] else None
        by_Z = _pulled(T, X, Z) if ctx.needs_input_grad[1] else None
        return by_X, by_Z


def _pulled(T: Tensor, others: Tensor, own: Tensor) -> Tensor:
    """T others - diag(T 1) own, with both products in one pass over T."""
    both = T @ torch.cat([others, others.new_ones((len(others), 1))], 1)
    return both[:, :-1] - both[:, -1:] * own
