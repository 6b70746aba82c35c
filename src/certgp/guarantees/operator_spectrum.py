"""Eigenvalues of one-dimensional kernel operators under uniform inputs: closed form for Matern 1/2, bounds from below
and approximations for any kernel."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.checks import check_count, check_positive
from certgp.errors import InvalidInputError
from certgp.kernels import Kernel

Array = NDArray[np.float64]
_BISECTIONS = 60
_RITZ_CELLS, _RITZ_DEGREES, _RITZ_NODES = 500, 4, 16
_LONGEST_CELL = 8.0  # in length-scales: there 16 Gauss nodes still integrate exp(-sqrt(5) h t) to 1e-12


def matern12_eigenvalues(length_scale: float, half_width: float, count: int) -> Array:
    r"""The ``count`` largest eigenvalues of f -> int exp(-|x - x'| / l) f(x') dx' / (2a) on [-a, a], decreasing.

    theta_n is the root in (n pi / 2, (n + 1) pi / 2) of c a cos(th) = th sin(th) for even n and th cos(th) =
    -c a sin(th) for odd n, c = 1 / l; with omega = theta / a the eigenvalue is (1 / 2a) 2c / (omega^2 + c^2). They sum
    to one over all n.  [theory 6; Van Trees 1968, sec. 3.4]
    """
    a, c = check_positive("half_width", half_width), 1.0 / check_positive("length_scale", length_scale)
    omega = robin_angles(check_count("count", count), c * a) / a
    return np.asarray((c / a) / (omega**2 + c**2))


def robin_angles(count: int, strength: float) -> Array:
    r"""theta_n (count,): the root in (n pi / 2, (n + 1) pi / 2) of s cos(th) = th sin(th) for even n, th cos(th) =
    -s sin(th) for odd n.

    cos(theta x) (even) and sin(theta x) (odd n) are the orthogonal functions on [-1, 1] with e' = -+ s e at the ends.
    """
    n = np.arange(count)
    low, high = 0.5 * math.pi * n, 0.5 * math.pi * (n + 1.0)
    even = n % 2 == 0

    # the sign of each function at the left end of its interval: a cosine or sine at a multiple of pi / 2
    left = np.where(even, np.cos(low), np.cos(low - 0.5 * math.pi))

    def beyond(theta: Array) -> NDArray[np.bool_]:
        """Is theta above its root?"""
        even_form = strength * np.cos(theta) - theta * np.sin(theta)
        odd_form = theta * np.cos(theta) + strength * np.sin(theta)
        return np.asarray(np.where(even, even_form, odd_form) * left < 0.0)

    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        too_far = beyond(middle)
        low, high = np.where(too_far, low, middle), np.where(too_far, middle, high)
    return np.asarray(0.5 * (low + high))


def quadrature_eigenvalues(kernel: Kernel, half_width: float, nodes: int = 400) -> Array:
    r"""Eigenvalues of a kernel's operator under the uniform law on [-a, a] by Gauss-Legendre: eig(W^1/2 K W^1/2).

    Approximate: 400 nodes give Matern 1/2 to 1e-4 relative (its kink makes the error O(nodes^-2)), smoother kernels far
    better. Scaled by the signal variance, they sum to k(x, x).
    """
    a = check_positive("half_width", half_width)
    _check_one_dimension(kernel)
    points, weights = np.polynomial.legendre.leggauss(check_count("nodes", nodes))
    x = torch.from_numpy(a * points)[:, None]
    root = np.sqrt(0.5 * weights)
    with torch.no_grad():
        K = kernel(x, x).numpy()
    values = np.linalg.eigvalsh(root[:, None] * K * root)
    return np.maximum(values[::-1], 0.0)


def ritz_eigenvalues(kernel: Kernel, half_width: float, cells: int = _RITZ_CELLS) -> Array:
    r"""Lower bounds on the 4 x ``cells`` largest eigenvalues of a kernel's operator T under the uniform law on [-a, a].

    Eigenvalues of <e_i, T e_j> for orthonormal e_i: by Courant and Fischer none is above the eigenvalue of T of the
    same place, so 1 - (sum of the first r) is never below the tail that r eigenfunctions leave. The e_i are Legendre
    polynomials of degree 0 to 3 on each of ``cells`` equal cells. Inside a pair of cells, and on each side of the
    diagonal of a cell with itself, the kernel is analytic, so Gauss quadrature is exact to rounding: that, and no
    kink, is all it is used for.
    """
    a, count = check_positive("half_width", half_width), check_count("cells", cells)
    _check_one_dimension(kernel)
    width = 2.0 * a / count
    if width > _LONGEST_CELL * float(kernel.values["length_scale"].min()):
        raise InvalidInputError(
            f"length_scale is below 1 / {_LONGEST_CELL * count:.0f} of the range of the inputs, too short for the "
            f"eigenvalues to be resolved on {count} cells; use a longer one"
        )
    blocks = _cell_blocks(kernel, width, count)
    lag = np.subtract.outer(np.arange(count), np.arange(count))
    pairs = np.where((lag >= 0)[:, :, None, None], blocks[np.abs(lag)], blocks[np.abs(lag)].swapaxes(2, 3))
    size = count * _RITZ_DEGREES
    values = np.linalg.eigvalsh(pairs.swapaxes(1, 2).reshape(size, size))
    return np.maximum(values[::-1], 0.0)


def _cell_blocks(kernel: Kernel, width: float, cells: int) -> Array:
    """(cells, 4, 4): int int P_p(t) P_q(u) k(h (lag + t - u)) dt du / cells over the unit square, for each lag."""
    points, weights = np.polynomial.legendre.leggauss(_RITZ_NODES)
    t, w = 0.5 * (points + 1.0), 0.5 * weights
    P, lags = _unit_legendre(t), np.arange(1, cells)
    apart = _stationary(kernel, width * (lags[:, None, None] + t[:, None] - t))
    others = np.einsum("pi,lij,qj->lpq", P * w, apart, P * w, optimize=True)
    # a cell with itself: the triangle u = t s <= t, and its mirror image
    near = _stationary(kernel, width * t[:, None] * (1.0 - t)) * (w * t)[:, None] * w
    triangle = np.einsum("pi,ij,qij->pq", P, near, _unit_legendre(np.multiply.outer(t, t)))
    return np.concatenate([(triangle + triangle.T)[None], others]) / cells


def _unit_legendre(t: Array) -> Array:
    """Legendre polynomials of degree 0 to 3 at t, orthonormal on [0, 1]: (4, *t.shape)."""
    scale = np.sqrt(2.0 * np.arange(_RITZ_DEGREES) + 1.0)
    basis = np.polynomial.legendre.legvander(2.0 * t - 1.0, _RITZ_DEGREES - 1)
    return np.asarray(np.moveaxis(basis * scale, -1, 0))


def _stationary(kernel: Kernel, distance: Array) -> Array:
    """k(d) at an array of distances."""
    with torch.no_grad():
        values = kernel(torch.from_numpy(distance.reshape(-1, 1)), torch.zeros((1, 1), dtype=torch.float64))
    return values.numpy().reshape(distance.shape)


def _check_one_dimension(kernel: Kernel) -> None:
    scales = kernel.values.get("length_scale")
    if not kernel.has_spectral_law or scales is None:
        raise InvalidInputError(
            f"eigenvalues under uniform inputs are for Gaussian and Matern kernels, found {kernel!r}"
        )
    if scales.numel() != 1:
        raise InvalidInputError(
            "eigenvalues under uniform inputs are for one dimension, found a kernel with "
            f"{scales.numel()} length-scales; give one"
        )
