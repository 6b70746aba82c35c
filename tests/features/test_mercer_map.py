"""Mercer features: below the kernel for every index set, centre and input scale; equal to it in the limit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.errors import InvalidInputError
from certgp.features import MercerMap, eigenvalue_tail, optimal_indices
from certgp.kernels import Gaussian, Matern32
from helpers import INPUT_LAWS, mercer_map_of, random_inputs, tensor

MINIMUM_EIGENVALUE = -1e-9


def gap(features: MercerMap, X: torch.Tensor) -> torch.Tensor:
    """K - Phi Phi' at unit signal variance."""
    with torch.no_grad():
        phi = features(X)
        return features.kernel(X, X) - phi @ phi.mT


@given(
    law=st.sampled_from(sorted(INPUT_LAWS)),
    seed=st.integers(0, 10_000),
    dimension=st.integers(1, 4),
    rank=st.integers(1, 60),
    index_set=st.sampled_from(["optimal", "total_degree", "box"]),
    length_scale=st.floats(0.1, 10.0),
    input_scale=st.floats(0.05, 20.0),
    centre=st.floats(-5.0, 5.0),
)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_is_dominated_by_the_kernel(law, seed, dimension, rank, index_set, length_scale, input_scale, centre):
    X = random_inputs(seed, 40, dimension, law)
    scales = np.full(dimension, input_scale) * np.linspace(1.0, 1.7, dimension)
    middle = torch.full((dimension,), centre, dtype=torch.float64)
    features = MercerMap(Gaussian(length_scale), scales, rank, index_set, middle)
    assert float(torch.linalg.eigvalsh(gap(features, X)).min()) >= MINIMUM_EIGENVALUE


@given(
    seed=st.integers(0, 10_000),
    dimension=st.integers(1, 3),
    rank=st.integers(1, 20),
    law=st.sampled_from(sorted(INPUT_LAWS)),
)
@settings(deadline=None, derandomize=True, max_examples=40)
def test_is_dominated_by_the_kernel_with_any_set_of_distinct_indices(seed, dimension, rank, law):
    rng = np.random.default_rng(seed)
    indices = np.unique(rng.integers(0, 9, (rank, dimension)), axis=0)
    features = mercer_map_of(Gaussian(rng.uniform(0.2, 3.0, dimension)), rng.uniform(0.2, 3.0, dimension), indices)
    assert (
        float(torch.linalg.eigvalsh(gap(features, random_inputs(seed, 30, dimension, law))).min()) >= MINIMUM_EIGENVALUE
    )


def test_outlier_far_beyond_underflow_still_has_its_features():
    """One row at 20 standard deviations among ordinary ones, at a short length-scale."""
    X = torch.cat([random_inputs(0, 20, 1), tensor([[20.0]])])
    features = MercerMap(Gaussian([np.sqrt(0.5) / 10.0]), [1.0], 4000)
    difference = gap(features, X)
    assert float(difference.abs().max()) < 1e-10


@pytest.mark.parametrize(("dimension", "rank"), [(1, 150), (2, 1500), (3, 4000)])
def test_large_rank_reproduces_the_kernel(dimension, rank):
    X = random_inputs(1, 30, dimension, "uniform")
    features = MercerMap(Gaussian(np.linspace(1.0, 2.0, dimension)), np.full(dimension, 1.2), rank)
    assert float(gap(features, X).abs().max()) < 1e-8


def test_features_are_products_of_one_dimensional_ones():
    X = random_inputs(2, 15, 3)
    scales, inputs, centre = np.array([0.5, 1.0, 2.0]), np.array([1.0, 0.8, 1.4]), tensor([0.3, -0.2, 0.0])
    features = MercerMap(Gaussian(scales), inputs, 40, centre=centre)
    single = [MercerMap(Gaussian(scales[j : j + 1]), inputs[j : j + 1], 40, centre=centre[j : j + 1]) for j in range(3)]
    with torch.no_grad():
        columns = [single[j](X[:, j : j + 1])[:, features.indices[:, j]] for j in range(3)]
        torch.testing.assert_close(features(X), torch.stack(columns).prod(0), rtol=1e-12, atol=1e-15)


def test_mean_square_of_a_feature_is_its_eigenvalue():
    """E phi_k(x)^2 = lambda_k under the input measure: Gauss-Hermite quadrature in each dimension."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    inputs = np.array([0.7, 1.5])
    grid = np.stack(np.meshgrid(nodes * inputs[0], nodes * inputs[1], indexing="ij"), -1).reshape(-1, 2)
    measure = tensor(np.outer(weights, weights).ravel() / (2.0 * np.pi))
    features = MercerMap(Gaussian([1.0, 2.0]), inputs, 12)
    with torch.no_grad():
        mean_square = (features(tensor(grid)).square() * measure[:, None]).sum(0)
        torch.testing.assert_close(mean_square, features.expansion.eigenvalues(features.indices), rtol=1e-8, atol=0.0)


def test_tail_and_indices_follow_the_current_parameters():
    features = MercerMap(Gaussian([0.5, 2.0]), [1.0, 1.0], 30)
    before = features.indices.clone()
    with torch.no_grad():
        features.log_length_scale.copy_(tensor([2.0, 0.5]).log())
    torch.testing.assert_close(features.indices, before)  # frozen until asked
    features.choose_indices(25)
    assert features.rank == 25
    ratios = Gaussian([2.0, 0.5]).mercer(tensor([1.0, 1.0])).ratio.numpy()
    np.testing.assert_array_equal(features.indices.numpy(), optimal_indices(ratios, 25))
    np.testing.assert_allclose(features.tail(), eigenvalue_tail(ratios, optimal_indices(ratios, 25)), rtol=1e-12)


def test_a_shared_length_scale_serves_all_dimensions():
    X = random_inputs(3, 10, 3)
    shared = MercerMap(Gaussian(0.8), tensor(1.1), 25, dimension=3)
    spelled_out = MercerMap(Gaussian([0.8] * 3), [1.1] * 3, 25)
    with torch.no_grad():
        torch.testing.assert_close(shared(X), spelled_out(X), rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("dimension", [1, 3])
def test_gradient_in_the_inputs(dimension):
    features = MercerMap(Gaussian(np.linspace(0.6, 1.5, dimension)), np.full(dimension, 1.1), 18)
    X = random_inputs(4, 5, dimension).requires_grad_()
    assert torch.autograd.gradcheck(features, (X,))


def test_float32_inputs_give_float32_features():
    features = MercerMap(Gaussian([0.5, 1.5]), [1.0, 1.0], 40)
    X = random_inputs(5, 50, 2)
    with torch.no_grad():
        single = features(X.float())
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), features(X), rtol=0.0, atol=1e-5)


def test_unknown_index_set_names_the_choices():
    with pytest.raises(
        InvalidInputError, match="unknown index_set 'hyperbolic'; choose one of optimal, total_degree, box"
    ):
        MercerMap(Gaussian(1.0), [1.0], 5, "hyperbolic")


def test_kernels_without_an_expansion_are_refused():
    with pytest.raises(InvalidInputError, match="no closed-form Mercer expansion"):
        MercerMap(Matern32(1.0), [1.0], 5)


def test_declares_that_it_is_dominated_and_what_is_bounded():
    assert MercerMap.dominated
    features = MercerMap(Gaussian(1.0), [1.0], 5)
    assert set(features.parameter_bounds()) == {name for name, _ in features.named_parameters()}
