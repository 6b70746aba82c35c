"""certgp reproduce, on cells that are already finished: long tables are cut on the screen, files hold everything."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from certgp_paper.commands import reproduce
from certgp_paper.experiments import figure2
from certgp_paper.experiments.cells import Finished
from certgp_paper.experiments.curves import CURVES
from certgp_paper.experiments.figure1 import FIGURE1
from certgp_paper.experiments.linear_table import TABLE_NLPD
from certgp_paper.experiments.results import read_results
from certgp_paper.experiments.store import CellStore

FIGURE1_RESULTS = (
    "kl_per_row",
    "expected_rank",
    "a_priori_paper",
    "a_priori_sharp",
    "trace_paper",
    "trace_sharp",
    "reference",
)
DISTANCES = dict.fromkeys(("distance_mean", "distance_lower", "distance_upper"), 0.0)
MODEL = {"rmse": 0.1, "rmse_inputs": 0.1, "coverage": 1.0, "width": 0.1, "variance": "lowrank", "draw": 0, **DISTANCES}


@pytest.fixture
def finished_curves(tmp_path, monkeypatch):
    """One cell of the curve, the exact GP on the figure's points."""
    cell = CURVES.cells(False)[0]
    grid = [0.01 * i for i in range(100)]
    answer = {"mean": grid, "lower": [x - 1 for x in grid], "upper": [x + 1 for x in grid]}
    exact = {"exact_rmse": 0.1, "exact_rmse_inputs": 0.1, "exact_width": 0.1}
    values = {"x": [0.0], "y": [0.5], "grid": grid, "truth": grid, **exact}
    values["answers"] = [{"model": "exact GP", **MODEL, **answer}]
    CellStore(tmp_path / "results").save(Finished(cell, values, 0.1))
    monkeypatch.setattr(reproduce, "experiment", lambda name: replace(CURVES, cells=lambda quick: [cell]))


