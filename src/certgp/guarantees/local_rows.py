r"""The exact conditional of single rows from both sides, through a near set: V3 (training rows), V5 and V6 (new rows).

For a row with covariances k* to n rows y = f + noise, S = K + s2 I, and ANY weights c, completing the square gives

    v* = [k** - 2 k*'c + c'S c] - r'S^-1 r,   r = k* - S c,        mu* = c'y + r'S^-1 y

for the exact variance v* of f and mean mu* given all n rows. With c = the solution on a near set and zeros elsewhere,
the bracket is the variance given the near set, and r is small. As S >= s2 I, 0 <= r'S^-1 r <= |r|^2 / s2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.gp.conditionals import PROFILES, condition, coordinates, is_radial
from certgp.guarantees.local_factor import LocalFactor, entry_rounding
from certgp.kernels import Kernel
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
_BLOCK = 8192  # rows of covariances at a time


class Covariance(Protocol):
    """Covariances of f between rows of some fixed inputs and new ones, and how they are rounded."""

    @property
    def prior_variance(self) -> float:
        """k(x, x), at most."""

    @property
    def rounding(self) -> float:
        """A bound on the error of any value."""

    @property
    def deficit(self) -> float:
        """How far below zero eigenvalues may be: nothing for a kernel."""

    def combine(self, rows: Tensor, others: Tensor, weights: Array) -> Array:
        """k(rows, others) weights: (n, d), (m, d), (m,) -> (n,)."""

    def variance(self, point: Tensor) -> float:
        """k(x, x) of one row (1, d)."""

    def weights(self, point: Tensor, rows: Tensor, noise_variance: float) -> Array:
        """(k(rows, rows) + s2 I)^-1 k(rows, point) (m,), as well as float64 does it."""


class KernelCovariance:
    """The covariances of a kernel whose diagonal is constant."""

    deficit = 0.0

    def __init__(self, kernel: Kernel, rows: Tensor) -> None:
        self._kernel, self.prior_variance = kernel.detached(), float(kernel.signal_variance)
        self.rounding = self.prior_variance * entry_rounding(kernel, rows)

    def combine(self, rows: Tensor, others: Tensor, weights: Array) -> Array:
        if is_radial(self._kernel):
            return self.prior_variance * _combine_radial(self._kernel, rows, others, weights)
        right = torch.from_numpy(weights)
        parts = [self._kernel(rows[i : i + _BLOCK], others) @ right for i in range(0, len(rows), _BLOCK)]
        return np.asarray(torch.cat(parts).numpy()) if parts else np.empty(0)

    def values(self, rows: Tensor, others: Tensor) -> Tensor:
        """k(rows, others) (n, m)."""
        found: Tensor = self._kernel(rows, others)
        return found

    def variance(self, point: Tensor) -> float:
        return self.prior_variance

    def weights(self, point: Tensor, rows: Tensor, noise_variance: float) -> Array:
        blank, all_of_them = torch.zeros(len(rows), dtype=torch.float64), np.arange(len(rows))[None]
        found = condition(self._kernel, point, rows, blank, all_of_them, noise_variance, with_weights=True).weights
        assert found is not None
        return np.asarray(found[0])


def _combine_radial(kernel: Kernel, rows: Tensor, others: Tensor, weights: Array) -> Array:
    from certgp.gp import compiled_products
    from certgp.loops import run_over_rows

    points = coordinates(kernel, rows.double()).contiguous().numpy()
    P = np.ascontiguousarray(coordinates(kernel, others.double()).numpy().T)
    out, right = np.zeros((1, len(points))), np.ascontiguousarray(weights[None])
    block = max(P.shape[1], 1)
    arguments = (PROFILES[kernel.name], False, points, P, right, out, block)
    run_over_rows(compiled_products.multiply_cross, len(points), *arguments)
    return np.asarray(out[0])


@dataclass(frozen=True, eq=False)
class RowBounds:
    """Per row: the exact latent variance from both sides, and what is known of the exact mean."""

    lower: Array  # (B,)
    upper: Array  # (B,)
    distance: Array  # (B,) a bound on sqrt(r'S^-1 r): how much of y outside the near set matters
    mean: Array  # (B,) c'y + r'a for the weights a ~ S^-1 y that were given
    mean_rounding: Array  # (B,)


@torch.no_grad()
def bound_rows(
    covariance: Covariance,
    points: Tensor,
    inputs: Tensor,
    near: Callable[[int], Indices],
    noise_variance: float,
    before: Indices | None = None,
    y: Array | None = None,
    dual: Array | None = None,
) -> RowBounds:
    """The exact conditionals at points (B, d) given the inputs (N, d), or given those before ``before[b]``, through
    near sets ``near(b)`` among them; with targets y (N,) and weights ``dual`` ~ S^-1 y (N,) also means.
    """
    B, n = len(points), len(inputs)
    targets = np.zeros(n) if y is None else y
    solved = np.zeros(n) if dual is None else dual
    found = np.empty((5, B))
    for b in range(B):
        limit = n if before is None else int(before[b])
        found[:, b] = _bound_row(
            covariance, points[b : b + 1], inputs[:limit], near(b), noise_variance, targets[:limit], solved[:limit]
        )
    return RowBounds(*found)


def _bound_row(
    covariance: Covariance, point: Tensor, rows: Tensor, near: Indices, noise: float, y: Array, dual: Array
) -> tuple[float, float, float, float, float]:
    prior, n, m = covariance.variance(point), len(rows), len(near)
    chosen = rows[torch.from_numpy(near)]
    c = covariance.weights(point, chosen, noise) if m else np.empty(0)
    # r = k* - S c by one pass: k(rows, [x, near]) (1, -c), and the noise in the places of the near rows
    r = covariance.combine(rows, torch.cat([point, chosen]), np.concatenate([[1.0], -c]))
    r[near] -= noise * c
    k_near = covariance.combine(chosen, point, np.ones(1))
    size = 1.0 + float(np.abs(c).sum())
    lost = size * (covariance.rounding + (m + 4) * UNIT_ROUNDOFF * (covariance.prior_variance + noise))  # of each r_j
    bracket = prior - float(c @ k_near) - float(c @ r[near])
    rounding = 2.0 * size * lost + 4.0 * UNIT_ROUNDOFF * prior
    norm = float(np.linalg.norm(r)) * (1.0 + 1e-12) + math.sqrt(n) * lost
    deficit = covariance.deficit
    distance = norm / math.sqrt(noise - deficit) if noise > deficit else math.inf  # S >= (s2 - deficit) I
    upper = max(bracket + rounding, 0.0)
    distance = min(distance, math.sqrt(upper + deficit))  # r'S^-1 r is what is left of the bracket after v*
    lower = max(bracket - distance**2 - rounding, 0.0 - deficit)
    mean = float(c @ y[near]) + float(r @ dual)
    sums = (len(y) + 4) * UNIT_ROUNDOFF
    of_mean = float(np.abs(c) @ np.abs(y[near])) * sums + float(np.abs(dual).sum()) * lost + norm * sums * _length(dual)
    return lower, upper, distance, mean, of_mean


def _length(v: Array) -> float:
    return float(np.linalg.norm(v))


def divergence_terms(local: LocalFactor, bounds: RowBounds, rows: Indices) -> tuple[Array, Array]:
    """V2 and V3: the terms 1/2 log(d_i / d_i*) of KL(exact || local) at some rows, from both sides, by bounds of the
    exact conditionals given all rows before them, d_i* = v_i* + s2.
    """
    s2 = local.noise_variance
    below = 0.5 * np.log(local.lowest[rows] / (bounds.upper + s2)) - 4.0 * UNIT_ROUNDOFF
    above = 0.5 * np.log(local.highest[rows] / (bounds.lower + s2)) + 4.0 * UNIT_ROUNDOFF
    return below, np.maximum(above, 0.0)
