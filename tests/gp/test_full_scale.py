"""Low rank plus local: a proper law against dense matrices, FITC without neighbours, exact with all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from certgp import ExactGP, LocalGP, load
from certgp.errors import InvalidInputError
from certgp.features import NystromMap
from certgp.gp import ExactProcess, FullScaleProcess, LocalProcess
from certgp.gp.neighbours import earlier_neighbours
from certgp.kernels import Kernel, Matern12, Matern32, RationalQuadratic
from certgp.transforms import Identity
from helpers import random_inputs

N, NOISE = 60, 0.05
X, NEW = random_inputs(0, N, 2), random_inputs(1, 12, 2)
y = torch.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1]
KERNELS = [Matern32([0.6, 1.2], 1.4), RationalQuadratic(0.9, signal_variance=0.7) * Matern12(2.0)]


def full_scale(kernel: Kernel, neighbours: int, rank: int = 6, rows: int = N) -> FullScaleProcess:
    local = LocalProcess(Identity(2), kernel, X[:rows], y[:rows], NOISE, neighbours, min(neighbours, N - 1))
    return FullScaleProcess(local, NystromMap(kernel.with_signal_variance(1.0), X[:rank]))


def dense_joint(process: FullScaleProcess) -> np.ndarray:
    """The covariance of y and of f at each new row alone, under the model: rows first, then all new rows."""
    points = torch.cat([X, NEW])
    with torch.no_grad():
        phi = np.sqrt(process.signal_variance) * process.features(points).numpy()
        R = process.kernel(points, points).numpy() - phi @ phi.T
    R[:N, :N] += NOISE * np.eye(N)
    local, total = process.local, N + len(NEW)
    sets = [*earlier_neighbours(local.index.points, local.train_neighbours), *local.nearest(NEW)]
    U, d = np.eye(total), np.empty(total)
    for i, near in enumerate(rows[rows >= 0] for rows in sets):
        v = np.linalg.solve(R[np.ix_(near, near)], R[near, i])
        U[i, near], d[i] = -v, R[i, i] - R[near, i] @ v
    inverse = np.linalg.inv(U)
    return inverse @ np.diag(d) @ inverse.T + phi @ phi.T


@pytest.mark.parametrize("neighbours", [0, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_evidence_and_predictions_are_those_of_the_dense_law(kernel, neighbours):
    process = full_scale(kernel, neighbours)
    joint = dense_joint(process)
    expected = multivariate_normal.logpdf(y.numpy(), np.zeros(N), joint[:N, :N])
    assert process.log_evidence() == pytest.approx(expected, rel=1e-9)
    mean, variance = process.moments(NEW)
    gain = np.linalg.solve(joint[:N, :N], joint[:N, N:])
    np.testing.assert_allclose(mean, gain.T @ y.numpy(), atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(joint[N:, N:] - joint[N:, :N] @ gain), atol=1e-9)


def test_without_neighbours_it_is_fitc():
    """Q + diag(K - Q) + s2 I, Q = Phi Phi'.  [Snelson and Ghahramani 2006]"""
    process = full_scale(KERNELS[0], 0)
    K, Q = KERNELS[0](X, X).numpy(), (process.phi @ process.phi.mT).numpy()
    covariance = Q + np.diag(np.diag(K - Q)) + NOISE * np.eye(N)
    expected = multivariate_normal.logpdf(y.numpy(), np.zeros(N), covariance)
    assert process.log_evidence() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_all_rows_as_neighbours_are_the_exact_gp(kernel):
    process, exact = full_scale(kernel, N), ExactProcess(kernel, X, y, NOISE)
    for found, expected in zip(process.moments(NEW), exact.moments(NEW), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(process.covariance(NEW), exact.covariance(NEW), atol=1e-8)
    assert process.log_evidence() == pytest.approx(exact.log_evidence(), abs=1e-8)


def test_features_that_leave_nothing_are_the_exact_gp_without_neighbours():
    """Where inducing points are all rows, a sparse GP is exact, and so is this."""
    process, exact = full_scale(KERNELS[0], 0, rank=N), ExactProcess(KERNELS[0], X, y, NOISE)
    np.testing.assert_allclose(process.moments(X)[0], exact.moments(X)[0], atol=1e-4)  # the map's jitter is 1e-6
    assert process.log_evidence() == pytest.approx(exact.log_evidence(), abs=1e-2)


def test_later_rows_come_last():
    process, early = full_scale(KERNELS[0], 5), full_scale(KERNELS[0], 5, rows=40)
    early.log_evidence()
    updated = early.updated(X[40:], y[40:])
    assert updated.log_evidence() == pytest.approx(process.log_evidence(), rel=1e-12)
    np.testing.assert_allclose(updated.moments(NEW)[0], process.moments(NEW)[0], rtol=1e-10)


def test_the_covariance_has_the_variances_on_its_diagonal_and_is_positive():
    process = full_scale(KERNELS[0], 5)
    covariance = process.covariance(NEW)
    np.testing.assert_allclose(covariance.diagonal(), process.moments(NEW)[1], rtol=1e-12)
    assert float(torch.linalg.eigvalsh(covariance).min()) > -1e-10


def test_an_estimator_with_features_beside_neighbours(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 2))
    target = np.sin(2.0 * rows[:, 0]) + 0.1 * rng.standard_normal(300)
    model = LocalGP(neighbours=12, train_neighbours=8, rank=10, max_iter=20, kernel="matern32", random_state=0)
    model.fit(rows, target)
    assert model.score(rows, target) > 0.9
    certificate = model.certify(rows[:4])
    assert certificate.theorem.startswith("V8 ")
    assert certificate.kl.upper < 20.0
    assert "V8+" in model.certify(delta=0.1).theorem
    solved = model.certify(rows[:4], tol=1e-3, exact_solve=True)
    assert "V7" in solved.theorem
    exact = ExactGP(kernel=model.kernel_, noise_variance=model.noise_variance_, optimize=False).fit(rows, target)
    distance = np.abs(model.predict(rows[:4]) - exact.predict(rows[:4]))
    for found in (certificate, solved):
        assert (distance <= found.mean_error + 1e-12).all()
    path = tmp_path / "model.certgp"
    model.save(path, include_training_data=True)
    np.testing.assert_array_equal(load(path).predict(rows[:9]), model.predict(rows[:9]))
    before = model.log_marginal_likelihood_
    model.partial_fit(rows[:20] + 0.01, target[:20])
    assert model.log_marginal_likelihood_ != before


def test_a_rank_is_a_whole_number_and_rows_need_something_to_depend_on():
    with pytest.raises(InvalidInputError, match="rank must be a whole number"):
        LocalGP(rank=2.5).fit(X.numpy(), y.numpy())
    with pytest.raises(InvalidInputError, match="neighbours must be a whole number of at least 1"):
        LocalGP(neighbours=0).fit(X.numpy(), y.numpy())
