"""The dense linear algebra that every room shares: one Cholesky, one symmetric product."""

from __future__ import annotations

import torch
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError

_PANEL = 80  # rows of the symmetric product made at a time


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

    float32 features are multiplied in float32 and accumulated by the caller in float64. torch has no syrk, and SciPy's
    holds Python's lock while it runs, so the chunks of a fold would wait for each other; panels of one triangle reach
    three quarters of the time of the full product.
    """
    columns = features.mT
    r = columns.shape[0]
    product = torch.zeros((r, r), dtype=torch.float64, device=features.device)
    for start in range(0, r, _PANEL):
        stop = min(start + _PANEL, r)
        product[start:stop, start:] = (columns[start:stop] @ columns[start:].mT).to(torch.float64)
    # one triangle decides: on some processors a'b and b'a differ in the last bit
    return product.triu() + product.triu(1).mT
