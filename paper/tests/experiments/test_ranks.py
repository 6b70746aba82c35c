"""The curve and its ranks as tables: means over point sets, single sets, points and answers along the grid."""

from __future__ import annotations

from collections import Counter
from statistics import mean

import pytest

from certgp_paper.experiments.cells import Finished
from certgp_paper.experiments.code import cell_version
from certgp_paper.experiments.curve_problem import true_curve
from certgp_paper.experiments.curve_starts import EXACT_FROM_FAR
from certgp_paper.experiments.curves import CURVES
from certgp_paper.experiments.fresh_sets import FRESH_SETS
from certgp_paper.experiments.ranks import RANKS

MODELS = [
    "exact GP",
    "MGP, r = 34, DTC variance",
    "MGP, r = 34, low-rank variance",
    "FGP, r = 68",
    "MercerGP, r = 34",
    "FourierGP, r = 68",
    "exact GP from length-scale 1",
]


def finished(experiment):
    return [Finished(cell, experiment.compute(cell.settings), 0.0) for cell in experiment.cells(True)]


@pytest.fixture(scope="module")
def curves():
    return CURVES.rows(finished(CURVES))


def test_rows_of_the_curve_hold_seven_models_and_the_points_once(curves):
    assert Counter(row["kind"] for row in curves) == {"scores": 7, "set": 14, "point": 25, "curve": 6 * 126}
    assert [row["model"] for row in curves[:7]] == MODELS
    for row in curves:
        if row["kind"] == "curve":
            assert row["lower"] <= row["mean"] <= row["upper"]
            assert row["truth"] == pytest.approx(float(true_curve(row["x"])), abs=1e-5)


def test_scores_are_means_over_point_sets_and_sets_over_draws(curves):
    for model in MODELS:
        (scores,) = [row for row in curves if row["kind"] == "scores" and row["model"] == model]
        sets = [row for row in curves if row["kind"] == "set" and row["model"] == model]
        assert scores["rmse"] == pytest.approx(mean(row["rmse"] for row in sets))
        assert scores["point_sets"] == len(sets) == 2
    fourier = next(cell for cell in finished(CURVES) if cell["features"] == "Fourier" and cell["seed"] == 1)
    (row,) = [row for row in curves if row["kind"] == "set" and row["model"] == "FGP, r = 68" and row["seed"] == 1]
    errors = [answer["rmse"] for answer in fourier["answers"]]
    assert len(set(errors)) == row["draws"] == 3
    assert row["rmse"] == pytest.approx(mean(errors))
    assert row["nearer"] == sum(error < fourier["exact_rmse"] for error in errors)


def test_the_exact_gp_is_at_no_distance_from_itself(curves):
    for row in curves:
        if row["kind"] == "set" and row["features"] == "exact":
            assert (row["distance_mean"], row["nearer"], row["narrower"]) == (0.0, 0, 0)
            assert row["rmse"] == row["exact_rmse"]


def test_from_another_start_the_exact_gp_is_another_one(curves):
    sets = [row for row in curves if row["kind"] == "set" and row["features"] == EXACT_FROM_FAR]
    usual = [row for row in curves if row["kind"] == "set" and row["features"] == "exact"]
    assert [row["exact_rmse"] for row in sets] == pytest.approx([row["rmse"] for row in usual], abs=1e-5)
    assert sets[0]["rmse_inputs"] > 0.354 > usual[0]["rmse_inputs"]  # the cosine is lost, and found


def test_other_cells_of_the_curve_keep_the_version_that_they_have_without_it():
    first, far = CURVES.cells(False)[0], CURVES.cells(False)[-1]
    assert cell_version(first, CURVES.compute) == cell_version(RANKS.cells(False)[0], RANKS.compute)
    assert cell_version(far, CURVES.compute) != cell_version(first, CURVES.compute)


def test_a_larger_rank_follows_the_curve_better():
    rows = RANKS.rows(finished(RANKS))
    scores = {
        (row["variant"], row["features"], row["rank"]): row["rmse_inputs"] for row in rows if row["kind"] == "scores"
    }
    for variant in ("paper", "certgp"):
        for features in ("Mercer", "Fourier"):
            assert scores[variant, features, 24] < 0.8 * scores[variant, features, 4]
    assert sum(row["kind"] == "point" for row in rows) == 25


def test_nothing_finished_gives_no_rows():
    assert RANKS.rows([]) == CURVES.rows([]) == []


def test_the_full_protocol_has_ten_point_sets_and_twenty_draws():
    cells = CURVES.cells(False)
    assert {cell.settings["seed"] for cell in cells} == set(range(10))
    assert {cell.settings.get("draws", 20) for cell in cells} == {20}
    assert len({cell.key for cell in cells}) == len(cells) == 60
    assert Counter(cell.settings["features"] for cell in RANKS.cells(False)) == {"Mercer": 100, "Fourier": 200}
    fresh = [cell.settings for cell in RANKS.cells(False) if cell.settings["seed"] in FRESH_SETS]
    assert len(fresh) == 60
    assert {(cell["variant"], cell["features"]) for cell in fresh} == {("paper", "Fourier")}
    fourier = {cell.settings["rank"] for cell in RANKS.cells(False) if cell.settings["features"] == "Fourier"}
    assert fourier - {4, 10, 16, 24, 34} == {8, 48}  # 4 and 24 frequencies
