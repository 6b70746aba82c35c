"""Rows with noise variance s2 / weight against dense NumPy: statistics, evidence, gradients, posteriors, local GPs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource, SubsetSource
from certgp.engines import LocalEngine, fold_feature_statistics
from certgp.features import FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import LocalProcess, LowRankModel, LowRankProcess, Statistics, elbo, evidence_gradient, log_evidence
from certgp.gp.exact import ExactProcess, exact_log_evidence, profile_exact_evidence
from certgp.gp.iterative import solve_exactly
from certgp.gp.profile import profile_evidence
from certgp.guarantees.rank_curve import nested_rank_curve
from certgp.kernels import Gaussian, Matern32
from certgp.training.full_batch.objective import ExactObjective, LowRankObjective
from certgp.training.local.metric import ScaledMetric
from certgp.training.local.objective import LocalObjective, pick_targets
from certgp.transforms import Identity
from helpers import central_differences

RNG = np.random.default_rng(5)
N, SF2, S2 = 70, 1.7, 0.3
X = torch.from_numpy(RNG.standard_normal((N, 2)))
W = torch.from_numpy(np.exp(RNG.standard_normal(N)))
Y = torch.sin(2.0 * X.sum(1)) + torch.from_numpy(RNG.standard_normal(N)) * (S2 / W).sqrt()
NEW = torch.from_numpy(RNG.standard_normal((9, 2)))
ROWS = Chunk(X, Y, W)
KERNEL = Gaussian([1.1, 0.8])
MAPS = {
    "mercer": lambda: MercerMap(KERNEL, [1.0, 1.0], 12),
    "nystrom": lambda: NystromMap(KERNEL, X[:12]),
    "fourier": lambda: FourierMap(KERNEL, iid_design(KERNEL, 6, 2, np.random.default_rng(0))),
}


def model_of(name: str) -> LowRankModel:
    return LowRankModel(Identity(2), MAPS[name]())


def statistics_of(model: LowRankModel, rows: Chunk = ROWS) -> Statistics:
    return fold_feature_statistics(model, ChunkSource(rows), LocalEngine(chunk_rows=17))


@pytest.fixture(params=MAPS)
def model(request: pytest.FixtureRequest) -> LowRankModel:
    return model_of(request.param)


def dense_covariance(model: LowRankModel) -> np.ndarray:
    with torch.no_grad():
        phi = model(X).numpy()
    return SF2 * phi @ phi.T + np.diag(S2 / W.numpy())


def dense_log_density(S: np.ndarray) -> float:
    y = Y.numpy()
    return -0.5 * float(y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + N * math.log(2.0 * math.pi))


def test_evidence_bound_and_rank_curve(model: LowRankModel) -> None:
    stats = statistics_of(model)
    found = log_evidence(stats.scaled(SF2), S2)
    assert found == pytest.approx(dense_log_density(dense_covariance(model)), rel=1e-10)
    with torch.no_grad():
        lost = float((W * (1.0 - model(X).square().sum(1))).sum())
    gap = SF2 * (stats.kernel_trace - float(stats.A.diagonal().sum()))
    assert gap == pytest.approx(SF2 * lost, rel=1e-9)
    assert elbo(stats.scaled(SF2), gap, S2) == pytest.approx(found - 0.5 * SF2 * lost / S2, rel=1e-10)
    if model.features.dominated:
        curve = nested_rank_curve(stats, SF2, S2)
        assert curve.log_evidence[-1] == pytest.approx(found, rel=1e-10)
        assert curve.elbo is not None
        assert curve.elbo[-1] == pytest.approx(elbo(stats.scaled(SF2), gap, S2), rel=1e-9)


def test_predictions(model: LowRankModel) -> None:
    process = LowRankProcess(model, statistics_of(model), SF2, S2, "paper")
    with torch.no_grad():
        phi, new = (math.sqrt(SF2) * model(rows).numpy() for rows in (X, NEW))
    solved = np.linalg.solve(dense_covariance(model), np.column_stack([Y.numpy(), phi @ new.T]))
    mean, variance = process.moments(NEW)
    np.testing.assert_allclose(mean, new @ phi.T @ solved[:, 0], rtol=1e-9, atol=1e-10)
    expected = np.sum(new**2, 1) - np.sum((new @ phi.T) * solved[:, 1:].T, 1)
    np.testing.assert_allclose(variance, expected, rtol=1e-8, atol=1e-10)


def test_folds_merge_and_subsets_keep_their_weights(model: LowRankModel) -> None:
    parts = np.split(np.random.default_rng(1).permutation(N), [30])
    several = [fold_feature_statistics(model, SubsetSource(ChunkSource(ROWS), part), LocalEngine()) for part in parts]
    assert (several[0] + several[1]).close_to(statistics_of(model))
    assert not statistics_of(model).close_to(statistics_of(model, Chunk(X, Y)))


@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_gradients_of_variances_and_profile(objective: str) -> None:
    stats = statistics_of(model_of("mercer"))
    best = profile_evidence(stats, objective)
    there = evidence_gradient(stats, best.signal_variance, best.noise_variance, objective)
    assert there.value == pytest.approx(best.value, rel=1e-10)
    assert abs(there.by_log_signal) < 1e-6
    assert abs(there.by_log_noise) < 1e-6

    def value(t: np.ndarray) -> float:
        return evidence_gradient(stats, *np.exp(t), objective).value

    at = np.log([SF2, S2])
    g = evidence_gradient(stats, SF2, S2, objective)
    np.testing.assert_allclose([g.by_log_signal, g.by_log_noise], central_differences(value, at, 1e-4), rtol=1e-6)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_gradient_in_the_parameters(name: str, objective: str) -> None:
    target = LowRankObjective(model_of(name), ChunkSource(ROWS), LocalEngine(chunk_rows=17), objective)
    start = target.start()
    _, gradient = target.evaluate(start)
    expected = central_differences(lambda t: target.evaluate(t)[0], start, 1e-4)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)


def exact_covariance(kernel: Gaussian | Matern32) -> np.ndarray:
    return kernel(X, X).numpy() + np.diag(S2 / W.numpy())


def test_exact_gp_and_its_gradient() -> None:
    kernel = KERNEL.with_signal_variance(SF2)
    S, process = exact_covariance(kernel), ExactProcess(kernel, X, Y, S2, W)
    assert process.log_evidence() == pytest.approx(dense_log_density(S), rel=1e-10)
    assert exact_log_evidence(kernel(X, X), Y, S2 / W) == pytest.approx(dense_log_density(S), rel=1e-10)
    mean, variance = process.moments(NEW)
    cross = kernel(NEW, X).numpy()
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(S, Y.numpy()), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(variance, SF2 - np.sum(cross * np.linalg.solve(S, cross.T).T, 1), rtol=1e-9)
    R = KERNEL(X, X)
    profile = profile_exact_evidence(R, Y, 0.2, W)
    there = profile.signal_variance * (R.numpy() + 0.2 * np.diag(1.0 / W.numpy()))
    assert -profile.value == pytest.approx(dense_log_density(there), rel=1e-10)
    target = ExactObjective(KERNEL, ROWS, 0.2)
    start = target.start()
    expected = central_differences(lambda t: target.evaluate(t)[0], start, 1e-4)
    np.testing.assert_allclose(target.evaluate(start)[1], expected, rtol=1e-5, atol=1e-8)


def local(kernel: Gaussian | Matern32, neighbours: int) -> LocalProcess:
    return LocalProcess(Identity(2), kernel, X, Y, S2, neighbours, neighbours, weight=W)


@pytest.mark.parametrize("kernel", [Matern32([1.1, 0.8], SF2), Matern32([1.1, 0.8], SF2) * Gaussian(1e6)], ids=str)
def test_local_gp_with_all_rows_is_the_exact_one(kernel: Matern32) -> None:
    process, exact = local(kernel, N), ExactProcess(kernel, X, Y, S2, W)
    assert process.log_evidence() == pytest.approx(exact.log_evidence(), rel=1e-9)
    for found, expected in zip(process.moments(NEW), exact.moments(NEW), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(process.covariance(NEW), exact.covariance(NEW), atol=1e-8)


@pytest.mark.parametrize("kernel", [Matern32([1.1, 0.8]), Matern32([1.1, 0.8]) * Gaussian(1e6)], ids=str)
def test_gradient_of_the_local_likelihood(kernel: Matern32) -> None:
    metric = ScaledMetric(kernel, 2, 0.2)
    data = pick_targets(metric, ROWS, np.arange(0, N, 2), 8)
    objective = LocalObjective(metric, data)
    start = objective.start()
    expected = central_differences(lambda t: objective.evaluate(t)[0], start, 1e-4)
    np.testing.assert_allclose(objective.evaluate(start)[1], expected, rtol=1e-4, atol=1e-7)


def test_iterative_exact_gp() -> None:
    kernel = Matern32([1.1, 0.8], SF2)
    process, exact = solve_exactly(local(kernel, 20), 1e-6), ExactProcess(kernel, X, Y, S2, W)
    np.testing.assert_allclose(process.moments(NEW)[0], exact.moments(NEW)[0], atol=1e-6)
    log_det = np.linalg.slogdet(exact_covariance(kernel))[1]
    assert process.log_determinant >= log_det
    y = Y.numpy()
    quadratic = float(y @ np.linalg.solve(exact_covariance(kernel), y))
    assert process.solution.quadratic == pytest.approx(quadratic, abs=1e-6)


def test_processes_take_in_further_weighted_rows() -> None:
    kernel = Matern32([1.1, 0.8], SF2)
    for whole, first in (
        (ExactProcess(kernel, X, Y, S2, W), ExactProcess(kernel, X[:40], Y[:40], S2, W[:40])),
        (local(kernel, 9), LocalProcess(Identity(2), kernel, X[:40], Y[:40], S2, 9, 9, weight=W[:40])),
    ):
        extended = first.updated(X[40:], Y[40:], W[40:])
        for found, expected in zip(extended.moments(NEW), whole.moments(NEW), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
