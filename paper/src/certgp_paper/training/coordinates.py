"""An objective seen through other coordinates of its parameters, where an optimiser is not indifferent to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certgp.training import Objective

Array = NDArray[np.float64]


def are_logarithms(labels: Sequence[str]) -> NDArray[np.bool_]:
    """Which parameters are logarithms of positive numbers (P,): those of the name log_..."""
    return np.array([label.split(".")[-1].startswith("log_") for label in labels], dtype=np.bool_)


class SoftplusCoordinates(Objective):
    r"""Positive parameters p through u with p = softplus(u) = log(1 + e^u), as GPflow keeps them, instead of log p.

    Gradient descent then moves small p by factors and large p by differences. With theta = log p:

        theta = log softplus(u),    d theta / d u = (1 - e^-p) / p
    """

    def __init__(self, inner: Objective, positive: NDArray[np.bool_]) -> None:
        self.inner = inner
        self.positive = positive  # (P,): which of the inner parameters are logarithms

    def start(self) -> Array:
        return self._outward(self.inner.start())

    def bounds(self) -> list[tuple[float, float]]:
        lower, upper = np.array(self.inner.bounds()).reshape(-1, 2).T
        return list(zip(self._outward(lower).tolist(), self._outward(upper).tolist(), strict=True))

    def move_to(self, values: Array) -> None:
        self.inner.move_to(self._inward(values))

    def evaluate(self, values: Array) -> tuple[float, Array]:
        theta = self._inward(values)
        value, gradient = self.inner.evaluate(theta)
        p = np.exp(theta[self.positive])
        gradient = gradient.copy()
        gradient[self.positive] *= -np.expm1(-p) / p
        return value, gradient

    def _inward(self, u: Array) -> Array:
        theta = u.copy()
        theta[self.positive] = np.log(np.logaddexp(0.0, u[self.positive]))
        return theta

    def _outward(self, theta: Array) -> Array:
        u = theta.copy()
        p = np.exp(theta[self.positive])
        u[self.positive] = p + np.log(-np.expm1(-p))  # log(e^p - 1) without overflow
        return u


class TiedParameters(Objective):
    """Some parameters held where they are, others kept equal to each other.

    ``groups`` (P,) names for each parameter of the inner objective the number, from 0, of the one that stands for it
    here, or -1 where it is held.
    """

    def __init__(self, inner: Objective, groups: NDArray[np.int64]) -> None:
        self.inner = inner
        self.groups = groups
        self._first = [int(np.flatnonzero(groups == group)[0]) for group in range(groups.max() + 1)]

    def start(self) -> Array:
        return self.inner.start()[self._first]

    def bounds(self) -> list[tuple[float, float]]:
        all_bounds = self.inner.bounds()
        return [all_bounds[i] for i in self._first]

    def move_to(self, values: Array) -> None:
        self.inner.move_to(self._full(values))

    def evaluate(self, values: Array) -> tuple[float, Array]:
        value, gradient = self.inner.evaluate(self._full(values))
        free = self.groups >= 0
        tied = np.zeros(len(values))
        np.add.at(tied, self.groups[free], gradient[free])
        return value, tied

    def _full(self, values: Array) -> Array:
        return np.where(self.groups >= 0, values[np.maximum(self.groups, 0)], self.inner.start())
