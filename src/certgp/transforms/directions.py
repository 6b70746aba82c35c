"""Starting directions for a projection: where the inputs vary, and where the target does."""

from __future__ import annotations

import torch
from torch import Tensor


def principal_directions(covariance: Tensor, count: int) -> Tensor:
    """Leading eigenvectors of the input covariance (D, D): (D, count)."""
    vectors: Tensor = torch.linalg.eigh(covariance).eigenvectors
    return vectors.flip(1)[:, :count].contiguous()


def sliced_inverse_directions(X: Tensor, y: Tensor, count: int, slices: int = 20, ridge: float = 1e-3) -> Tensor:
    """Sliced inverse regression [Li 1991]: directions along which E[x | y] moves, (D, count).

    Whiten x, cut the rows into slices of equal size by y, take the leading eigenvectors of the covariance of the slice
    means and map them back. At most ``slices - 1`` directions carry signal; the rest of ``count`` follows by variance
    alone. Of several outputs y (n, q), NaN where one is missing, the mean of these covariances.
    """
    n, D = X.shape
    centred = X - X.mean(0)
    covariance = centred.mT @ centred / n + ridge * torch.eye(D, dtype=X.dtype)
    values, vectors = torch.linalg.eigh(covariance)
    whitener = (vectors / values.sqrt()) @ vectors.mT
    white = centred @ whitener
    if y.ndim == 1:
        between = _between_slices(white, y, slices)
    else:
        seen = [~column.isnan() for column in y.mT]
        each = [_between_slices(white[rows], y[rows, j], slices) for j, rows in enumerate(seen) if bool(rows.any())]
        between = torch.stack(each).mean(0)
    leading: Tensor = torch.linalg.eigh(between).eigenvectors
    directions: Tensor = whitener @ leading.flip(1)[:, :count]
    return directions


def _between_slices(white: Tensor, y: Tensor, slices: int) -> Tensor:
    """Covariance (D, D) of the means of whitened rows in slices of equal size by y (n,)."""
    n, D = white.shape
    parts = torch.tensor_split(white[torch.argsort(y, stable=True)], min(slices, n))
    return sum((torch.outer(m, m) * (len(part) / n) for part in parts for m in [part.mean(0)]), white.new_zeros((D, D)))


def linear_slopes(X: Tensor, y: Tensor, ridge: float = 1e-3) -> Tensor:
    """Coefficients (D,) of a ridge regression of y (n,) on centred X (n, D)."""
    centred = X - X.mean(0)
    covariance = centred.mT @ centred / len(X) + ridge * torch.eye(X.shape[1], dtype=X.dtype)
    slopes: Tensor = torch.linalg.solve(covariance, centred.mT @ (y - y.mean()) / len(X))
    return slopes


def input_moments(X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (D,) and covariance (D, D) of inputs (n, D)."""
    mean = X.mean(0)
    centred = X - mean
    return mean, centred.mT @ centred / X.shape[0]
