"""The linear tables: which cells, how rows compare, and what a killed run leaves behind."""

from __future__ import annotations

import csv
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from certgp.cli.main import main
from certgp.errors import DataFileError
from certgp_paper.experiments.catalogue import experiment
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.linear_rows import linear_rows
from certgp_paper.experiments.linear_table import TABLE_NLPD, TABLE_RMSE


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """A data directory with one small set, in the place of yacht."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 4))
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "yacht.npz", X=X, y=np.sin(X[:, 0] + X[:, 1]) + 0.1 * rng.standard_normal(240))
    monkeypatch.setenv("CERTGP_DATA", str(folder))
    return folder


def finished(split, nlpd, data="elevators", variant="certgp", **more):
    settings = {"variant": variant, "data": data, "method": "SGPR", "rank": 100, "split": split}
    n_rows, n_columns = {"elevators": (16_599, 18), "sarcos": (4_449, 21)}[data]
    result = {"nlpd": nlpd, "rmse": 0.3, "cpu_seconds": 2.0, "n_rows": n_rows, "n_columns": n_columns, **more}
    return Finished(Cell("linear", settings), result, 1.0)


def rows_of(metric, cells):
    """Rows of what was computed."""
    return [row for row in linear_rows(metric, cells) if row["splits"]]


def test_both_tables_show_the_same_cells_important_ones_first():
    assert (experiment("table-nlpd"), experiment("table-rmse")) == (TABLE_NLPD, TABLE_RMSE)
    cells = TABLE_NLPD.cells(False)
    assert cells == TABLE_RMSE.cells(False)
    assert len({cell.key for cell in cells}) == len(cells)
    counts = Counter(cell.settings["variant"] for cell in cells)
    assert counts == {
        "certgp": (6 * 5 + 2) * 3 * 6,
        "likelihood": 2 * 6 * 5,
        "paper": 6 * 3 * 6 * 5 + 3 * 4 * 2,
        "released": 2 * 2 * (5 + 2),
    }
    first = [cell.settings for cell in cells[:70]]
    assert {settings["data"] for settings in first} == {"elevators", "protein"}
    assert {settings["rank"] for settings in first} == {6}
    assert cells[-1].settings["data"] == "3droad"


def test_rows_compare_means_with_the_papers():
    (row,) = rows_of("nlpd", [finished(0, 0.40), finished(1, 0.42)])
    sd = math.sqrt(0.0002)
    assert row["mean"] == pytest.approx(0.41)
    assert row["sd"] == pytest.approx(sd)
    assert row["splits"] == 2
    assert (row["paper_mean"], row["paper_sd"]) == (0.44, 0.01)
    assert row["difference"] == pytest.approx(-0.03)
    assert row["difference_in_sd"] == pytest.approx(-0.03 / math.sqrt(0.0002 + 0.0001 + 0.0001 / 12))
    assert row["equal_or_better"] is True
    assert row["note"] == ""


@pytest.mark.parametrize(("nlpd", "better"), [(0.4449, True), (0.4451, False)])
def test_equal_is_meant_at_the_papers_digits(nlpd, better):
    (row,) = rows_of("nlpd", [finished(0, nlpd)])
    assert row["equal_or_better"] is better
    assert row["sd"] is None


def test_figures_of_the_paper_that_were_not_computed_have_rows_of_their_own():
    rows = linear_rows("nlpd", [finished(0, 0.40), finished(0, 0.42, variant="paper")])
    waiting = [row for row in rows if not row["splits"]]
    assert len(rows) == 1 + 3 * 6
    assert len(waiting) == 3 * 6 - 1
    assert {row["variant"] for row in waiting} == {"certgp"}
    assert all(row["paper_mean"] is not None and row["mean"] is row["equal_or_better"] is None for row in waiting)
    quick = finished(0, 0.40)
    quick = Finished(Cell("linear", {**quick.cell.settings, "budget": "quick"}), quick.result, 1.0)
    assert len(linear_rows("nlpd", [quick])) == 1
    assert linear_rows("nlpd", []) == []


def test_rows_keep_variants_apart_and_name_other_data():
    rows = rows_of("rmse", [finished(0, 1.0, variant="paper"), finished(0, 1.0), finished(0, 1.0, data="sarcos")])
    assert [(row["data"], row["variant"]) for row in rows] == [
        ("elevators", "certgp"),
        ("elevators", "paper"),
        ("sarcos", "certgp"),
    ]
    assert "test file" in rows[2]["note"]


def test_the_likelihood_is_another_objective_of_the_same_estimator(small_data):
    settings = {"data": "yacht", "method": "MGP", "rank": 6, "split": 0, "budget": "quick"}
    ours, papers = (TABLE_NLPD.compute({"variant": variant, **settings}) for variant in ("certgp", "likelihood"))
    assert ours["nlpd"] != papers["nlpd"]
    assert papers["nlpd"] < 1.5


def test_missing_data_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CERTGP_DATA", str(tmp_path))
    with pytest.raises(DataFileError, match=r"sarcos\.npz is missing.*datasets fetch sarcos.*CERTGP_DATA"):
        TABLE_NLPD.compute(TABLE_NLPD.cells(True)[0].settings)


def arguments(out):
    return ["reproduce", "table-nlpd", "--quick", "--only", "rank=6", "--out", str(out)]


def table(out):
    with (out / "quick" / "table-nlpd.csv").open() as file:
        return [{key: value for key, value in row.items() if key != "cpu_seconds"} for row in csv.DictReader(file)]


def test_a_killed_run_loses_the_cell_in_progress_only(small_data, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    code = "import torch; torch.set_num_threads(1); import sys; from certgp.cli.main import main; main(sys.argv[1:])"
    run = subprocess.Popen(
        [sys.executable, "-c", code, *arguments(killed)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    cells = killed / "table-linear.jsonl"
    while not cells.exists() or cells.read_bytes().count(b"\n") < 2:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    kept = cells.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    assert 2 <= kept.count(b"\n") < 6
    assert not (killed / "quick" / "table-nlpd.csv").exists()
    assert main(arguments(killed)) == 0
    assert main(arguments(whole)) == 0
    assert cells.read_bytes().startswith(kept)  # not computed again
    assert len(table(whole)) == 6
    assert table(killed) == table(whole)
