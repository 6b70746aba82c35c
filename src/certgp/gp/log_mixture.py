"""Mixtures of log-normal distributions: what a model of log(y) says of y itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certgp.gp.mixture import Mixture, mixture_moments

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogMixture:
    """The distribution of y = exp(z) at n rows, z a mixture of Gaussians."""

    logarithm: Mixture  # of z

    def moments(self) -> tuple[Array, Array]:
        """Mean and variance of y (n,), (n,): of a component N(m, v) they are e = exp(m + v/2) and e^2 (exp(v) - 1).

        The mean is above the median, exp(m): a long tail pulls it up.
        """
        found = self.logarithm
        means = np.exp(found.means + 0.5 * found.variances)
        return mixture_moments(means, np.square(means) * np.expm1(found.variances), found.weights)

    def log_density(self, y: Array) -> Array:
        """log p(y) = log p(z) - log y at z = log y (n,): the Jacobian dz/dy = 1/y brings it to the units of y. A y that
        is not positive has none.
        """
        z, positive = _logarithms(y)
        return np.where(positive, self.logarithm.log_density(z) - z, -np.inf)

    def cdf(self, y: Array) -> Array:
        """Probability of values below y (n,): (n,)."""
        z, positive = _logarithms(y)
        return np.where(positive, self.logarithm.cdf(z), 0.0)

    def quantiles(self, levels: Array) -> Array:
        """(n, number of levels): exp keeps the order, so these are exact."""
        return np.asarray(np.exp(self.logarithm.quantiles(levels)))


def _logarithms(y: Array) -> tuple[Array, NDArray[np.bool_]]:
    positive = y > 0.0
    return np.log(np.where(positive, y, 1.0)), positive
