"""Mixtures of processes and calibrated noise, against numerical integration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from certgp.gp import MixtureProcess, mixture_log_density, mixture_moments, mixture_quantiles, noise_scale
from certgp.gp.calibration import gaussian_nlpd
from certgp.gp.exact import ExactProcess
from certgp.kernels import Gaussian
from helpers import random_inputs

MEANS = np.array([[0.0, 1.0], [2.0, 1.0], [-1.0, 1.0]])
VARIANCES = np.array([[1.0, 0.5], [0.25, 0.5], [4.0, 0.5]])
LEVELS = np.array([0.001, 0.05, 0.5, 0.9])
GRID = np.linspace(-20.0, 20.0, 400_001)


def density(row: int) -> np.ndarray:
    return norm.pdf(GRID[:, None], MEANS[:, row], np.sqrt(VARIANCES[:, row])).mean(1)


@pytest.mark.parametrize("row", [0, 1])
def test_moments_density_and_quantiles_agree_with_integration(row):
    p, step = density(row), GRID[1] - GRID[0]
    mean, variance = mixture_moments(MEANS, VARIANCES)
    assert mean[row] == pytest.approx((GRID * p).sum() * step, abs=1e-9)
    assert variance[row] == pytest.approx((np.square(GRID - mean[row]) * p).sum() * step, rel=1e-9)
    at = np.array([0.3, -0.7])
    expected = norm.pdf(at[row], MEANS[:, row], np.sqrt(VARIANCES[:, row])).mean()
    assert mixture_log_density(at, MEANS, VARIANCES)[row] == pytest.approx(np.log(expected), rel=1e-12)
    q = mixture_quantiles(MEANS, VARIANCES, LEVELS)[row]
    below = norm.cdf(q[:, None], MEANS[:, row], np.sqrt(VARIANCES[:, row])).mean(1)
    np.testing.assert_allclose(below, LEVELS, rtol=1e-10)


def test_a_mixture_of_one_is_that_one():
    mean, variance = mixture_moments(MEANS[:1], VARIANCES[:1])
    assert np.array_equal(mean, MEANS[0])
    assert np.array_equal(variance, VARIANCES[0])
    expected = MEANS[0][:, None] + np.sqrt(VARIANCES[0])[:, None] * norm.ppf(LEVELS)
    np.testing.assert_allclose(mixture_quantiles(MEANS[:1], VARIANCES[:1], LEVELS), expected, rtol=1e-12)


def processes() -> list[ExactProcess]:
    X, y = random_inputs(0, 12, 1), random_inputs(1, 12, 1)[:, 0]
    models = [ExactProcess(Gaussian([scale], 1.5), X, y, noise) for scale, noise in ((0.5, 0.1), (2.0, 0.6))]
    models[0].noise_scale = 3.0
    return models


def test_a_mixture_process_has_the_moments_of_its_draws():
    members = processes()
    mixture, at = MixtureProcess(members), random_inputs(2, 4, 1)
    mean, variance = mixture.moments(at)
    covariance = mixture.covariance(at)
    torch.testing.assert_close(covariance.diagonal(), variance, rtol=1e-10, atol=1e-12)
    draws = mixture.sample(at, 40_000, torch.Generator().manual_seed(0))
    assert draws.shape == (4, 40_000)
    torch.testing.assert_close(draws.mean(1), mean, rtol=0, atol=0.03)
    torch.testing.assert_close(torch.cov(draws), covariance, rtol=0, atol=0.05)
    seen = mixture.sample_observations(at, 40_000, torch.Generator().manual_seed(1))
    assert mixture.predictive_noise == pytest.approx(0.5 * (3.0 * 0.1 + 0.6))
    torch.testing.assert_close(seen.var(1), variance + mixture.predictive_noise, rtol=0.05, atol=0)


def test_draws_do_not_come_in_blocks_of_one_member():
    """Two members a hundred apart: neighbouring draws must switch between them about half of the time."""
    members = processes()
    members[1] = ExactProcess(Gaussian([2.0]), members[0].X, members[0].y + 100.0, 0.1)
    draws = MixtureProcess(members).sample(members[0].X[:1], 2000, torch.Generator().manual_seed(0))[0]
    far = draws > 20.0
    assert 0.45 < float(far.double().mean()) < 0.55
    assert 0.45 < float((far[1:] != far[:-1]).double().mean()) < 0.55


@pytest.mark.parametrize("true_scale", [0.5, 1.0, 3.0, 40.0])
def test_noise_scale_recovers_the_scatter(true_scale):
    rng = np.random.default_rng(0)
    latent, noise = rng.uniform(0.05, 0.2, 20_000), 0.3
    mean = rng.standard_normal(20_000)
    y = mean + np.sqrt(latent + true_scale * noise) * rng.standard_normal(20_000)
    assert noise_scale(y, mean, latent, noise) == pytest.approx(true_scale, rel=0.05)


def test_noise_scale_lowers_the_nlpd_and_stays_bounded():
    rng = np.random.default_rng(1)
    y, mean, latent = 30.0 * rng.standard_normal(50), np.zeros(50), np.full(50, 0.01)
    k = noise_scale(y, mean, latent, 0.1)
    assert k == pytest.approx(1_000.0, rel=1e-3)
    assert noise_scale(0.01 * y / 30.0, mean, latent, 0.1) == pytest.approx(np.exp(-1.5), rel=1e-3)
    assert gaussian_nlpd(y, mean, latent + k * 0.1) < gaussian_nlpd(y, mean, latent + 0.1)
