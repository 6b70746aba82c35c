"""Predictions are made and written some rows at a time: the same numbers, one warning, and nothing half written."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pa_parquet
import pytest
from cli_cases import COLUMNS, rows, write

from certgp.cli import predict
from certgp.data.tables import read_table

EVERY_OUTPUT = (".csv", ".parquet", ".npz")


def read(path):
    if path.suffix != ".npz":
        return read_table([path]).values
    with np.load(path) as archive:
        return np.column_stack([archive[name] for name in COLUMNS])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".npy"])
def test_chunks_give_the_same_predictions_and_scores(certgp, tmp_path, model, monkeypatch, ending):
    values = rows(50, seed=1) if ending != ".npy" else rows(50, seed=1)[:, :2]
    write(tmp_path / f"new{ending}", values)
    outcomes = []
    for size in (65_536, 50, 7):
        monkeypatch.setattr(predict, "_CHUNK_ROWS", size)
        printed = certgp("predict", model, f"new{ending}", "--out", f"{size}.csv", "--json")
        outcomes.append((read_table([f"{size}.csv"]).values, json.loads(printed.out)))
    for found, fields in outcomes[1:]:
        np.testing.assert_allclose(found, outcomes[0][0], rtol=1e-12)
        assert fields["n_rows"] == 50
        for name, score in (outcomes[0][1]["scores"] or {}).items():
            assert fields["scores"][name] == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize("ending", EVERY_OUTPUT)
def test_every_output_holds_all_chunks(certgp, tmp_path, model, monkeypatch, ending):
    write(tmp_path / "new.csv", rows(50, seed=1))
    assert certgp("predict", model, "new.csv", "--out", "whole.csv").code == 0
    monkeypatch.setattr(predict, "_CHUNK_ROWS", 8)
    assert certgp("predict", model, "new.csv", "--out", f"out{ending}").code == 0
    np.testing.assert_allclose(read(tmp_path / f"out{ending}"), read(tmp_path / "whole.csv"), rtol=1e-12)
    if ending == ".parquet":
        assert pa_parquet.ParquetFile(tmp_path / "out.parquet").metadata.num_row_groups == 7


def test_rows_outside_the_training_inputs_are_counted_once(certgp, tmp_path, model, monkeypatch):
    values = rows(40, seed=1)
    values[[3, 30, 35], 0] = 100.0
    values[35, 1] = -100.0
    write(tmp_path / "new.csv", values)
    monkeypatch.setattr(predict, "_CHUNK_ROWS", 9)
    predicted = certgp("predict", model, "new.csv", "--out", "out.csv")
    assert predicted.err.startswith(
        "warning: 5 of 40 row(s) lie outside the range of the training inputs, 3 of them by"
    )
    assert "in column(s) a, b;" in predicted.err
    assert predicted.err.count("\n") == 1


@pytest.mark.parametrize("out", [*(f"out{ending}" for ending in EVERY_OUTPUT), "-"])
def test_a_bad_row_in_a_later_chunk_leaves_nothing(certgp, tmp_path, model, monkeypatch, out):
    lines = [f"{a!r},{b!r}" for a, b, _ in rows(30).tolist()]
    (tmp_path / "new.csv").write_text("\n".join(["a,b", *lines, "1.0,"]) + "\n")
    monkeypatch.setattr(predict, "_CHUNK_ROWS", 7)
    message = certgp("predict", model, "new.csv", "--out", out).error()
    assert "column 'b' of new.csv has 1 missing or infinite value(s), first in row 31" in message
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_target_that_ends_early_is_not_scored(certgp, tmp_path, model, monkeypatch):
    lines = [f"{a!r},{b!r},{y!r}" for a, b, y in rows(30).tolist()]
    (tmp_path / "new.csv").write_text("\n".join(["a,b,price", *lines, "1.0,2.0,"]) + "\n")
    monkeypatch.setattr(predict, "_CHUNK_ROWS", 7)
    predicted = certgp("predict", model, "new.csv", "--out", "out.csv", "--json")
    assert (predicted.code, json.loads(predicted.out)["scores"]) == (0, None)
    assert "note: predictions are not scored: column 'price'" in predicted.err
    assert len(read_table(["out.csv"]).values) == 31
