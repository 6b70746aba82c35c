"""The dense algebra of predictions against other ways to the same figures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from certgp.guarantees import covariance_sandwich
from certgp_paper.experiments.dense_gaussians import Pair, Predictions, sandwich

N, TEST = 12, 5


@pytest.fixture
def joint() -> Pair:
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(2, N + TEST, 6))
    noise = np.eye(N + TEST)
    return Pair(first @ first.T + noise, second @ second.T + noise)


def law(S: np.ndarray, n: int, y: np.ndarray) -> MultivariateNormal:
    """The rows after the first n given y, by the inverse of S: its block is the inverse of their covariance."""
    inverse = np.linalg.inv(S)
    covariance = np.linalg.inv(inverse[n:, n:])
    mean = -covariance @ inverse[n:, :n] @ y
    return MultivariateNormal(torch.from_numpy(mean), torch.from_numpy(0.5 * (covariance + covariance.T)))


def test_divergences_are_those_of_torch(joint):
    zero = torch.zeros(N + TEST, dtype=torch.float64)
    first, second = (MultivariateNormal(zero, torch.from_numpy(S)) for S in (joint.exact, joint.approximate))
    assert joint.kl == pytest.approx(float(kl_divergence(first, second)), rel=1e-12)
    predictions = Predictions.given(joint, N)
    y = np.random.default_rng(5).normal(size=(N, 3))
    found = predictions.covariances.kl + 0.5 * predictions.distances(y) ** 2
    for i in range(3):
        exact, approximate = (law(S, N, y[:, i]) for S in (joint.exact, joint.approximate))
        assert found[i] == pytest.approx(float(kl_divergence(exact, approximate)), rel=1e-10)


def test_the_expectation_is_the_mean_over_draws_and_keeps_the_chain_rule(joint):
    predictions = Predictions.given(joint, N)
    expected = predictions.expected_kl
    assert expected == pytest.approx(joint.kl - predictions.train.kl, rel=1e-10)
    y = np.linalg.cholesky(joint.exact[:N, :N]) @ np.random.default_rng(6).normal(size=(N, 40_000))
    kl = predictions.covariances.kl + 0.5 * predictions.distances(y) ** 2
    assert abs(kl.mean() - expected) <= 4.0 * kl.std() / 200.0


def test_eigenvalues_are_those_of_the_pencil(joint):
    pencil = np.linalg.eigvals(np.linalg.solve(joint.approximate, joint.exact)).real
    assert joint.eigenvalues == pytest.approx(np.sort(pencil), rel=1e-9)


def test_roots_are_those_of_the_library():
    gammas = np.array([0.0, 1e-14, 1e-6, 0.1, 1.0, 30.0, 300.0])
    for gamma, b, t in zip(gammas, *sandwich(gammas), strict=True):
        assert (b, t) == pytest.approx(covariance_sandwich(float(gamma)), rel=1e-11, abs=1e-300)
