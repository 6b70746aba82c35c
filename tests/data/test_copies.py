"""Verbatim repeated rows count once where targets are continuous; rows that may be draws of their own stay."""

from __future__ import annotations

import numpy as np
import pytest

from certgp.data import WeightedRows, as_rows
from certgp.data.copies import row_keys, without_copies


def continuous(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=n)


def test_each_repeated_row_is_kept_once_in_its_first_place():
    X, y = continuous()
    order = np.r_[np.arange(40), [3, 3, 17, 0, 5]]
    kept_X, kept_y = without_copies(as_rows(X[order], y[order])).take(slice(None))
    np.testing.assert_array_equal(kept_X, X)
    np.testing.assert_array_equal(kept_y, y)


def test_repeated_inputs_with_other_targets_are_replicates_and_stay():
    X, y = continuous()
    inputs, targets = np.vstack([X, X, X]), np.r_[y, y + 0.1, y]  # each row, a replicate, a copy
    assert without_copies(as_rows(inputs, targets)).n_rows == 80


def test_rows_with_few_copies_or_none_are_returned_as_they_are():
    X, y = continuous()
    for order in (np.arange(40), np.r_[np.arange(40), [3, 3, 17]]):
        rows = as_rows(X[order], y[order])
        assert without_copies(rows) is rows


def test_copies_by_accident_count_once_and_frequencies_of_the_population_stay():
    """Rows drawn with replacement, or read ten times, are accidents; two rows that are a quarter of all are not."""
    X, y = continuous(400)
    rng = np.random.default_rng(2)
    for order in (rng.integers(400, size=4_000), np.tile(np.arange(400), 10)):
        assert without_copies(as_rows(X[order], y[order])).n_rows == len(np.unique(order))
    uneven = np.r_[np.arange(400), np.repeat([3, 17], 70)]
    rows = as_rows(X[uneven], y[uneven])
    assert without_copies(rows) is rows


def discrete_tables():
    rng = np.random.default_rng(1)
    X = rng.integers(4, size=(500, 2)).astype(float)
    yield "few classes", X, (X.sum(1) + rng.integers(2, size=500) > 3).astype(float)
    yield "a rule without noise", X, X[:, 0] * X[:, 1]
    yield "counts", X, rng.poisson(20.0 + 40.0 * X[:, 0]).astype(float)
    yield "rounded measurements", X, np.round(X.sum(1) + rng.normal(0.0, 0.5, 500), 1)


@pytest.mark.parametrize(("X", "y"), [case[1:] for case in discrete_tables()], ids=[c[0] for c in discrete_tables()])
def test_equal_rows_of_discrete_tables_are_draws_of_their_own(X, y):
    assert len(np.unique(np.column_stack([X, y]), axis=0)) < 450
    rows = as_rows(X, y)
    assert without_copies(rows) is rows


def test_rows_with_weights_stay():
    X, y = continuous()
    rows = WeightedRows(as_rows(np.vstack([X, X]), np.r_[y, y]), np.linspace(1.0, 2.0, 80))
    assert without_copies(rows) is rows


def test_a_single_row_is_not_all_that_is_left():
    rows = as_rows(np.ones((5, 2)), np.ones(5))
    assert without_copies(rows) is rows


def test_keys_know_no_sign_of_zero_and_tell_columns_apart():
    keys = row_keys([np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])], 2)
    assert keys[0] == keys[1] != keys[2]
