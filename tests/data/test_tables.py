"""Every readable format gives the same table, and every damaged file one error that names it."""

from __future__ import annotations

import gzip
import os
import stat
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from certgp.data import array_files, csv_text
from certgp.data.reading import listed
from certgp.data.tables import (
    check_writable,
    open_table,
    read_table,
    replacing,
    write_table,
    writing_table,
)
from certgp.errors import DataFileError, HeaderWarning

X = np.arange(12.0).reshape(4, 3) / 7.0
Y = np.array([1.5, -2.0, 0.25, 8.0])
NAMES = ("x0", "x1", "x2", "y")
VALUES = np.column_stack([X, Y])


def columns() -> dict[str, np.ndarray]:
    return dict(zip(NAMES, VALUES.T, strict=True))


def write_as(path: Path) -> Path:
    if path.suffix == ".csv":
        pa_csv.write_csv(pa.table(columns()), path)
    elif path.suffix == ".parquet":
        pa_parquet.write_table(pa.table(columns()), path)
    elif path.suffix == ".npz":
        np.savez(path, X=X, y=Y)
    else:
        np.save(path, VALUES)
    return path


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_formats_with_names_give_the_same_table(tmp_path, ending):
    table = read_table([write_as(tmp_path / f"data{ending}")])
    assert table.names == NAMES
    np.testing.assert_array_equal(table.values, VALUES)


def test_npy_columns_are_numbered(tmp_path):
    table = read_table([write_as(tmp_path / "data.npy")])
    assert table.names == ("x0", "x1", "x2", "x3")
    np.testing.assert_array_equal(table.values, VALUES)


def test_one_dimensional_arrays_are_one_column(tmp_path):
    np.save(tmp_path / "a.npy", Y)
    np.savez(tmp_path / "b.npz", X=Y)
    assert read_table([tmp_path / "a.npy"]).values.shape == (4, 1)
    assert read_table([tmp_path / "b.npz"]).names == ("x0",)


def test_tabs_and_compressed_text_are_read(tmp_path):
    (tmp_path / "a.tsv").write_text("u\tv\n1\t2\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"u,v\n1,2\n"))
    for name in ("a.tsv", "a.csv.gz"):
        table = read_table([tmp_path / name])
        assert table.names == ("u", "v")
        np.testing.assert_array_equal(table.values, [[1.0, 2.0]])
    (tmp_path / "a.csv.gz").write_bytes(b"u,v\n1,2\n")
    with pytest.raises(DataFileError, match=r"a\.csv\.gz cannot be read as csv.gz"):
        read_table([tmp_path / "a.csv.gz"])


def test_a_row_of_numbers_in_place_of_names_is_noticed(tmp_path):
    (tmp_path / "a.csv").write_text("0.5,1e3\n1,2\n")
    with pytest.warns(
        HeaderWarning, match=r"all column names of .*a\.csv are numbers \('0.5', '1e3'\): the first line"
    ):
        assert open_table([tmp_path / "a.csv"]).names == ("0.5", "1e3")


def test_arrays_are_told_from_tables_with_names(tmp_path):
    arrays, table = write_as(tmp_path / "a.npz"), write_as(tmp_path / "a.csv")
    assert open_table([arrays]).nameless
    assert not open_table([table]).nameless
    with pytest.raises(DataFileError, match=r"a\.npz has no column names but other files have"):
        open_table([table, arrays])


def test_the_file_without_a_column_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("u,v\n1,2\n")
    (tmp_path / "b.csv").write_text("u\n1\n")
    with pytest.raises(DataFileError, match=r"there is no column 'v' in .*b\.csv; the columns are: 'u'"):
        open_table([tmp_path / "*.csv"]).read(["u", "v"])


def test_endings_may_be_upper_case(tmp_path):
    write_as(tmp_path / "data.csv").rename(tmp_path / "DATA.CSV")
    assert read_table([tmp_path / "DATA.CSV"]).names == NAMES
    write_table(tmp_path / "OUT.NPZ", columns())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["DATA.CSV", "OUT.NPZ"]


def test_integers_and_booleans_become_floats(tmp_path):
    path = tmp_path / "a.parquet"
    pa_parquet.write_table(pa.table({"i": [1, 2], "b": [True, False]}), path)
    np.testing.assert_array_equal(read_table([path]).values, [[1.0, 1.0], [2.0, 0.0]])


def test_files_and_globs_are_stacked_in_order(tmp_path):
    for i, name in enumerate(["b.csv", "a.csv"]):
        (tmp_path / name).write_text(f"u,v\n{i},{10 + i}\n")
    np.testing.assert_array_equal(read_table([tmp_path / "*.csv"]).values[:, 0], [1.0, 0.0])
    np.testing.assert_array_equal(read_table([tmp_path / "b.csv", tmp_path / "a.csv"]).values[:, 0], [0.0, 1.0])


def test_columns_of_later_files_are_matched_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("u,v\n1,2\n")
    (tmp_path / "b.csv").write_text("v,u\n4,3\n")
    np.testing.assert_array_equal(read_table([tmp_path / "*.csv"]).values, [[1.0, 2.0], [3.0, 4.0]])


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path):
    (tmp_path / "data[1].csv").write_text("u\n5\n")
    assert read_table([tmp_path / "data[1].csv"]).values[0, 0] == 5.0


