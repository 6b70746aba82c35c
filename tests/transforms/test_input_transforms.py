"""Input transforms: identity, the normalised projection, and where a projection starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.errors import InvalidInputError
from certgp.transforms import Clip, Identity, Projection, principal_directions, sliced_inverse_directions
from helpers import random_inputs, tensor


def moments(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    centred = X - X.mean(0)
    return X.mean(0), centred.mT @ centred / X.shape[0]


def correlated_inputs(seed: int, rows: int, dimension: int) -> torch.Tensor:
    mixing = tensor(np.random.default_rng(seed).standard_normal((dimension, dimension)))
    return 3.0 + random_inputs(seed, rows, dimension) @ mixing


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return abs(float(a @ b) / float(a.norm() * b.norm()))


def test_identity_returns_its_input():
    X = random_inputs(0, 5, 3)
    assert Identity(3)(X) is X
    assert Identity(3).dimension == 3
    assert not list(Identity(3).parameters())


@given(seed=st.integers(0, 1000), dimension=st.integers(1, 6), data=st.data(), scale=st.floats(1e-3, 1e3))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_projection_has_zero_mean_and_unit_variance_whatever_its_directions(seed, dimension, data, scale):
    count = data.draw(st.integers(1, dimension))
    X = correlated_inputs(seed, 50, dimension)
    projection = Projection(random_inputs(seed + 1, dimension, count), *moments(X))
    with torch.no_grad():
        projection.directions.mul_(scale).add_(0.3 * scale * random_inputs(seed + 2, dimension, count))
        Z = projection(X)
    assert Z.shape == (50, count)
    assert projection.dimension == count
    torch.testing.assert_close(Z.mean(0), torch.zeros(count, dtype=torch.float64), rtol=0.0, atol=1e-9)
    torch.testing.assert_close(Z.square().mean(0), torch.ones(count, dtype=torch.float64), rtol=1e-9, atol=0.0)


def test_projection_is_affine_with_the_stated_matrix():
    X = correlated_inputs(3, 30, 4)
    mean, covariance = moments(X)
    directions = random_inputs(4, 4, 2)
    projection = Projection(directions, mean, covariance)
    spread = (directions.mT @ covariance @ directions).diagonal().sqrt()
    with torch.no_grad():
        torch.testing.assert_close(projection.linear_map, directions / spread, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(projection(X), (X - mean) @ (directions / spread), rtol=1e-10, atol=1e-12)


def test_length_of_a_direction_does_not_matter_so_its_gradient_is_orthogonal():
    X = correlated_inputs(5, 30, 3)
    projection = Projection(random_inputs(6, 3, 2), *moments(X))
    projection(X).sin().sum().backward()
    radial = (projection.directions.grad * projection.directions.detach()).sum(0)
    torch.testing.assert_close(radial, torch.zeros(2, dtype=torch.float64), rtol=0.0, atol=1e-10)


def test_projection_gradients():
    X = correlated_inputs(7, 6, 3)
    projection = Projection(random_inputs(8, 3, 2), *moments(X))

    def forward(X, directions):
        return torch.func.functional_call(projection, {"directions": directions}, (X,))

    assert torch.autograd.gradcheck(forward, (X.requires_grad_(), projection.directions))


def test_a_direction_without_variance_stays_finite():
    X = torch.cat([random_inputs(9, 20, 1), torch.full((20, 1), 4.0, dtype=torch.float64)], 1)
    projection = Projection(torch.eye(2, dtype=torch.float64), *moments(X))
    Z = projection(X)
    Z.sum().backward()
    assert bool(torch.isfinite(Z).all())
    assert bool(torch.isfinite(projection.directions.grad).all())
    torch.testing.assert_close(Z[:, 1].detach(), torch.zeros(20, dtype=torch.float64), rtol=0.0, atol=1e-12)


def test_projection_to_more_dimensions_than_columns_is_refused():
    with pytest.raises(InvalidInputError, match="projection=3 is more than the 2 columns of X"):
        Projection(torch.ones((2, 3), dtype=torch.float64), torch.zeros(2), torch.eye(2))


def test_float32_inputs_stay_float32():
    X = correlated_inputs(10, 20, 3)
    projection = Projection(random_inputs(11, 3, 2), *moments(X))
    with torch.no_grad():
        single = projection(X.float())
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), projection(X), rtol=0.0, atol=1e-4)


# -------------------- winsorised inputs


@given(seed=st.integers(0, 1000), rows=st.integers(1, 200), tail=st.floats(0.0, 0.3))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_clip_leaves_the_bulk_alone_and_at_most_a_tail_outside(seed, rows, tail):
    X = random_inputs(seed, rows, 3, "heavy")
    clip = Clip.at_quantiles(X, tail)
    Z = clip(X)
    outside = int(tail * rows)
    assert bool(((X < Z).sum(0) <= outside).all())
    assert bool(((X > Z).sum(0) <= outside).all())
    assert bool(((clip.lower <= Z) & (clip.upper >= Z)).all())
    assert torch.equal(clip(Z), Z)
    assert clip.dimension == 3
    assert not list(clip.parameters())
    new = random_inputs(seed + 1, 50, 3, "heavy")
    np.testing.assert_array_equal(clip(new).numpy(), np.clip(new.numpy(), clip.lower.numpy(), clip.upper.numpy()))


def test_clip_keeps_float32():
    assert Clip(tensor([-1.0]), tensor([1.0]))(torch.tensor([[3.0]])).dtype == torch.float32


# -------------------- starting directions


def test_principal_directions_are_those_of_largest_variance():
    X = correlated_inputs(12, 300, 5)
    _, covariance = moments(X)
    found = principal_directions(covariance, 3)
    torch.testing.assert_close(found.mT @ found, torch.eye(3, dtype=torch.float64), rtol=0.0, atol=1e-12)
    variances = (X @ found).var(0, correction=0)
    assert bool((variances.diff() < 0.0).all())
    torch.testing.assert_close(
        variances, tensor(np.sort(np.linalg.eigvalsh(covariance.numpy()))[::-1][:3].copy()), rtol=1e-10, atol=0.0
    )


@pytest.mark.parametrize("seed", range(3))
def test_sliced_inverse_regression_finds_the_direction_that_matters(seed):
    """A monotone link of one direction of correlated inputs; principal directions do not see it."""
    X = random_inputs(seed, 2000, 6) @ (torch.eye(6, dtype=torch.float64) + 0.3 * random_inputs(seed + 40, 6, 6))
    direction = random_inputs(seed + 50, 6, 1)[:, 0]
    index = X @ direction
    index = (index - index.mean()) / index.std()
    y = torch.tanh(index) + 0.1 * random_inputs(seed + 60, 2000, 1)[:, 0]
    found = sliced_inverse_directions(X, y, 1)[:, 0]
    _, covariance = moments(X)
    assert abs(float(torch.corrcoef(torch.stack([X @ found, index]))[0, 1])) > 0.99
    assert cosine(found, direction) > 0.97
    assert cosine(principal_directions(covariance, 1)[:, 0], direction) < 0.9


def test_sliced_inverse_regression_finds_a_plane():
    X = random_inputs(20, 4000, 5)
    y = X[:, 0] + 0.5 * torch.exp(X[:, 1]) + 0.05 * random_inputs(21, 4000, 1)[:, 0]
    found = torch.linalg.qr(sliced_inverse_directions(X, y, 2))[0]
    assert float(found[:2].square().sum(0).min()) > 0.95


@pytest.mark.parametrize(("rows", "slices"), [(7, 20), (3, 20), (50, 5)])
def test_sliced_inverse_regression_with_few_rows_and_constant_target(rows, slices):
    X = random_inputs(22, rows, 4)
    for y in (X[:, 0], torch.zeros(rows, dtype=torch.float64)):
        found = sliced_inverse_directions(X, y, 3, slices)
        assert found.shape == (4, 3)
        assert bool(torch.isfinite(found).all())


def test_sliced_inverse_directions_do_not_depend_on_row_order():
    X = random_inputs(23, 100, 4)
    y = X[:, 0] + math.pi * X[:, 1] ** 3
    order = torch.from_numpy(np.random.default_rng(0).permutation(100))
    a, b = sliced_inverse_directions(X, y, 1)[:, 0], sliced_inverse_directions(X[order], y[order], 1)[:, 0]
    assert cosine(a, b) > 1.0 - 1e-9
