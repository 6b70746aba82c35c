"""Where the bulk of a column's numbers lies, whatever a few others are."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
# all of a column's numbers but one in 400 on each side, and at least one: more are no accident but sparse; and the
# width that the others have in units of their scale
_TAIL, _NORMAL_WIDTH = 0.0025, 5.61
_FAR = 30.0  # times the scale that the bulk of a column has
_FEWEST_ROWS = 50  # below, there is no bulk to be far from
_REACH = 10.0  # widths of the bulk about its middle, in which numbers count


def without_far_numbers(sample: Array, mean: Array, scale: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Means and scales (D,) of columns, of the bulk of the sample (n, D) where a few numbers far away, such as a code
    for what is missing, made the scale: they would press all others into one point. And which columns these are.
    """
    if len(sample) < _FEWEST_ROWS:
        return mean, scale, np.zeros(len(mean), dtype=bool)
    low = np.quantile(sample, _TAIL, axis=0, method="higher")
    high = np.quantile(sample, 1.0 - _TAIL, axis=0, method="lower")
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
