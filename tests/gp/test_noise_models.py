"""Rows predicted without their own targets, against conditioning on the others; noise models by their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from certgp.features import NystromMap
from certgp.gp import (
    ExactProcess,
    LocalProcess,
    LowRankModel,
    LowRankProcess,
    Mixture,
    MixtureProcess,
    Noise,
    NoiseGain,
    NoiseInputs,
    NoiseModel,
    Statistics,
)
from certgp.gp.noise import NoiseBasis, near_scatter, nothing
from certgp.kernels import Matern32
from certgp.transforms import Identity

NOISE = 0.1


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.standard_normal((40, 2)))
    return X, torch.sin(X[:, 0]) + 0.3 * torch.from_numpy(rng.standard_normal(40))


def low_rank(X, y, variance="dtc"):
    kernel = Matern32([0.8, 1.2])
    points = torch.from_numpy(np.random.default_rng(1).standard_normal((12, 2)))
    model = LowRankModel(Identity(2), NystromMap(kernel, points)).requires_grad_(False)
    stats = Statistics.of(model(X), y, model.diagonal(X))
    return LowRankProcess(model, stats, 1.7, NOISE, variance)


def exact(X, y):
    return ExactProcess(Matern32([0.8, 1.2], 1.7), X, y, NOISE)


def local(X, y):
    return LocalProcess(Identity(2), Matern32([0.8, 1.2], 1.7), X, y, NOISE, 8, 8)


@pytest.mark.parametrize("variance", ["dtc", "lowrank", "paper"])
def test_low_rank_rows_are_predicted_from_all_others(rows, variance):
    X, y = rows
    found = low_rank(X, y, variance).leave_one_out(X, y)
    for i in (0, 7, 39):
        others = torch.arange(40) != i
        mean, spread = low_rank(X[others], y[others], variance).moments(X[i : i + 1])
        assert float(found.mean[i]) == pytest.approx(float(mean), rel=1e-9)
        assert float(found.variance[i]) == pytest.approx(float(spread), rel=1e-9)


@pytest.mark.parametrize("build", [exact, local])
def test_processes_with_rows_predict_them_from_all_others(rows, build):
    X, y = rows
    found = build(X, y).leave_one_out(np.array([3, 20]))
    for place, i in enumerate((3, 20)):
        others = torch.arange(40) != i
        less = build(X[others], y[others]).noise_inputs(X[i : i + 1])
        assert float(found.mean[place]) == pytest.approx(float(less.mean), rel=1e-8)
        assert float(found.variance[place]) == pytest.approx(float(less.variance), rel=1e-7)
        np.testing.assert_allclose(found.scatter[place], less.scatter[0], rtol=1e-8)


def test_fitted_values_are_those_of_all_rows(rows):
    X, y = rows
    process = low_rank(X, y)
    torch.testing.assert_close(process.leave_one_out(X, y).fitted[:, 0], process.moments(X)[0])
    torch.testing.assert_close(process.noise_inputs(X).fitted[:, 0], process.moments(X)[0])


def test_scatter_is_the_mean_square_of_near_targets():
    y = torch.tensor([0.0, 1.0, 3.0, 7.0])
    near = np.array([[1, 2, 3], [0, 2, -1]])
    found = near_scatter(y, near, torch.tensor([1.0, 2.0]))
    np.testing.assert_allclose(found[0, :2], [(0.0 + 4.0) / 2, (0.0 + 4.0 + 36.0) / 3])
    np.testing.assert_allclose(found[1, :2], [(4.0 + 1.0) / 2, (4.0 + 1.0) / 2])
    assert found.shape == (2, 6)


def model_on(process, rng) -> NoiseModel:
    inputs = process.noise_inputs(torch.from_numpy(rng.standard_normal((60, 2))))
    basis = NoiseBasis.of(inputs, 0.2)
    weights = torch.from_numpy(0.1 * rng.standard_normal(basis(inputs).shape[1]))
    return NoiseModel(basis, -1.5, weights, -4.0, 1.0, 0.8, 0.1, 10.0)


@pytest.mark.parametrize("build", [low_rank, exact, local])
def test_a_noise_model_changes_observations_and_nothing_else(rows, build):
    X, y = rows
    plain, process = build(X, y), build(X, y)
    process.noise_model = model = model_on(process, np.random.default_rng(2))
    new = X[:5] + 0.1
    mean, variance, noise = process.observations(new)
    torch.testing.assert_close((mean, variance), plain.moments(new), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(process.covariance(new), plain.covariance(new), rtol=0, atol=0)
    narrow = 0.8 * torch.exp((-1.5 + model.basis(process.noise_inputs(new)) @ model.weights).clamp(-4.0, 1.0))
    torch.testing.assert_close(noise.variances, torch.stack([narrow, torch.full((5,), 2.0).double()]))
    torch.testing.assert_close(process.noise(new).variance, 0.9 * narrow + 0.1 * 2.0)
    again = NoiseModel.build(*model.describe())
    torch.testing.assert_close(again.at(process.noise_inputs(new)).variances, noise.variances, rtol=0, atol=0)


@pytest.mark.parametrize("build", [low_rank, exact, local])
def test_less_of_the_latent_variance_enters_observations_alike_in_all_predictions(rows, build):
    X, y = rows
    process, new = build(X, y), torch.cat([X[:3] + 0.1, torch.full((1, 2), 30.0).double()])
    latent = process.moments(new)[1]
    usual = float(latent[:3].max())
    plain = model_on(process, np.random.default_rng(2))
    process.noise_model = model = replace(plain, latent=0.3, usual=usual)
    _, used, noise = process.observations(new)
    torch.testing.assert_close(used, torch.cat([0.3 * latent[:3], latent[3:] - 0.7 * min(usual, float(latent[3]))]))
    torch.testing.assert_close(process.moments(new)[1], latent)  # of f nothing changes
    expected = used + noise.variance
    covariance = process.observation_covariance(new)
    torch.testing.assert_close(covariance.diagonal(), expected)
    assert float(torch.linalg.eigvalsh(covariance).min()) > 0.0
    draws = process.sample_observations(new, 20_000, torch.Generator().manual_seed(0))
    torch.testing.assert_close(draws.var(1), expected, rtol=0.08, atol=0.0)
    again = NoiseModel.build(*model.describe())
    assert (again.latent, again.usual) == (0.3, usual)


def test_draws_have_the_distribution_of_the_noise():
    noise = Noise(torch.tensor([0.7, 0.3]).double(), torch.tensor([[0.1, 1.0], [4.0, 9.0]]).double())
    draws = noise.sample(2, 60_000, torch.Generator().manual_seed(0)).numpy()
    for row, (a, b) in enumerate(((0.1, 4.0), (1.0, 9.0))):
        for at in (-2.0, -0.3, 0.5, 3.0):
            expected = 0.7 * ndtr(at / a**0.5) + 0.3 * ndtr(at / b**0.5)
            assert np.mean(draws[row] < at) == pytest.approx(expected, abs=0.008)
    np.testing.assert_allclose(draws.var(1), noise.variance, rtol=0.05)


def test_mixtures_with_weights_agree_with_repeated_components():
    means, variances = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1.0, 0.5], [0.2, 3.0]])
    weighted = Mixture(means, variances, np.array([0.75, 0.25]))
    repeated = Mixture(means[[0, 0, 0, 1]], variances[[0, 0, 0, 1]], np.full(4, 0.25))
    for one, other in zip(weighted.moments(), repeated.moments(), strict=True):
        np.testing.assert_allclose(one, other)
    y, levels = np.array([0.3, 2.0]), np.array([0.1, 0.5, 0.99])
    np.testing.assert_allclose(weighted.log_density(y), repeated.log_density(y))
    np.testing.assert_allclose(weighted.quantiles(levels), repeated.quantiles(levels))


def test_members_have_noise_of_their_own(rows):
    X, y = rows
    with_model, without = low_rank(X, y), low_rank(X, y)
    with_model.noise_model = model_on(with_model, np.random.default_rng(2))
    with_model.noise_gain = NoiseGain(0.2, 0.05, True, 40)
    without.noise_gain = NoiseGain(0.0, 0.15, False, 30)
    mixture = MixtureProcess([with_model, without])
    expected = 0.5 * (with_model.noise(X[:4]).variance + without.noise(X[:4]).variance)
    added = mixture.observation_covariance(X[:4]) - mixture.covariance(X[:4])
    torch.testing.assert_close(added, torch.diag(expected))
    assert mixture.noise_gain == NoiseGain(0.1, 0.1, True, 70)
    assert MixtureProcess([low_rank(X, y)]).noise_gain is None


def test_far_inputs_do_not_move_psi_further():
    none = nothing(3)
    X = torch.tensor([[0.0], [1e3], [1e9]]).double()
    rows = NoiseInputs(X, X[:, 0], X[:, 0] * 0 + 1.0, X, none, none)
    basis = NoiseBasis(torch.zeros(1).double(), torch.ones(1).double(), 0.0, 1.0, 1.0, 0)
    psi = basis(rows)
    torch.testing.assert_close(psi[1], psi[2], rtol=0, atol=0)
    assert bool(torch.isfinite(psi).all())
