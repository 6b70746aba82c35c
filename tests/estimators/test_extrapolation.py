"""Outside the range of the training inputs every model falls back to the prior, says so, and stays sane."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from estimator_cases import CASES, problem

import certgp
from certgp import MercerGP, SparseGP
from certgp.errors import ConstantDataWarning, ExtrapolationWarning

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")


@every_case
@pytest.mark.parametrize("distance", [30.0, 3000.0])
def test_far_out_rows_are_predicted_by_the_prior(case, distance):
    X, y = problem(n=150)
    gp = case.small(max_iter=30).fit(X, y)
    far = np.array([[distance, 0.0], [0.0, -distance], [distance, distance]])
    with pytest.warns(ExtrapolationWarning, match=r"3 of 3 row\(s\)"):
        mean, std = gp.predict(far, return_std=True)
    prior = np.sqrt(float(gp.kernel_.signal_variance) + gp.noise_variance_)
    scale = gp.kernel_.length_scale.detach().numpy()
    decayed = np.array([np.any(np.abs(row) / scale > 8.0) for row in far]) if len(scale) == 2 else np.ones(3, bool)
    np.testing.assert_allclose(mean[decayed], y.mean(), atol=1e-3 * prior)
    np.testing.assert_allclose(std[decayed], prior, rtol=1e-3)


@every_case
def test_moments_covariance_and_samples_agree_outside(case):
    X, y = problem(n=150)
    gp = case.small(max_iter=30).fit(X, y)
    rows = np.array([[0.1, 0.2], [4.5, 0.0], [9.0, -9.0]])
    mean, std = gp.predict(rows, return_std=True, include_noise=False)
    again, covariance = gp.predict(rows, return_cov=True, include_noise=False)
    draws = gp.sample_y(rows, 4000, random_state=0, include_noise=False)
    np.testing.assert_allclose(again, mean)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(draws.mean(1), mean, atol=6 * std.max() / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(1), std, rtol=0.1, atol=1e-6)


def test_rows_inside_are_not_touched_and_do_not_warn():
    X, y = problem(n=150)
    gp = MercerGP(rank=15, variance="lowrank", max_iter=20, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExtrapolationWarning)
        inside, spread = gp.predict(X, return_std=True)
    gp._model.process.box = None
    np.testing.assert_array_equal(gp.predict(X), inside)
    np.testing.assert_array_equal(gp.predict(X, return_std=True)[1], spread)


def test_the_warning_counts_rows_and_names_columns():
    X, y = problem(n=100)
    frame = pd.DataFrame(X, columns=["height", "width"])
    gp = SparseGP(rank=10, max_iter=5, random_state=0).fit(frame, y)
    new = pd.DataFrame({"height": [0.0, 50.0, 0.0], "width": [0.0, 0.0, 0.1]})
    with pytest.warns(ExtrapolationWarning, match=r"1 of 3 row\(s\).*column\(s\) height;"):
        gp.predict(new)


def test_partial_fit_widens_the_range_and_files_keep_it(tmp_path):
    X, y = problem(n=100)
    gp = SparseGP(rank=10, max_iter=5, random_state=0).fit(X, y)
    gp.partial_fit(np.array([[50.0, 0.0], [0.0, 50.0]]), np.zeros(2))
    gp.save(tmp_path / "wide.model")
    for model in (gp, certgp.load(tmp_path / "wide.model")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ExtrapolationWarning)
            model.predict(np.array([[40.0, 40.0]]))
        with pytest.warns(ExtrapolationWarning):
            model.predict(np.array([[-40.0, 0.0]]))


def test_a_column_that_never_varied_does_not_count():
    X, y = problem(n=60)
    X[:, 1] = 7.0
    with pytest.warns(ConstantDataWarning):
        gp = SparseGP(rank=10, max_iter=5, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExtrapolationWarning)
        gp.predict(np.array([[0.0, 1000.0]]))
