r"""Eigenvalue tails of Matern kernels in several dimensions under uniform inputs on a box, from above.  [theorem M2]

A Matern kernel of smoothness nu is no product, but a mixture of products: with v ~ Gamma(nu, rate nu),

    k(x, x') = E_v prod_j exp(-(x_j - x'_j)^2 / (2 l_j^2 v)).

So products e_a = prod_j e_{a_j}(x_j) of orthonormal functions of one variable have

    <e_a, T e_a> = E_v prod_j A_{a_j}(v),      A_n(v) = int int e_n(x) e_n(x') exp(-(x - x')^2 / (2 rho^2 v)) dx dx'

on the unit interval, rho = l / range. The sum of these over *any* r indices is at most that of the r largest
eigenvalues of T (Ky Fan), so one minus it is at least the tail that r eigenfunctions leave.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from certgp.guarantees.operator_spectrum import robin_angles

Array = NDArray[np.float64]
_STEP = 0.2  # of the trapezoidal rule in log v
_LEAST_WEIGHT = 1e-30
_SHORTEST = 2.0**-20  # of the range: narrower Gaussians are left out, which lowers every A
_PANELS = 26  # dyadic intervals of distances, the first one (0, 2^-26)
_MOST_WAVES = 1 << 11  # of one column
_LEAST_RATIO = 1e-9
_CHUNK = 1 << 12
_ROUNDING = 1e-13  # of one A_n(v): a sum of some thousand terms whose magnitudes add up to at most two


def diagonal_elements(degrees: int, ratios: Array, count: int) -> Array:
    r"""<e_a, T e_a> of the Matern kernel with nu = degrees / 2, largest first, for the ``count`` indices a of lowest
    frequency (or as many as there are); ``ratios`` (D,) are length-scale / range per dimension.

    The e_n of each variable solve e'' = -omega^2 e with e' = -+ kappa e at the ends, kappa = 1 / (degrees rho): the
    eigenfunctions for nu = 1/2 and D = 1.
    """
    indices = lowest_frequencies(ratios, count)
    v, weights = _mixture_nodes(0.5 * degrees)
    tables = {
        (rho, size): _one_dimension(rho, v, size, 1.0 / (degrees * rho))
        for rho, size in {(float(rho), int(last) + 1) for rho, last in zip(ratios, indices.max(0), strict=True)}
    }
    columns = [tables[float(rho), int(last) + 1] for rho, last in zip(ratios, indices.max(0), strict=True)]
    found = np.empty(len(indices))
    for first in range(0, len(indices), _CHUNK):
        part = indices[first : first + _CHUNK]
        product = np.repeat(weights[:, None], len(part), 1)
        for j, table in enumerate(columns):
            product *= table[:, part[:, j]]
        found[first : first + _CHUNK] = product.sum(0)
    return -np.sort(-found)


def tail_bounds(degrees: int, ratios: Array, count: int) -> Array:
    """Upper bounds (count + 1,) on the relative eigenvalue tail beyond r = 0, .., count eigenfunctions."""
    found = diagonal_elements(degrees, ratios, count)
    kept = np.cumsum(np.concatenate([[0.0], found, np.zeros(count - len(found))]))
    return np.clip(1.0 - kept + len(ratios) * _ROUNDING * np.arange(1, count + 2), 0.0, 1.0)


def lowest_frequencies(ratios: Array, count: int) -> NDArray[np.int64]:
    """The ``count`` indices a (count, D) with the smallest sum_j (rho_j a_j)^2, where a Matern spectrum is largest;
    fewer where no column has waves enough.

    Column by column, shortest first. A beginning that is not among the ``count`` cheapest begins no index of the
    result: so many others, filled up with zeros, cost less.
    """
    ratios = np.maximum(ratios / ratios.max(), _LEAST_RATIO)  # any indices give a bound: those of extreme scales too
    order = np.argsort(ratios, kind="stable")
    limit = _sufficient_radius(ratios[order], count) ** 2
    indices, cost = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for rho in ratios[order]:
        total = cost[:, None] + np.square(rho * np.arange(min(math.isqrt(int(limit / rho**2)) + 1, _MOST_WAVES)))
        row, column = np.nonzero(total <= limit)
        indices, cost = np.column_stack([indices[row], column]), total[row, column]
        cheapest = np.argsort(cost, kind="stable")[:count]
        indices, cost = indices[cheapest], cost[cheapest]
    return indices[:, np.argsort(order)]


def _sufficient_radius(ratios: Array, count: int) -> float:
    """A radius in which there are at least ``count`` indices, since their unit cells cover that part of an ellipsoid;
    the best of those with the first k = 1, .., D columns.
    """
    k = np.arange(1, len(ratios) + 1)
    log_radius = (math.log(count) + np.cumsum(np.log(ratios)) + gammaln(0.5 * k + 1.0)) / k
    return float(2.0 / math.sqrt(math.pi) * np.exp(log_radius.min()) * (1.0 + 1e-9))


def _mixture_nodes(nu: float) -> tuple[Array, Array]:
    r"""Nodes v and weights of E f(v), v ~ Gamma(nu, rate nu): the trapezoidal rule in u = log v.

    For f analytic and at most one in the strip abs(Im u) < c its error is below 2 cos(c)^-nu / (e^(2 pi c / step) - 1),
    which is 1e-16 for c = 1.4. The f here are: A_n(v) is a mean of exp(-d^2 / (2 v)), and Re 1 / v > 0. Nodes that are
    left out lower the sum.
    """
    u = _STEP * np.arange(-round(60.0 / _STEP), round(8.0 / _STEP))
    weights = _STEP * np.exp(nu * (math.log(nu) + u - np.exp(u)) - float(gammaln(nu)))
    kept = weights > _LEAST_WEIGHT
    return np.exp(u[kept]), weights[kept]


def _one_dimension(rho: float, v: Array, size: int, kappa: float) -> Array:
    r"""A_n(v) (V, size): int over abs(x - x') = t of the kernel times twice the autocorrelation of e_n,

        c [ (1 - t) cos(omega t) +- sin(omega (1 - t)) / omega ],   1 / c = 1 +- sin(omega) / omega,

    + for even and - for odd n.
    """
    omega = 2.0 * robin_angles(size, 0.5 * kappa)
    sign = np.where(np.arange(size) % 2 == 0, 1.0, -1.0)
    t, weights = _distances(float(omega[-1]))
    even_odd = sign * np.sin(np.multiply.outer(1.0 - t, omega)) / omega
    correlation = (1.0 - t)[:, None] * np.cos(np.multiply.outer(t, omega)) + even_odd
    correlation /= 1.0 + sign * np.sin(omega) / omega
    width = rho * np.sqrt(v)
    kernel = np.exp(-0.5 * np.square(t / width[:, None])) * (width > _SHORTEST)[:, None]
    return np.maximum(2.0 * (kernel * weights) @ correlation, 0.0)


def _distances(omega: float) -> tuple[Array, Array]:
    """Gauss nodes and weights on (0, 1), denser towards 0, enough of them for cos(omega t) in every interval."""
    ends = np.concatenate([[0.0], 2.0 ** np.arange(-_PANELS, 1.0)])
    nodes, weights = [], []
    for low, high in pairwise(ends.tolist()):
        half = 0.5 * (high - low)
        x, w = np.polynomial.legendre.leggauss(24 + int(1.3 * omega * half))
        nodes.append(low + half * (x + 1.0))
        weights.append(half * w)
    return np.concatenate(nodes), np.concatenate(weights)
