"""Rows from any container: the same numbers in the same chunks, nothing copied, and errors that name row and column."""

from __future__ import annotations

import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from certgp.data import ArrayRows, FrameRows, PickedRows, as_rows
from certgp.data.rows import read_target
from certgp.errors import InvalidInputError

NAMES = ("age", "height", "weight")
X = 5.0 + 2.0 * np.random.default_rng(0).standard_normal((23, 3))
Y = np.random.default_rng(1).standard_normal(23)
POSITIONS = (slice(None), slice(3, 9), slice(20, 40), np.array([4, 0, 22, 4]), np.array([], dtype=np.int64))


def by_column(kind):
    return kind({name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(NAMES)})


CONTAINERS = {
    "array": X,
    "fortran": np.asfortranarray(X),
    "list": X.tolist(),
    "strided": np.column_stack([X, Y])[:, :3],
    "objects": X.astype(object),
    "texts": np.array([[repr(float(value)) for value in row] for row in X]),
    "pandas": pd.DataFrame(X, columns=list(NAMES)),
    "pandas by column": by_column(pd.DataFrame),
    "pandas nullable": by_column(pd.DataFrame).astype("Float64"),
    "pandas arrow": by_column(pd.DataFrame).astype(pd.ArrowDtype(pa.float64())),
    "polars": by_column(pl.DataFrame),
    "arrow": by_column(pa.table),
    "arrow in pieces": pa.concat_tables([by_column(pa.table)[:7], by_column(pa.table)[7:]]),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_rows(kind):
    rows = as_rows(CONTAINERS[kind], Y)
    assert (rows.n_rows, rows.n_columns) == X.shape
    named = any(word in kind for word in ("pandas", "polars", "arrow"))
    assert rows.names == (NAMES if named else None)
    assert rows.labels == (NAMES if named else ("0", "1", "2"))
    for positions in POSITIONS:
        some, target = rows.take(positions)
        np.testing.assert_array_equal(some, X[positions])
        np.testing.assert_array_equal(target, Y[positions])
        assert some.dtype == np.float64
    chunks = list(rows.chunks(10))
    assert [len(chunk) for chunk, _ in chunks] == [10, 10, 3]
    np.testing.assert_array_equal(np.concatenate([chunk for chunk, _ in chunks]), X)


@pytest.mark.parametrize(
    "target", [Y, Y.tolist(), pd.Series(Y), pl.Series(Y), pa.array(Y), pa.chunked_array([Y[:5], Y[5:]]), Y[:, None]]
)
def test_every_kind_of_target(target):
    np.testing.assert_array_equal(read_target(as_rows(X, target), chunk_rows=4), Y)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "arrow"])
def test_float32_stays_float32(kind):
    small = X.astype(np.float32)
    frames = {"array": lambda: small, "pandas": lambda: pd.DataFrame(small), "polars": lambda: pl.DataFrame(small)}
    container = (
        pa.table({name: small[:, j].copy() for j, name in enumerate(NAMES)}) if kind == "arrow" else frames[kind]()
    )
    some, target = as_rows(container, Y.astype(np.float32)).take(slice(2, 5))
    assert some.dtype == target.dtype == np.float32
    np.testing.assert_array_equal(some, small[2:5])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float16])
def test_other_numbers_become_float64(dtype):
    whole = (10.0 * X).astype(dtype)
    for container in (whole, pd.DataFrame(whole), whole.astype(object)):
        some, _ = as_rows(container).take(slice(None))
        assert some.dtype == np.float64
        np.testing.assert_array_equal(some, whole.astype(np.float64))


def test_missing_numbers_of_frames_are_nan():
    numbers = [1, None, 3]
    frames = (
        pd.DataFrame({"a": pd.array(numbers, dtype="Int64")}),
        pd.DataFrame({"a": numbers}),
        pl.DataFrame({"a": numbers}),
        pa.table({"a": numbers}),
        pa.table({"a": [True, None, False]}),
    )
    for frame in frames:
        assert np.isnan(as_rows(frame).take(slice(None))[0][:, 0]).tolist() == [False, True, False]


