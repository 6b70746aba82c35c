"""Predictive distributions as contestants give them: Gaussian, constant noise around a point, or a few quantiles.

All offer ``mean`` (n,), ``log_density(y)`` (n,) and ``quantiles(levels)`` (n, levels). NumPy and SciPy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm, t

Array = NDArray[np.float64]
LEAST_DEGREES, MOST_DEGREES = 1.05, 200.0  # of Student-t noise: its mean exists; from there on it is Gaussian
LEAST_SCALE = 1e-4  # of noise, in standard deviations of y
LEAST_SLOPES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # dQ/dz tried on held-out rows, in units of their residuals
ENOUGH = 5_000  # held-out rows that tell how far a learned variance is to be believed


class Distribution(Protocol):
    """Of new observations at n rows."""

    @property
    def mean(self) -> Array: ...

    def log_density(self, y: Array) -> Array: ...

    def quantiles(self, levels: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Normal:
    """N(mean, sd^2) at each row."""

    mean: Array
    sd: Array

    def log_density(self, y: Array) -> Array:
        return norm.logpdf(y, self.mean, self.sd)

    def quantiles(self, levels: Array) -> Array:
        return self.mean[:, None] + self.sd[:, None] * norm.ppf(levels)


@dataclass(frozen=True, eq=False)
class StudentNoise:
    """A prediction and Student-t errors, of one scale or of one at each row (n,)."""

    mean: Array
    scale: float | Array
    degrees: float

    def log_density(self, y: Array) -> Array:
        return t.logpdf(y, self.degrees, self.mean, self.scale)

    def quantiles(self, levels: Array) -> Array:
        return self.mean[:, None] + np.reshape(self.scale, (-1, 1)) * t.ppf(levels, self.degrees)


def constant_noise(residuals: Array) -> tuple[float, float]:
    """Scale and degrees of freedom of Student-t errors, by maximum likelihood on residuals of rows not fitted to."""
    low, high = np.log(LEAST_DEGREES), np.log(MOST_DEGREES)
    start = max(float(np.median(np.abs(residuals))), LEAST_SCALE)

    def loss(parameters: Array) -> float:
        return -float(np.mean(t.logpdf(residuals, np.exp(parameters[1]), 0.0, np.exp(parameters[0]))))

    bounds = [(np.log(LEAST_SCALE), None), (low, high)]
    found = minimize(loss, [np.log(start), np.log(5.0)], method="L-BFGS-B", bounds=bounds)
    return float(np.exp(found.x[0])), float(np.exp(found.x[1]))


@dataclass(frozen=True)
class Guard:
    """What keeps a learned variance from being too sure: Student-t errors of scale factor max(sd, least_sd)."""

    least_sd: float
    factor: float
    degrees: float

    def __call__(self, found: Normal) -> StudentNoise:
        return StudentNoise(found.mean, self.factor * np.maximum(found.sd, self.least_sd), self.degrees)


def likeliest_guard(found: Normal, y: Array) -> Guard:
    """The one under which held-out y are likeliest, its least sd among LEAST_SLOPES times that of the residuals."""
    some = np.linspace(0, len(y) - 1, min(len(y), ENOUGH)).astype(int)
    found, y = Normal(found.mean[some], found.sd[some]), y[some]
    unit = max(float(np.std(y - found.mean)), LEAST_SCALE)
    floors = [unit * least for least in LEAST_SLOPES]
    tried = [Guard(least, *constant_noise((y - found.mean) / np.maximum(found.sd, least))) for least in floors]
    return max(tried, key=lambda guard: float(np.mean(guard(found).log_density(y))))


@dataclass(frozen=True, eq=False)
class FewQuantiles:
    """A quantile function that is linear in the normal score z between given levels, and beyond them.

    Q(z) = v_j + s_j (z - z_j) with z = Phi^-1(level), so p(y) = phi(z(y)) / s_j: exact for a Gaussian, Gaussian tails.
    Values are sorted at each row; ``least_slope`` keeps s_j from 0 where they coincide, the middle value stays.
    """

    levels: Sequence[float]  # odd in number, ascending
    values: Array  # (n, levels)
    least_slope: float

    def _knots(self) -> tuple[Array, Array, Array]:
        z, values = norm.ppf(self.levels), np.sort(self.values, axis=1)
        slopes = np.maximum(np.diff(values, axis=1) / np.diff(z), self.least_slope)
        rises = np.concatenate([np.zeros((len(values), 1)), np.cumsum(slopes * np.diff(z), axis=1)], axis=1)
        middle = len(z) // 2
        return z, values[:, [middle]] + rises - rises[:, [middle]], slopes

    @property
    def mean(self) -> Array:
        return self.quantiles(MIDPOINTS).mean(1)

    def log_density(self, y: Array) -> Array:
        z, values, slopes = self._knots()
        part = np.sum(y[:, None] > values[:, 1:-1], axis=1)
        rows = np.arange(len(y))
        slope = slopes[rows, part]
        return norm.logpdf(z[part] + (y - values[rows, part]) / slope) - np.log(slope)

    def quantiles(self, levels: Array) -> Array:
        z, values, slopes = self._knots()
        wanted = norm.ppf(levels)
        part = np.searchsorted(z[1:-1], wanted)
        return values[:, part] + slopes[:, part] * (wanted - z[part])


def least_slope(levels: Sequence[float], values: Array, y: Array) -> float:
    """The one of LEAST_SLOPES, times the residuals' standard deviation, under which held-out y are likeliest."""
    unit = max(float(np.std(y - values[:, len(levels) // 2])), LEAST_SCALE)
    tried = [unit * factor for factor in LEAST_SLOPES]
    return max(tried, key=lambda slope: float(np.mean(FewQuantiles(levels, values, slope).log_density(y))))


MIDPOINTS = (np.arange(100) + 0.5) / 100  # .025 and .975 are among them
