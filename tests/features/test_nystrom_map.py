"""Nystrom features: the stated definition, below the kernel, exact where the inducing points are the data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.errors import NotPositiveDefiniteError
from certgp.features import NystromMap
from certgp.kernels import Gaussian
from helpers import ALL_KERNELS, INPUT_LAWS, random_inputs, tensor

families = pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)


@families
def test_definition(family):
    X, Z, jitter = random_inputs(0, 25, 2), random_inputs(1, 9, 2), 1e-3
    kernel = family([0.7, 1.9])
    features = NystromMap(kernel, Z, jitter=jitter)
    inner = torch.linalg.inv(kernel(Z, Z) + jitter * torch.eye(9, dtype=torch.float64))
    with torch.no_grad():
        phi = features(X)
        torch.testing.assert_close(phi @ phi.mT, kernel(X, Z) @ inner @ kernel(Z, X), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(features.basis(X) @ features.mixing(), phi, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(features.basis(X), kernel(X, Z), rtol=1e-13, atol=1e-15)


@given(
    family=st.sampled_from(ALL_KERNELS),
    law=st.sampled_from(sorted(INPUT_LAWS)),
    seed=st.integers(0, 10_000),
    dimension=st.integers(1, 4),
    rank=st.integers(1, 25),
    length_scale=st.floats(0.1, 10.0),
    jitter=st.sampled_from([1e-6, 1e-4, 0.1, 3.0]),
    inside=st.booleans(),
)
@settings(deadline=None, derandomize=True, max_examples=80)
def test_is_dominated_by_the_kernel(family, law, seed, dimension, rank, length_scale, jitter, inside):
    X = random_inputs(seed, 40, dimension, law)
    Z = X[:rank] if inside else random_inputs(seed + 1, rank, dimension, "uniform")
    features = NystromMap(family(length_scale), Z, jitter=jitter)
    with torch.no_grad():
        phi = features(X)
        gap = features.kernel(X, X) - phi @ phi.mT
    assert float(torch.linalg.eigvalsh(gap).min()) >= -1e-9


@families
def test_inducing_points_at_the_data_reproduce_the_kernel(family):
    X = random_inputs(2, 30, 2)
    features = NystromMap(family(1.0), X, jitter=1e-10)
    with torch.no_grad():
        phi = features(X)
        assert float((phi @ phi.mT - features.kernel(X, X)).abs().max()) < 1e-8


@families
def test_gradient_in_the_inputs(family):
    features = NystromMap(family([0.7, 1.4]), random_inputs(3, 6, 2))
    assert torch.autograd.gradcheck(features, (random_inputs(4, 5, 2).requires_grad_(),))


def test_inducing_points_are_learned_unless_told_otherwise():
    Z = random_inputs(5, 4, 2)
    assert NystromMap(Gaussian(1.0), Z).inducing_points.requires_grad
    assert not NystromMap(Gaussian(1.0), Z, learn_inducing=False).inducing_points.requires_grad
    assert NystromMap(Gaussian(1.0), Z).rank == 4


def test_coinciding_inducing_points_without_jitter_raise():
    Z = tensor([[0.5, 0.5]] * 3)
    features = NystromMap(Gaussian(1.0), Z, jitter=0.0)
    with pytest.raises(NotPositiveDefiniteError, match=r"3 x 3 matrix K_zz \+ jitter I \(raise jitter or lower rank\)"):
        features(random_inputs(6, 3, 2))


def test_float32_inputs_give_float32_features():
    features = NystromMap(Gaussian([0.5, 1.5]), random_inputs(7, 10, 2), jitter=1e-3)
    X = random_inputs(8, 50, 2)
    with torch.no_grad():
        single = features(X.float())
        assert single.dtype == torch.float32
        assert np.abs(single.double().numpy() - features(X).numpy()).max() < 1e-3
