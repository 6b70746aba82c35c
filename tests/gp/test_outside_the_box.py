"""Predictions beyond winsorised inputs fall back to the prior instead of repeating the edge."""

from __future__ import annotations

import numpy as np
import pytest

import certgp


@pytest.fixture(scope="module")
def fitted() -> certgp.FourierGP:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = 5.0 + np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    return certgp.FourierGP(40, random_state=0).fit(X, y)


def test_far_away_the_prior_returns(fitted: certgp.FourierGP) -> None:
    far = np.array([[1e6, 0.0], [0.0, -1e6], [1e6, 1e6]])
    mean, std = fitted.predict(far, return_std=True, include_noise=False)
    np.testing.assert_allclose(mean, fitted._model.standardiser.y_mean, rtol=1e-9)
    np.testing.assert_allclose(std**2, float(fitted.kernel_.signal_variance), rtol=1e-6)


def test_inside_the_box_nothing_changes_and_the_edge_is_continuous(fitted: certgp.FourierGP) -> None:
    plain = certgp.FourierGP(40, random_state=0, winsorize=False, optimize=False)
    plain.set_params(
        length_scale=fitted.kernel_.length_scale.tolist(),
        signal_variance=float(fitted.kernel_.signal_variance),
        noise_variance=fitted.noise_variance_,
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = 5.0 + np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    inside = X * 0.9
    np.testing.assert_allclose(plain.fit(X, y).predict(inside), fitted.predict(inside), rtol=1e-6)
    edge = float(
        fitted._model.standardiser.x_mean[0]
        + fitted._model.standardiser.x_scale[0] * fitted._model.process.model.transform.upper[0]
    )
    just_in, just_out = (fitted.predict([[edge + step, 0.0]], return_std=True) for step in (-1e-9, 1e-9))
    np.testing.assert_allclose(just_in, just_out, rtol=1e-6)


def test_uncertainty_grows_with_the_distance(fitted: certgp.FourierGP) -> None:
    steps = np.linspace(1.1, 30.0, 40)
    _, std = fitted.predict(np.column_stack([steps, np.zeros(40)]), return_std=True)
    assert (np.diff(std) >= -1e-12).all()
    assert std[-1] > 2 * std[0]


def test_covariance_and_samples_agree_with_the_moments(fitted: certgp.FourierGP) -> None:
    X = np.array([[0.0, 0.0], [1.5, 0.0], [3.0, 1.0]])
    _, std = fitted.predict(X, return_std=True)
    _, covariance = fitted.predict(X, return_cov=True)
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > 0
    draws = fitted.sample_y(X, 40_000, random_state=0)
    np.testing.assert_allclose(draws.std(1), std, rtol=5 / np.sqrt(2 * 40_000))
