"""Index sets: the heap finds what brute force finds, and tails are exact sums of what was dropped."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, comb

from certgp.features import box_indices, eigenvalue_tail, optimal_indices, total_degree_indices

RANK = {1: 40, 2: 40, 3: 40, 4: 24}
ratio_lists = st.lists(st.floats(0.01, 0.97), min_size=1, max_size=4)


def brute_force(ratios: list[float], rank: int) -> np.ndarray:
    """The largest products among all degrees below ``rank``: an index beyond has ``rank`` cheaper ones below it."""
    pool = np.indices((rank,) * len(ratios)).reshape(len(ratios), -1).T
    return pool[np.argsort(pool @ -np.log(ratios), kind="stable")[:rank]]


def kept_mass(ratios: list[float], indices: np.ndarray) -> Fraction:
    """Sum of the kept eigenvalues in exact rational arithmetic."""
    q = [Fraction(float(r)) for r in ratios]
    return sum(
        (math.prod((1 - qj) * qj ** int(k) for qj, k in zip(q, row, strict=True)) for row in indices), Fraction(0)
    )


@given(ratios=ratio_lists)
@settings(deadline=None, derandomize=True, max_examples=40)
def test_heap_finds_the_cheapest_indices(ratios):
    rank = RANK[len(ratios)]
    costs = -np.log(ratios)
    found, expected = optimal_indices(ratios, rank), brute_force(ratios, rank)
    assert found.shape == (rank, len(ratios))
    assert len(np.unique(found, axis=0)) == rank
    np.testing.assert_allclose(
        found @ costs, expected @ costs, rtol=2e-10, atol=0.0
    )  # ties at 1e-10 may swap, costs may not


@pytest.mark.parametrize("ratios", [(0.5,), (0.37, 0.17), (0.61, 0.382, 0.0557), (0.9, 0.31, 0.62, 0.45)])
def test_heap_is_brute_force_index_by_index_where_no_ties_exist(ratios):
    rank = RANK[len(ratios)]
    np.testing.assert_array_equal(optimal_indices(ratios, rank), brute_force(list(ratios), rank))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 6])
def test_equal_ratios_make_the_optimal_set_the_total_degree_set(dimension):
    np.testing.assert_array_equal(optimal_indices([0.4] * dimension, 150), total_degree_indices(dimension, 150))


@given(ratios=ratio_lists, rank=st.integers(1, 60))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_optimal_sets_are_nested_and_lower(ratios, rank):
    larger = optimal_indices(ratios, rank + 7)
    np.testing.assert_array_equal(optimal_indices(ratios, rank), larger[:rank])
    kept = {tuple(row) for row in larger[:rank]}
    below = [(*k[:j], k[j] - 1, *k[j + 1 :]) for k in kept for j in range(len(k)) if k[j] > 0]
    assert set(below) <= kept


def test_total_degree_orders_by_degree_then_lexicographically():
    indices = total_degree_indices(3, 84)
    assert [tuple(row) for row in indices] == sorted(map(tuple, indices), key=lambda k: (sum(k), k))
    assert sum(map(sum, indices)) == sum(m * comb(m + 2, 2) for m in range(7))  # complete levels 0 .. 6


@pytest.mark.parametrize(
    ("dimension", "rank", "side"), [(1, 7, 7), (2, 50, 7), (3, 124, 4), (3, 125, 5), (7, 300, 2), (5, 1, 1), (4, 3, 1)]
)
def test_box_is_the_largest_full_power_within_the_rank(dimension, rank, side):
    indices = box_indices(dimension, rank)
    assert [tuple(row) for row in indices] == list(itertools.product(range(side), repeat=dimension))


# -------------------- tails


@given(ratios=ratio_lists, rank=st.integers(1, 60), index_set=st.sampled_from(["optimal", "total_degree", "box"]))
@settings(deadline=None, derandomize=True, max_examples=80)
def test_tail_is_one_minus_the_kept_mass_exactly(ratios, rank, index_set):
    d = len(ratios)
    indices = {
        "optimal": lambda: optimal_indices(ratios, rank),
        "total_degree": lambda: total_degree_indices(d, rank),
        "box": lambda: box_indices(d, rank),
    }[index_set]()
    exact = float(1 - kept_mass(ratios, indices))
    np.testing.assert_allclose(eigenvalue_tail(ratios, indices), exact, rtol=1e-11)


def test_tail_keeps_its_digits_where_a_difference_has_none():
    ratios = [1e-3, 2e-3, 5e-3]
    indices = optimal_indices(ratios, 200)
    assert 1.0 - float(kept_mass(ratios, indices)) == 0.0
    np.testing.assert_allclose(eigenvalue_tail(ratios, indices), float(1 - kept_mass(ratios, indices)), rtol=1e-13)


@given(ratio=st.floats(0.001, 0.99), rank=st.integers(1, 200))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_one_dimensional_tail_is_geometric(ratio, rank):
    np.testing.assert_allclose(eigenvalue_tail([ratio], optimal_indices([ratio], rank)), ratio**rank, rtol=1e-12)


@given(ratios=ratio_lists, side=st.integers(1, 4))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_box_tail_has_its_closed_form(ratios, side):
    indices = box_indices(len(ratios), side ** len(ratios))
    closed_form = float(1 - math.prod(1 - Fraction(q) ** side for q in ratios))
    np.testing.assert_allclose(eigenvalue_tail(ratios, indices), closed_form, rtol=1e-11)


@pytest.mark.parametrize("dimension", [1, 2, 4, 7])
@pytest.mark.parametrize("levels", [1, 3, 5])
def test_isotropic_tail_of_complete_levels_is_negative_binomial(dimension, levels):
    indices = total_degree_indices(dimension, comb(dimension + levels - 1, dimension, exact=True))
    found = eigenvalue_tail([0.3] * dimension, indices)
    np.testing.assert_allclose(found, betainc(levels, dimension, 0.3), rtol=1e-12)


def test_tail_of_a_set_with_holes():
    indices = np.array([[0, 0], [2, 0], [1, 3]])
    np.testing.assert_allclose(
        eigenvalue_tail([0.6, 0.3], indices), float(1 - kept_mass([0.6, 0.3], indices)), rtol=1e-14
    )


@given(ratios=ratio_lists, rank=st.integers(1, 50))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_no_set_of_the_same_size_loses_less_than_the_optimal_one(ratios, rank):
    box, total = box_indices(len(ratios), rank), total_degree_indices(len(ratios), rank)
    best = eigenvalue_tail(ratios, optimal_indices(ratios, rank))
    assert best <= eigenvalue_tail(ratios, total) * (1.0 + 1e-8)  # ties are decided to ten digits of the cost
    assert best <= eigenvalue_tail(ratios, box) * (1.0 + 1e-8)
