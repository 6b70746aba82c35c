"""Centre and scale of inputs and target; everything inside the library is standardised, everything a user sees is
not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data.rows import as_rows
from certgp.data.summary import Summary, summarise
from certgp.data.warp import Warp
from certgp.errors import InvalidInputError

Array = NDArray[np.float64]
_LARGEST = 1e100  # standard deviations: beyond, squares would overflow, and kernels have forgotten long before


@dataclass(frozen=True, eq=False)
class Standardiser:
    """x -> (x - x_mean) / x_scale, y -> (y - y_mean) / y_scale. A column that does not vary becomes zero everywhere:

    no row says how y moves with it, so a new value of it must not move a prediction. With a warp, standardised inputs
    go through it, column by column; it is increasing, so ranges stay ranges.
    """

    x_mean: Array  # (D,)
    x_scale: Array  # (D,)
    y_mean: float
    y_scale: float
    ignored: NDArray[np.bool_]  # (D,), columns that do not vary
    warp: Warp | None = None

    @staticmethod
    def of(summary: Summary) -> Standardiser:
        """Population means and standard deviations of rows with a target."""
        inputs, target = summary.inputs, summary.target
        if target is None:
            raise InvalidInputError("the rows have no target to standardise; give y, or rows that hold one")
        mean, scale = float(target.mean[0]), float(target.scale[0])
        # a constant target is predicted as that constant: the scale is the rounding of its own magnitude, not one unit
        unit = scale if scale > 0 else 1e-8 * max(1.0, abs(mean))
        return Standardiser(inputs.mean, np.where(inputs.scale > 0, inputs.scale, 1.0), mean, unit, inputs.scale == 0)

    @staticmethod
    def fit(X: NDArray[np.floating], y: NDArray[np.floating]) -> Standardiser:
        """The same of arrays X (N, D) and y (N,)."""
        return Standardiser.of(summarise(as_rows(X, y)))

    @staticmethod
    def identity(n_columns: int, ignored: NDArray[np.bool_] | None = None) -> Standardiser:
        """Leave data as they are, but for columns to ignore."""
        none = np.zeros(n_columns, dtype=bool)
        return Standardiser(np.zeros(n_columns), np.ones(n_columns), 0.0, 1.0, none if ignored is None else ignored)

    def inputs(self, X: NDArray[np.floating]) -> Array:
        """Standardised inputs, float64 and row-major."""
        standardised: Array = np.subtract(X, self.x_mean, order="C", dtype=np.float64)
        with np.errstate(over="ignore"):
            standardised /= self.x_scale
        np.clip(standardised, -_LARGEST, _LARGEST, out=standardised)
        standardised[:, self.ignored] = 0.0
        return standardised if self.warp is None else self.warp(torch.from_numpy(standardised)).numpy()

    def tensor(self, X: Tensor) -> Tensor:
        """The same of a tensor (n, D); carries gradients, and may be recorded (``certgp.export``)."""
        kept = torch.from_numpy(np.where(self.ignored, 0.0, 1.0))
        scaled = (X - torch.from_numpy(self.x_mean)) / torch.from_numpy(self.x_scale)
        standardised = scaled.clamp(-_LARGEST, _LARGEST) * kept
        return standardised if self.warp is None else self.warp(standardised)

    @property
    def kernel_units(self) -> tuple[Array, Array]:
        """Centre and scale (D,) of the inputs that a kernel acts on: those of the columns of X; 0 and 1 of warped ones,
        which have no unit in common with X.
        """
        if self.warp is None:
            return self.x_mean, self.x_scale
        return np.zeros_like(self.x_mean), np.ones_like(self.x_scale)

    @property
    def powers(self) -> Array | None:
        """Power of each column (D,), one where it is left alone; None without a warp."""
        return None if self.warp is None else self.warp.power

    def target(self, y: NDArray[np.floating]) -> Array:
        """Standardised target, float64."""
        return (y.astype(np.float64, copy=False) - self.y_mean) / self.y_scale

    def mean_to_user(self, mean: Array) -> Array:
        """A predictive mean in the units of y."""
        return self.y_mean + self.y_scale * mean

    def variance_to_user(self, variance: Array) -> Array:
        """A variance or covariance in the squared units of y."""
        return self.y_scale**2 * variance
