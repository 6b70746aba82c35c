"""The shared dense algebra (certgp.linalg)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.errors import CertgpError, NotPositiveDefiniteError
from certgp.linalg import cholesky, eye_like, gram, log_det_from_cholesky, solve_lower, solve_lower_transposed
from helpers import tensor


def spd(size: int, seed: int) -> torch.Tensor:
    root = np.random.default_rng(seed).standard_normal((size, size + 3))
    return tensor(root @ root.T)


@pytest.mark.parametrize("size", [1, 2, 17])
def test_cholesky_and_what_is_built_on_it(size):
    matrix = spd(size, size)
    L = cholesky(matrix, "S")
    torch.testing.assert_close(L @ L.mT, matrix, rtol=1e-12, atol=1e-12)
    assert torch.equal(L, L.tril())
    np.testing.assert_allclose(float(log_det_from_cholesky(L)), np.linalg.slogdet(matrix.numpy())[1], rtol=1e-11)
    assert torch.equal(eye_like(matrix), torch.eye(size, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 4)])
def test_triangular_solves_take_vectors_and_matrices(shape):
    L = cholesky(spd(6, 0), "S")
    rhs = tensor(np.random.default_rng(1).standard_normal(shape))
    for solution, matrix in [(solve_lower(L, rhs), L), (solve_lower_transposed(L, rhs), L.mT)]:
        assert solution.shape == rhs.shape
        torch.testing.assert_close(matrix @ solution, rhs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        tensor([[1.0, 2.0], [2.0, 1.0]]),
        tensor([[0.0]]),
        tensor([[1.0, 1.0], [1.0, 1.0]]),
        tensor([[np.nan, 0.0], [0.0, 1.0]]),
        tensor([[1.0, 0.0], [0.0, np.nan]]),
        tensor([[np.inf, 0.0], [0.0, 1.0]]),
    ],
    ids=["indefinite", "zero", "singular", "nan", "nan-last", "inf"],
)
def test_cholesky_raises_instead_of_repairing(matrix):
    size = matrix.shape[0]
    text = (
        rf"the {size} x {size} matrix K \+ s2 I \(raise noise_variance\) is not positive definite in float64 arithmetic"
    )
    with pytest.raises(NotPositiveDefiniteError, match=text):
        cholesky(matrix, "K + s2 I (raise noise_variance)")


def test_the_error_names_the_arithmetic_and_is_ours():
    with pytest.raises(NotPositiveDefiniteError, match="in float32 arithmetic"):
        cholesky(-torch.eye(2), "S")
    assert issubclass(NotPositiveDefiniteError, (CertgpError, ArithmeticError))


LAYOUTS = {
    "row-major": lambda a: a,
    "feature-major": lambda a: a.mT.contiguous().mT,
    "strided": lambda a: torch.cat([a, a], 1)[:, : a.shape[1]],
    "every other row": lambda a: a.repeat_interleave(2, 0)[::2],
}


@given(
    rows=st.integers(0, 40),
    rank=st.integers(1, 20),
    seed=st.integers(0, 1000),
    layout=st.sampled_from(sorted(LAYOUTS)),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
@settings(deadline=None, derandomize=True, max_examples=80)
def test_gram_of_every_layout(rows, rank, seed, layout, dtype):
    values = np.random.default_rng(seed).standard_normal((rows, rank))
    features = LAYOUTS[layout](torch.from_numpy(values).to(dtype))
    before = features.clone()
    found = gram(features)
    assert found.dtype == torch.float64
    assert found.shape == (rank, rank)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(found, tensor(values.T @ values), rtol=tolerance, atol=tolerance)
    if dtype == torch.float64:
        assert torch.equal(found, found.mT)  # symmetric to the last bit
    assert torch.equal(features, before)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rank", [1, 63, 64, 131])
@pytest.mark.parametrize("feature_major", [True, False])
def test_gram_is_the_same_product_on_any_number_of_threads(threads, rank, feature_major):
    generator = torch.Generator().manual_seed(rank)
    features = torch.randn(200, rank, dtype=torch.float64, generator=generator)
    features = features.mT.contiguous().mT if feature_major else features
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        product = gram(features)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(product, product.mT)
    torch.testing.assert_close(product, features.mT @ features, rtol=1e-12, atol=1e-12)
