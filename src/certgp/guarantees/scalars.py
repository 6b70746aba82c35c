"""Scalar functions that several theorems share, evaluated without cancellation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SERIES_BELOW = 0.02
_SERIES_TERMS = 12  # |x|^12 / 14 relative to the first term: below rounding for |x| < .02


def log_excess(x: ArrayLike) -> NDArray[np.float64]:
    r"""x - ln(1 + x) >= 0 for x > -1, elementwise: what a direction of relative size x adds to twice a KL divergence.

    Near zero the difference cancels, so there it is its series x^2 (1/2 - x/3 + x^2/4 - ...).
    """
    values = np.asarray(x, dtype=np.float64)
    small = np.abs(values) < _SERIES_BELOW
    near = np.where(small, values, 0.0)
    series = np.zeros_like(near)
    for k in range(_SERIES_TERMS + 1, -1, -1):
        series = (-1.0) ** k / (k + 2) + near * series
    far = np.where(small, 1.0, values)
    return np.where(small, near * near * series, far - np.log1p(far))
