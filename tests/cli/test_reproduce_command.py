"""certgp reproduce, on cells that are already finished: long tables are cut on the screen, files hold everything."""

from __future__ import annotations

import csv

import pytest

from certgp.experiments.cells import CellStore, Finished
from certgp.experiments.curves import CURVES

MODEL = {"rmse": 0.1, "rmse_inputs": 0.1, "coverage": 1.0, "seconds": 0.1}


@pytest.fixture
def finished_curves(tmp_path):
    (cell,) = CURVES.cells(False)
    grid = [0.01 * i for i in range(100)]
    answer = {"mean": grid, "lower": [x - 1 for x in grid], "upper": [x + 1 for x in grid]}
    values = {"x": [0.0], "y": [0.5], "grid": grid, "truth": grid, "models": [{"model": "exact GP", **MODEL, **answer}]}
    CellStore(tmp_path / "results" / "cells").save(Finished(cell, values, 0.1))


def test_long_tables_are_cut_on_the_screen_and_whole_in_the_file(certgp, finished_curves, tmp_path):
    outcome = certgp("reproduce", "curves", "--out", "results")  # everything is finished: nothing is computed
    assert outcome.code == 0
    assert "exact GP" in outcome.out
    assert "and 101 more rows in curves.csv" in outcome.out
    with (tmp_path / "results" / "curves.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 102
    assert (tmp_path / "results" / "curves.png").exists()


def test_showing_writes_nothing(certgp, finished_curves, tmp_path):
    outcome = certgp("reproduce", "curves", "--show", "--out", "results")
    assert outcome.code == 0
    assert "1 of 1 cells finished" in outcome.out
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["cells"]
    assert certgp("reproduce", "figure1", "--show", "--out", "nothing").code == 0
    assert not (tmp_path / "nothing").exists()


def test_quick_results_have_a_folder_of_their_own_and_say_what_they_are(certgp, finished_curves, tmp_path):
    assert certgp("reproduce", "curves", "--quick", "--out", "results").code == 0
    assert not (tmp_path / "results" / "curves.csv").exists()
    assert "quick version" in (tmp_path / "results" / "quick" / "curves.json").read_text()
