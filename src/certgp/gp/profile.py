"""The objective with signal variance and noise maximised out in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor

from certgp.gp.statistics import Cotangents, Statistics
from certgp.linalg import eye_like

_Array = NDArray[np.float64]
# s2 / sf2. The lower end keeps A + g I well conditioned: without it sf2 grows until predictions outside the data mean
# nothing.
NOISE_RATIO_BOUNDS = (1e-4, 1e4)
_GRID = 41


@dataclass(frozen=True, eq=False)
class Profile:
    """Optimal variances for given unit-variance statistics, and the gradient of the profiled objective (envelope
    theorem).
    """

    value: float  # negative log evidence or ELBO at the optimum
    signal_variance: float
    noise_variance: float
    by_gram: Tensor  # dL/dA (r, r)
    by_projection: Tensor  # dL/db (r,)
    by_trace: float  # dL/d Tr K
    count: int  # of targets

    @property
    def cotangents(self) -> Cotangents:
        """What a gradient in the parameters of a map needs."""
        return Cotangents(self.by_gram, self.by_projection, self.by_trace)


@dataclass(frozen=True)
class BestVariances:
    """The optimum of one output: g = s2 / sf2, sf2 and the value of the negative objective there."""

    ratio: float
    signal_variance: float
    value: float

    @property
    def noise_variance(self) -> float:
        """s2 = g sf2."""
        return self.ratio * self.signal_variance


def profile_evidence(
    unit_stats: Statistics, objective: str, bounds: tuple[float, float] = NOISE_RATIO_BOUNDS
) -> Profile:
    r"""min over sf2 > 0 and g = s2 / sf2 in ``bounds`` of the negative objective.

    One eigendecomposition A = V diag(lam) V', u = V'b turns the objective into a function of g alone:

        sf2(g) = (y'y - sum u_i^2 / (lam_i + g)) / (g N)
        f(g) = 1/2 [ N + sum log(lam_i + g) + (N - r) log g + N log sf2(g) + N log 2 pi - sum log weight_i
                     {+ (Tr K - Tr A) / g for the ELBO} ]

    f may have several minima, so a grid brackets the best one and a root of f' refines it. At the optimum the
    derivative in (sf2, g) vanishes or points out of the bounds, so the gradient in (A, b) needs no further term.
    """
    lam, V = eigenvalues_and_vectors(unit_stats.A)
    u = V.mT @ unit_stats.b
    best = best_variances(unit_stats, lam, u, objective, bounds)
    g, s2 = best.ratio, best.noise_variance
    w = V @ (u / (lam + g))
    by_gram = 0.5 * ((V / (lam + g)) @ V.mT + torch.outer(w, w) / s2)
    by_trace = 0.0
    if objective == "elbo":
        by_gram -= eye_like(by_gram) / (2.0 * g)
        by_trace = 0.5 / g
    return Profile(best.value, best.signal_variance, s2, by_gram, -w / s2, by_trace, unit_stats.n)


def eigenvalues_and_vectors(A: Tensor) -> tuple[Tensor, Tensor]:
    """lam (r,), not below zero, and V (r, r) of a Gram matrix A = V diag(lam) V'."""
    lam, V = torch.linalg.eigh(A)
    return lam.clamp_min(0.0), V


def best_variances(
    unit_stats: Statistics, lam_t: Tensor, u: Tensor, objective: str, bounds: tuple[float, float] = NOISE_RATIO_BOUNDS
) -> BestVariances:
    """The minimiser of f (see ``profile_evidence``) from eigenvalues lam (r,) of A and u = V'b (r,)."""
    n, r = unit_stats.n, unit_stats.rank
    lam, u2 = lam_t.numpy(), u.square().numpy()  # many small sums follow: NumPy has less to do per call
    gap = max(0.0, unit_stats.kernel_trace - float(lam.sum())) if objective == "elbo" else 0.0
    least = max(1e-14 * unit_stats.yty, float(np.finfo(np.float64).tiny))

    def misfit(g: _Array) -> _Array:
        return np.asarray(np.maximum(unit_stats.yty - (u2 / (lam + g[:, None])).sum(1), least))

    def f(log_g: _Array) -> _Array:
        """At all points (m,) at once."""
        g = np.exp(log_g)
        log_terms = np.log(lam + g[:, None]).sum(1) + (n - r) * log_g + n * np.log(misfit(g) / (g * n))
        return np.asarray(0.5 * (n + log_terms + n * math.log(2.0 * math.pi) + gap / g - unit_stats.log_weights))

    def slope(log_g: float) -> float:
        g = math.exp(log_g)
        shrunk = 1.0 / (lam + g)
        gain = float(u2 @ shrunk**2) * g / max(unit_stats.yty - float(u2 @ shrunk), least)
        return 0.5 * (g * float(shrunk.sum()) + (n - r) + n * (gain - 1.0) - gap / g)

    g = math.exp(_minimise(f, slope, *map(math.log, bounds)))
    sf2 = float(misfit(np.array([g]))[0]) / (g * n)
    return BestVariances(g, sf2, float(f(np.log([g]))[0]))


def _minimise(f: Callable[[_Array], _Array], slope: Callable[[float], float], low: float, high: float) -> float:
    """Global minimiser on a grid, refined to a root of the slope inside the neighbouring cells."""
    grid = np.linspace(low, high, _GRID)
    best = int(np.argmin(f(grid)))
    left, right = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
    if slope(left) < 0.0 < slope(right):
        return float(brentq(slope, left, right, xtol=1e-12))
    return float(grid[best])
