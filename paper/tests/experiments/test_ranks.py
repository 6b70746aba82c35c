"""The curve and its ranks as tables: scores, points and answers along the grid."""

from __future__ import annotations

from collections import Counter

import pytest

from certgp_paper.experiments.cells import Finished
from certgp_paper.experiments.curve_problem import true_curve
from certgp_paper.experiments.curves import CURVES
from certgp_paper.experiments.ranks import RANKS


def finished(experiment):
    return [Finished(cell, experiment.compute(cell.settings), 0.0) for cell in experiment.cells(True)]


def test_rows_of_the_curve_hold_three_models_and_the_points_once():
    rows = CURVES.rows(finished(CURVES))
    counts = Counter(row["kind"] for row in rows)
    assert counts == {"scores": 3, "point": 25, "curve": 3 * 126, "draw": 3}
    assert [row["model"] for row in rows[:3]] == ["exact GP", "Mercer GP, rank 34", "Fourier GP, rank 68"]
    for row in rows:
        if row["kind"] == "curve":
            assert row["lower"] <= row["mean"] <= row["upper"]
            assert row["truth"] == pytest.approx(float(true_curve(row["x"])), abs=1e-5)


def test_draws_of_frequencies_share_the_points_and_begin_with_the_figures():
    rows = CURVES.rows(finished(CURVES))
    drawn = [row for row in rows if row["kind"] == "draw"]
    (figure,) = [row for row in rows if row["kind"] == "scores" and row["model"] == drawn[0]["model"]]
    assert drawn[0]["rmse"] == pytest.approx(figure["rmse"], rel=1e-6)
    assert len({row["rmse"] for row in drawn}) == len(drawn)
    assert all(row["width"] > 0 for row in drawn)
    assert {cell.key for cell in CURVES.cells(True)} < {cell.key for cell in CURVES.cells(False)}
    assert len(CURVES.cells(False)) == 21


def test_a_larger_rank_follows_the_curve_better():
    rows = RANKS.rows(finished(RANKS))
    scores = {(row["features"], row["rank"]): row["rmse_inputs"] for row in rows if row["kind"] == "scores"}
    assert sorted(scores) == [("Fourier", 4), ("Fourier", 24), ("Mercer", 4), ("Mercer", 24)]
    for features in ("Mercer", "Fourier"):
        assert scores[features, 24] < 0.7 * scores[features, 4]
    assert sum(row["kind"] == "point" for row in rows) == 25


def test_nothing_finished_gives_no_rows():
    assert RANKS.rows([]) == CURVES.rows([]) == []


def test_the_full_protocol_has_five_ranks_of_both_models():
    assert Counter(cell.settings["features"] for cell in RANKS.cells(False)) == {"Mercer": 5, "Fourier": 5}