def test_long_tables_are_cut_on_the_screen_and_whole_in_the_file(certgp, finished_curves, tmp_path):
    outcome = certgp("reproduce", "curves", "--out", "results")  # everything is finished: nothing is computed
    assert outcome.code == 0
    assert "exact GP" in outcome.out
    assert "and 102 more rows in curves.csv" in outcome.out
    with (tmp_path / "results" / "curves.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 103
    assert (tmp_path / "results" / "curves.png").exists()


def test_showing_writes_nothing(certgp, finished_curves, tmp_path):
    outcome = certgp("reproduce", "curves", "--show", "--out", "results")
    assert outcome.code == 0
    assert "1 of 1 cells finished" in outcome.out
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["curves.jsonl"]
    assert certgp("reproduce", "curves", "--show", "--out", "nothing").code == 0
    assert not (tmp_path / "nothing").exists()


def test_writing_computes_nothing_and_says_how_many_cells_are_up_to_date(
    certgp, finished_curves, tmp_path, monkeypatch
):
    done, missing = CURVES.cells(False)[:2]
    found = replace(CURVES, cells=lambda quick: [done, missing], compute=None)
    monkeypatch.setattr(reproduce, "experiment", lambda name: found)
    monkeypatch.setattr("certgp_paper.experiments.code.cell_version", lambda cell, compute: "of today")
    outcome = certgp("reproduce", "curves", "--write", "--out", "results")
    assert outcome.code == 0
    assert "1 of 2 cells finished" in outcome.out
    assert read_results(tmp_path / "results")["curves"].up_to_date == 0  # the cell says no version
    store = CellStore(tmp_path / "results")
    mark = {"version": "of today", "score": "nlpd", "cells": 3, "of": 9, "mean_change": 0.0, "largest_change": 0.0}
    store.save(replace(store.load(done), made_by={"version": "earlier", "confirmed": mark}))
    assert certgp("reproduce", "curves", "--write", "--out", "results").code == 0
    assert read_results(tmp_path / "results")["curves"].up_to_date == 1


def test_quick_results_have_a_folder_of_their_own_and_say_what_they_are(certgp, finished_curves, tmp_path):
    assert certgp("reproduce", "curves", "--quick", "--out", "results").code == 0
    assert not (tmp_path / "results" / "curves.csv").exists()
    assert "quick version" in (tmp_path / "results" / "quick" / "curves.json").read_text()


def test_a_folder_that_cannot_be_made_is_refused_before_computing(certgp, tmp_path, monkeypatch):
    monkeypatch.setattr(figure2, "_compute", None)  # would fail
    (tmp_path / "file").write_text("")
    for out in ("file", "file/below"):
        outcome = certgp("reproduce", "figure2", "--quick", "--out", out)
        assert outcome.code != 0
        assert f"--out {out} " in outcome.err
        assert "Errno" not in outcome.err


def test_a_cell_without_results_gives_a_message(certgp, finished_curves, tmp_path):
    path = tmp_path / "results" / "curves.jsonl"
    content = json.loads(path.read_text())
    for result, said in (({}, "is not a finished cell"), (None, "is not a finished cell"), ({"x": [0.0]}, "has no ")):
        path.write_text(json.dumps(content | {"result": result}) + "\n")
        outcome = certgp("reproduce", "curves", "--show", "--out", "results")
        assert said in outcome.error()
        assert "curves.jsonl" in outcome.err
        assert "to compute" in outcome.err


def test_show_honours_only(certgp, tmp_path):
    store = CellStore(tmp_path / "results")
    for cell in FIGURE1.cells(True)[:2]:
        store.save(Finished(cell, dict.fromkeys(("rank", *FIGURE1_RESULTS)), 0.1))
    everything = certgp("reproduce", "figure1", "--quick", "--show", "--out", "results")
    assert "(2 of 16 cells finished)" in everything.out
    some = certgp("reproduce", "figure1", "--quick", "--show", "--only", "D=1", "method=mercer", "--out", "results")
    assert "(1 of 1 cells finished)" in some.out


def test_sets_that_are_not_at_hand_are_left_out_and_named(certgp, tmp_path, monkeypatch):
    monkeypatch.setenv("CERTGP_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "bike.npz", X=np.zeros((9, 3)), y=np.zeros(9))
    only = ["--only", "rank=6", "method=MGP", "split=0", "variant=certgp"]
    told = {"nlpd": 0.1, "rmse": 0.1, "cpu_seconds": 1.0, "n_rows": 9, "n_columns": 3}
    monkeypatch.setattr(reproduce, "experiment", lambda name: replace(TABLE_NLPD, compute=lambda settings: told))
    outcome = certgp("reproduce", "table-nlpd", "--out", "results", *only)
    assert outcome.code == 0
    (line,) = (tmp_path / "results" / "table-linear.jsonl").read_text().splitlines()
    assert json.loads(line)["settings"] == TABLE_NLPD.cells(False)[0].settings | {"data": "bike", "method": "MGP"}
    (line,) = [line for line in outcome.err.splitlines() if "elevators" in line]
    assert line.startswith("note: elevators is left out: ")
    assert "certgp datasets fetch elevators" in line
    nothing = certgp("reproduce", "table-nlpd", "--out", "results", *only, "data=sarcos")
    assert nothing.code != 0
    assert "certgp datasets fetch sarcos" in nothing.err


def test_what_is_out_of_date_is_listed_and_computed_again(certgp, tmp_path, monkeypatch):
    told = {"nlpd": 0.1, "rmse": 0.1, "cpu_seconds": 1.0, "n_rows": 16599, "n_columns": 18}
    table = replace(TABLE_NLPD, compute=renamed(lambda settings: told))
    monkeypatch.setattr(reproduce, "experiment", lambda name: table)
    monkeypatch.setattr("certgp_paper.datasets.dataset_path", lambda name: tmp_path)
    store, old, recent = CellStore(tmp_path / "results"), *table.cells(False)[:2]
    store.save(Finished(old, told | {"nlpd": 0.2}, 3600.0, {"source": "d1caac891956"}))
    only = [
        "--only",
        "rank=6",
        "data=elevators",
        "split=0",
        f"method={old.settings['method']},{recent.settings['method']}",
    ]
    outcome = certgp("reproduce", "table-nlpd", "--outdated", "--out", "results")
    assert "1 of 1 finished cells are out of date, which took 1.0 hours" in outcome.out
    assert "1  commit 109e67d" in outcome.out
    assert certgp("reproduce", "table-nlpd", "--renew", "--out", "results", *only, "variant=certgp").code == 0
    assert store.load(old)["nlpd"] == 0.1
    outcome = certgp("reproduce", "table-nlpd", "--outdated", "--out", "results")
    assert "0 of 2 finished cells are out of date\n" in outcome.out


def test_a_sample_confirms_the_other_cells_of_a_method(certgp, tmp_path, monkeypatch):
    told = {"nlpd": 0.1, "rmse": 0.1, "cpu_seconds": 1.0, "n_rows": 16599, "n_columns": 18}
    table = replace(TABLE_NLPD, compute=renamed(lambda settings: told | {"nlpd": 0.101}))
    monkeypatch.setattr(reproduce, "experiment", lambda name: table)
    monkeypatch.setattr("certgp_paper.datasets.dataset_path", lambda name: tmp_path)
    store = CellStore(tmp_path / "results")
    own = [
        cell for cell in table.cells(False) if (cell.settings["variant"], cell.settings["method"]) == ("paper", "MGP")
    ]
    for cell in own[:9]:
        store.save(Finished(cell, told, 1.0, {"source": "d1caac891956"}))
    outcome = certgp("reproduce", "table-nlpd", "--confirm", "4", "--out", "results")
    assert "table-nlpd: 1 of 1 groups with outdated cells are confirmed" in outcome.out
    assert "paper MGP: confirmed, 4 of 9 cells computed again moved by +0.0010 ± 0.0000" in outcome.out
    assert (
        "0 of 9 finished cells are out of date; 5 of the others are confirmed by cells computed again"
        in certgp("reproduce", "table-nlpd", "--outdated", "--out", "results").out
    )
    content = json.loads((tmp_path / "results" / "table-nlpd.json").read_text())
    assert [(line["confirmed"], line["cells"]) for line in content["confirmed"]] == [(5, 4)]


def test_what_cannot_be_confirmed_is_refused(certgp):
    few = certgp("reproduce", "table-nlpd", "--confirm", "2", "--out", "results")
    assert few.code != 0
    assert "--confirm 2 is too few to judge a method by; use 3 or more" in few.err
    curves = certgp("reproduce", "curves", "--confirm", "--out", "results")
    assert curves.code != 0
    assert "use --renew" in curves.err


def renamed(compute):
    """As if it were part of the package, whose code has versions."""
    compute.__module__ = TABLE_NLPD.compute.__module__
    return compute
