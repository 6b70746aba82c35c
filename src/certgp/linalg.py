"""The dense linear algebra that every room shares: one Cholesky, one symmetric product."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError

UNIT_ROUNDOFF = 2.0**-53  # of float64
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


def solve_rounding(L: Tensor, entries: float, jitter: float) -> float:
    r"""A bound on how far |L^-1 k|^2 <= 1 as computed may be above k'(K + jitter I)^-1 k.  [Higham 2002, 8.1, 10.1]

    L (r, r) is the computed factor of K + jitter I, and entries of K and k err by at most ``entries``. The solve moves
    L^-1 k by at most d = r u | |L^-1| |L| | + entries | |L^-1| 1 |, that is its square by 2 d + d^2. The factor belongs
    to K + jitter I + E with |E| <= r entries + r (r + 1) u; what the jitter does not cover of it, |L^-1|^2 amplifies.
    """
    r = L.shape[0]
    inverse = solve_lower(L, eye_like(L)).abs()
    moved = r * UNIT_ROUNDOFF * _norm_bound(inverse @ L.abs()) + entries * float(inverse.sum(1).norm())
    uncovered = max(0.0, r * entries + r * (r + 1) * UNIT_ROUNDOFF - jitter)
    return 2.0 * moved + moved**2 + uncovered * _norm_bound(inverse) ** 2


def _norm_bound(M: Tensor) -> float:
    """sqrt(|M|_1 |M|_inf) >= |M|_2 for entries >= 0."""
    return math.sqrt(float(M.sum(0).max() * M.sum(1).max())) if M.numel() else 0.0
