"""Eigenvalues of one-dimensional kernel operators under uniform inputs: closed form for Matern 1/2, quadrature for any
kernel."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.checks import check_count, check_positive
from certgp.kernels import Kernel

Array = NDArray[np.float64]
_BISECTIONS = 60


def matern12_eigenvalues(length_scale: float, half_width: float, count: int) -> Array:
    r"""The ``count`` largest eigenvalues of f -> int exp(-|x - x'| / l) f(x') dx' / (2a) on [-a, a], decreasing.

    theta_n is the root in (n pi / 2, (n + 1) pi / 2) of c a cos(th) = th sin(th) for even n and th cos(th) =
    -c a sin(th) for odd n, c = 1 / l; with omega = theta / a the eigenvalue is (1 / 2a) 2c / (omega^2 + c^2). They sum
    to one over all n.  [theory 6; Van Trees 1968, sec. 3.4]
    """
    a, c = check_positive("half_width", half_width), 1.0 / check_positive("length_scale", length_scale)
    n = np.arange(check_count("count", count))
    low, high = 0.5 * math.pi * n, 0.5 * math.pi * (n + 1.0)
    even = n % 2 == 0

    # the sign of each function at the left end of its interval: a cosine or sine at a multiple of pi / 2
    left = np.where(even, np.cos(low), np.cos(low - 0.5 * math.pi))

    def beyond(theta: Array) -> NDArray[np.bool_]:
        """Is theta above its root?"""
        even_form = c * a * np.cos(theta) - theta * np.sin(theta)
        odd_form = theta * np.cos(theta) + c * a * np.sin(theta)
        return np.asarray(np.where(even, even_form, odd_form) * left < 0.0)

    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        too_far = beyond(middle)
        low, high = np.where(too_far, low, middle), np.where(too_far, middle, high)
    omega = 0.5 * (low + high) / a
    return np.asarray((c / a) / (omega**2 + c**2))


def quadrature_eigenvalues(kernel: Kernel, half_width: float, nodes: int = 400) -> Array:
    r"""Eigenvalues of a kernel's operator under the uniform law on [-a, a] by Gauss-Legendre: eig(W^1/2 K W^1/2).

    Approximate: 400 nodes give Matern 1/2 to 1e-4 relative (its kink makes the error O(nodes^-2)), smoother kernels far
    better. Scaled by the signal variance, they sum to k(x, x).
    """
    a = check_positive("half_width", half_width)
    points, weights = np.polynomial.legendre.leggauss(check_count("nodes", nodes))
    x = torch.from_numpy(a * points)[:, None]
    root = np.sqrt(0.5 * weights)
    with torch.no_grad():
        K = kernel(x, x).numpy()
    values = np.linalg.eigvalsh(root[:, None] * K * root)
    return np.maximum(values[::-1], 0.0)
