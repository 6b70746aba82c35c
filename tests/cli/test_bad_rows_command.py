"""Bad rows on the command line: refused before anything is written, or left out and counted."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

FIT = ("--target", "y", "--method", "mercer", "--rank", 8, "--max-iter", 60, "--noise", "constant", "--out", "m")
FIT += ("--test-fraction", 0)


@pytest.fixture
def parts(tmp_path):
    """Three files of Parquet, the second of which misses a number in row 13 of 40."""
    rng = np.random.default_rng(0)
    for number in range(3):
        X = rng.uniform(-2.0, 2.0, (40, 2))
        columns = {"a": X[:, 0].copy(), "b": X[:, 1].copy(), "y": np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)}
        if number == 1:
            columns["b"][12] = np.nan
        pa_parquet.write_table(pa.table(columns), tmp_path / f"part{number}.parquet", row_group_size=10)
    return tmp_path


def test_bad_rows_are_refused_and_nothing_is_left(certgp, parts):
    before = sorted(path.name for path in parts.iterdir())
    message = certgp("fit", "part*.parquet", *FIT).error()
    assert "column 'b' of 3 files has 1 missing or infinite value(s)" in message
    assert "first in row 13 of part1.parquet (row group 1" in message
    assert sorted(path.name for path in parts.iterdir()) == before


def test_other_types_than_in_other_files_and_files_without_rows_are_refused(certgp, parts):
    whole = pa_parquet.read_table(parts / "part0.parquet")
    for bad, message in (
        (
            whole.set_column(1, "b", pa.array(["w"] * 40)),
            "column 'b' of 3 files is not numeric: row 1 of part1.parquet (row group 0, counted from 0) holds 'w'",
        ),
        (
            whole.set_column(1, "b", pa.array([datetime.datetime(2024, 1, 31)] * 40)),
            "column 'b' of 3 files holds double at first and timestamp[us] from row 1 of part1.parquet (row group 0",
        ),
        (whole.slice(0, 0), "part1.parquet has no rows; leave it out, or skip it"),
    ):
        pa_parquet.write_table(bad, parts / "part1.parquet")
        assert message in certgp("fit", "part*.parquet", *FIT).error()
        assert not (parts / "m").exists()


def test_bad_rows_are_left_out_and_counted(certgp, parts):
    fitted = certgp("fit", "part*.parquet", *FIT, "--on-bad-rows", "skip", "--memory", "1K", "--scratch", ".", "--json")
    assert fitted.code == 0, fitted.err
    assert "1 bad row(s) were left out (1 in part1.parquet)" in fitted.err
    found = json.loads(fitted.out)
    assert found["n_rows"] == 119
    assert found["skipped"] == {"n_rows": 1, "rows": {"part1.parquet": 1}, "files": {}}
    assert found["stages"][-1]["rows"] == 119
    assert "first in row 13" in certgp("predict", "m", ".", "--out", "out.parquet").error()
    assert not (parts / "out.parquet").exists()
    predicted = certgp("predict", "m", ".", "--out", "out.parquet", "--on-bad-rows", "skip", "--json")
    assert predicted.code == 0, predicted.err
    assert json.loads(predicted.out)["skipped"]["n_rows"] == 1
    rows = pa_parquet.read_table(parts / "out.parquet")
    assert rows.column_names == ["row", "mean", "std", "lower", "upper"]
    assert rows["row"].to_pylist() == [row for row in range(120) if row != 52]
    assert certgp("certify", "m", "part0.parquet", "--train", "part*.parquet", "--on-bad-rows", "skip").code == 0


def test_sizes_of_memory_are_read(certgp, parts):
    for size in ("1.5Q", "G"):
        assert "must be" in certgp("fit", "part0.parquet", *FIT, "--memory", size).error()
    assert "scratch must be a folder" in certgp("fit", "part0.parquet", *FIT, "--scratch", "gone").error()
