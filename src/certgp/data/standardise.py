"""Centre and scale of inputs and target; everything inside the library is standardised, everything a user sees is
not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_BLOCK = 65_536


@dataclass(frozen=True, eq=False)
class Standardiser:
    """x -> (x - x_mean) / x_scale, y -> (y - y_mean) / y_scale. A column that does not vary becomes zero everywhere:

    no row says how y moves with it, so a new value of it must not move a prediction.
    """

    x_mean: Array  # (D,)
    x_scale: Array  # (D,)
    y_mean: float
    y_scale: float
    ignored: NDArray[np.bool_]  # (D,), columns that do not vary

    @staticmethod
    def fit(X: NDArray[np.floating], y: NDArray[np.floating]) -> Standardiser:
        """Population means and standard deviations, read in blocks so that a memory map is never loaded whole."""
        x_mean, x_scale = _column_moments(X)
        y_mean, y_scale = _column_moments(y[:, None])
        # a constant target is predicted as that constant: the scale is the rounding of its own magnitude, not one unit
        y_unit = y_scale[0] if y_scale[0] > 0 else 1e-8 * max(1.0, abs(y_mean[0]))
        return Standardiser(x_mean, np.where(x_scale > 0, x_scale, 1.0), float(y_mean[0]), float(y_unit), x_scale == 0)

    @staticmethod
    def identity(n_columns: int, ignored: NDArray[np.bool_] | None = None) -> Standardiser:
        """Leave data as they are, but for columns to ignore."""
        none = np.zeros(n_columns, dtype=bool)
        return Standardiser(np.zeros(n_columns), np.ones(n_columns), 0.0, 1.0, none if ignored is None else ignored)

    def inputs(self, X: NDArray[np.floating]) -> Array:
        """Standardised inputs, float64 and row-major."""
        standardised = np.ascontiguousarray((X.astype(np.float64, copy=False) - self.x_mean) / self.x_scale)
        standardised[:, self.ignored] = 0.0
        return standardised

    def target(self, y: NDArray[np.floating]) -> Array:
        """Standardised target, float64."""
        return (y.astype(np.float64, copy=False) - self.y_mean) / self.y_scale

    def mean_to_user(self, mean: Array) -> Array:
        """A predictive mean in the units of y."""
        return self.y_mean + self.y_scale * mean

    def variance_to_user(self, variance: Array) -> Array:
        """A variance or covariance in the squared units of y."""
        return self.y_scale**2 * variance


def _column_moments(X: NDArray[np.floating]) -> tuple[Array, Array]:
    """Mean and population standard deviation per column; zero where the column is constant up to rounding."""
    n = X.shape[0]
    blocks = [slice(i, i + _BLOCK) for i in range(0, n, _BLOCK)]
    mean = sum((X[block].sum(axis=0, dtype=np.float64) for block in blocks), np.zeros(X.shape[1])) / n
    squares = sum((np.square(X[block] - mean).sum(axis=0, dtype=np.float64) for block in blocks), np.zeros(X.shape[1]))
    scale = np.sqrt(squares / n)
    return mean, np.where(scale > 1e-12 * np.abs(mean), scale, 0.0)
