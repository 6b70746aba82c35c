"""Streamed products with kernel matrices equal dense ones, in any arithmetic and on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import helpers
from certgp.gp.kernel_products import COMPILED_BLOCK, KernelMatrix
from certgp.kernels import Gaussian, Matern12, Matern32, Matern52, RationalQuadratic

LENGTHS = np.array([0.4, 1.0, 3.0])
KERNELS = {
    "gaussian": Gaussian(LENGTHS, 2.0),
    "matern12": Matern12(LENGTHS, 2.0),
    "matern32": Matern32(LENGTHS, 2.0),
    "matern52": Matern52(LENGTHS, 2.0),
    "some columns": Matern32(LENGTHS[:2], 2.0, columns=[0, 2]),
    "own code": RationalQuadratic(LENGTHS, 2.0),
    "sum": Gaussian(LENGTHS, 0.5) + Matern12(LENGTHS, 1.5),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def rows(n: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, 3)))


@every_kernel
@pytest.mark.parametrize("n", [1, 70, COMPILED_BLOCK + 1, 3 * COMPILED_BLOCK])
def test_products_equal_dense_ones(kernel, n):
    X, new, V = rows(n), rows(11, 1), rows(n, 2)
    matrix = KernelMatrix(kernel, X)
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        torch.testing.assert_close(matrix.multiply(V, dtype), kernel(X, X) @ V, rtol=close, atol=close * n)
        torch.testing.assert_close(matrix.cross(new, V, dtype), kernel(new, X) @ V, rtol=close, atol=close * n)


@every_kernel
def test_the_number_of_threads_does_not_matter(kernel):
    X, V = rows(2 * COMPILED_BLOCK + 9), rows(2 * COMPILED_BLOCK + 9, 2)
    matrix, before = KernelMatrix(kernel, X), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = matrix.multiply(V)
        torch.set_num_threads(2)
        assert torch.equal(matrix.multiply(V), one) or not matrix.is_compiled
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("family", [Gaussian, Matern12, Matern32, Matern52])
@pytest.mark.parametrize("spread", [0.1, 3.0, 1e3])
def test_entries_are_within_their_rounding(family, spread):
    """Against long double; columns that are far out have larger bounds."""
    X, kernel = spread * rows(60), family(np.ones(3))
    X[0] = 40.0 * spread
    matrix = KernelMatrix(kernel, X)
    new = torch.cat([X + 0.3, X])
    found = matrix.cross(new, torch.eye(60, dtype=torch.float64)).numpy()
    exact = helpers.dense_kernel(kernel, new.numpy().astype(np.longdouble), X.numpy().astype(np.longdouble))
    bound = matrix.column_rounding().numpy()
    errors = np.abs(found - exact).max(0)
    assert (errors <= bound).all()
    assert matrix.entries_rounding() == bound.max()
