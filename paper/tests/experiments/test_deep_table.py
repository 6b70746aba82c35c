"""Cells, budgets and rows of the deep table, the sensitivity table and the electric figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certgp_paper.datasets.catalogue import DATASETS
from certgp_paper.experiments.catalogue import experiment
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.comparison import comparison_columns
from certgp_paper.experiments.deep_cells import compute, deep_cell
from certgp_paper.experiments.deep_effort import FULL, budgets
from certgp_paper.experiments.deep_methods import build, build_as_in_paper, build_at, method_names
from certgp_paper.experiments.deep_table import METHODS_BY_RECIPE
from certgp_paper.experiments.electric import largest_at_hand
from certgp_paper.published import Figure


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A directory with a small set by the name of one of the paper's."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    np.savez(tmp_path / "sarcos.npz", X=X, y=np.sin(X[:, 0]) + 0.1 * rng.standard_normal(400))
    monkeypatch.setenv("CERTGP_DATA", str(tmp_path))
    return tmp_path


def finished(cell: Cell, nlpd: float, rmse: float = 0.3, seconds: float = 10.0) -> Finished:
    result = {
        "n_rows": 218_481,
        "n_columns": 2,
        "nlpd": nlpd,
        "rmse": rmse,
        "seconds": seconds,
        "cpu_seconds": seconds,
        "threads": 1,
        "rows": 14_939,
    }
    return Finished(cell, result, seconds)


def test_columns_beside_the_papers():
    columns = comparison_columns("nlpd", [0.30, 0.34], Figure(0.350, 0.02))
    assert columns["nlpd"] == pytest.approx(0.32)
    assert columns["nlpd_sd"] == pytest.approx(0.02 * 2**0.5)
    assert columns["nlpd_difference"] == pytest.approx(-0.03)
    assert columns["nlpd_difference_in_sd"] == pytest.approx(-0.03 / (0.0008 + 0.0004 + 0.0005**2 / 3) ** 0.5)
    assert columns["nlpd_equal_or_better"] is True
    assert comparison_columns("nlpd", [0.3504], Figure(0.350, 0.0))["nlpd_equal_or_better"] is True  # prints as .350
    assert comparison_columns("nlpd", [0.3506], Figure(0.350, 0.0))["nlpd_equal_or_better"] is False
    alone = comparison_columns("nlpd", [0.3], None)
    assert alone["nlpd_sd"] is alone["paper_nlpd"] is alone["nlpd_difference"] is alone["nlpd_equal_or_better"] is None


def test_the_deep_table_has_every_method_on_five_splits_and_the_papers_figures():
    table = experiment("table-deep")
    cells = table.cells(False)
    beside = [cell for cell in cells if cell.settings["data"] not in ("elevators", "protein")]
    assert len({cell.key for cell in cells}) == len(cells)
    assert len(cells) - len(beside) == (12 + 2) * 5 * 2
    assert len(beside) == 4 * 2 * (2 + 2)
    done = [finished(deep_cell("elevators", "DFGP", split), 0.34 + 0.01 * split) for split in range(3)]
    (row,) = table.rows([*done])
    assert (row["data"], row["method"], row["splits"]) == ("elevators", "DFGP", 3)
    assert (row["paper_nlpd"], row["paper_rmse"], row["paper_seconds"]) == (0.350, 0.341, 51.0)
    assert row["nlpd_difference"] == pytest.approx(0.0)
    assert row["nlpd_equal_or_better"] is True
    for method in method_names():
        for metric in ("nlpd", "rmse", "seconds"):
            (row,) = table.rows([finished(deep_cell("3droad", method, 0), 0.3)])
            assert row[f"paper_{metric}"] is not None
    assert "half" in row["note"]


def test_sensitivity_covers_the_papers_grid_up_to_a_rank():
    table = experiment("sensitivity")
    cells = [cell.settings for cell in table.cells(False)]
    mercer = {(c["d"], c["m"]) for c in cells if c["method"] == "DMGP"}
    assert (3, 8) in mercer
    assert {(2, 32), (3, 10)} <= mercer
    assert not mercer & {(3, 16), (3, 32)}
    assert len({(c["d"], c["m"]) for c in cells if c["method"] == "DFGP"}) == 18
    rows = table.rows([finished(cell, 0.3) for cell in table.cells(False)])
    assert len(rows) == 3 * (18 + 16)
    assert all(row["splits"] == (5 if row["data"] == "elevators" else 1) for row in rows)
    assert all(row["paper_nlpd"] and row["paper_seconds"] for row in rows)
    (row,) = [r for r in rows if (r["data"], r["method"], r["d"], r["m"]) == ("protein", "DFGP", 3, 32)]
    assert (row["rank"], row["paper_nlpd"]) == (64, 0.847)


def test_the_deep_table_has_the_papers_own_files_and_others_in_the_papers_size(data, monkeypatch):
    def covered():
        return list(dict.fromkeys(cell.settings["data"] for cell in experiment("table-deep").cells(False)))

    beside = ["sarcos", "bike", "superconduct", "keggdirected"]  # with DMGP and DFGP alone
    assert covered() == ["elevators", "protein", *beside]  # the sarcos that is there has 400 rows
    songs = replace(DATASETS["song"], n_rows=30, n_columns=2)
    monkeypatch.setitem(DATASETS, "song", songs)
    np.savez(data / "song.npz", X=np.zeros((30, 2)), y=np.zeros(30))
    assert covered() == ["elevators", "protein", "song", *beside]


def test_electric_takes_the_largest_set_at_hand(data):
    assert largest_at_hand() == "sarcos"
    np.savez(data / "buzz.npz", X=np.zeros((500, 2)), y=np.zeros(500))
    np.savez(data / "3droad.npz", X=np.zeros((450, 2)), y=np.zeros(450))
    assert largest_at_hand() == "buzz"
    (data / "electric.npz").write_bytes(b"damaged")
    assert largest_at_hand() == "buzz"
    for path in data.iterdir():
        path.unlink()
    assert largest_at_hand() == "electric"


def test_electric_shares_cells_with_the_table(data, monkeypatch):
    monkeypatch.setitem(DATASETS, "sarcos", replace(DATASETS["sarcos"], n_rows=400, n_columns=3))
    figure = experiment("electric")
    cells = figure.cells(False)
    assert {cell.settings["data"] for cell in cells} == {"sarcos", "protein"}
    shared = set(map(repr, cells)) & set(map(repr, experiment("table-deep").cells(False)))
    assert len(shared) == 7 + 35  # DFGP, DMGP and five baselines on all rows, on one split and on five
    rows = figure.rows([finished(cell, 0.2) for cell in cells])
    baselines = ["SVIGP", "SGPR", "DKL", "RFEDGP", "DNN+S"]
    assert [row["method"] for row in rows if row["baseline"]] == 2 * baselines
    assert all((row["paper_nlpd"] is not None) == (row["fraction"] == 1.0) for row in rows)


def test_electric_has_the_largest_set_on_one_split_and_protein_on_five(data):
    figure = experiment("electric")
    cells = figure.cells(False)
    assert all(set(cell.settings) <= {"data", "method", "split", "fraction"} for cell in cells)  # as they always were
    runs = [("sarcos", 0)] + [("protein", split) for split in range(5)]
    assert [(c.settings["data"], c.settings["split"]) for c in cells] == [run for run in runs for _ in range(17)]
    assert {(cell.settings["data"], cell.settings["split"]) for cell in figure.cells(True)} == {("sarcos", 0)}
    protein = cells[17:]
    done = [finished(cell, 0.1) for cell in protein[:17]] + [finished(cell, 0.3) for cell in protein[17:20]]
    rows = figure.rows([finished(cell, 0.5) for cell in cells[:17]] + done)
    assert len(rows) == 34
    assert {row["nlpd"] for row in rows[:17]} == {0.5}
    rows = rows[17:]
    assert [rows[0][f"nlpd_split_{split}"] for split in range(3)] == [0.1, 0.3, None]
    assert (rows[0]["nlpd"], rows[0]["splits"], rows[-1]["splits"]) == (pytest.approx(0.2), 2, 1)
    assert {row["shared_splits"] for row in rows} == {"0"}
    assert {row["nlpd_shared"] for row in rows} == {0.1}  # of the split that all methods have
    assert figure.rows([]) == []


def test_the_deep_tables_rows_have_each_splits_figures_and_means_over_shared_splits():
    cells = [deep_cell("elevators", "DMGP", split) for split in range(3)]
    done = [finished(cell, 0.1 * (1 + i), seconds=10.0 * i) for i, cell in enumerate(cells)]
    done += [finished(deep_cell("elevators", "SGPR", split), 0.5) for split in (0, 2)]
    mercer, sparse = experiment("table-deep").rows(done)
    assert [mercer[f"cpu_seconds_split_{split}"] for split in range(4)] == [0.0, 10.0, 20.0, None]
    assert mercer["shared_splits"] == sparse["shared_splits"] == "0 2"
    assert mercer["nlpd"] == pytest.approx(0.2)
    assert mercer["nlpd_shared"] == pytest.approx(0.2)
    assert mercer["cpu_seconds_shared"] == pytest.approx(10.0)
    recipe = finished(deep_cell("elevators", "DMGP", 0, variant="paper"), 0.9)
    rows = experiment("table-deep").rows([recipe, *done])
    assert [(row["variant"], row["method"]) for row in rows] == [
        ("paper", "DMGP"),
        ("certgp", "DMGP"),
        (None, "SGPR"),
    ]
    assert [row["nlpd_shared"] for row in rows] == [pytest.approx(0.9), pytest.approx(0.1), pytest.approx(0.5)]
    assert rows[0]["paper_nlpd"] == rows[1]["paper_nlpd"] == 0.371
    (alone,) = experiment("table-deep").rows(done[:1])
    assert (alone["nlpd_shared"], alone["nlpd_shared_sd"]) == (pytest.approx(0.1), None)


def test_budgets_in_words_are_those_of_the_methods():
    words = budgets(14_939)
    recipe = words.pop("DMGP, DFGP by the paper's recipe")
    listed = [method for group in words for method in group.split(", ")]
    assert sorted(listed) == sorted(method_names())
    for method in METHODS_BY_RECIPE:
        settings = build_as_in_paper(method, "elevators", 0).get_params()
        assert f"then {settings['max_iter']} of" in recipe
        assert f"batches of {settings['batch_size']:,}" in recipe
        assert (settings["training"], settings["calibrate"], settings["variance"]) == ("paper", False, "paper")
    for group, text in words.items():
        for method in group.split(", "):
            settings = build(method, 14_939, 0).get_params()
            assert f"{settings['max_iter']} " in text, method
            assert f"{settings.get('batch_size', FULL.network_batch):,}" in text or method.startswith("SGPR"), method
    assert "at most 500 and 214 iterations" in words["SGPR, SGPR+"]


def test_budgets():
    """Those that the module's text names: 100 epochs of elevators and protein, less for the largest set."""
    assert (FULL.batch(14_939), FULL.epochs(14_939), FULL.epochs(41_157)) == (1000, 100, 100)
    assert FULL.batch(4_004) == 400
    assert FULL.epochs(196_632) * -(-196_632 // 1000) <= 4_200
    assert FULL.sparse_iterations(14_939, 250) == 500
    assert FULL.sparse_iterations(196_632, 500) == 60
    assert FULL.steps_of_all_rows(14_939) == 60
    sizes = [build(name, 5_000, 0).get_params() for name in ("SVIGP", "SVIGP+", "SGPR", "SGPR+")]
    assert [each["rank"] for each in sizes] == [250, 500, 250, 500]
    assert [build(name, 5_000, 0).grid for name in ("DKL", "DKL+")] == [5_000, 10_000]
    network = build("RFEDGP", 5_000, 0)
    assert (tuple(network.widths), network.samples, network.prediction_samples) == ((3, 3), 20, 100)
    box = build_at("DMGP", 3, 8, 0).get_params()
    assert (box["rank"], box["index_set"], box["variance"], box["embedding"]) == (512, "box", "lowrank", 3)
    assert build_at("DFGP", 3, 8, 0).rank == 16


def test_quick_cells_run_and_fractions_use_fewer_rows(data):
    whole = compute(deep_cell("sarcos", "DNN+S", 0, quick=True).settings)
    part = compute(deep_cell("sarcos", "DNN+S", 0, quick=True, fraction=0.5).settings)
    assert (whole["rows"], part["rows"]) == (360, 180)
    assert whole["rmse"] < 0.6
    assert np.isfinite(whole["nlpd"])
    assert whole["seconds"] > 0
    for method in METHODS_BY_RECIPE:
        recipe = compute(deep_cell("sarcos", method, 0, quick=True, variant="paper").settings)
        assert recipe["rmse"] < 0.9
        assert np.isfinite(recipe["nlpd"])
    at = compute(deep_cell("sarcos", "DMGP", 0, quick=True, d=2, m=2).settings)
    assert at["rmse"] < 0.9
    for name in ("table-deep", "sensitivity", "electric"):
        quick, full = (experiment(name).cells(q) for q in (True, False))
        assert not {cell.key for cell in quick} & {cell.key for cell in full}