def test_only_the_columns_asked_for_are_converted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,u,v\nred,1,2\nblue,3,\n")
    assert open_table([path]).names == ("id", "u", "v")
    np.testing.assert_array_equal(read_table([path], ["u"]).values[:, 0], [1.0, 3.0])


def test_headers_are_read_without_the_rows(tmp_path):
    path = tmp_path / "a.parquet"
    pa_parquet.write_table(pa.table({"u": ["text"], "v": [1.0]}), path)
    assert open_table([path]).names == ("u", "v")


BAD_TEXT = {
    "ragged": ("u,v\n1,2\n3\n", r"line 3 of .*a\.csv has 1 field\(s\) where the header has 2; give every row as"),
    "semicolons": ("u;v\n1,5;2\n", r"columns of .*a\.csv seem to be separated by semicolons, not commas"),
    "tabs": ("u\tv\n1\t2\n", r"columns of .*a\.csv seem to be separated by tabs, not commas; .* \.tsv tabs"),
    "empty": ("", r"a\.csv cannot be read as csv"),
    "no rows": ("u,v\n", r"a\.csv has no rows"),
    "missing": (
        "u,v\n1,2\n3,\n",
        r"column 'v' of .*a\.csv has 1 missing or infinite value\(s\), first in row 2 \(line 3\); fill",
    ),
    "infinite": ("u,v\n1,inf\n", r"column 'v' of .* has 1 missing or infinite"),
    "text": (
        "u,v\n1,2\n3,red\n",
        r"column 'v' of .*a\.csv is not numeric: row 2 \(line 3\) holds 'red'; encode it as numbers, .*--drop v\)",
    ),
    "date": ("u,v\n1,2024-01-31\n", r"column 'v' of .* is not numeric: row 1 \(line 2\) holds '2024-01-31"),
    "twice": ("u,v,u\n1,2,3\n", r"more than one column named 'u'; rename"),
}


@pytest.mark.parametrize("kind", BAD_TEXT)
def test_bad_csv(tmp_path, kind):
    text, message = BAD_TEXT[kind]
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_table([tmp_path / "a.csv"])


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes("größe,v\n1,2\n".encode("latin-1"))
    with pytest.raises(
        DataFileError, match=r"a\.csv is not UTF-8 text \(line 1 holds the byte 0xf6\), perhaps Latin-1"
    ):
        read_table([tmp_path / "a.csv"])
    (tmp_path / "a.csv").write_text("size,v\n1,2\n", encoding="utf-16")
    with pytest.raises(DataFileError, match=r"a\.csv seems to be UTF-16 text; save it again as UTF-8"):
        read_table([tmp_path / "a.csv"])


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".npy"])
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9])
def test_truncated_files(tmp_path, ending, keep):
    path = write_as(tmp_path / f"a{ending}")
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(
        DataFileError, match=rf"a\{ending} cannot be read as {ending[1:]} .*check that the file is whole"
    ):
        read_table([path])


@pytest.mark.parametrize("ending", [".npz", ".npy"])
def test_damaged_bytes_raise_nothing_but_data_file_errors(tmp_path, ending):
    path = write_as(tmp_path / f"a{ending}")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for at in rng.integers(0, min(len(whole), 160), 3):
            damaged[at] = rng.integers(0, 256)
        path.write_bytes(damaged)
        with suppress(DataFileError):  # some damage cannot be seen; whatever can must not come out as another error
            read_table([path])


