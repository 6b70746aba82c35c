"""The exact GP of the paper's text: the gradient in blocks is that of the dense oracle, and training descends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from certgp.data import Chunk
from certgp.errors import DataFileError
from certgp.estimators import ExactGP
from certgp.kernels import Gaussian
from certgp.training.full_batch.objective import ExactObjective
from certgp_paper.experiments.catalogue import experiment
from certgp_paper.experiments.exact_gp import compute_cell
from certgp_paper.training import exact_gp
from certgp_paper.training.exact_gp import ExactEvidence, train_exact_gp


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(150)


@pytest.mark.parametrize("block", [16, 150, 1000])
def test_value_and_gradient_are_those_of_the_dense_objective(rows, block, monkeypatch):
    monkeypatch.setattr(exact_gp, "_BLOCK", block)
    X, y = map(torch.from_numpy, rows)
    theta = np.log([0.7, 1.5, 3.0, 0.05])
    found = ExactEvidence(X, y)(theta)
    expected, by_parameter = ExactObjective(Gaussian(length_scale=[1.0, 1.0, 1.0]), Chunk(X, y), 0.1).evaluate(theta)
    assert found.value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(found.gradient, by_parameter, atol=1e-10)
    single = ExactEvidence(X.float(), y.float())(theta)
    assert single.value == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(single.gradient, by_parameter, atol=1e-4)


def test_curvature_is_fishers_information(rows, monkeypatch):
    """1/2 tr(S^-1 dS_i S^-1 dS_j), with the signal variance unknown: dense, and from many probes."""
    monkeypatch.setattr(exact_gp, "_PROBES", 2_000)
    X, y = rows
    theta = np.log([0.7, 1.5, 3.0, 0.05])
    squares = np.square((X[:, None, :] - X[None, :, :]) / np.exp(theta[:-1]))  # (N, N, D)
    R = np.exp(-0.5 * squares.sum(2))
    S = R + 0.05 * np.eye(len(y))
    moves = [R * squares[:, :, d] for d in range(3)] + [0.05 * np.eye(len(y)), S]  # by log l, log g and log sf2
    solved = [np.linalg.solve(S, move) for move in moves]
    full = np.array([[0.5 * np.trace(a @ b) for a in solved] for b in solved]) / len(y)
    expected = full[:4, :4] - np.outer(full[:4, 4], full[:4, 4]) / full[4, 4]
    found = ExactEvidence(torch.from_numpy(X), torch.from_numpy(y))(theta).curvature
    np.testing.assert_allclose(found, expected, atol=0.03 * np.abs(expected).max())


def test_steps_climb_to_where_the_library_ends(rows):
    X, y = rows
    library = ExactGP(standardize=False).fit(X, y)
    found = train_exact_gp(X, y, seed=0, rank=10, steps=12)
    assert found.values[0] > found.evaluated.value
    assert found.evaluated.value <= -library.log_marginal_likelihood_ / len(y) + 1e-3
    assert found.evaluated.value == min(found.values)


def test_evidence_and_scores_of_a_cell():
    (cell,) = experiment("exact-gp").cells(True)
    try:
        result = compute_cell(cell.settings)
    except DataFileError as error:  # no data directory
        pytest.skip(str(error))
    assert -result["log_evidence"] / result["rows"] <= result["evidence_of_training"][-1]
    assert math.isfinite(result["nlpd"])
    assert result["nlpd"] < 0.7
