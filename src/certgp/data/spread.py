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
    """Means and scales (D,) of columns, of the bulk of the sample (n, D) where numbers far away made the scale, and
    which columns these are. A few numbers, or one number again and again, such as a code for what is missing, would
    press all others into one point.
    """
    far = np.zeros(len(mean), dtype=bool)
    if len(sample) < _FEWEST_ROWS:
        return mean, scale, far
    mean, scale = mean.copy(), scale.copy()
    for j, column in enumerate(sample.T):
        low, high = _bulk_range(_without_codes(column))
        width = high - low
        far[j] = width > 0.0 and scale[j] > _FAR * width / _NORMAL_WIDTH
        if far[j]:
            bulk = column[np.abs(column - 0.5 * (low + high)) <= _REACH * width]
            mean[j], scale[j] = bulk.mean(), bulk.std()
    return mean, scale, far


def _bulk_range(column: Array) -> tuple[float, float]:
    """Between which numbers most of a column lie."""
    low = np.quantile(column, _TAIL, method="higher")
    return float(low), float(np.quantile(column, 1.0 - _TAIL, method="lower"))


def _without_codes(column: Array) -> Array:
    """A column (n,) without its largest and its smallest number, where that is far from all others and repeated, in at
    most half of the rows: a number that is measured has neighbours, a code has none.
    """
    for code in (column.max(), column.min()):
        rest = column[column != code]
        count = len(column) - len(rest)
        if count < 2 or len(rest) < max(_FEWEST_ROWS, len(column) // 2):
            continue
        low, high = _bulk_range(rest)
        if abs(code - 0.5 * (low + high)) > _REACH * (high - low) > 0.0:
            column = rest
    return column


def bulk_moments(X: Tensor) -> tuple[Tensor, Tensor]:
    """Means and standard deviations (d,) of the columns of X (n, d), without numbers far from all others."""
    mean, scale = X.mean(0), X.std(0, correction=0)
    found = without_far_numbers(X.double().numpy(), mean.double().numpy(), scale.double().numpy())
    return torch.from_numpy(found[0]).to(X.dtype), torch.from_numpy(found[1]).to(X.dtype)