def test_missing_values_in_parquet_and_npz(tmp_path):
    holes = np.where(np.arange(4) == 2, np.nan, Y)
    pa_parquet.write_table(pa.table({"u": holes, "v": pa.array([1, None, 3, 4])}), tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", X=X, y=holes)
    with pytest.raises(DataFileError, match=r"column 'u' of .* has 1 missing or infinite value"):
        read_table([tmp_path / "a.parquet"])
    with pytest.raises(DataFileError, match=r"column 'v' of .* has 1 missing or infinite .* first in row 2"):
        read_table([tmp_path / "a.parquet"], ["v"])
    with pytest.raises(DataFileError, match=r"column 'y' of .* first in row 3"):
        read_table([tmp_path / "a.npz"])


BAD_ARRAYS = {
    "no X": ({"a": X, "b": Y}, "holds a, b; an .npz file needs an array X"),
    "nothing": ({}, "holds nothing; an .npz file needs"),
    "lengths": ({"X": X, "y": Y[:2]}, "X has 4 rows but y has 2"),
    "text": ({"X": np.array([["a"], ["b"]])}, "holds values of type <U1; store numbers"),
    "cube": ({"X": np.zeros((2, 2, 2))}, r"array of shape \(2, 2, 2\)"),
    "scalar": ({"X": np.float64(1.0)}, r"array of shape \(\)"),
    "objects": ({"X": np.array([[None]], dtype=object)}, "holds values of type object; store numbers"),
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_npz(tmp_path, kind):
    arrays, message = BAD_ARRAYS[kind]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataFileError, match=message):
        read_table([tmp_path / "a.npz"])


def test_files_with_other_columns(tmp_path):
    (tmp_path / "a.csv").write_text("u,v\n1,2\n")
    (tmp_path / "b.csv").write_text("u,w\n1,2\n")
    files = open_table([tmp_path / "*.csv"])
    assert files.names == ("u",)
    with pytest.raises(DataFileError, match=r"b\.csv has other columns \('u', 'w'\) than .*a\.csv \('u', 'v'\)"):
        files.read()
    assert files.read(["u"]).values.shape == (2, 1)


def test_paths_that_cannot_be_read(tmp_path):
    (tmp_path / "a.txt").write_text("u\n1\n")
    for given, message in [
        (tmp_path / "gone.csv", "gone.csv does not exist; check the path"),
        (tmp_path / "*.csv", r"no file matches .*\*\.csv; check the pattern"),
        (tmp_path, "holds no readable file; they end in .csv"),
        (
            tmp_path / "a.txt",
            r"a\.txt has an unknown ending; readable files end in .csv, .csv.gz",
        ),
    ]:
        with pytest.raises(DataFileError, match=message):
            open_table([given])
    with pytest.raises(DataFileError, match="no data file was given"):
        open_table([])


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_written_can_be_read(tmp_path, ending):
    path = tmp_path / f"out{ending}"
    write_table(path, columns())
    table = read_table([path])
    assert table.names == NAMES
    np.testing.assert_array_equal(table.values, VALUES)


def test_npz_output_holds_the_columns(tmp_path):
    write_table(tmp_path / "out.npz", {"mean": Y})
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_array_equal(archive["mean"], Y)


def test_written_files_get_the_usual_permissions(tmp_path):
    before = os.umask(0o022)
    try:
        write_table(tmp_path / "out.csv", columns())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o644


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="disk full"):
        _write_half(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def _write_half(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("disk full")


def test_outputs_that_cannot_work(tmp_path):
    for path, message in [
        (tmp_path / "out.txt", r"has the ending \.txt, so its format is unknown; use one of"),
        (tmp_path / "out", "has no ending"),
        (tmp_path / "gone" / "out.csv", "the directory .*gone does not exist; create it first"),
    ]:
        with pytest.raises(DataFileError, match=message):
            check_writable(path)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataFileError, match=r"d\.csv is a directory"):
        check_writable(tmp_path / "d.csv")
    check_writable(tmp_path / "model", endings=())
    if Path("/proc").is_dir():  # looks writable to root and is not
        with pytest.raises(DataFileError, match="the directory /proc cannot be written to"):
            check_writable(Path("/proc/model"), endings=())


def test_long_lists_of_names_stay_short():
    assert listed(["a", " b"]) == "'a', ' b'"
    assert listed([str(i) for i in range(30)], most=2) == "'0', '1', ... (30 in all)"


# -------------------- what the first block of a text does not show


def write_lines(path, header, lines):
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, of which the first one decides the types."""
    monkeypatch.setattr(csv_text, "_BLOCK_BYTES", 64)


@pytest.mark.usefixtures("small_blocks")
def test_types_may_change_further_down(tmp_path):
    lines = [*(f"{i},{i},true" for i in range(40)), "0.5,1e3,false", "-7,12345678901234567890,true"]
    found = read_table([write_lines(tmp_path / "a.csv", "u,v,w", lines)]).values
    np.testing.assert_array_equal(found[:40, 0], np.arange(40.0))
    np.testing.assert_array_equal(found[40:], [[0.5, 1e3, 0.0], [-7.0, 12345678901234567890.0, 1.0]])


@pytest.mark.usefixtures("small_blocks")
def test_a_word_further_down_is_named(tmp_path):
    lines = [*(f"{i},{i}" for i in range(60)), "1,red", "3,blue"]
    path = write_lines(tmp_path / "a.csv", "u,v", lines)
    with pytest.raises(
        DataFileError, match=r"column 'v' of .*a\.csv is not numeric: row 61 \(line 62\) holds 'red'; encode"
    ):
        read_table([path])


@pytest.mark.usefixtures("small_blocks")
def test_missing_values_are_counted_over_the_whole_file(tmp_path):
    lines = [f"{i},{'' if i in (41, 55) else i}" for i in range(60)]
    with pytest.raises(DataFileError, match=r"column 'v' of .* has 2 missing or infinite value\(s\), first in row 42"):
        read_table([write_lines(tmp_path / "a.csv", "u,v", lines)])


@pytest.mark.usefixtures("small_blocks")
def test_a_short_line_further_down_is_refused(tmp_path):
    lines = [*("1,2" for _ in range(60)), "3"]
    with pytest.raises(DataFileError, match=r"line \d+ of .*a\.csv has .*give every row as many values"):
        read_table([write_lines(tmp_path / "a.csv", "u,v", lines)])


# -------------------- parts and chunks


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".npy"])
@pytest.mark.parametrize("rows", [1, 3, 4, 100])
def test_chunks_have_the_length_asked_for_across_files(tmp_path, ending, rows):
    write_as(tmp_path / f"a{ending}")
    write_as(tmp_path / f"b{ending}")
    files = open_table([tmp_path / f"*{ending}"])
    numbers, chunks = zip(*files.chunks(files.names, rows), strict=True)
    assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (len(chunks) - 1)
    np.testing.assert_array_equal(np.concatenate(numbers), np.arange(2 * len(VALUES)))
    np.testing.assert_array_equal(np.concatenate(chunks), np.vstack([VALUES, VALUES]))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, ">f8"])
def test_stored_arrays_are_read_in_parts_whatever_their_layout(tmp_path, monkeypatch, order, dtype):
    monkeypatch.setattr(array_files, "_PART_NUMBERS", 20)
    X = np.asarray(np.arange(300).reshape(100, 3), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X, y=X[:, :1])
    np.savez_compressed(tmp_path / "b.npz", X=X, y=X[:, 0])
    np.testing.assert_array_equal(read_table([tmp_path / "a.npy"]).values, X)
    for name in ("a.npz", "b.npz"):
        np.testing.assert_array_equal(read_table([tmp_path / name]).values, X[:, [0, 1, 2, 0]])
        np.testing.assert_array_equal(read_table([tmp_path / name], ["y", "x1"]).values, X[:, [0, 1]])


def test_parquet_with_several_row_groups_and_types(tmp_path):
    columns = {"i": np.arange(1000), "b": np.arange(1000) % 2 == 0, "f": np.arange(1000, dtype=np.float32)}
    pa_parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=300)
    found = read_table([tmp_path / "a.parquet"]).values
    np.testing.assert_array_equal(found, np.column_stack(list(columns.values())).astype(np.float64))


def test_parts_of_columns_are_written_one_after_the_other(tmp_path):
    for ending in (".csv", ".parquet", ".npz"):
        with writing_table(tmp_path / f"out{ending}") as write:
            for part in (slice(0, 3), slice(3, 4)):
                write({"X": X[part, 0], "y": Y[part]} if ending != ".npz" else {"X": X[part], "y": Y[part]})
        assert len(read_table([tmp_path / f"out{ending}"]).values) == 4


def test_a_failed_part_leaves_nothing(tmp_path):
    def write_half() -> None:
        with writing_table(tmp_path / "out.parquet") as write:
            write({"u": Y})
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_half()
    assert not list(tmp_path.iterdir())
