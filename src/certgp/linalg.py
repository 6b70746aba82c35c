"""The dense linear algebra that every room shares: one Cholesky, one symmetric product."""

from __future__ import annotations

import torch
from scipy.linalg.blas import dsyrk
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError


def cholesky(matrix: Tensor, what: str) -> Tensor:
    """Lower Cholesky factor L with L L' = matrix; raises instead of adding jitter silently.

    ``what`` names the matrix in the error text, followed by the remedy, e.g.
    ``"K + s2 I (raise noise_variance)"``.
    """
    factor: Tensor
    info: Tensor
    factor, info = torch.linalg.cholesky_ex(matrix)
    if int(info) != 0 or not bool(torch.isfinite(factor.diagonal()).all()):
        raise NotPositiveDefiniteError(
            f"the {matrix.shape[0]} x {matrix.shape[0]} matrix {what} is not positive definite in "
            f"{str(matrix.dtype).removeprefix('torch.')} arithmetic"
        )
    return factor


def solve_lower(L: Tensor, rhs: Tensor) -> Tensor:
    """L^-1 rhs for lower triangular L (r, r) and rhs of shape (r,) or (r, k)."""
    columns = rhs[:, None] if rhs.ndim == 1 else rhs
    solution: Tensor = torch.linalg.solve_triangular(L, columns, upper=False)
    return solution.reshape(rhs.shape)


def solve_lower_transposed(L: Tensor, rhs: Tensor) -> Tensor:
    """L'^-1 rhs for lower triangular L (r, r) and rhs of shape (r,) or (r, k)."""
    columns = rhs[:, None] if rhs.ndim == 1 else rhs
    solution: Tensor = torch.linalg.solve_triangular(L.mT, columns, upper=True)
    return solution.reshape(rhs.shape)


def log_det_from_cholesky(L: Tensor) -> Tensor:
    """log|L L'| = 2 sum_i log L_ii."""
    return 2.0 * L.diagonal().log().sum()


def eye_like(matrix: Tensor) -> Tensor:
    """Identity of the size, type and device of a square matrix."""
    return torch.eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)


def gram(features: Tensor) -> Tensor:
    """Phi' Phi (r, r) in float64 from Phi (n, r).

    A symmetric rank-k product (BLAS syrk) does half the work of a general one; torch has none, so float64
    on the CPU goes through SciPy. float32 features are multiplied in float32 and accumulated by the caller in float64.
    """
    if features.dtype != torch.float64 or features.device.type != "cpu" or features.shape[0] == 0:
        return (features.mT @ features).to(torch.float64)
    # syrk wants Fortran order. Row-major Phi is the column-major Phi', and the other way round, so neither layout is
    # copied.
    if features.is_contiguous():
        upper = dsyrk(1.0, features.numpy().T, trans=0)
    else:
        upper = dsyrk(1.0, features.numpy(), trans=1)
    product = torch.from_numpy(upper).triu()
    return product + product.triu(1).mT
