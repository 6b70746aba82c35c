"""The same numbers in any container, layout or type give the same model, and are left as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from estimator_cases import (
    ALL,
    HOLDS_ROWS,
    UNTIED,
    assert_same_model,
    error_of,
    every_estimator,
    every_low_rank,
    pinned,
    problem,
    small,
)

from certgp import load
from certgp.data import ArrayRows
from certgp.errors import InvalidInputError

NAMES = ["age", "height"]
FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(np.ascontiguousarray(X), schema=names),
    "pyarrow": lambda X, names: pa.table({name: X[:, j].copy() for j, name in enumerate(names)}),
}
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


@every_estimator
@every_frame
def test_frames_lend_their_names(cls, frame):
    X, y = problem()
    model = small(cls, **UNTIED).fit(frame(X, NAMES), y)
    assert model.feature_names_in_.tolist() == NAMES
    assert isinstance(model.predict(frame(X, NAMES)), np.ndarray)
    plain = small(cls, **UNTIED).fit(X, y)
    np.testing.assert_allclose(model.predict(frame(X, NAMES)), plain.predict(X), rtol=1e-9, atol=1e-9)
    assert not hasattr(plain, "feature_names_in_")


@every_estimator
@every_frame
@pytest.mark.parametrize("method", ["predict", "predict_interval", "sample_y", "partial_fit", "nlpd"])
def test_columns_in_another_order_are_refused(cls, frame, method):
    X, y = problem()
    model = small(cls, **UNTIED).fit(frame(X, NAMES), y)
    swapped = frame(X[:, ::-1], NAMES[::-1])
    targets = (y,) if method in ("partial_fit", "nlpd") else ()
    text = error_of(lambda: getattr(model, method)(swapped, *targets))
    assert "Feature names must be in the same order as they were in fit" in text


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
@every_low_rank
def test_every_container_gives_the_same_fit_to_the_last_bit(cls, tmp_path):
    X, y = problem()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = small(cls, max_iter=5).fit(X, y)
    containers = [X.tolist(), mapped, ArrayRows(X, y), ArrayRows(np.column_stack([X, y])[:, :2], y, NAMES)]
    for rows in (*containers, *(frame(X, NAMES) for frame in FRAMES.values())):
        found = small(cls, max_iter=5).fit(rows, None if isinstance(rows, ArrayRows) else y)
        assert found.log_marginal_likelihood_ == expected.log_marginal_likelihood_
        np.testing.assert_array_equal(found.predict(rows, return_std=True), expected.predict(X, return_std=True))


@every_frame
def test_a_bad_number_far_down_is_named_by_row_and_column(frame):
    X, y = problem(80_000)
    X[70_001, 1] = np.nan
    text = error_of(lambda: small(ALL[0]).fit(frame(X, NAMES), y), InvalidInputError)
    assert "Input X contains NaN in row 70001 (counted from 0), column height; fill" in text


def test_rows_with_a_target_of_their_own():
    X, y = problem()
    rows, model = ArrayRows(X, y), small(ALL[0], optimize=False).fit(X, y)
    assert model.score(rows) == model.score(X, y)
    assert model.nlpd(rows) == model.nlpd(X, y)
    assert "leave y out" in error_of(lambda: model.fit(rows, y), InvalidInputError)
    assert "hold no target y" in error_of(lambda: model.fit(ArrayRows(X)), InvalidInputError)
    assert "expecting 2 features" in error_of(lambda: model.predict(ArrayRows(X[:, :1])))
    assert "minimum of 2 is required" in error_of(lambda: model.fit(ArrayRows(X[:1], y[:1])))


def test_names_of_files_and_lazy_frames_are_for_read():
    X, y = problem()
    lazy = pl.DataFrame(X).lazy()
    for source, found in (
        ("rows*.parquet", "'rows*.parquet'"),
        (Path("a.csv"), "'a.csv'"),
        (lazy, "a lazy polars frame"),
    ):
        text = error_of(lambda each=source: small(ALL[0]).fit(each, y), InvalidInputError)
        assert f"X must hold numbers, found {found}; read it first" in text
    assert "certgp.read" in error_of(lambda: pinned(ALL[0]).fit(X, y).predict(lazy), InvalidInputError)


@every_frame
def test_targets_as_series(frame):
    X, y = problem()
    column = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}
    for cls in ALL:
        expected = small(cls, **UNTIED).fit(frame(X, NAMES), y)
        for series in column.values():
            found = small(cls, **UNTIED).fit(frame(X, NAMES), series(y))
            assert np.array_equal(found.predict(frame(X, NAMES)), expected.predict(frame(X, NAMES)))


@every_estimator
def test_an_array_after_a_frame_forgets_the_names(cls):
    X, y = problem()
    model = small(cls, **UNTIED).fit(FRAMES["pandas"](X, NAMES), y).fit(X, y)
    assert not hasattr(model, "feature_names_in_")


@every_estimator
def test_float32_rows_are_their_float64_values(cls):
    X, y = (part.astype(np.float32) for part in problem())
    wide = pinned(cls).fit(X.astype(np.float64), y.astype(np.float64))
    assert_same_model(pinned(cls).fit(X, y), wide, X, rtol=1e-12)
    assert pinned(cls).fit(X, y).predict(X).dtype == np.float64
    standardised = [small(cls, **UNTIED).fit(X.astype(dtype), y) for dtype in (np.float32, np.float64)]
    assert_same_model(*standardised, X, rtol=1e-9)


@every_estimator
@pytest.mark.parametrize(
    "layout",
    [np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], lambda X: X[::-1][::-1], lambda X: X.tolist()],
    ids=["fortran", "strided", "reversed twice", "list"],
)
def test_memory_layout_does_not_matter(cls, layout):
    X, y = problem()
    expected = small(cls, **UNTIED).fit(X, y)
    found = small(cls, **UNTIED).fit(layout(X), layout(y[:, None])[:, 0] if layout is np.asfortranarray else y)
    assert_same_model(found, expected, X, rtol=1e-9)
    np.testing.assert_allclose(expected.predict(layout(X)), expected.predict(X), rtol=1e-12, atol=1e-13)


@every_estimator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_read_only_memory_maps(cls, dtype, tmp_path):
    X, y = (part.astype(dtype) for part in problem())
    for name, part in (("X", X), ("y", y)):
        np.save(tmp_path / f"{name}.npy", part)
    mapped_X, mapped_y = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xy")
    model = small(cls, **UNTIED).fit(mapped_X, mapped_y)
    expected = small(cls, **UNTIED).fit(X, y)
    assert np.array_equal(model.predict(mapped_X), expected.predict(X))
    model.partial_fit(mapped_X[:10], mapped_y[:10])
    assert_same_model(model, expected.partial_fit(X[:10], y[:10]), mapped_X, rtol=1e-12)


@every_estimator
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, bool, object])
def test_whole_number_targets_and_inputs(cls, dtype):
    X, y = problem()
    whole = (y > 0).astype(np.int64)
    expected = small(cls, **UNTIED).fit(X, whole.astype(np.float64))
    assert np.array_equal(small(cls, **UNTIED).fit(X, whole.astype(dtype)).predict(X), expected.predict(X))
    rounded = np.round(10 * X).astype(np.int64)
    as_floats = small(cls, **UNTIED).fit(rounded.astype(np.float64), y)
    assert np.array_equal(small(cls, **UNTIED).fit(rounded, y).predict(rounded), as_floats.predict(rounded))


@every_estimator
@pytest.mark.parametrize("optimize", [True, False])
def test_inputs_are_left_as_they_were(cls, optimize):
    X, y = problem()
    kept_X, kept_y = X.copy(), y.copy()
    model = small(cls, optimize=optimize, max_iter=300, standardize=False).fit(X, y)
    model.partial_fit(X, y)
    model.predict(X, return_cov=True)
    model.sample_y(X)
    model.nlpd(X, y)
    assert np.array_equal(X, kept_X)
    assert np.array_equal(y, kept_y)


@every_estimator
def test_changing_the_rows_after_fit_changes_nothing(cls):
    X, y = problem()
    model = small(cls, optimize=False, standardize=False).fit(X, y)
    expected = model.predict(X.copy())
    new, X[:], y[:] = X.copy(), 0.0, 0.0
    assert np.array_equal(model.predict(new), expected)
    model.partial_fit(new[:1], expected[:1])
    assert np.isfinite(model.log_marginal_likelihood_)


@every_estimator
def test_named_rows_carry_the_target_through_a_file(cls, tmp_path):
    X, y = problem()
    model = small(cls, **UNTIED).fit(ArrayRows(X, y, NAMES))
    model.target_name_ = "weight"
    assert model.feature_names_in_.tolist() == NAMES
    model.save(tmp_path / "m", **({"include_training_data": True} if cls in HOLDS_ROWS else {}))
    again = load(tmp_path / "m")
    assert (again.feature_names_in_.tolist(), again.target_name_) == (NAMES, "weight")


def test_a_plain_fit_forgets_the_name_of_an_older_target():
    X, y = problem()
    model = small(ALL[0], optimize=False).fit(ArrayRows(X, y, NAMES))
    model.target_name_ = "weight"
    model.fit(X, y)
    assert model.target_name_ is None
