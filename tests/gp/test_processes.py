"""Predictive distributions: the stated posterior, consistent moments, samples of the right law, exact in the limit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.errors import InvalidInputError, NotPositiveDefiniteError
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import ExactProcess, GaussianProcess, LowRankProcess, log_evidence
from certgp.gp.process import DENSE_LIMIT
from certgp.kernels import Gaussian, Kernel
from helpers import (
    ALL_KERNELS,
    dense_log_evidence,
    feature_statistics,
    identity_model,
    random_inputs,
    random_target,
)

SF2, S2 = 1.6, 0.2
families = pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)


def process_of(features: FeatureMap, X, y, variance: str, sf2: float = SF2, s2: float = S2) -> LowRankProcess:
    return LowRankProcess(identity_model(features), feature_statistics(features, X, y), sf2, s2, variance)


def maps_of(kernel: Kernel, X) -> dict[str, FeatureMap]:
    d = X.shape[1]
    return {
        "mercer": MercerMap(kernel, np.ones(d), 15),
        "nystrom": NystromMap(kernel, X[:15]),
        "fourier": FourierMap(kernel, iid_design(kernel, 8, d, np.random.default_rng(0))),
    }


def all_processes() -> dict[str, GaussianProcess]:
    X = random_inputs(0, 50, 2)
    y, kernel = random_target(X, 0), Gaussian([0.8, 1.3], SF2)
    maps = maps_of(kernel, X)
    low_rank = {f"{name}-lowrank": process_of(m, X, y, "lowrank") for name, m in maps.items()}
    dtc = {f"{name}-dtc": process_of(m, X, y, "dtc") for name, m in maps.items() if m.dominated}
    return {"exact": ExactProcess(kernel, X, y, S2), **low_rank, **dtc}


PROCESSES = ["exact", "mercer-lowrank", "nystrom-lowrank", "fourier-lowrank", "mercer-dtc", "nystrom-dtc"]
processes = pytest.mark.parametrize("name", PROCESSES)


def dense_posterior(K_xx, K_sx, K_ss, y, noise):
    """Mean and covariance of f* | y for a given joint prior covariance."""
    S = K_xx + noise * torch.eye(K_xx.shape[0], dtype=torch.float64)
    return K_sx @ torch.linalg.solve(S, y), K_ss - K_sx @ torch.linalg.solve(S, K_sx.mT)


# -------------------- the stated models


@given(rows=st.integers(1, 40), rank=st.integers(1, 30), seed=st.integers(0, 1000), noise=st.floats(0.01, 2.0))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_low_rank_posterior_is_that_of_the_degenerate_prior(rows, rank, seed, noise):
    X, new = random_inputs(seed, rows, 2), random_inputs(seed + 1, 7, 2)
    y, features = random_target(X, seed), MercerMap(Gaussian([0.8, 1.3]), [1.0, 1.0], rank)
    process = process_of(features, X, y, "lowrank", SF2, noise)
    phi, star = process.features(X), process.features(new)
    mean, covariance = dense_posterior(phi @ phi.mT, star @ phi.mT, star @ star.mT, y, noise)
    torch.testing.assert_close(process.moments(new)[0], mean, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(process.covariance(new), covariance, rtol=1e-8, atol=1e-9)


@families
def test_exact_posterior_is_the_dense_one(family):
    X, new = random_inputs(1, 30, 2), random_inputs(2, 6, 2)
    y, kernel = random_target(X, 1), family([0.7, 1.5], SF2)
    process = ExactProcess(kernel, X, y, S2)
    mean, covariance = dense_posterior(kernel(X, X), kernel(new, X), kernel(new, new), y, S2)
    torch.testing.assert_close(process.moments(new)[0], mean, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(process.covariance(new), covariance, rtol=1e-10, atol=1e-11)
    S = kernel(X, X) + S2 * torch.eye(30, dtype=torch.float64)
    np.testing.assert_allclose(process.log_evidence(), dense_log_evidence(S, y), rtol=1e-11)


def test_dtc_adds_what_the_truncation_lost_of_the_prior():
    X, new = random_inputs(3, 40, 2), random_inputs(4, 9, 2)
    y, kernel = random_target(X, 3), Gaussian([0.8, 1.3], SF2)
    for features in (MercerMap(kernel, [1.0, 1.0], 10), NystromMap(kernel, X[:10])):
        low, dtc = (process_of(features, X, y, kind) for kind in ("lowrank", "dtc"))
        phi = low.features(new)
        torch.testing.assert_close(
            dtc.covariance(new) - low.covariance(new), kernel(new, new) - phi @ phi.mT, rtol=1e-9, atol=1e-11
        )
        torch.testing.assert_close(dtc.moments(new)[0], low.moments(new)[0], rtol=0.0, atol=0.0)


def test_dtc_variance_lies_between_low_rank_variance_and_the_prior():
    X, new = random_inputs(5, 60, 2), random_inputs(6, 50, 2, "uniform")
    y, kernel = random_target(X, 5), Gaussian([0.8, 1.3], SF2)
    features = MercerMap(kernel, [1.0, 1.0], 12)
    low, dtc = (process_of(features, X, y, kind).moments(new)[1] for kind in ("lowrank", "dtc"))
    assert bool((low <= dtc + 1e-12).all())
    assert bool((dtc <= SF2 * (1.0 + 1e-12)).all())


# -------------------- consistent moments


@processes
def test_variance_is_the_diagonal_of_the_covariance(name):
    process, new = all_processes()[name], random_inputs(7, 12, 2, "uniform")
    torch.testing.assert_close(process.covariance(new).diagonal(), process.moments(new)[1], rtol=1e-9, atol=1e-12)


@processes
@pytest.mark.parametrize("law", ["normal", "duplicated", "shifted"])
def test_covariance_is_symmetric_and_positive_semidefinite(name, law):
    process, new = all_processes()[name], random_inputs(8, 40, 2, law)
    covariance = process.covariance(new)
    torch.testing.assert_close(covariance, covariance.mT, rtol=1e-10, atol=1e-12)
    assert float(torch.linalg.eigvalsh(covariance).min()) > -1e-9
    assert bool((process.moments(new)[1] >= 0.0).all())


@processes
def test_samples_have_the_stated_mean_and_covariance(name):
    """Entry (i, j) of a sample covariance of n draws has standard error sqrt((C_ii C_jj + C_ij^2) / n)."""
    process, new, draws = all_processes()[name], random_inputs(9, 6, 2), 20_000
    sample = process.sample(new, draws, torch.Generator().manual_seed(0))
    mean, covariance = process.moments(new)[0], process.covariance(new)
    assert sample.shape == (6, draws)
    scale = covariance.diagonal()
    centred = sample - mean[:, None]
    assert float((centred.mean(1).abs() / (scale / draws).sqrt()).max()) < 4.5
    error = ((torch.outer(scale, scale) + covariance.square()) / draws).sqrt()
    deviation = (centred @ centred.mT / draws - covariance).abs()
    assert float((deviation / error).max()) < 4.5


@processes
def test_samples_are_a_function_of_the_generator(name):
    process, new = all_processes()[name], random_inputs(9, 4, 2)
    first, again, other = (process.sample(new, 3, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("variance", ["lowrank", "dtc"])
def test_updating_equals_conditioning_on_everything(variance):
    X = random_inputs(10, 60, 2)
    y, kernel = random_target(X, 10), Gaussian([0.8, 1.3])
    features = MercerMap(kernel, [1.0, 1.0], 12)
    whole = process_of(features, X, y, variance)
    grown = process_of(features, X[:20], y[:20], variance).updated(feature_statistics(features, X[20:], y[20:]))
    new = random_inputs(11, 8, 2)
    for a, b in zip(whole.moments(new), grown.moments(new), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_float32_inputs_still_give_float64_moments():
    X = random_inputs(12, 40, 2)
    process = process_of(MercerMap(Gaussian(1.0), [1.0, 1.0], 12), X, random_target(X, 12), "dtc")
    for single, double in zip(process.moments(X.float()), process.moments(X), strict=True):
        assert single.dtype == torch.float64
        torch.testing.assert_close(single, double, rtol=0.0, atol=1e-4)


def test_a_dense_matrix_that_cannot_fit_is_refused_before_it_is_made():
    X = random_inputs(13, 20, 1)
    process = process_of(MercerMap(Gaussian(1.0), [1.0], 3), X, random_target(X, 13), "dtc")
    rows = torch.zeros((DENSE_LIMIT + 1, 1), dtype=torch.float64)
    with pytest.raises(
        InvalidInputError, match=r"20001 rows need a dense 20001 x 20001 matrix \(3 GB\). Use variance='lowrank'"
    ):
        process.sample(rows, 1, torch.Generator())


def test_exact_process_without_noise_on_duplicates_raises():
    X = random_inputs(14, 5, 1).repeat(2, 1)
    with pytest.raises(NotPositiveDefiniteError, match=r"10 x 10 matrix K \+ s2 I \(raise noise_variance\)"):
        ExactProcess(Gaussian(1.0), X, random_target(X, 14), 0.0)


# -------------------- full information: equal to the exact GP


@families
@pytest.mark.parametrize("dimension", [1, 2])
def test_nystrom_with_the_data_as_inducing_points_is_the_exact_gp(family, dimension):
    X, new = random_inputs(15, 60, dimension), random_inputs(16, 25, dimension)
    y, kernel = random_target(X, 15), family(np.linspace(0.8, 1.2, dimension), SF2)
    exact = ExactProcess(kernel, X, y, S2)
    features = NystromMap(kernel, X, jitter=1e-10)
    process = process_of(features, X, y, "dtc")
    stats = feature_statistics(features, X, y, SF2)
    np.testing.assert_allclose(log_evidence(stats, S2), exact.log_evidence(), rtol=1e-6)
    mean, variance = process.moments(new)
    exact_mean, exact_variance = exact.moments(new)
    np.testing.assert_allclose(mean, exact_mean, rtol=1e-6, atol=1e-6 * float(exact_mean.abs().max()))
    np.testing.assert_allclose(variance, exact_variance, rtol=1e-5)


@pytest.mark.parametrize(("length_scale", "rank"), [(0.4, 150), (1.0, 80), (3.0, 40)])
def test_mercer_at_large_rank_is_the_exact_gp(length_scale, rank):
    X, new = random_inputs(17, 60, 1), random_inputs(18, 25, 1)
    y, kernel = random_target(X, 17), Gaussian([length_scale], SF2)
    exact = ExactProcess(kernel, X, y, S2)
    features = MercerMap(kernel, [1.0], rank)
    np.testing.assert_allclose(
        log_evidence(feature_statistics(features, X, y, SF2), S2), exact.log_evidence(), rtol=1e-8
    )
    exact_mean, exact_variance = exact.moments(new)
    for kind in ("lowrank", "dtc"):
        mean, variance = process_of(features, X, y, kind).moments(new)
        np.testing.assert_allclose(mean, exact_mean, rtol=1e-8, atol=1e-8 * float(exact_mean.abs().max()))
        np.testing.assert_allclose(variance, exact_variance, rtol=1e-8)
