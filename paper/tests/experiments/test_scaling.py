"""Simulated rows for time and memory, and the spread over seeds."""

from __future__ import annotations

import pytest

from certgp_paper.experiments import row_cost
from certgp_paper.experiments.catalogue import experiment
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.scaling import COLUMNS, SIZES, TRAINING_ROWS, measure, simulated_rows


def test_cells_cover_the_papers_widths_and_sizes():
    cells = experiment("scaling").cells(False)
    assert {(cell.settings["D"], cell.settings["N"]) for cell in cells} >= {
        (width, n) for width in COLUMNS.values() for n in SIZES
    }
    assert min(SIZES) == 10**4
    assert max(SIZES) == 2 * 10**6
    assert max(TRAINING_ROWS.values()) < max(SIZES)


def test_a_measurement_and_its_row():
    settings = {"width_of": "electric", "D": 19, "method": "FGP", "rank": 10, "N": 2_000}
    found = measure(settings, 1)
    assert found["epoch_cpu_seconds"] > 0
    assert found["peak_gb"] >= found["peak_before_gb"] > 0
    X, y = simulated_rows(2_000, 19)
    assert found["rows_gb"] == (X.nbytes + y.nbytes) / 1e9
    (row,) = experiment("scaling").rows([Finished(Cell("scaling", settings), found, 1.0)])
    expected = found["once_cpu_seconds"] + 300 * found["epoch_cpu_seconds"]
    assert row["training_seconds"] == pytest.approx(expected)
    assert row["paper_seconds"] is None
    of_table = settings | {"method": "SGPR", "rank": 250, "N": TRAINING_ROWS["electric"]}
    (row,) = experiment("scaling").rows([Finished(Cell("scaling", of_table), found, 1.0)])
    assert row["epochs"] == 100
    assert row["paper_seconds"] == 11_190


def test_two_sizes_take_turns_and_give_the_exponent_of_each_round(monkeypatch):
    asked = []

    def time_fit(method, rank, X, y, epochs):
        asked.append(len(X))
        return 0.0, 1.0 + 1e-5 * len(X) ** 1.5 * epochs  # what is paid once does not count

    monkeypatch.setattr(row_cost, "time_fit", time_fit)
    (cell, *_) = experiment("row-cost").cells(True)
    found = row_cost.compute_cell(cell.settings)
    assert asked[1:9] == [1_000, 1_000, 4_000, 4_000, 4_000, 4_000, 1_000, 1_000]
    (row,) = experiment("row-cost").rows([Finished(cell, found, 1.0)])
    assert row["rounds"] == row_cost.ROUNDS >= 5
    assert (row["exponent"], row["exponent_median"]) == pytest.approx((1.5, 1.5))
    assert row["microseconds_a_row_more"] == pytest.approx(2.0 * row["microseconds_a_row"])
    assert row["exponent_half_width"] == pytest.approx(0.0, abs=1e-9)


def test_seeds_are_compared_on_one_split():
    base = {"variant": "certgp", "data": "elevators", "method": "MGP", "rank": 6}
    splits = [Finished(Cell("table-linear", base | {"split": s}), {"nlpd": 0.5 + 0.1 * s}, 1.0) for s in range(5)]
    seeds = [Finished(Cell("table-linear", base | {"split": 0, "seed": s}), {"nlpd": 0.6}, 1.0) for s in range(1, 5)]
    assert experiment("seeds").rows(splits) == []
    (row,) = experiment("seeds").rows([*splits, *seeds])
    assert (row["seeds"], row["splits"], row["nlpd_least"], row["nlpd_largest"]) == (5, 5, 0.5, 0.6)
    assert row["sd_over_seeds"] == pytest.approx(0.1 / 5**0.5)
    assert row["sd_over_splits"] == pytest.approx(0.1 * 2.5**0.5)
    cells = experiment("seeds").cells(False)
    table = {cell.key for cell in experiment("table-nlpd").cells(False)}
    assert sum(cell.key in table for cell in cells) == 2 * 3 * 3 * 5
