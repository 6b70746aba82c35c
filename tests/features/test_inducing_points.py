"""Inducing points: greedy picks what is explained least, and both methods survive duplicate rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.features import NystromMap, greedy_inducing_points, kmeans_inducing_points
from certgp.kernels import Gaussian
from helpers import ALL_KERNELS, random_inputs, tensor

families = pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)


def residual_variance(kernel, X, Z):
    """diag(K - K_xz K_zz^-1 K_zx), dense."""
    if Z.shape[0] == 0:
        return torch.ones(X.shape[0], dtype=torch.float64)
    return 1.0 - (kernel(X, Z) * torch.linalg.solve(kernel(Z, Z), kernel(Z, X)).mT).sum(1)


@families
def test_greedy_picks_the_row_that_the_others_explain_least(family):
    X, kernel = random_inputs(0, 60, 2), family([0.6, 1.2], 3.0)
    unit = kernel.with_signal_variance(1.0)
    points = greedy_inducing_points(kernel, X, 12)
    assert points.shape == (12, 2)
    for step in range(12):
        residual = residual_variance(unit, X, points[:step])
        chosen = int((points[step] == X).all(1).nonzero()[0])
        assert float(residual[chosen]) > float(residual.max()) - 1e-9


@families
def test_greedy_points_are_nested(family):
    X = random_inputs(1, 50, 3)
    torch.testing.assert_close(
        greedy_inducing_points(family(1.0), X, 5), greedy_inducing_points(family(1.0), X, 15)[:5]
    )


@families
def test_greedy_stops_when_only_duplicates_are_left(family):
    distinct = random_inputs(2, 7, 2)
    X = distinct.repeat(5, 1)
    points = greedy_inducing_points(family(0.5), X, 20)
    assert sorted(map(tuple, points.tolist())) == sorted(map(tuple, distinct.tolist()))


def test_greedy_with_more_points_than_rows():
    assert greedy_inducing_points(Gaussian(0.05), random_inputs(3, 6, 2), 30).shape == (6, 2)


def test_greedy_points_are_a_copy():
    X = random_inputs(4, 10, 1)
    before = X.clone()
    greedy_inducing_points(Gaussian(0.5), X, 3).zero_()
    assert torch.equal(X, before)


def test_greedy_explains_more_than_the_first_rows():
    X, kernel = random_inputs(5, 200, 2), Gaussian(0.7)
    with torch.no_grad():
        gaps = [
            200.0 - float(NystromMap(kernel, Z)(X).square().sum())
            for Z in (greedy_inducing_points(kernel, X, 60), X[:60])
        ]
    assert gaps[0] < 0.1 * gaps[1]


def within_sum_of_squares(X, Z):
    return float(torch.cdist(X, Z).min(1).values.square().sum())


def test_kmeans_centres_are_better_than_random_rows():
    X = random_inputs(6, 400, 2)
    centres = kmeans_inducing_points(X, 15, np.random.default_rng(0))
    assert centres.shape == (15, 2)
    assert within_sum_of_squares(X, centres) < 0.7 * within_sum_of_squares(X, X[:15])


def test_kmeans_centres_are_means_of_their_clusters():
    """Well separated clusters: Lloyd's fixed point is exact."""
    corners = tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = (corners[:, None] + 0.1 * random_inputs(7, 30, 2).reshape(3, 10, 2)).reshape(-1, 2)
    centres = kmeans_inducing_points(X, 3, np.random.default_rng(1))
    expected = X.reshape(3, 10, 2).mean(1)
    np.testing.assert_allclose(np.unique(centres.numpy(), axis=0), np.unique(expected.numpy(), axis=0), rtol=1e-12)


@pytest.mark.parametrize("rank", [3, 4, 10])
def test_kmeans_with_fewer_distinct_rows_than_centres_returns_them(rank):
    distinct = tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    centres = kmeans_inducing_points(distinct.repeat(8, 1), rank, np.random.default_rng(2))
    torch.testing.assert_close(centres, distinct)


@pytest.mark.parametrize("seed", range(10))
def test_kmeans_on_clumped_rows_is_quiet_and_its_centres_distinct(seed):
    """Clusters far tighter than their distance may leave centres without rows; that is no reason for a warning."""
    rng = np.random.default_rng(seed)
    clumps = rng.standard_normal((6, 2))
    X = tensor(np.repeat(clumps, 20, axis=0) + 1e-9 * rng.standard_normal((120, 2)))
    centres = kmeans_inducing_points(X, 30, rng)
    assert bool(torch.isfinite(centres).all())
    assert 1 <= centres.shape[0] <= 30
    assert len(np.unique(centres.numpy(), axis=0)) == centres.shape[0]


def test_kmeans_is_a_function_of_its_seed():
    X = random_inputs(8, 100, 2)
    first, again = (kmeans_inducing_points(X, 8, np.random.default_rng(3)) for _ in range(2))
    assert torch.equal(first, again)
