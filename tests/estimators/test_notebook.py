"""What a notebook shows, and scorers for scikit-learn's searches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certgp import SparseGP
from certgp.errors import CertgpWarning, InvalidInputError
from certgp.gp.mixture import Mixture
from certgp.metrics import Coverage, neg_crps, neg_nlpd

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(200, 2))
Y = 30 + 3 * np.sin(2 * X[:, 0]) + 0.5 * RNG.standard_normal(200)
SHORT = {"random_state": 0, "max_iter": 8, "noise": "constant"}


def fit(model, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return model.fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    gp = fit(SparseGP(15, **SHORT))
    gp.target_name_ = "<script>alert(1)</script>"
    return gp


def test_views_show_what_was_learned(fitted):
    assert "Learned" not in SparseGP()._repr_mimebundle_()["text/html"]
    shown = fitted._repr_mimebundle_()
    assert shown["text/plain"] == repr(fitted)
    assert f"{fitted.noise_variance_:.5g}" in shown["text/html"]
    assert "length scale" in shown["text/html"]
    assert "<script>alert" not in shown["text/html"]
    assert fitted._repr_html_().partition("Learned")[2] == shown["text/html"].partition("Learned")[2]
    two = fit(SparseGP(8, **SHORT), np.stack([Y, -Y], 1))
    assert "Output 1" in two._repr_html_()


def test_certificates_words_and_curves_have_views(fitted):
    certificate = fitted.certify()
    shown = certificate._repr_html_()
    assert certificate.theorem in shown
    assert "KL(exact || model)" in shown
    words = fitted.explain(certificate)._repr_html_()
    assert "does not say" in words
    assert "<script>alert" not in words
    curve = fitted.rank_curve(X, Y)
    table = curve._repr_html_()
    assert f"<td>{curve.nlpd[-1]:.4g}</td>" in table
    assert ">15</th>" in table
    assert f"<td>{100 * np.sqrt(2 * curve.kl_bound[-1] / 200):.4g}</td>" in table


def test_the_crps_of_a_mixture_is_its_integral():
    means, variances, weights = np.array([[0.0], [2.0]]), np.array([[1.0], [0.25]]), np.array([0.3, 0.7])
    mixture = Mixture(means, variances, weights)
    for y in (-1.0, 0.7, 3.0):
        whole = sum(
            quad(lambda t, y=y: (mixture.cdf(np.array([t]))[0] - (t >= y)) ** 2, *ends)[0]
            for ends in ((-9, y), (y, 12))
        )
        assert mixture.crps(np.array([y]))[0] == pytest.approx(whole, rel=1e-6)


def test_scorers_judge_folds_and_pipelines(fitted):
    assert neg_nlpd(fitted, X, Y) == pytest.approx(-fitted.nlpd(X, Y))
    lower, upper = fitted.predict_interval(X, 0.8)
    assert Coverage(0.8)(fitted, X, Y) == pytest.approx(np.mean((lower <= Y) & (upper >= Y)))
    assert -0.5 < neg_crps(fitted, X, Y) < -0.1
    pipeline = make_pipeline(StandardScaler(), SparseGP(10, **SHORT))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        found = cross_val_score(pipeline, X, Y, scoring=neg_crps, cv=2)
    assert found.shape == (2,)
    assert (found < 0).all()
    two = fit(SparseGP(8, **SHORT), np.stack([Y, np.where(np.arange(200) % 2, np.nan, -Y)], 1))
    assert np.isfinite(neg_nlpd(two, X, np.stack([Y, np.where(np.arange(200) % 2, np.nan, -Y)], 1)))
    with pytest.raises(InvalidInputError, match="LinearRegression"):
        neg_nlpd(LinearRegression(), X, Y)
