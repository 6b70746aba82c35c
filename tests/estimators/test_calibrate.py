"""calibrate=True: the predictive noise of every estimator is that of rows it has not learned from."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_cases import ALL, assert_mentions, error_of, every_estimator, problem, small

from certgp import ExactGP, MercerGP, load
from certgp.errors import InvalidInputError

# the noise is given as a tenth of what it is, so an uncalibrated model is far too sure
FIXED = {"length_scale": 1.0, "noise_variance": 0.03, "optimize": False}


@every_estimator
def test_noise_that_is_given_too_small_is_corrected(cls):
    (X, y), (new, seen) = problem(400, noise=0.55), problem(300, seed=1, noise=0.55)
    plain, calibrated = (small(cls, calibrate=c, **FIXED).fit(X, y) for c in (False, True))
    assert plain.noise_scale_ == 1.0
    assert calibrated.noise_scale_ > 3.0
    assert calibrated.noise_variance_ == pytest.approx(0.03)  # reported beside the scale, not multiplied into it
    assert calibrated.nlpd(new, seen) < plain.nlpd(new, seen) - 0.5
    coverage = [
        np.mean((lo <= seen) & (seen <= up)) for lo, up in (m.predict_interval(new) for m in (plain, calibrated))
    ]
    assert coverage[0] < 0.7
    assert coverage[1] > 0.75


@every_estimator
def test_only_the_scatter_of_new_observations_changes(cls):
    X, y = problem(200)
    plain, calibrated = (small(cls, calibrate=c, **FIXED).fit(X, y) for c in (False, True))
    if cls.__name__ == "ExactGP":  # no features to choose from the nine tenths: the same posterior on all rows
        np.testing.assert_allclose(calibrated.predict(X), plain.predict(X), rtol=1e-7, atol=1e-9)
    latent = calibrated.predict(X, return_std=True, include_noise=False)[1]
    std = calibrated.predict(X, return_std=True)[1]
    np.testing.assert_allclose(std**2 - latent**2, calibrated.noise_scale_ * 0.03, rtol=1e-6)
    assert calibrated._model.process.n_rows == len(X)


def test_samples_covariance_files_and_further_rows_keep_the_scale(tmp_path):
    X, y = problem(200, noise=0.5)
    model = small(MercerGP, calibrate=True, **FIXED).fit(X, y)
    mean, std = model.predict(X[:4], return_std=True)
    np.testing.assert_allclose(np.diag(model.predict(X[:4], return_cov=True)[1]), std**2, rtol=1e-10)
    np.testing.assert_allclose(model.sample_y(X[:4], 20_000).std(1), std, rtol=0.03)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict(X, return_std=True), model.predict(X, return_std=True))
    assert again.partial_fit(X[:5], y[:5])._model.process.noise_scale == model.noise_scale_
    exact = small(ExactGP, calibrate=True, **FIXED).fit(X, y)
    assert exact.partial_fit(X[:5], y[:5])._model.process.noise_scale == exact.noise_scale_
    assert mean.shape == (4,)


def test_certificates_do_not_depend_on_it():
    X, y = problem(200)
    parameters = {"projection": None, "input_scale": (1.0, 1.2), "standardize": False} | FIXED
    plain, calibrated = (small(MercerGP, calibrate=c, **parameters).fit(X, y).certify(X[:5]) for c in (False, True))
    np.testing.assert_allclose(calibrated.mean_error, plain.mean_error, rtol=1e-5, atol=1e-9)
    assert calibrated.kl.upper == pytest.approx(plain.kl.upper, rel=1e-6)
    reference = small(MercerGP, calibrate=True, **parameters).fit(X, y).certify(reference_rank=60)
    assert reference.n_rows == 200


@every_estimator
def test_too_few_rows_are_refused(cls):
    X, y = problem(40)
    text = error_of(lambda: small(cls, calibrate=True).fit(X, y), InvalidInputError)
    assert_mentions(text, "calibrate=True", "at least 10", "40 rows give 4", "calibrate=False")


def test_it_is_off_unless_asked_for():
    assert all(cls().get_params()["calibrate"] is False for cls in ALL)
