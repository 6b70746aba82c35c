"""Standardisation: unit moments inside, the user's units outside, and nothing divided by zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from certgp.data import Standardiser, summary

finite = st.floats(-1e6, 1e6, width=32)
tables = st.tuples(st.integers(1, 30), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=finite)
)


@given(X=tables)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_standardised_columns_have_zero_mean_and_unit_variance_or_are_constant(X):
    y = X[:, 0]
    standardiser = Standardiser.fit(X, y)
    Z = standardiser.inputs(X)
    assert np.isfinite(Z).all()
    assert (standardiser.x_scale > 0.0).all()
    varies = X.std(axis=0) > 1e-9 * np.abs(X).max(axis=0)
    np.testing.assert_allclose(Z.mean(axis=0)[varies], 0.0, atol=1e-6)
    np.testing.assert_allclose(Z.std(axis=0)[varies], 1.0, rtol=1e-6)
    np.testing.assert_allclose(Z[:, np.ptp(X, axis=0) == 0.0], 0.0, atol=1e-6 * (1.0 + np.abs(X).max()))


@given(X=tables)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_target_round_trip(X):
    y = X[:, 0]
    standardiser = Standardiser.fit(X, y)
    assert standardiser.y_scale > 0.0
    back = standardiser.mean_to_user(standardiser.target(y))
    np.testing.assert_allclose(back, y, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(y).max()))
    np.testing.assert_allclose(
        standardiser.variance_to_user(np.array([0.0, 2.0])), [0.0, 2.0 * standardiser.y_scale**2]
    )


def test_standardising_does_not_see_shift_and_scale():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    moved = X * np.array([1e-3, 7.0, 1e5]) + np.array([5.0, -2.0, 1e4])
    plain, other = Standardiser.fit(X, y), Standardiser.fit(moved, 40.0 * y - 3.0)
    np.testing.assert_allclose(other.inputs(moved), plain.inputs(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.target(40.0 * y - 3.0), plain.target(y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3e7, 1e-12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_columns_keep_their_unit_and_a_constant_target_predicts_itself(value, dtype):
    X, y = np.full((1000, 1), value, dtype=dtype), np.full(1000, value, dtype=dtype)
    standardiser = Standardiser.fit(X, y)
    assert standardiser.x_scale[0] == 1.0
    np.testing.assert_allclose(standardiser.mean_to_user(np.zeros(1)), float(y[0]), rtol=1e-12)
    assert 0.0 < standardiser.y_scale <= 1e-8 * max(1.0, abs(value)) * (1.0 + 1e-6)


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = 100.0 + rng.standard_normal((257, 2)), rng.standard_normal(257)
    whole = Standardiser.fit(X, y)
    monkeypatch.setattr(summary, "BLOCK_ROWS", 10)
    blocks = Standardiser.fit(X, y)
    np.testing.assert_allclose(blocks.x_mean, whole.x_mean, rtol=1e-13)
    np.testing.assert_allclose(blocks.x_scale, whole.x_scale, rtol=1e-12)
    np.testing.assert_allclose([blocks.y_mean, blocks.y_scale], [whole.y_mean, whole.y_scale], rtol=1e-12)


def test_moments_are_the_population_ones_without_cancellation():
    rng = np.random.default_rng(2)
    X = 1e8 + rng.standard_normal((500, 1))
    standardiser = Standardiser.fit(X, X[:, 0])
    np.testing.assert_allclose(standardiser.x_scale[0], (X - 1e8).std(), rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_types_become_float64_row_major(dtype):
    X = np.asfortranarray((10.0 * np.random.default_rng(3).standard_normal((40, 3))).astype(dtype))
    standardiser = Standardiser.fit(X, X[:, 0])
    Z = standardiser.inputs(X)
    assert Z.dtype == standardiser.target(X[:, 0]).dtype == np.float64
    assert Z.flags.c_contiguous
    np.testing.assert_allclose(Z.std(axis=0), 1.0, rtol=1e-9)


def test_a_column_that_did_not_vary_is_zero_whatever_its_new_value():
    X = np.random.default_rng(5).standard_normal((30, 3))
    X[:, 1] = 4.2
    fitted = Standardiser.fit(X, X[:, 0])
    assert fitted.ignored.tolist() == [False, True, False]
    new = X + np.array([0.0, 100.0, 0.0])
    for standardiser in (fitted, Standardiser.identity(3, fitted.ignored)):
        np.testing.assert_array_equal(standardiser.inputs(new)[:, 1], 0.0)
        np.testing.assert_array_equal(standardiser.inputs(new), standardiser.inputs(X))


def test_identity_changes_nothing():
    X = np.random.default_rng(4).standard_normal((5, 2))
    standardiser = Standardiser.identity(2)
    np.testing.assert_array_equal(standardiser.inputs(X), X)
    np.testing.assert_array_equal(standardiser.mean_to_user(standardiser.target(X[:, 0])), X[:, 0])
    assert not np.shares_memory(standardiser.inputs(X), X)
