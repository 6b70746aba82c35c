"""One pass finds what NumPy finds on the whole array, in one block and in several."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from certgp.data import ArrayRows, Rows, Standardiser, as_rows, check_finite, summarise, summary
from certgp.errors import InvalidInputError

NAMES = ("age", "height", "weight")


def table(n=257, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, 3)) * [1.0, 40.0, 1e-3] + [100.0, -7.0, 0.0]).astype(dtype)
    return X, (3.0 + rng.standard_normal(n)).astype(dtype)


@pytest.fixture(params=[10, 64, 256, 65_536])
def block_rows(request, monkeypatch):
    monkeypatch.setattr(summary, "BLOCK_ROWS", request.param)
    return request.param


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_and_range_are_numpys(block_rows, dtype):
    X, y = table(dtype=dtype)
    found = summarise(as_rows(X, y))
    for moments, values in ((found.inputs, X), (found.target, y[:, None])):
        np.testing.assert_allclose(moments.mean, values.mean(axis=0, dtype=np.float64), rtol=1e-13)
        np.testing.assert_allclose(moments.scale, values.std(axis=0, dtype=np.float64), rtol=1e-13)
        np.testing.assert_array_equal(moments.least, values.min(axis=0))
        np.testing.assert_array_equal(moments.largest, values.max(axis=0))
    assert found.n_rows == 257
    assert not found.target_is_constant


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_block_is_the_plain_formula_to_the_last_bit(dtype):
    X, y = table(5_000, dtype)
    found = summarise(as_rows(X, y))
    for moments, values in ((found.inputs, X), (found.target, y[:, None])):
        mean = values.sum(axis=0, dtype=np.float64) / len(values)
        scale = np.sqrt(np.square(values - mean).sum(axis=0, dtype=np.float64) / len(values))
        np.testing.assert_array_equal(moments.mean, mean)
        np.testing.assert_array_equal(moments.scale, scale)
    standardiser, same = Standardiser.of(found), Standardiser.fit(X, y)
    np.testing.assert_array_equal(standardiser.x_scale, same.x_scale)
    assert (standardiser.y_mean, standardiser.y_scale) == (same.y_mean, same.y_scale)


def test_a_large_mean_does_not_swallow_the_spread(block_rows):
    X = 1e8 + np.random.default_rng(2).standard_normal((257, 1))
    np.testing.assert_allclose(summarise(as_rows(X)).inputs.scale, (X - 1e8).std(axis=0), rtol=1e-7)


def test_columns_that_do_not_vary_have_no_scale(block_rows):
    X, _ = table()
    X[:, 1] = 0.1
    found = summarise(as_rows(X, np.full(257, 4.2)))
    assert (found.inputs.scale == 0.0).tolist() == [False, True, False]
    assert found.target_is_constant
    assert Standardiser.of(found).ignored.tolist() == [False, True, False]


def test_the_range_is_a_little_wider_than_the_data():
    X, y = table()
    lower, upper = summarise(as_rows(X, y)).range()
    np.testing.assert_allclose(upper - lower, 1.02 * np.ptp(X, axis=0))
    assert (lower < X.min(axis=0)).all()


def test_distinct_rows_are_counted_up_to_a_limit(block_rows):
    X = np.repeat(np.arange(30.0), 10)[:, None]
    assert summarise(as_rows(X)).distinct_rows == 30
    assert summarise(as_rows(X), distinct_limit=12).distinct_rows == 12
    assert summarise(as_rows(np.vstack([X, -0.0 * X]))).distinct_rows == 30


def test_the_digest_tells_rows_apart_and_containers_not(block_rows):
    X, y = table(3_000)
    digest = summarise(as_rows(X, y)).digest
    frame = pd.DataFrame(X, columns=list(NAMES))
    assert summarise(as_rows(frame, y)).digest == summarise(ArrayRows(np.asfortranarray(X), y, NAMES)).digest == digest
    other = X.copy()
    other[-1, 0] += 1e-9
    changed = [(other, y), (X, -y), (X[:-1], y[:-1]), (X[:, :2], y), (X.astype(np.float32), y)]
    assert len({digest, *(summarise(as_rows(*rows)).digest for rows in changed)}) == 6


def test_the_digest_does_not_depend_on_the_blocks(monkeypatch):
    X, y = table(3_000)
    whole = summarise(as_rows(X, y)).digest
    monkeypatch.setattr(summary, "BLOCK_ROWS", 77)
    assert summarise(as_rows(X, y)).digest == whole


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("act", [summarise, check_finite])
def test_the_first_bad_number_is_named_by_row_and_column(value, name, act):
    X, y = table(80_000)
    X[70_001, 1] = X[79_999, 0] = value
    with pytest.raises(
        InvalidInputError, match=rf"Input X contains {name} in row 70001 \(counted from 0\), column 1; fill"
    ):
        act(as_rows(X, y))
    frame = pd.DataFrame(X, columns=list(NAMES))
    with pytest.raises(InvalidInputError, match=rf"Input X contains {name} in row 70001 .*, column height;"):
        act(as_rows(frame, y))
    y[66_000] = value
    with pytest.raises(InvalidInputError, match=rf"Input y contains {name} in row 66000 \(counted from 0\); fill"):
        act(as_rows(X[:70_000], y[:70_000]))


def test_sums_that_overflow_are_no_infinity():
    check_finite(as_rows(np.full((10, 1), 1.7e308)))
    check_finite(as_rows(np.full((10, 1), 3e38, dtype=np.float32)))


@pytest.mark.parametrize(("factor", "text"), [(1e200, "holds numbers too large"), (1e-200, "varies too little")])
def test_numbers_whose_squares_do_not_exist(factor, text):
    X, y = table()
    with pytest.raises(InvalidInputError, match=f"column height of X {text} to square .*; rescale it"):
        summarise(ArrayRows(X * [1.0, factor, 1.0], y, NAMES))
    with pytest.raises(InvalidInputError, match=f"the target y {text} to square"):
        summarise(as_rows(X, factor * (y - y.mean())))


class ShortRows(Rows):
    """Forgets its last row."""

    n_rows, n_columns = 5, 2

    def take(self, positions):
        return np.zeros((5, 2))[positions][:4], np.zeros(5)[positions]


def test_a_source_that_gives_other_shapes_is_named():
    message = (
        r"ShortRows.take gave X \(4, 2\) and y \(5,\) for 5 rows from 0 on; expected X \(5, 2\) and y \(5,\) or None"
    )
    with pytest.raises(InvalidInputError, match=message):
        summarise(ShortRows())


def test_rows_without_a_target_have_inputs_only():
    found = summarise(as_rows(table()[0]))
    assert found.target is None
    assert not found.target_is_constant
    with pytest.raises(InvalidInputError, match="the rows have no target to standardise"):
        Standardiser.of(found)
