r"""Two Gaussian laws of the same rows side by side, by dense algebra from definitions: no certificate is used.

With L_i the Cholesky factor of S_i and W = L_2^-1 L_1, so that W W' = L_2^-1 S_1 L_2^-T has the eigenvalues of
S_2^-1/2 S_1 S_2^-1/2:

    KL(N(m1, S1) || N(m2, S2)) = 1/2 [ |W|_F^2 - n - ln|W W'| + |L_2^-1 (m1 - m2)|^2 ]

The terms are of size n and cancel: a KL below 1e-10 n is rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular

Array = NDArray[np.float64]
ROUNDING = 1e-10  # nats per row
_NEWTON_STEPS = 80  # half of the distance is left after each while the root is far, and it doubles digits when near


@dataclass(frozen=True, eq=False)
class Pair:
    """Covariances S1 of the exact law and S2 of the approximate one, both (n, n)."""

    exact: Array
    approximate: Array

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """L_1 and L_2."""
        return _factor(self.exact), _factor(self.approximate)

    @cached_property
    def whitened(self) -> Array:
        """W = L_2^-1 L_1."""
        return self.whiten(self.factors[0])

    def whiten(self, values: Array) -> Array:
        """L_2^-1 values."""
        return np.asarray(solve_triangular(self.factors[1], values, lower=True))

    @cached_property
    def kl(self) -> float:
        """KL(N(0, S1) || N(0, S2))."""
        exact, approximate = (np.log(factor.diagonal()).sum() for factor in self.factors)
        return float(0.5 * (np.square(self.whitened).sum() - len(self.exact)) + approximate - exact)

    @cached_property
    def eigenvalues(self) -> Array:
        """Of S2^-1/2 S1 S2^-1/2, least first."""
        return np.asarray(np.linalg.eigvalsh(self.whitened @ self.whitened.T))


@dataclass(frozen=True, eq=False)
class Predictions:
    """Laws of the rows after the first n given these, which are N(G_i y, C_i), and what their distance is."""

    train: Pair
    covariances: Pair  # C_1, C_2
    gains: Array  # L_2^-1 (G_1 - G_2), L_2 the factor of C_2

    @classmethod
    def given(cls, joint: Pair, n: int) -> Predictions:
        """By conditioning both laws of all rows on the first n."""
        train = Pair(joint.exact[:n, :n], joint.approximate[:n, :n])
        first, second = (
            _condition(S, n, factor) for S, factor in zip((joint.exact, joint.approximate), train.factors, strict=True)
        )
        covariances = Pair(first[1], second[1])
        return cls(train, covariances, covariances.whiten(first[0] - second[0]))

    @property
    def expected_kl(self) -> float:
        r"""E KL over y ~ N(0, S1) of the first rows: KL of the covariances + 1/2 |L_2^-1 (G_1 - G_2) L|_F^2."""
        return self.covariances.kl + 0.5 * float(np.square(self.gains @ self.train.factors[0]).sum())

    def distances(self, y: Array) -> Array:
        """Mahalanobis distances |L_2^-1 (G_1 - G_2) y| of the two means, for responses (n, draws)."""
        return np.asarray(np.linalg.norm(self.gains @ y, axis=0))


def _factor(S: Array) -> Array:
    return np.asarray(np.linalg.cholesky(S), dtype=np.float64)


def _condition(S: Array, n: int, factor: Array) -> tuple[Array, Array]:
    """G = S_21 S_11^-1 and C = S_22 - G S_12, S_11 the first n rows."""
    gain = cho_solve((factor, True), S[:n, n:]).T
    return gain, S[n:, n:] - gain @ S[:n, n:]


def sandwich(gammas: Array) -> tuple[Array, Array]:
    """b(2 gamma) <= 1 <= t(2 gamma), the roots of x - 1 - ln x = 2 gamma, by Newton's method from outside.

    The paper's footnote gives points outside both roots: exp(-1 - 2 gamma) and 1 + max(sqrt(8 gamma), 8 gamma). The
    function is convex in ln x and in x, so that the steps fall on the roots from there.
    """
    log_b, above = -1.0 - 2.0 * gammas, np.maximum(np.sqrt(8.0 * gammas), 8.0 * gammas)
    for _ in range(_NEWTON_STEPS):
        log_b -= _step(np.expm1(log_b) - log_b - 2.0 * gammas, np.expm1(log_b))
        above -= _step(above - np.log1p(above) - 2.0 * gammas, above / (1.0 + above))
    return np.exp(log_b), 1.0 + above


def _step(value: Array, slope: Array) -> Array:
    """value / slope, none where both are zero: gamma = 0."""
    return np.divide(value, slope, out=np.zeros_like(value), where=slope != 0.0)
