"""Rows of files and of other libraries' tables: every way to the same rows gives the same numbers."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet
import pytest

from certgp import BadRowsWarning, DataFileError, InvalidInputError, read
from certgp.data import StoredRows
from certgp.data.store import NumbersInFile, RowStore

N = 1000
NAMES = ("a", "b", "c", "y")


def values(rows: int = N, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, len(NAMES)))


def table(numbers: np.ndarray | None = None) -> pa.Table:
    numbers = values() if numbers is None else numbers
    return pa.table({name: numbers[:, j] for j, name in enumerate(NAMES)})


def write(path: Path, numbers: np.ndarray | None = None) -> Path:
    """A file by its ending, in groups of a hundred rows."""
    found = table(numbers)
    if path.suffix == ".parquet":
        pa_parquet.write_table(found, path, row_group_size=100)
    elif path.suffix == ".feather":
        pa_feather.write_feather(found, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_stream(path, found.schema) as writer:
            writer.write_table(found, max_chunksize=100)
    else:
        options = pa_csv.WriteOptions(delimiter="\t" if ".tsv" in path.name else ",")
        with pa.output_stream(str(path), compression="detect") as stream:
            pa_csv.write_csv(found, stream, options)
    return path


FILES = ("t.parquet", "t.feather", "t.arrow", "t.csv", "t.csv.gz", "t.tsv.bz2", "t.csv.zst")
OBJECTS = {
    "pandas": lambda: table().to_pandas(),
    "polars": lambda: pl.from_arrow(table()),
    "lazy polars": lambda: pl.from_arrow(table()).lazy(),
    "Arrow": table,
    "Arrow reader": lambda: table().to_reader(max_chunksize=300),
    "Dask": lambda: dd.from_pandas(table().to_pandas(), npartitions=3),
}


def assert_holds(rows, names=("a", "b", "c")):
    numbers, some = values(), np.random.default_rng(1).permutation(N)[:57]
    assert (rows.n_rows, rows.n_columns, rows.names) == (N, 3, names)
    for positions in (slice(None), slice(10, 500), slice(3, 90, 7), slice(5, 5), some):
        X, y = rows.take(positions)
        np.testing.assert_array_equal(X, numbers[positions, :3])
        np.testing.assert_array_equal(y, numbers[positions, 3])


@pytest.mark.parametrize("memory", [2**30, 20_000, 0], ids=["memory", "both", "file"])
@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path, name, memory):
    rows = read(write(tmp_path / name), target="y", memory=memory, scratch=tmp_path)
    assert rows.on_disk == (memory < 2**30)
    assert_holds(rows)
    assert [path.name for path in tmp_path.iterdir()] == [name]  # the scratch file has no name


@pytest.mark.parametrize("kind", OBJECTS)
def test_tables_of_other_libraries(kind):
    assert_holds(read(OBJECTS[kind](), target="y"))


def test_arrow_datasets_and_arrays(tmp_path):
    assert_holds(read(pa_dataset.dataset(write(tmp_path / "t.parquet")), target="y", memory=0))
    assert_holds(read(da.from_array(values(), chunks=(300, 2)), target="x3"), names=None)


def test_an_npy_file_is_used_as_it_lies(tmp_path):
    np.save(tmp_path / "t.npy", values())
    rows = read(tmp_path / "t.npy", target="x3", scratch=tmp_path)
    assert rows.on_disk
    assert_holds(rows, names=None)
    with (tmp_path / "t.npy").open("r+b") as stream:
        stream.truncate(20_000)
    with pytest.raises(DataFileError, match=r"t\.npy ends before row 999; it was changed while it was read"):
        rows.take(slice(None))
    with pytest.raises(DataFileError, match=r"t\.npy cannot be read as npy"):
        read(tmp_path / "t.npy", target="x3")


def test_folders_globs_and_lists_form_one_table_in_the_order_of_names(tmp_path):
    parts = np.array_split(values(), 3)
    (tmp_path / "deep").mkdir()
    for name, part in zip(("a.csv", "b.parquet", "deep/c.feather"), parts, strict=True):
        write(tmp_path / name, part)
    (tmp_path / "_SUCCESS.csv").write_text("a note, not a table")
    for source in (
        tmp_path,
        str(tmp_path / "**" / "[abc].*"),
        [tmp_path / "a.csv", tmp_path / "b.parquet", tmp_path / "deep"],
    ):
        assert_holds(read(source, target="y"))


def test_short_numbers_are_stored_short(tmp_path):
    numbers = values().astype(np.float32)
    pa_parquet.write_table(pa.table({name: numbers[:, j] for j, name in enumerate(NAMES)}), tmp_path / "t.parquet")
    rows = read(tmp_path / "t.parquet", target="y")
    assert rows.take(slice(3))[0].dtype == np.float32
    assert read(tmp_path / "t.parquet", target="y", dtype="float64").take(slice(3))[0].dtype == np.float64
    np.testing.assert_array_equal(rows.take(slice(None))[0], numbers[:, :3])


def test_roles_of_columns(tmp_path):
    path = write(tmp_path / "t.parquet", np.abs(values()))
    rows = read(path, target="y", weights="b", drop=["c"])
    assert rows.names == ("a",)
    np.testing.assert_array_equal(rows.weights(slice(5, 9)), np.abs(values())[5:9, 1])
    assert read(path, inputs=["c", "a"]).names == ("c", "a")
    assert read(path).take(slice(3))[1] is None
    with pytest.raises(InvalidInputError, match="column 'y' has two roles"):
        read(path, target="y", weights="y")
    with pytest.raises(DataFileError, match="there is no column 'z'; the columns are"):
        read(path, target="z")
    with pytest.raises(DataFileError, match="no input column is left"):
        read(path, target="y", drop=["a", "b", "c"])
    with pytest.raises(InvalidInputError, match="scratch must be a folder that exists"):
        read(path, target="y", scratch=tmp_path / "gone")
    with pytest.raises(InvalidInputError, match=r"read takes files, folders and globs, .* found int"):
        read(3)


def test_rows_far_apart_and_close_come_right_from_a_file(tmp_path):
    numbers = np.arange(600_000.0).reshape(-1, 2)
    store = RowStore(2, np.dtype(np.float64), memory=0, scratch=tmp_path)
    for part in np.array_split(numbers, 7):
        store.append(part)
    found = store.numbers()
    assert isinstance(found, NumbersInFile)
    rng = np.random.default_rng(0)
    for count in (1, 5, 40_000):
        positions = rng.permutation(len(numbers))[:count]
        np.testing.assert_array_equal(found[positions], numbers[positions])


# -------------------- bad data, in file 7 of 10


def damaged(folder: Path, kind: str) -> None:
    """Ten files, of which the seventh is bad."""
    for number, part in enumerate(np.array_split(values(), 10)):
        write(folder / f"p{number}.{'csv' if kind in ('short line', 'word') else 'parquet'}", part)
    path = next(folder.glob("p6.*"))
    part = np.array_split(values(), 10)[6].copy()
    if kind == "NaN":
        part[42, 1] = np.nan
        pa_parquet.write_table(table(part), path, row_group_size=20)
    elif kind == "missing column":
        pa_parquet.write_table(table(part).drop_columns(["b"]), path)
    elif kind == "other type":
        words = pa.array([f"w{i}" for i in range(len(part))])
        pa_parquet.write_table(table(part).set_column(1, "b", words), path)
    elif kind == "empty":
        pa_parquet.write_table(table(part[:0]), path)
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:-200])
    else:
        lines = path.read_text().splitlines()
        lines[8] = "1.5,2.5" if kind == "short line" else "1.5,nothing,2.5,3.5"
        path.write_text("\n".join(lines) + "\n")


BAD = {  # what is said, rows that are left of a thousand, rows that are counted
    "NaN": (r"column 'b' of .*p6\.parquet has 1 missing .* first in row 43 \(row group 2, counted from 0\)", 999, 1),
    "missing column": (r"p6\.parquet has other columns", 900, 0),
    "other type": (
        r"column 'b' of .*p6\.parquet is not numeric: row 1 \(row group 0, counted from 0\) holds 'w0'",
        900,
        100,
    ),
    "empty": (r"p6\.parquet has no rows", 900, 0),
    "truncated": (r"p6\.parquet cannot be read as parquet", 900, 0),
    "short line": (r"line 9 of .*p6\.csv has 2 field\(s\) where the header has 4", 999, 1),
    "word": (r"column 'b' of .*p6\.csv is not numeric: row 8 \(line 9\) holds 'nothing'", 999, 1),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_refused_by_place_or_left_out_and_counted(tmp_path, kind):
    message, left, counted = BAD[kind]
    damaged(tmp_path, kind)
    with pytest.raises(DataFileError, match=message):
        read(tmp_path, target="y")
    with pytest.warns(BadRowsWarning, match=r"p6\."):
        rows = read(tmp_path, target="y", on_bad_rows="skip")
    assert isinstance(rows, StoredRows)
    assert (rows.n_rows, rows.skipped.n_rows) == (left, counted)
    assert np.isfinite(rows.take(slice(None))[0]).all()
    assert bool(rows.skipped.files) == (counted == 0)


def test_bad_rows_of_frames_and_streams():
    numbers = values()
    numbers[17, 2] = np.nan
    frame = pd.DataFrame(numbers, columns=NAMES)
    for source in (frame, pl.from_pandas(frame).lazy()):
        with pytest.warns(BadRowsWarning, match=r"1 bad row\(s\) were left out"):
            rows = read(source, target="y", on_bad_rows="skip")
        np.testing.assert_array_equal(rows.take(slice(None))[0], np.delete(numbers, 17, 0)[:, :3])
    with pytest.raises(DataFileError, match=r"column 'c' of a lazy polars frame has a missing .* in row 18"):
        read(pl.from_pandas(frame, nan_to_null=False).lazy(), target="y")
