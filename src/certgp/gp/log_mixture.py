"""Mixtures of log-normal distributions: what a model of log(y) says of y itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

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

    def crps(self, y: Array) -> Array:
        r"""Continuous ranked probability score E|Y - y| - E|Y - Y'| / 2 at y (n,), in its units: (n,).

        sum_i w_i A(y; i) - 1/2 sum_ij w_i w_j B(i, j) over the components exp(N(m_i, v_i)) of means e_i, with
        A(y; i) = y (2 Phi((log y - m_i) / sd_i) - 1) + e_i (1 - 2 Phi((log y - m_i - v_i) / sd_i)), or e_i - y for
        y <= 0, and B(i, j) = e_i (2 Phi((m_i - m_j + v_i) / s) - 1) + e_j (2 Phi((m_j - m_i + v_j) / s) - 1),
        s^2 = v_i + v_j.  [Baran & Lerch 2015, of one component]
        """
        found, shares = self.logarithm, self.logarithm.weights
        m, v = found.means, found.variances
        e, std = np.exp(m + 0.5 * v), np.sqrt(v)
        z, positive = _logarithms(y)
        score = shares @ np.where(
            positive, y * (2.0 * ndtr((z - m) / std) - 1.0) + e * (1.0 - 2.0 * ndtr((z - m - v) / std)), e - y
        )
        for j, share in enumerate(shares):
            s = np.sqrt(v + v[j])
            between = e * (2.0 * ndtr((m - m[j] + v) / s) - 1.0) + e[j] * (2.0 * ndtr((m[j] - m + v[j]) / s) - 1.0)
            score = score - 0.5 * share * (shares @ between)
        return np.asarray(score)

    def quantiles(self, levels: Array) -> Array:
        """(n, number of levels): exp keeps the order, so these are exact."""
        return np.asarray(np.exp(self.logarithm.quantiles(levels)))


def _logarithms(y: Array) -> tuple[Array, NDArray[np.bool_]]:
    positive = y > 0.0
    return np.log(np.where(positive, y, 1.0)), positive
