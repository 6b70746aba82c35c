"""Columns in the names of folders, as partitioned tables have them: one table with those of the files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pytest

from certgp import DataFileError, read
from certgp.cli.main import main
from certgp.data.files import Layout
from certgp.data.pieces import Piece, Reading
from certgp.data.tables import open_table

N = 60


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, year = rng.standard_normal(N), np.repeat([2001, 2002, 2003], N // 3)
    return pd.DataFrame({"x": x, "y": x + year, "year": year, "month": np.tile([1, 12], N // 2)})


@pytest.fixture
def folder(tmp_path):
    frame().to_parquet(tmp_path / "data", partition_cols=["year", "month"])
    return tmp_path / "data"


def by_row(columns: np.ndarray) -> list[list[float]]:
    return sorted(columns.tolist())


@pytest.mark.parametrize("source", ["", "year=*", "year=*/month=*/*.parquet"])
def test_a_folder_and_globs_of_it_are_the_table_that_was_written(folder, source):
    rows = read(str(folder / source), target="y")
    assert rows.names == ("x", "year", "month")
    assert by_row(np.column_stack(rows.take(slice(None)))) == by_row(frame()[["x", "year", "month", "y"]].to_numpy())


@pytest.mark.parametrize("kind", ["csv", "feather"])
def test_other_formats(tmp_path, kind):
    options = pa_dataset.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    pa_dataset.write_dataset(pa.Table.from_pandas(frame()), tmp_path, format=kind, partitioning=options)
    rows = read(tmp_path, target="year", inputs=["y", "x"], on_bad_rows="skip")
    assert by_row(np.column_stack(rows.take(slice(None)))) == by_row(frame()[["y", "x", "year"]].to_numpy())
    assert by_row(open_table([tmp_path]).read(["year"]).values) == by_row(frame()[["year"]].to_numpy())


def test_one_part_has_the_columns_of_all(folder):
    rows = read(folder / "year=2002" / "month=12", target="y")
    assert set(rows.take(slice(None))[0][:, 1:].ravel()) == {2002.0, 12.0}


def test_numbers_are_stored_short_where_that_loses_nothing(tmp_path):
    for year, name in ((2001, "short"), (2**24 + 1, "long"), (1e300, "large")):
        table = frame().assign(year=year).astype({"x": np.float32, "y": np.float32})
        table.drop(columns="month").to_parquet(tmp_path / name, partition_cols=["year"])
        rows = read(tmp_path / name, target="y")
        assert set(rows.take(slice(None))[0][:, 1]) == {year}
        assert rows.nbytes == N * 3 * (4 if name == "short" else 8)


def test_words_gaps_and_missing_folders_are_named(folder, tmp_path):
    for name, message in (
        ("place=New York", r"'place' .*not numeric: row 1 .*holds 'New York'"),
        ("place=__HIVE_DEFAULT_PARTITION__", r"'place' .*missing"),
        ("place=a=b", None),  # no such folder: two signs
    ):
        where = tmp_path / "other" / name.replace(" ", "%20")
        where.mkdir(parents=True)
        pa_csv.write_csv(pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]}), where / "part.csv")
        if message is None:
            assert read(where, target="y").names == ("x",)
        else:
            with pytest.raises(DataFileError, match=message):
                read(where, target="y")
    frame().drop(columns="year").to_parquet(folder / "stray.parquet")
    with pytest.raises(DataFileError, match=r"other columns .* than .*stray.parquet \('x', 'y', 'month'\)"):
        read(folder, target="y")


def test_a_piece_is_the_same_wherever_it_is_decoded(folder):
    files = open_table([folder])
    reading = Reading.of(files, Layout.of(files.names, "year"))
    rows = reading.decode([Piece(files.files[1], 3, 8)])
    X, y = rows.take(slice(None))
    assert rows.names == ("x", "y", "month")
    assert (len(X), set(y), set(X[:, 2])) == (5, {2001.0}, {12.0})


def test_the_command_line_learns_words_in_folders_too(tmp_path, capsys):
    table = frame().assign(place=np.where(frame()["month"] == 1, "north", "south"))
    table.to_parquet(tmp_path / "data", partition_cols=["year", "place"])
    data, model, out = (str(tmp_path / name) for name in ("data", "m.model", "out.csv"))
    fit = ["fit", data, "--target", "y", "--method", "mercer", "--rank", "4", "--max-iter", "1", "--out", model]
    assert main([*fit, "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert fitted["columns"] == ["x", "month", "year", "place"]
    assert fitted["encoded"]["columns"]["place"]["numbers"] == ["place=south"]
    assert main(["predict", model, data + "/year=2003", "--out", out]) == 0
    assert len(pd.read_csv(out)) == N // 3
