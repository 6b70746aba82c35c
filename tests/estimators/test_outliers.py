"""likelihood="student": targets with gross outliers, and clean ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import certgp
from certgp import AutoGP, DeepFourierGP, ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.errors import InvalidInputError
from certgp.gp.student import StudentNoise

quiet = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
EVERY = {
    "mercer": lambda **more: MercerGP(30, max_iter=30, random_state=0, **more),
    "sparse": lambda **more: SparseGP(20, max_iter=20, random_state=0, **more),
    "fourier": lambda **more: FourierGP(40, max_iter=30, random_state=0, **more),
    "exact": lambda **more: ExactGP(max_iter=20, random_state=0, **more),
    "iterative": lambda **more: ExactGP(solver="iterative", max_iter=20, random_state=0, **more),
    "local": lambda **more: LocalGP(30, train_neighbours=15, kernel="matern52", metric="ard", random_state=0, **more),
    "auto": lambda **more: AutoGP(20, candidates=("sparse", "fourier"), max_iter=10, random_state=0, **more),
    "deep": lambda **more: DeepFourierGP(20, hidden=(16,), max_iter=3, random_state=0, **more),
}


def draw(n: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, the function, targets, and which of them are gross outliers."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2
    bad = rng.random(n) < share
    shift = rng.choice([-1, 1], n) * rng.uniform(3, 10, n)
    return X, f, f + 0.1 * rng.standard_normal(n) + np.where(bad, shift, 0.0), bad


X, F, Y, BAD = draw(200, 0.1)
NEW, F_NEW, Y_NEW, _ = draw(400, 0.0, seed=1)


def rmse(model) -> float:
    return float(np.sqrt(np.mean((model.predict(NEW) - F_NEW) ** 2)))


@quiet
@pytest.mark.parametrize("name", ["sparse", "fourier", "exact", "local"])
def test_ten_percent_of_gross_outliers(name: str) -> None:
    blind, robust = EVERY[name]().fit(X, Y), EVERY[name](likelihood="student").fit(X, Y)
    clean = EVERY[name]().fit(X[~BAD], Y[~BAD])
    assert rmse(robust) < 1.5 * rmse(clean) + 0.01
    assert rmse(robust) < 0.35 * rmse(blind)
    assert robust.nlpd(NEW, Y_NEW) < blind.nlpd(NEW, Y_NEW) - 1.0
    assert isinstance(robust.noise_model_, StudentNoise)
    assert_outliers_are_found(robust)


def assert_outliers_are_found(model) -> None:
    weights = model.row_weights_
    assert weights[BAD].max() < 0.1 < 0.3 < np.median(weights[~BAD])


@quiet
@pytest.mark.parametrize("name", ["mercer", "iterative", "auto", "deep"])
def test_outliers_are_found(name: str) -> None:
    assert_outliers_are_found(EVERY[name](likelihood="student").fit(X, Y))


@quiet
@pytest.mark.parametrize("name", ["sparse", "exact", "local"])
def test_clean_targets_are_fitted_as_ever(name: str) -> None:
    x, _, y, _ = draw(300, 0.0, seed=2)
    plain, student = EVERY[name](noise="constant").fit(x, y), EVERY[name](likelihood="student").fit(x, y)
    assert student.noise_model_ is None
    assert student.row_weights_ is None
    assert np.array_equal(student.predict(NEW, return_std=True), plain.predict(NEW, return_std=True))


def _sparse() -> SparseGP:
    return SparseGP(20, max_iter=25, likelihood="student", random_state=0)


@pytest.fixture(scope="module")
def robust() -> SparseGP:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", certgp.CertgpWarning)
        return _sparse().fit(X, Y)


@quiet
def test_density_quantiles_samples_and_files_are_those_of_the_t(robust, tmp_path) -> None:
    noise = robust.noise_model_
    mean, latent = robust.predict(NEW[:4], return_std=True, include_noise=False)
    std = robust.predict(NEW[:4], return_std=True)[1]
    lower, upper = robust.predict_interval(NEW[:4], 0.9)
    draws = robust.sample_y(NEW[:4], 4000, random_state=0)
    inside = np.mean((draws > lower[:, None]) & (draws < upper[:, None]), axis=1)
    np.testing.assert_allclose(inside, 0.9, atol=0.02)
    np.testing.assert_allclose(0.5 * (lower + upper), mean, atol=1e-6)
    far = robust.nlpd(NEW[:1], mean[:1] + 100.0)
    assert far < 30.0  # a Gaussian of this noise would say tens of thousands
    assert np.all(std > latent)
    robust.save(tmp_path / "m")
    again = certgp.load(tmp_path / "m")
    assert again.noise_model_ == noise
    assert np.array_equal(again.predict_quantiles(NEW[:4], [0.1, 0.9]), robust.predict_quantiles(NEW[:4], [0.1, 0.9]))
    scale = np.sqrt(noise.scale) * np.sqrt(np.cov(Y, aweights=robust.row_weights_, ddof=0))
    expected = stats.t(noise.degrees_of_freedom, scale=scale).logpdf(100.0)
    assert far == pytest.approx(-expected, abs=0.01)


@quiet
def test_certificates_speak_of_the_weighted_gp(robust) -> None:
    certificate = robust.certify(NEW[:5])
    assert any("row_weights_" in text for text in certificate.assumptions)
    exact = ExactGP(kernel=robust.kernel_, noise_variance=robust.noise_variance_, optimize=False)
    exact.fit(X, Y, sample_weight=robust.row_weights_)
    assert np.all(np.abs(exact.predict(NEW[:5]) - robust.predict(NEW[:5])) <= certificate.mean_error)
    assert exact.log_marginal_likelihood_ in robust.certify().log_evidence
    again = robust.certify(rows=(X, Y, robust.row_weights_))
    assert again.kl.upper == robust.certify().kl.upper


@quiet
def test_further_outliers_do_no_harm() -> None:
    model = _sparse().fit(X, Y)
    before, (x, _, y, bad) = rmse(model), draw(200, 0.2, seed=5)
    model.partial_fit(x, y)
    assert rmse(model) < before + 0.005
    assert bad.sum() > 30


@quiet
def test_known_weights_and_outliers_together() -> None:
    rng = np.random.default_rng(7)
    weights = np.where(rng.random(len(Y)) < 0.5, 1.0, 0.04)
    y = np.where(BAD, Y, F + 0.1 * rng.standard_normal(len(Y)) / np.sqrt(weights))
    known = _sparse().fit(X, y, sample_weight=weights)
    assert rmse(known) < rmse(_sparse().fit(X, y))
    ratio = known.row_weights_ / weights
    assert ratio[BAD].max() < 0.1 < np.median(ratio[~BAD & (weights < 1.0)])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"likelihood": "cauchy"}, "likelihood"),
        ({"likelihood": "student", "noise": "input"}, "noise distribution of its own"),
        ({"likelihood": "student", "calibrate": True}, "leave calibrate=False"),
        ({"likelihood": "student", "checkpoint": "here"}, "leave checkpoint out"),
    ],
)
def test_what_cannot_work_is_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SparseGP(5, **parameters).fit(X, Y)
