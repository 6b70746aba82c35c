"""Products with the exact kernel matrix, and how they are rounded, as functions."""

from __future__ import annotations

from torch import Tensor

from certgp.gp.kernel_products import KernelMatrix
from certgp.kernels import Kernel


def kernel_product(kernel: Kernel, inputs: Tensor, V: Tensor) -> Tensor:
    """K V for K = k(X, X), X (N, d), V (N, k)."""
    return KernelMatrix(kernel, inputs).multiply(V)


def cross_product(kernel: Kernel, new: Tensor, inputs: Tensor, v: Tensor) -> Tensor:
    """k(X*, X) v for X* (n, d), X (N, d), v (N,): (n,)."""
    return KernelMatrix(kernel, inputs).cross(new, v[:, None])[:, 0]


def entries_rounding(kernel: Kernel, inputs: Tensor) -> float:
    """A bound on how far an entry of k(X*, X) / sf2, as these products compute it, may be from the exact one."""
    return KernelMatrix(kernel, inputs).entries_rounding()
