"""A power transform of standardised inputs: long tails of a column are drawn in before a kernel sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

Array = NDArray[np.float64]
BOUNDS = (-3.0, 5.0)  # of the power; symmetric around one
_LEAST_POWER = 1e-3  # in size: nearer to a logarithm, (e^z - 1) / power would lose digits where it is recorded
_MOST_EXPONENT = 230.0  # e^230 is about 1e100: beyond, squares would overflow
_FEWEST_VALUES = 3  # a map of two values is a shift and a scale
_LEAST_SPREAD = 1e-6  # of a warped column: narrower ones are rounding
_PRECISION = 1e-3


@dataclass(frozen=True, eq=False)
class Warp:
    """x -> (w(x; power) - mean) / scale for each column, where w is the transform of Yeo and Johnson (2000),

    w = ((1 + x)^p - 1) / p for x >= 0 and -((1 - x)^(2 - p) - 1) / (2 - p) for x < 0:

    increasing and smooth, with slope one at zero. Outside the range that it was learned from, w goes on as a line: with
    a power below zero it would end at a bound, and far-out rows would look like the last ones known. Columns of power
    one stay as they are, to the last bit.
    """

    power: Array  # (D,)
    mean: Array  # (D,)
    scale: Array  # (D,)
    lower: Array  # (D,) ends of the range
    upper: Array  # (D,)

    @staticmethod
    def fit(X: Array) -> Warp:
        """Powers that bring each column of standardised rows X (n, D) nearest to a Gaussian, by maximum likelihood.

        Columns of one or two values are left alone.
        """
        found = [_fit_column(x) for x in np.ascontiguousarray(X.T)]
        power, mean, scale = (np.array(each, dtype=np.float64) for each in zip(*found, strict=True))
        return Warp(power, mean, scale, X.min(0), X.max(0))

    @property
    def is_identity(self) -> bool:
        """Are all columns left alone?"""
        return bool((self.power == 1.0).all())

    @property
    def strength(self) -> float:
        """How far the column that is bent most is from being left alone: |power - 1|."""
        return float(np.abs(self.power - 1.0).max(initial=0.0))

    def __call__(self, X: Tensor) -> Tensor:
        """Of a tensor (n, D) of standardised inputs; carries gradients, and may be recorded (``certgp.export``)."""
        kept, power = torch.from_numpy(self.power == 1.0), torch.from_numpy(self.power)
        lower, upper = torch.from_numpy(self.lower), torch.from_numpy(self.upper)
        beyond = (X - upper).relu() * _slope(upper, power) - (lower - X).relu() * _slope(lower, power)
        bent = _yeo_johnson(X.clamp(lower, upper), power) + beyond
        warped = (bent - torch.from_numpy(self.mean)) / torch.from_numpy(self.scale)
        # not torch.where: both parts are finite, and products can be recorded
        return X * kept.double() + warped * (~kept).double()


def _yeo_johnson(X: Tensor, power: Tensor) -> Tensor:
    """w (n, D); at zero one part only has a slope, so that gradients are right there too."""
    above = X.relu()
    return _stretch(above, power) - _stretch(above - X, 2.0 - power)


def _slope(x: Tensor, power: Tensor) -> Tensor:
    """w'(x) = (1 + |x|)^(sign(x) (power - 1))."""
    return (x.abs().log1p() * x.sign() * (power - 1.0)).clamp(max=_MOST_EXPONENT).exp()


def _stretch(u: Tensor, power: Tensor) -> Tensor:
    """((1 + u)^power - 1) / power for u >= 0."""
    return (u.log1p() * power).clamp(max=_MOST_EXPONENT).expm1() / power


def _fit_column(x: Array) -> tuple[float, float, float]:
    """Power, mean and scale of one column; 1, 0, 1 leave it alone."""
    alone = (1.0, 0.0, 1.0)
    if len(np.unique(x)) < _FEWEST_VALUES:
        return alone
    found = minimize_scalar(
        lambda power: _loss(x, power), bounds=BOUNDS, method="bounded", options={"xatol": _PRECISION}
    )
    power = _away_from_logarithm(float(found.x))
    w = _warped(x, power)
    mean, scale = float(w.mean()), float(w.std())
    usable = power != 1.0 and np.isfinite([found.fun, mean, scale]).all() and scale > _LEAST_SPREAD
    return (power, mean, scale) if usable else alone


def _loss(x: Array, power: float) -> float:
    """Negative log likelihood per row of a Gaussian behind w, its mean and variance at their optimum, but for a
    constant: log(variance of w) / 2 - (power - 1) mean(sign(x) log(1 + |x|)).
    """
    variance = float(_warped(x, _away_from_logarithm(power)).var())
    slopes = float(np.mean(np.copysign(np.log1p(np.abs(x)), x)))
    return 0.5 * float(np.log(max(variance, np.finfo(np.float64).tiny))) - (power - 1.0) * slopes


def _warped(x: Array, power: float) -> Array:
    with torch.no_grad():
        return _yeo_johnson(torch.from_numpy(x), torch.tensor(power, dtype=torch.float64)).numpy()


def _away_from_logarithm(power: float) -> float:
    """The nearest power at which neither branch is a logarithm: neither 0 nor 2."""
    for limit in (0.0, 2.0):
        if abs(power - limit) < _LEAST_POWER:
            return limit + (_LEAST_POWER if power >= limit else -_LEAST_POWER)
    return power
