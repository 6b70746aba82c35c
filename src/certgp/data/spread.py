"""Where the bulk of a column's numbers lies, whatever a few others are."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
_BULK, _NORMAL_WIDTH = (0.025, 0.975), 3.92  # of a column's numbers; the width that they have in units of its scale
_FAR = 30.0  # times the scale that the bulk of a column has
_REACH = 10.0  # widths of the bulk about its middle, in which numbers count


def without_far_numbers(sample: Array, mean: Array, scale: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Means and scales (D,) of columns, of the bulk of the sample (n, D) where a few numbers far away, such as a code
    for what is missing, made the scale: they would press all others into one point. And which columns these are.
    """
    low, high = np.quantile(sample, _BULK, axis=0)
    width = high - low
    far = (width > 0.0) & (scale > _FAR * width / _NORMAL_WIDTH)
    mean, scale = mean.copy(), scale.copy()
    for j in np.flatnonzero(far):
        column = sample[:, j]
        bulk = column[np.abs(column - 0.5 * (low[j] + high[j])) <= _REACH * width[j]]
        mean[j], scale[j] = bulk.mean(), bulk.std()
    return mean, scale, far


def bulk_moments(X: Tensor) -> tuple[Tensor, Tensor]:
    """Means and standard deviations (d,) of the columns of X (n, d), without numbers far from all others."""
    mean, scale = X.mean(0), X.std(0, correction=0)
    found = without_far_numbers(X.double().numpy(), mean.double().numpy(), scale.double().numpy())
    return torch.from_numpy(found[0]).to(X.dtype), torch.from_numpy(found[1]).to(X.dtype)
