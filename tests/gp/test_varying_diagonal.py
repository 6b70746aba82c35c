"""Kernels whose prior variance varies from row to row: evidence, bounds and predictions against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.engines.folds import fold_feature_statistics, fold_statistics
from certgp.errors import NotCertifiableError
from certgp.features import NystromMap, greedy_inducing_points
from certgp.gp import ExactProcess, LowRankProcess, Statistics, elbo, evidence_gradient, profile_evidence
from certgp.gp.evidence import trace_gap
from certgp.guarantees import check_certifiable, nested_rank_curve
from helpers import (
    CONSTANT,
    VARYING,
    dense_kernel,
    dense_log_evidence,
    identity_model,
    random_inputs,
    random_target,
    relative_error,
)

SF2, S2 = 1.7, 0.2
X, NEW = random_inputs(0, 40, 2), random_inputs(1, 7, 2)
Y = random_target(X, 0)
EVERY = CONSTANT | VARYING
every = pytest.mark.parametrize("name", EVERY)
varying = pytest.mark.parametrize("name", VARYING)


def dense(name: str, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """SF2 times the unit kernel, by NumPy."""
    return SF2 * torch.from_numpy(dense_kernel(EVERY[name], A.numpy(), B.numpy())) / EVERY[name].signal_variance


def sparse(name: str, rank: int = 12) -> NystromMap:
    return NystromMap(EVERY[name], X[:rank], jitter=1e-8)


@every
def test_statistics_carry_the_trace_of_the_kernel_matrix(name):
    model = identity_model(sparse(name))
    for fold in (fold_statistics, fold_feature_statistics):
        stats = fold(model, ChunkSource(Chunk(X, Y)), LocalEngine(7))
        assert stats.kernel_trace * SF2 == pytest.approx(float(dense(name, X, X).trace()), rel=1e-13)
        assert stats.scaled(SF2).kernel_trace == SF2 * stats.kernel_trace
        kept = (
            stats.leading(3),
            stats.trailing(3),
            stats.picked(torch.tensor([1, 2])),
            stats.mixed(torch.eye(12).double()),
        )
        assert {part.kernel_trace for part in kept} == {stats.kernel_trace}
    if name in CONSTANT:
        assert stats.kernel_trace == len(X)
    assert Statistics.zero(3).kernel_trace == 0.0


@every
def test_elbo_is_the_dense_one_and_below_the_exact_evidence(name):
    model = identity_model(sparse(name))
    stats = fold_feature_statistics(model, ChunkSource(Chunk(X, Y)), LocalEngine())
    K, eye = dense(name, X, X), torch.eye(len(X), dtype=torch.float64)
    with torch.no_grad():
        Q = SF2 * model(X) @ model(X).mT
    expected = dense_log_evidence(Q + S2 * eye, Y) - float((K - Q).trace()) / (2.0 * S2)
    scaled = stats.scaled(SF2)
    assert elbo(scaled, trace_gap(scaled), S2) == pytest.approx(expected, rel=1e-9)
    assert evidence_gradient(stats, SF2, S2, "elbo").value == pytest.approx(-expected, rel=1e-9)
    assert expected <= dense_log_evidence(K + S2 * eye, Y) + 1e-9


@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_derivative_by_the_trace(objective):
    stats = fold_feature_statistics(identity_model(sparse("linear first")), ChunkSource(Chunk(X, Y)), LocalEngine())

    def moved(step: float) -> Statistics:
        return Statistics(stats.A, stats.b, stats.yty, stats.n, stats.kernel_trace + step)

    for value in (
        lambda s: evidence_gradient(s, SF2, S2, objective),
        lambda s: profile_evidence(s, objective),
    ):
        numeric = (value(moved(1e-3)).value - value(moved(-1e-3)).value) / 2e-3
        assert value(stats).by_trace == pytest.approx(numeric, rel=1e-5, abs=1e-9)


@every
def test_predictions_add_back_what_truncation_lost(name):
    model = identity_model(sparse(name))
    stats = fold_feature_statistics(model, ChunkSource(Chunk(X, Y)), LocalEngine())
    process = LowRankProcess(model, stats, SF2, S2, "dtc")
    mean, variance = process.moments(NEW)
    with torch.no_grad():
        phi, new = SF2**0.5 * model(X), SF2**0.5 * model(NEW)
    C = torch.linalg.inv(phi.mT @ phi + S2 * torch.eye(12, dtype=torch.float64))
    lost = dense(name, NEW, NEW) - new @ new.mT
    covariance = S2 * new @ C @ new.mT + lost
    assert relative_error(mean, new @ C @ phi.mT @ Y) < 1e-8
    assert relative_error(variance, covariance.diagonal()) < 1e-8
    found = process.covariance(NEW)
    assert relative_error(found, covariance) < 1e-8
    assert relative_error(found.diagonal(), variance) < 1e-12
    draws = process.sample(NEW, 4_000, torch.Generator().manual_seed(0))
    assert relative_error(draws.cov(), covariance) < 0.2


@every
def test_exact_process_against_dense_algebra(name):
    process = ExactProcess(EVERY[name].with_signal_variance(SF2), X, Y, S2)
    S = dense(name, X, X) + S2 * torch.eye(len(X), dtype=torch.float64)
    cross = dense(name, NEW, X)
    mean, variance = process.moments(NEW)
    assert relative_error(mean, cross @ torch.linalg.solve(S, Y)) < 1e-9
    expected = dense(name, NEW, NEW) - cross @ torch.linalg.solve(S, cross.mT)
    assert relative_error(variance, expected.diagonal()) < 1e-9
    assert process.log_evidence() == pytest.approx(dense_log_evidence(S, Y), rel=1e-10)


@every
def test_greedy_points_follow_the_residual_diagonal(name):
    kernel = EVERY[name]
    points = greedy_inducing_points(kernel, X, 8, tolerance=1e-9)
    K = dense(name, X, X) / SF2
    for i in range(len(points)):
        chosen = [int(torch.nonzero((point == X).all(1))[0, 0]) for point in points[:i]]
        left = K - K[:, chosen] @ torch.linalg.lstsq(K[chosen][:, chosen], K[chosen]).solution if chosen else K
        here = int(torch.nonzero((points[i] == X).all(1))[0, 0])
        assert float(left[here, here]) >= float(left.diagonal().max()) * (1.0 - 1e-6)
    if name == "linear":
        assert len(points) == 2  # a plane through the centre has two slopes


@varying
def test_a_varying_diagonal_is_not_certified_and_says_why(name):
    model = identity_model(sparse(name))
    with pytest.raises(NotCertifiableError, match=r"varies from row to row.*use a kernel whose k"):
        check_certifiable(model)
    stats = fold_feature_statistics(model, ChunkSource(Chunk(X, Y)), LocalEngine())
    curve = nested_rank_curve(stats, SF2, S2, map_rounding=None)
    assert curve.kl_bound is None
    assert curve.elbo is None
    assert np.isfinite(curve.log_evidence).all()
