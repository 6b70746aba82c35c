"""The dense linear algebra that every room shares: one Cholesky, one symmetric product."""

from __future__ import annotations

import torch
from scipy.linalg.blas import dsyrk
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError

_BLOCK_LEVELS = 2
_SMALLEST_BLOCK = 64


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
    """Phi' Phi (r, r) in float64 from Phi (n, r), without computing both triangles.

    float32 features are multiplied in float32 and accumulated by the caller in float64. On one thread, BLAS syrk does
    half the work of a general product; torch has none, so it comes from SciPy. On several threads the pools of SciPy
    and torch would wait for each other (measured: 11 ms instead of 4), so torch multiplies blocks of one triangle.
    """
    if features.dtype != torch.float64 or features.device.type != "cpu" or features.shape[0] == 0:
        return (features.mT @ features).to(torch.float64)
    if torch.get_num_threads() > 1:
        return _gram_by_blocks(features, _BLOCK_LEVELS)
    # syrk wants Fortran order. Row-major Phi is the column-major Phi', and the other way round: neither is copied.
    if features.is_contiguous():
        upper = dsyrk(1.0, features.numpy().T, trans=0)
    else:
        upper = dsyrk(1.0, features.numpy(), trans=1)
    product = torch.from_numpy(upper).triu()
    return product + product.triu(1).mT


def _gram_by_blocks(features: Tensor, levels: int) -> Tensor:
    """The diagonal blocks by recursion, one of the two off-diagonal blocks by a product, the other by symmetry."""
    r = features.shape[1]
    if levels == 0 or r < _SMALLEST_BLOCK:
        return features.mT @ features
    left, right = features[:, : r // 2], features[:, r // 2 :]
    corner = left.mT @ right
    top = torch.cat([_gram_by_blocks(left, levels - 1), corner], dim=1)
    bottom = torch.cat([corner.mT, _gram_by_blocks(right, levels - 1)], dim=1)
    return torch.cat([top, bottom])
