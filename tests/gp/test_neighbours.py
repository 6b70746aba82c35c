"""The nearest rows, found in three ways, against all distances."""

from __future__ import annotations

import numpy as np
import pytest

from certgp.gp import neighbours
from certgp.gp.neighbours import Neighbours, earlier_neighbours, search_coordinates
from certgp.kernels import Gaussian, Linear, Matern32
from helpers import random_inputs


def sorted_distances(points, at):
    return np.argsort(np.square(at[:, None] - points[None]).sum(2), 1, kind="stable")


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 12])
def test_the_nearest_rows_are_found(dimension):
    rng = np.random.default_rng(dimension)
    points, at = rng.standard_normal((300, dimension)), rng.standard_normal((20, dimension))
    np.testing.assert_array_equal(Neighbours(points).nearest(at, 15), sorted_distances(points, at)[:, :15])


@pytest.mark.parametrize("dimension", [2, 6])
def test_the_row_itself_is_left_out_also_among_equal_rows(dimension):
    points = np.repeat(np.random.default_rng(0).standard_normal((40, dimension)), 3, axis=0)
    own = np.arange(len(points))
    found = Neighbours(points).nearest(points, 10, own=own)
    assert found.shape == (120, 10)
    assert (found >= 0).all()
    assert not (found == own[:, None]).any()
    twins = (found[:, :2] // 3 == own[:, None] // 3).all(1)
    assert twins.all()


@pytest.mark.parametrize("dimension", [2, 6])
@pytest.mark.parametrize("first", [0, 700])
def test_earlier_neighbours_are_the_nearest_earlier_rows(dimension, first):
    points = np.random.default_rng(1).standard_normal((900, dimension))
    found = earlier_neighbours(points, 12, first)
    assert found.shape == (900 - first, 12)
    for i in range(first, 900, 7):
        expected = sorted_distances(points[:i], points[i : i + 1])[0, :12]
        assert found[i - first][: len(expected)].tolist() == expected.tolist()
        assert (found[i - first][len(expected) :] == -1).all()


def test_fewer_points_than_asked_for():
    assert Neighbours(np.zeros((0, 2))).nearest(np.zeros((3, 2)), 4).tolist() == [[-1] * 4] * 3
    assert Neighbours(np.array([[0.0], [1.0]])).nearest(np.array([[0.9]]), 4).tolist() == [[1, 0, -1, -1]]


def test_cells_find_nearly_all_nearest_rows_and_only_earlier_ones(monkeypatch):
    monkeypatch.setattr(neighbours, "ALL_DISTANCES", 1_000)
    points = np.random.default_rng(2).standard_normal((3_000, 6)) * np.linspace(1.0, 0.3, 6)
    at = points[:100]
    found, truth = Neighbours(points).nearest(at, 20), sorted_distances(points, at)[:, :20]
    shared = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(found, truth, strict=True)])
    assert shared > 0.97
    assert np.array_equal(found, Neighbours(points).nearest(at, 20))
    earlier = earlier_neighbours(points, 10)
    assert (earlier < np.arange(3_000)[:, None]).all()
    assert (earlier[10:] >= 0).all()


def test_search_coordinates_weigh_columns_as_the_kernel_does():
    X = random_inputs(0, 5, 3)
    np.testing.assert_allclose(search_coordinates(Matern32([0.5, 1.0, 2.0]), X), X.numpy() / [0.5, 1.0, 2.0])
    product = Gaussian(0.5, columns=[0]) * Gaussian([1.0, 2.0], columns=[0, 2])
    np.testing.assert_allclose(search_coordinates(product, X), X.numpy()[:, [0, 2]] * [np.sqrt(5.0), 0.5])
    np.testing.assert_allclose(search_coordinates(Linear(columns=[1]), X), X.numpy()[:, [1]])
