"""Predictions of rows whose target is known, and the scores that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from certgp.gp.calibration import gaussian_log_density

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predicted:
    """What one method says of n rows, beside their targets; all in the units of y."""

    name: str
    y: Array  # (n,)
    mean: Array  # (n,)
    std: Array  # (n,) of a new observation
    log_density: Array  # (n,) of y
    pit: Array  # (n,) probability that the method gives to values below y; uniform where it is calibrated
    skewed: bool = False  # are the predictions far from symmetric, as those of a model of log(y)?

    @staticmethod
    def gaussian(name: str, y: Array, mean: Array, std: Array) -> Predicted:
        """Of Gaussian predictions."""
        density = gaussian_log_density(y, mean, np.square(std))
        return Predicted(name, y, mean, std, density, np.asarray(ndtr((y - mean) / std)))

    def exponential(self) -> Predicted:
        """Of exp(y), where these are Gaussian predictions of y: log-normal ones."""
        y, mean = np.exp(self.y), np.exp(self.mean + 0.5 * np.square(self.std))
        std = mean * np.sqrt(np.expm1(np.square(self.std)))
        return Predicted(self.name, y, mean, std, self.log_density - self.y, self.pit, skewed=True)

    @property
    def rmse(self) -> float:
        """Root mean squared error."""
        return float(np.sqrt(np.mean(np.square(self.mean - self.y))))

    @property
    def nlpd(self) -> float:
        """Mean negative log predictive density; lower is better."""
        return -float(np.mean(self.log_density))

    @property
    def z(self) -> Array:
        """Residuals in predictive standard deviations (n,); of skewed predictions those of a normal y of the same
        probability.
        """
        if self.skewed:
            tiny = np.finfo(np.float64).eps
            return np.asarray(ndtri(np.clip(self.pit, tiny, 1.0 - tiny)))
        return (self.y - self.mean) / self.std

    def inside(self, coverage: float) -> NDArray[np.bool_]:
        """Which y (n,) lie in their central interval of this coverage."""
        return np.abs(2.0 * self.pit - 1.0) <= coverage

    def groups(self, most: int) -> list[NDArray[np.int64]]:
        """Rows in groups of nearly equal size from the lowest prediction to the highest, at least 10 rows each where
        there are that many.
        """
        count = int(np.clip(len(self.y) // 10, 1, most))
        return np.array_split(np.argsort(self.mean, kind="stable"), count)

    def coverage(self, nominal: float) -> float:
        """The share of y in central intervals of this nominal coverage."""
        return float(np.mean(self.inside(nominal)))


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """Shares of rows inside central intervals of several nominal coverages."""

    levels: Array  # (k,) nominal
    shares: Array  # (k,) observed
    room: Array  # (k,) by which chance alone may move a share

    @staticmethod
    def of(predicted: Predicted) -> CalibrationCurve:
        """At every twentieth."""
        levels = np.arange(0.05, 1.0, 0.05)
        shares = np.array([predicted.coverage(level) for level in levels])
        return CalibrationCurve(levels, shares, np.array([coverage_error(level, len(predicted.y)) for level in levels]))


@dataclass(frozen=True, eq=False)
class ResidualGroups:
    """Residuals y - mean in groups of rows from the lowest prediction to the highest; arrays over the groups."""

    at: Array  # mean prediction
    bias: Array  # mean residual
    room: Array  # two standard errors of it
    low: Array  # a tenth of the residuals is below
    middle: Array  # median
    high: Array  # a tenth is above

    @staticmethod
    def of(predicted: Predicted, most: int = 10) -> ResidualGroups:
        """In at most ``most`` groups."""
        groups, error = predicted.groups(most), predicted.y - predicted.mean
        low, middle, high = (np.array([np.quantile(error[g], q) for g in groups]) for q in (0.1, 0.5, 0.9))
        return ResidualGroups(
            np.array([predicted.mean[g].mean() for g in groups]),
            np.array([error[g].mean() for g in groups]),
            2.0 * np.array([error[g].std() / np.sqrt(len(g)) for g in groups]),
            low,
            middle,
            high,
        )


@dataclass(frozen=True, eq=False)
class AverageInterval:
    """The 95 % interval of a typical row, in groups of rows from the lowest prediction to the highest."""

    centre: Array
    half: Array

    @staticmethod
    def of(predicted: Predicted, most: int = 10) -> AverageInterval:
        """In at most ``most`` groups."""
        groups = predicted.groups(most)
        half = ndtri(0.975) * np.array([predicted.std[g].mean() for g in groups])
        return AverageInterval(np.array([predicted.mean[g].mean() for g in groups]), half)


def coverage_error(nominal: float, n: int, errors: float = 2.0) -> float:
    """Two, or more, standard errors of an observed coverage of n rows, where the nominal one is true."""
    return errors * float(np.sqrt(nominal * (1.0 - nominal) / n))
