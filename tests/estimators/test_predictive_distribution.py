"""One predictive distribution, seen through means, covariances, quantiles, intervals, densities and draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from estimator_cases import (
    ALL,
    CASES,
    HOLDS_ROWS,
    assert_mentions,
    error_of,
    every_estimator,
    every_variance,
    pinned,
    problem,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics import r2_score

import certgp
import certgp.gp.process
from certgp import ExactGP, FourierGP, MercerGP, SparseGP
from certgp.errors import ExtrapolationWarning, InvalidInputError

SKLEARN_KERNELS = {
    "gaussian": lambda scales: sk.RBF(scales),
    "matern12": lambda scales: sk.Matern(scales, nu=0.5),
    "matern32": lambda scales: sk.Matern(scales, nu=1.5),
    "matern52": lambda scales: sk.Matern(scales, nu=2.5),
}
noise_included = pytest.mark.parametrize("include_noise", [True, False], ids=["y", "f"])


def fitted(case, **parameters):
    return case.pinned(**parameters).fit(*problem(60))


@pytest.mark.parametrize("kernel", SKLEARN_KERNELS)
def test_exact_gp_agrees_with_scikit_learn(kernel):
    (X, y), new = problem(50), problem(40, seed=1)[0]
    covariance = 1.5 * SKLEARN_KERNELS[kernel]([0.6, 1.4]) + sk.WhiteKernel(0.1)
    oracle = GaussianProcessRegressor(covariance, optimizer=None, alpha=0.0).fit(X, y)
    settings_given = {"kernel": kernel, "length_scale": [0.6, 1.4], "signal_variance": 1.5, "noise_variance": 0.1}
    model = ExactGP(**settings_given, optimize=False, standardize=False).fit(X, y)
    for found, expected in zip(model.predict(new, return_cov=True), oracle.predict(new, return_cov=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.predict(new, return_std=True)[1], oracle.predict(new, return_std=True)[1])
    assert model.log_marginal_likelihood() == pytest.approx(oracle.log_marginal_likelihood_value_, rel=1e-10)


@every_variance
@noise_included
@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 10.0))
@settings(max_examples=15, derandomize=True, deadline=None)
def test_squared_deviations_are_the_diagonal_of_the_covariance(case, include_noise, seed, scale):
    new = scale * problem(30, seed=seed)[0]
    model = fitted(case)
    mean, std = model.predict(new, return_std=True, include_noise=include_noise)
    same_mean, covariance = model.predict(new, return_cov=True, include_noise=include_noise)
    np.testing.assert_allclose(std**2, np.diag(covariance), rtol=1e-10, atol=1e-14)
    assert np.array_equal(mean, same_mean)
    assert np.array_equal(mean, model.predict(new, include_noise=include_noise))


@every_variance
@noise_included
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 10.0), repeated=st.booleans())
@settings(max_examples=15, derandomize=True, deadline=None)
def test_covariances_are_symmetric_and_positive_semidefinite(case, include_noise, seed, scale, repeated):
    new = scale * problem(30, seed=seed)[0]
    new = np.repeat(new, 2, axis=0) if repeated else new
    _, covariance = fitted(case).predict(new, return_cov=True, include_noise=include_noise)
    eigenvalues = np.linalg.eigvalsh(covariance)
    np.testing.assert_allclose(covariance, covariance.T, rtol=0, atol=1e-14)
    assert eigenvalues[0] >= -1e-12 * max(1.0, eigenvalues[-1])
    if include_noise:
        assert eigenvalues[0] >= 0.1 * (1 - 1e-9)


@every_variance
def test_noise_is_added_to_the_variance_and_nothing_else(case):
    new = problem(30, seed=1)[0]
    model = fitted(case)
    (mean_y, std_y), (mean_f, std_f) = (model.predict(new, True, include_noise=noise) for noise in (True, False))
    assert np.array_equal(mean_y, mean_f)
    np.testing.assert_allclose(std_y**2 - std_f**2, model.noise_variance_, rtol=1e-9)
    covariance_y, covariance_f = (model.predict(new, False, True, include_noise=n)[1] for n in (True, False))
    np.testing.assert_allclose(covariance_y - covariance_f, model.noise_variance_ * np.eye(30), atol=1e-12)


@pytest.mark.parametrize("cls", [MercerGP, SparseGP])
def test_dtc_adds_the_variance_that_the_truncation_lost(cls):
    (X, y), far = problem(60), np.array([[40.0, 40.0]])
    dtc, lowrank = (pinned(cls, variance=kind).fit(X, y) for kind in ("dtc", "lowrank"))
    assert np.array_equal(dtc.predict(X), lowrank.predict(X))
    assert (dtc.predict(X, True)[1] >= lowrank.predict(X, True)[1]).all()
    # far from all data the features vanish: dtc returns to the prior, the low-rank model by itself to certainty
    assert dtc.predict(far, True, include_noise=False)[1] == pytest.approx(1.5**0.5, rel=1e-6)
    assert lowrank.predict(far, True, include_noise=False)[1] == pytest.approx(1.5**0.5, rel=1e-6)
    paper = pinned(cls, variance="paper").fit(X, y)
    assert paper.predict(far, True, include_noise=False)[1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("cls", [MercerGP, SparseGP, FourierGP])
def test_the_papers_variance_is_the_low_rank_models_own_everywhere(cls, tmp_path):
    """s2 phi'C^-1 phi and phi'C^-1 b at every row, far ones too; dense algebra on the features is the oracle."""
    (X, y), new = problem(60), np.vstack([problem(20, seed=1)[0], [[40.0, 40.0], [3.5, -0.2]]])
    gp = pinned(cls, variance="paper").fit(X, y)
    gp.save(tmp_path / "paper.model")
    process, standardiser = gp._model.process, gp._model.standardiser
    scaled = [torch.from_numpy((rows - standardiser.x_mean) / standardiser.x_scale) for rows in (X, new)]
    Phi, phi = (process.features(rows).numpy() for rows in scaled)
    C = Phi.T @ Phi + process.noise_variance * np.eye(Phi.shape[1])
    b = Phi.T @ ((y - standardiser.y_mean) / standardiser.y_scale)
    mean = standardiser.y_mean + standardiser.y_scale * (phi @ np.linalg.solve(C, b))
    variance = process.noise_variance * np.einsum("nr,rn->n", phi, np.linalg.solve(C, phi.T))
    for model in (gp, certgp.load(tmp_path / "paper.model")):
        with pytest.warns(ExtrapolationWarning, match="are extrapolations and may be far off"):
            found, spread = model.predict(new, True, include_noise=False)
        np.testing.assert_allclose(found, mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(spread**2, standardiser.y_scale**2 * variance, rtol=1e-7, atol=1e-12)
        assert not process.falls_back(scaled[1]).any()


@pytest.mark.parametrize("cls", [MercerGP, SparseGP, FourierGP])
def test_inside_the_training_range_the_papers_variance_is_that_of_lowrank(cls):
    (X, y), far = problem(60), np.array([[40.0, 40.0]])
    options = {"winsorize": True} if cls is FourierGP else {}
    lowrank, paper = (pinned(cls, variance=kind, **options).fit(X, y) for kind in ("lowrank", "paper"))
    inside = X[np.all((np.quantile(X, 0.1, 0) < X) & (np.quantile(X, 0.9, 0) > X), 1)]
    for a, b in zip(lowrank.predict(inside, True), paper.predict(inside, True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert lowrank.predict(far, True)[1] > paper.predict(far, True)[1]


@every_variance
def test_more_rows_never_raise_the_latent_variance(case):
    (X, y), new = problem(60), problem(30, seed=1)[0]
    model = case.pinned().fit(X[:30], y[:30])
    before = model.predict(new, True, include_noise=False)[1]
    after = model.partial_fit(X[30:], y[30:]).predict(new, True, include_noise=False)[1]
    assert (after <= before * (1 + 1e-9)).all()
    assert (after < before).any()


@every_estimator
@given(levels=st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=8, unique=True))
@settings(max_examples=25, derandomize=True, deadline=None)
def test_quantiles_are_those_of_a_normal(cls, levels):
    new = problem(20, seed=1)[0]
    model = pinned(cls).fit(*problem(60))
    mean, std = model.predict(new, return_std=True)
    found = model.predict_quantiles(new, levels)
    assert found.shape == (20, len(levels))
    np.testing.assert_allclose(found, norm.ppf(np.array(levels), mean[:, None], std[:, None]), rtol=1e-9, atol=1e-12)
    ordered = model.predict_quantiles(new, np.sort(levels))
    assert (np.diff(ordered, axis=1) >= 0).all()


@every_estimator
def test_quantiles_and_intervals_fit_together(cls):
    new = problem(20, seed=1)[0]
    model = pinned(cls).fit(*problem(60))
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(model.predict_quantiles(new, 0.5)[:, 0], mean, atol=1e-13)
    lower, upper = model.predict_interval(new)
    np.testing.assert_allclose([lower, upper], [mean - 1.959963984540054 * std, mean + 1.959963984540054 * std])
    narrow, wide = model.predict_interval(new, 0.5), model.predict_interval(new, 0.99)
    assert (wide[0] < narrow[0]).all()
    assert (narrow[1] < wide[1]).all()
    assert np.array_equal(np.column_stack(wide), model.predict_quantiles(new, [0.5 - 0.99 / 2, 0.5 + 0.99 / 2]))


@every_estimator
def test_score_and_nlpd_by_definition(cls):
    new, y = problem(40, seed=1)
    model = pinned(cls).fit(*problem(60))
    mean, std = model.predict(new, return_std=True)
    assert model.nlpd(new, y) == pytest.approx(-norm.logpdf(y, mean, std).mean(), rel=1e-12)
    assert model.score(new, y) == pytest.approx(r2_score(y, mean), rel=1e-12)


@every_estimator
def test_evidence_grows_by_the_joint_predictive_density(cls):
    """log p(y1, y2) = log p(y1) + log p(y2 | y1), the second from the predictive covariance of the low-rank model."""
    X, y = problem(60)
    parameters = {} if cls in HOLDS_ROWS else {"variance": "lowrank"}
    model = pinned(cls, **parameters).fit(X[:40], y[:40])
    first = model.log_marginal_likelihood()
    conditional = multivariate_normal.logpdf(y[40:], *model.predict(X[40:], return_cov=True))
    assert model.partial_fit(X[40:], y[40:]).log_marginal_likelihood() == pytest.approx(first + conditional, rel=1e-9)


@every_variance
@noise_included
def test_draws_have_the_predictive_moments(case, include_noise):
    """Means and covariances of S draws within 5 standard errors: sqrt(C_ii / S) and sqrt((C_ii C_jj + C_ij^2) / S)."""
    new, count = problem(12, seed=1)[0], 20_000
    model = fitted(case)
    mean, covariance = model.predict(new, return_cov=True, include_noise=include_noise)
    draws = model.sample_y(new, count, random_state=3, include_noise=include_noise)
    assert draws.shape == (12, count)
    variance = np.diag(covariance)
    assert (np.abs(draws.mean(1) - mean) <= 5.0 * np.sqrt(variance / count)).all()
    errors = np.sqrt((np.outer(variance, variance) + covariance**2) / count)
    assert (np.abs(np.cov(draws) - covariance) <= 5.0 * errors).all()


@every_variance
def test_draws_are_reproducible_by_random_state(case):
    new = problem(12, seed=1)[0]
    model = fitted(case)
    assert model.sample_y(new).shape == (12, 1)
    assert np.array_equal(model.sample_y(new, 3, random_state=1), model.sample_y(new, 3, random_state=1))
    assert not np.array_equal(model.sample_y(new, 3, random_state=1), model.sample_y(new, 3, random_state=2))
    source = np.random.RandomState(5)
    first, second = model.sample_y(new, 1, random_state=source), model.sample_y(new, 1, random_state=source)
    assert not np.array_equal(first, second)


def test_draws_do_not_touch_the_global_random_state():
    import torch

    model = fitted(CASES[0])
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 (the legacy state is what is being watched)
    expected = torch.rand(1).item(), np.random.rand()  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    model.sample_y(problem(5)[0], 2, random_state=7)
    assert (torch.rand(1).item(), np.random.rand()) == expected  # noqa: NPY002


@every_variance
@pytest.mark.parametrize("ask", ["covariance", "draws"])
def test_dense_matrices_of_too_many_rows_are_refused_before_they_are_made(case, ask, monkeypatch):
    model, new = fitted(case), problem(60, seed=1)[0]
    monkeypatch.setattr(certgp.gp.process, "DENSE_LIMIT", 50)
    if ask == "covariance":
        text = error_of(lambda: model.predict(new, return_cov=True), InvalidInputError)
        assert_mentions(text, "60 rows", "60 x 60", "return_std=True")
    elif case.name.endswith("lowrank"):
        assert model.sample_y(new).shape == (60, 1)  # draws of the weights need no dense matrix
    else:
        assert_mentions(error_of(lambda: model.sample_y(new), InvalidInputError), "60 rows", "60 x 60", "fewer rows")


@every_estimator
def test_many_rows_are_predicted_in_chunks_with_the_same_result(cls, monkeypatch):
    new = problem(300, seed=1)[0]
    model = pinned(cls).fit(*problem(60))
    whole = model.predict(new, return_std=True)
    monkeypatch.setattr("certgp.models.fitted.default_chunk_rows", lambda rank: 7)
    for part, expected in zip(model.predict(new, return_std=True), whole, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-13)


def test_fourier_variance_is_the_low_rank_one():
    assert FourierGP().variance == "lowrank"
    assert all(cls().variance == "dtc" for cls in ALL if cls in (MercerGP, SparseGP))
