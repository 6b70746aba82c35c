"""The Gaussian (squared exponential) kernel with one length-scale per dimension."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import has_torch_function

from certgp.kernels.base import Kernel
from certgp.kernels.mercer import MercerExpansion
from certgp.kernels.parameters import LENGTH, VARIANCE
from certgp.kernels.stationary import (
    distance_rounding,
    pull_back,
    refuse_second_derivatives,
    row_parts,
    spread,
    with_ones,
)
from certgp.linalg import UNIT_ROUNDOFF

_FAR = 100.0  # length-scales from the centre, from where on |x|^2 + |z|^2 - 2 x'z has lost too many digits


class Gaussian(Kernel):
    r"""k(x, x') = sf2 exp(-1/2 sum_j (x_j - x'_j)^2 / l_j^2).

    In the paper's parametrisation exp(-sum_j eps_j^2 (x_j - x'_j)^2) with eps_j^2 = 1 / (2 l_j^2). Its spectral law is
    eta ~ N(0, 2 Delta), Delta = diag(eps^2), that is eta_j = g / l_j (the paper's printed density belongs to another
    convention: theory T1).
    """

    name, spectral_degrees = "gaussian", math.inf
    parameters: ClassVar = {"length_scale": LENGTH, "signal_variance": VARIANCE}
    constant_diagonal, decays = True, True
    length_scale: Tensor  # (d,), or () for a length-scale shared by all dimensions

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return gaussian_correlation(X, Z, self.length_scale)

    def rounding(self, Z: Tensor) -> float:
        return gaussian_rounding(self.pick_columns(Z), self.length_scale)

    @property
    def has_mercer_expansion(self) -> bool:
        return self.columns is None

    def mercer(self, input_scale: Tensor) -> MercerExpansion:
        """Expansion in weighted Hermite functions, orthonormal under x_j ~ N(0, input_scale_j^2)."""
        return MercerExpansion(self.length_scale, input_scale) if self.columns is None else super().mercer(input_scale)


def gaussian_rounding(Z: Tensor, length_scale: Tensor) -> float:
    """A bound on the rounding of ``gaussian_correlation(X, Z)`` in float64, at any X.

    Up to ``_FAR`` a distance comes from |x|^2 + |z|^2 - 2 x'z, rounded at their size. The exponent then errs by at most
    (2 d + 8) u (|x| + |z|)^2 / 2, and with |x| <= R + r its product with exp(-r^2 / 2) is at most
    (2 d + 8) u 2 (R + 1)^2. Beyond, it comes from differences.
    """
    size = spread(Z, length_scale)
    if size > _FAR:
        return distance_rounding(Z, length_scale)
    return 4.0 * (Z.shape[1] + 8) * (size + 1.0) ** 2 * UNIT_ROUNDOFF


def gaussian_correlation(X: Tensor, Z: Tensor, length_scale: Tensor) -> Tensor:
    """exp(-1/2 |(x_i - z_j) / l|^2), (n, m), in the type of X."""
    scale = length_scale.to(X.dtype).expand(X.shape[1])
    if has_torch_function((X, Z)):  # operands that record operations of torch (``certgp.export``)
        return torch.exp(-0.5 * torch.cdist(X / scale, Z / scale).square())
    centre = Z.detach().mean(0)  # centring keeps the cancellation of |x|^2 + |z|^2 - 2 x'z at the scale of the spread
    K: Tensor = _GaussianCorrelation.apply(X - centre, Z - centre, scale)  # type: ignore[no-untyped-call]
    return K.mT


class _GaussianCorrelation(torch.autograd.Function):
    r"""K = exp(-|(z_i - x_j) / l|^2 / 2), (m, n), in one array; its pull-back needs K alone.

    With x, z in units of l and T = G * K:

        l dL/dZ = T X - diag(T 1) Z,  l dL/dX = T'Z - diag(T'1) X,
        l dL/dl = sum_i [T X^2 - 2 Z * (T X) + diag(T 1) Z^2]_i.

    So Z and l take one pass over T, which is made in parts that stay in the processor's cache.
    """

    @staticmethod
    def forward(ctx: Any, X: Tensor, Z: Tensor, length_scale: Tensor) -> Tensor:
        X, Z = X / length_scale, Z / length_scale
        K = _exponent(X, Z).exp_()
        ctx.save_for_backward(X, Z, length_scale, K)
        return K

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        (X, Z, length_scale, K), (G,) = ctx.saved_tensors, grad_outputs
        by_X = torch.empty_like(X) if ctx.needs_input_grad[0] else None
        z_one, x_one = with_ones(Z), torch.cat([with_ones(X), X.square()], 1)
        moments = Z.new_zeros((len(Z), x_one.shape[1]))
        for part in row_parts(len(X), len(Z)):
            T = G[:, part] * K[:, part]
            moments.addmm_(T, x_one[part])
            if by_X is not None:
                by_X[part] = pull_back(X[part], T.mT @ z_one) / -length_scale
        d = X.shape[1]
        by_Z = pull_back(Z, moments[:, : d + 1]) / -length_scale
        first, total, second = moments.split([d, 1, d], 1)
        by_scale = (second - 2.0 * Z * first + total * Z.square()).sum(0) / length_scale
        return by_X, by_Z, by_scale


def _exponent(X: Tensor, Z: Tensor) -> Tensor:
    """-|z_i - x_j|^2 / 2, (m, n): one matrix product, [z, -|z|^2 / 2, 1] [x, 1, -|x|^2 / 2]'; by differences where some
    z is far out, which costs more. A far x alone does no harm: its correlation with every z is zero.
    """
    squares = Z.square().sum(1, keepdim=True)
    if bool((squares > _FAR**2).any()):
        return torch.cdist(Z, X, compute_mode="donot_use_mm_for_euclid_dist").square_().mul_(-0.5)
    left = torch.cat([Z, -0.5 * squares, Z.new_ones((len(Z), 1))], 1)
    right = torch.cat([X, X.new_ones((len(X), 1)), -0.5 * X.square().sum(1, keepdim=True)], 1)
    return (left @ right.mT).clamp_(max=0.0)
