"""How good predictions are, by the three numbers that every table here shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.data import Rows, as_rows
from certgp.data.rows import read_target
from certgp.estimators import GPRegressor
from certgp.gp.calibration import gaussian_nlpd

Array = NDArray[np.float64]
Z95 = 1.959963984540054  # half the width of a central 95 % interval, in standard deviations


@dataclass(frozen=True)
class Scores:
    """Errors of predictions of y on some rows, in the units of y."""

    rmse: float
    nlpd: float  # mean negative log predictive density
    coverage: float  # share of y inside the interval
    nominal_coverage: float  # the share that was asked for


def score(model: GPRegressor, X: ArrayLike | Rows, y: Array | None = None, coverage: float = 0.95) -> Scores:
    """RMSE, NLPD and the share of y that central intervals of the given coverage hold; y may be part of ``Rows``."""
    lower, upper = model.predict_interval(X, coverage)
    target = read_target(as_rows(X, y))
    return Scores(
        rmse=rmse(np.asarray(model.predict(X)), target),
        nlpd=model.nlpd(X, y),
        coverage=float(np.mean((lower <= target) & (target <= upper))),
        nominal_coverage=coverage,
    )


def score_gaussian(mean: Array, variance: Array, y: Array) -> Scores:
    """The same of Gaussian predictions of y (n,) with these moments, at 95 %."""
    inside = np.abs(y - mean) <= Z95 * np.sqrt(variance)
    return Scores(rmse(mean, y), gaussian_nlpd(y, mean, variance), float(np.mean(inside)), 0.95)


def rmse(prediction: Array, truth: Array) -> float:
    """Root mean squared difference."""
    return float(np.sqrt(np.mean(np.square(prediction - truth))))
