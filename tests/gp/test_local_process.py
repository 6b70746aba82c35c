"""The local process: the exact GP where all rows are neighbours, a proper joint law where they are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from certgp.gp import ExactProcess, LocalProcess
from certgp.kernels import Kernel, Linear, Matern12, Matern32
from certgp.transforms import Identity
from helpers import random_inputs

N, NOISE = 60, 0.05
X, NEW = random_inputs(0, N, 2), random_inputs(1, 12, 2)
y = torch.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1]
KERNELS = [Matern32([0.6, 1.2], 1.4), Matern12(0.9) + Linear(columns=[1])]


def local(kernel: Kernel, neighbours: int, train_neighbours: int | None = None) -> LocalProcess:
    return LocalProcess(Identity(2), kernel, X, y, NOISE, neighbours, train_neighbours or neighbours)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_all_rows_as_neighbours_are_the_exact_gp(kernel):
    process, exact = local(kernel, N, N - 1), ExactProcess(kernel, X, y, NOISE)
    for found, expected in zip(process.moments(NEW), exact.moments(NEW), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(process.covariance(NEW), exact.covariance(NEW), atol=1e-8)
    assert process.log_evidence() == pytest.approx(exact.log_evidence(), abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_the_evidence_is_the_density_of_the_ordered_law(kernel):
    """y = B y + e with independent e, so that the covariance is (I - B)^-1 D (I - B)^-T."""
    process = local(kernel, 8)
    K = kernel(X, X).numpy() + NOISE * np.eye(N)
    from certgp.gp.neighbours import earlier_neighbours

    B, D = np.zeros((N, N)), np.empty(N)
    for i, near in enumerate(earlier_neighbours(process.index.points, 8)):
        rows = near[near >= 0]
        B[i, rows] = np.linalg.solve(K[np.ix_(rows, rows)], K[rows, i])
        D[i] = K[i, i] - K[i, rows] @ B[i, rows]
    A = np.linalg.inv(np.eye(N) - B)
    expected = multivariate_normal.logpdf(y.numpy(), np.zeros(N), A @ np.diag(D) @ A.T)
    assert process.log_evidence() == pytest.approx(expected, rel=1e-9)


def test_the_covariance_is_that_of_the_errors_of_the_predictions():
    kernel, process = KERNELS[0], local(KERNELS[0], 6)
    near = process.nearest(NEW)
    weights = np.zeros((len(NEW), N))
    for i, rows in enumerate(near):
        K = kernel(X[rows], X[rows]).numpy() + NOISE * np.eye(6)
        weights[i, rows] = np.linalg.solve(K, kernel(X[rows], NEW[i : i + 1]).numpy()[:, 0])
    joint = kernel(torch.cat([NEW, X]), torch.cat([NEW, X])).numpy()
    joint[len(NEW) :, len(NEW) :] += NOISE * np.eye(N)
    error = np.hstack([np.eye(len(NEW)), -weights])
    found = process.covariance(NEW).numpy()
    np.testing.assert_allclose(found, error @ joint @ error.T, atol=1e-9)
    np.testing.assert_allclose(np.diag(found), process.moments(NEW)[1], rtol=1e-12)
    assert np.linalg.eigvalsh(found).min() > -1e-10


def test_new_rows_come_last_in_the_order():
    process = local(KERNELS[0], 10)
    first = LocalProcess(Identity(2), KERNELS[0], X[:45], y[:45], NOISE, 10, 10)
    first.log_evidence()
    extended = first.updated(X[45:50], y[45:50]).updated(X[50:], y[50:])
    assert extended.log_evidence() == pytest.approx(process.log_evidence(), rel=1e-12)
    np.testing.assert_array_equal(extended.moments(NEW)[0], process.moments(NEW)[0])


def test_far_from_all_rows_the_prior_returns():
    mean, variance = local(KERNELS[0], 10).moments(torch.full((1, 2), 1e3, dtype=torch.float64))
    assert float(mean) == 0.0
    assert float(variance) == pytest.approx(1.4)
