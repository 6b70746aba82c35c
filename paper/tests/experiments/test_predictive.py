"""Predictions against their bounds on a few rows, and the cells of the experiment."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp_paper.experiments import rates_setting as setting
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.predictive import ETA, PREDICTIVE, _approximations


@pytest.mark.parametrize(("kernel", "method"), setting.CURVES)
def test_bounds_hold_on_a_few_rows(kernel, method):
    cell = Cell("predictive", {"kernel": kernel, "method": method, "D": 2, "N": 60, "test": 10, "seed": 3})
    rows = PREDICTIVE.rows([Finished(cell, PREDICTIVE.compute(cell.settings), 0.0)])
    assert len(rows) == 5
    for row in rows:
        assert abs(row["chain_gap"]) <= row["rounding"] == pytest.approx(7e-9)
        assert row["kl_expected"] <= row["kl_total"] + row["rounding"]
        assert row["means_far"] == row["covariances_outside"] == 0
        assert row["kl_above"] <= 2 * ETA * row["draws"]
        if row["kl_ratio"] is not None:
            assert row["b"] <= row["eigenvalue_least"] <= row["eigenvalue_largest"] <= row["t"]
            assert row["kl_ratio"] >= 1.0
            assert row["mean_ratio"] >= 1.0
            assert row["covariance_ratio"] >= 1.0
    assert (rows[-1]["kl_ratio"] is None) == (method == "eigendecomposition")  # 200 of 70 eigenpairs: all of K


@pytest.mark.parametrize("name", ["gaussian", "matern12"])
def test_the_features_of_the_highest_rank_are_those_of_the_library(name):
    X = setting.uniform_inputs(20, 2, np.random.default_rng(1))
    with torch.no_grad():
        K = setting.kernel(name)(X, X)
        fourier = _approximations(name, "fourier", X, K, (2, 6), 3)
        Phi = setting.fourier_map(name, 2, 3, 3)(X)
    assert torch.allclose(fourier[1], Phi @ Phi.mT, rtol=1e-12)
    assert [int(torch.linalg.matrix_rank(Sigma)) for Sigma in fourier] == [2, 6]
    for Sigma in fourier:
        assert torch.allclose(Sigma.diagonal(), torch.ones(20, dtype=torch.float64), rtol=1e-12)


def test_cells():
    cells = PREDICTIVE.cells(False)
    assert len(cells) == 4 * 2 * 10
    assert {cell.settings["seed"] for cell in cells} == set(range(10))
    assert len(PREDICTIVE.cells(True)) == 4
    assert set(map(str, PREDICTIVE.cells(True))) <= set(map(str, cells))
