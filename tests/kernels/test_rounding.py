"""The bound on the rounding of kernel values holds against exact arithmetic, near and far."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from certgp.errors import NotCertifiableError
from certgp.kernels import Gaussian, Kernel, Matern12, Matern32, Matern52, Periodic, Product, RationalQuadratic, Sum
from helpers import ALL_KERNELS, CONSTANT, VARYING

mp = mpmath.mp.clone()
mp.dps = 60
KERNELS = {family.name: family([0.7, 1.9]) for family in ALL_KERNELS} | CONSTANT
KERNELS["short periodic"] = Periodic([0.05, 0.2], [1e-3, 700.0])
KERNELS["flat rational quadratic"] = RationalQuadratic(0.3, alpha=0.02)


def numbers(kernel: Kernel, name: str, count: int) -> list:
    return [mp.mpf(float(each)) for each in kernel.values[name].expand(count)]


def by_distance(kernel: Kernel, r):
    if isinstance(kernel, Gaussian):
        return mp.exp(-(r**2) / 2)
    if isinstance(kernel, RationalQuadratic):
        alpha = mp.mpf(float(kernel.alpha))
        return (1 + r**2 / (2 * alpha)) ** -alpha
    a = mp.sqrt({Matern12: 1, Matern32: 3, Matern52: 5}[type(kernel)]) * r
    return {Matern12: 1, Matern32: 1 + a, Matern52: 1 + a + a**2 / 3}[type(kernel)] * mp.exp(-a)


def exact(kernel: Kernel, x: np.ndarray, z: np.ndarray):
    """k(x, z) / sf2 at the floating-point numbers given, to sixty digits."""
    if isinstance(kernel, Sum):
        sizes = [mp.mpf(float(part.signal_variance)) for part in kernel.parts.values()]
        terms = zip(sizes, kernel.parts.values(), strict=True)
        return mp.fsum(size * exact(part, x, z) for size, part in terms) / mp.fsum(sizes)
    if isinstance(kernel, Product):
        return mp.fprod(exact(part, x, z) for part in kernel.parts.values())
    own = range(len(x)) if kernel.columns is None else kernel.columns
    d = [mp.mpf(float(x[j])) - mp.mpf(float(z[j])) for j in own]
    scales = numbers(kernel, "length_scale", len(d))
    if isinstance(kernel, Periodic):
        periods = numbers(kernel, "period", len(d))
        each = zip(d, periods, scales, strict=True)
        return mp.exp(-2 * mp.fsum((mp.sin(mp.pi * e / p) / s) ** 2 for e, p, s in each))
    return by_distance(kernel, mp.sqrt(mp.fsum((e / s) ** 2 for e, s in zip(d, scales, strict=True))))


@pytest.mark.parametrize("spread", [0.1, 3.0, 80.0, 1e4, 1e7])
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_within_the_bound(name, spread):
    kernel, rng = KERNELS[name], np.random.default_rng(int(spread))
    Z = spread * rng.standard_normal((4, 2)) + rng.standard_normal(2) * spread
    far = Z + 1e3 * spread * rng.standard_normal(Z.shape)
    X = np.concatenate([Z, Z + 0.3 * rng.standard_normal(Z.shape), far])
    found = kernel.unit(torch.from_numpy(X), torch.from_numpy(Z)).numpy()
    worst = max(abs(mp.mpf(float(found[i, j])) - exact(kernel, x, z)) for i, x in enumerate(X) for j, z in enumerate(Z))
    assert float(worst) <= kernel.rounding(torch.from_numpy(Z))


@pytest.mark.parametrize("name", VARYING)
def test_a_varying_diagonal_has_no_bound(name):
    with pytest.raises(NotCertifiableError, match="no bound on the rounding"):
        VARYING[name].rounding(torch.zeros((3, 2), dtype=torch.float64))