def test_arrays_and_memory_maps_are_not_copied(tmp_path):
    np.save(tmp_path / "X.npy", X)
    for array in (X, np.load(tmp_path / "X.npy", mmap_mode="r")):
        assert np.shares_memory(as_rows(array, Y).take(slice(5, 9))[0], array)
        assert np.shares_memory(as_rows(array, Y).take(slice(5, 9))[1], Y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_are_converted_chunk_by_chunk(kind):
    n, columns = 200_000, {str(j): np.random.default_rng(j).standard_normal(200_000) for j in range(10)}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)
    rows = as_rows(frame)
    next(rows.chunks(10))
    tracemalloc.start()
    try:
        for _ in rows.chunks(n // 20):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.2 * 8 * n * len(columns)


def test_names_may_be_given_to_an_array():
    rows = ArrayRows(X, Y, NAMES)
    assert rows.names == rows.labels == NAMES
    with pytest.raises(InvalidInputError, match="names has 2 entries but X has 3 columns"):
        ArrayRows(X, Y, NAMES[:2])


def test_numbers_as_names_are_no_names():
    assert as_rows(pd.DataFrame(X)).names is None


def test_rows_by_position_of_others():
    chosen = np.array([7, 3, 11, 0])
    rows = PickedRows(as_rows(CONTAINERS["pandas"], Y), chosen)
    assert (rows.n_rows, rows.n_columns, rows.names) == (4, 3, NAMES)
    np.testing.assert_array_equal(rows.take(slice(1, 3))[0], X[[3, 11]])
    np.testing.assert_array_equal(rows.take(np.array([3, 0]))[1], Y[[0, 7]])


def test_a_rows_object_is_taken_as_it_is_and_has_its_own_target():
    rows = as_rows(X, Y)
    assert as_rows(rows) is rows
    with pytest.raises(InvalidInputError, match="X is a Rows object, which holds its target itself; leave y out"):
        as_rows(rows, Y)
    with pytest.raises(InvalidInputError, match="the rows hold no target y"):
        read_target(as_rows(X))


def with_word(kind):
    words = X.astype(object)
    words[17, 1] = "tall"
    frame = {name: words[:, j].tolist() for j, name in enumerate(NAMES)}
    return words if kind == "array" else pd.DataFrame(frame)


@pytest.mark.parametrize(("kind", "column"), [("array", "1"), ("pandas", "height")])
def test_words_are_named_by_row_and_column(kind, column):
    rows = (ArrayRows if kind == "array" else FrameRows)(with_word(kind), Y)
    rows.take(slice(0, 17))
    for positions in (slice(10, 20), np.array([3, 17])):
        with pytest.raises(
            InvalidInputError, match=rf"column\(s\) {column} of X hold words .*'tall' in row 17, counted"
        ):
            rows.take(positions)


def test_dates_and_complex_numbers_are_refused():
    dated = pd.DataFrame({"age": X[:, 0], "when": pd.date_range("2024-01-31", periods=23)})
    for frame in (dated, pl.from_pandas(dated), pa.Table.from_pandas(dated)):
        with pytest.raises(
            InvalidInputError, match=r"column\(s\) when of X hold dates or times; turn them into numbers"
        ):
            as_rows(frame)
    with pytest.raises(InvalidInputError, match=r"column\(s\) 0 of X hold dates"):
        as_rows([[date(2024, 1, 31)]]).take(slice(None))
    with pytest.raises(InvalidInputError, match="the target y holds dates or times"):
        as_rows(X[:1], [date(2024, 1, 31)])
    with pytest.raises(InvalidInputError, match="Complex data not supported"):
        as_rows(X + 1j).take(slice(None))


def test_shapes_that_do_not_match():
    with pytest.raises(
        InvalidInputError, match=r"X must have rows and columns \(N, D\), found an array of shape \(23,\)"
    ):
        as_rows(Y)
    with pytest.raises(InvalidInputError, match="X has 23 rows but y has 22 values; give one y per row"):
        as_rows(X, Y[1:])
    with pytest.raises(InvalidInputError, match=r"the target y holds words instead of numbers .*'many' in row 1"):
        as_rows(X[:2], ["1.5", "many"])
