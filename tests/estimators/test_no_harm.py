"""Data on which a model can only lose: it ends no worse than a constant, and says why."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from estimator_cases import assert_mentions, every_estimator, small

from certgp import AutoGP, CertgpWarning, ExactGP, FourierGP, MercerGP
from certgp.data import Chunk, ChunkSource
from certgp.errors import ExtrapolationWarning, FarPredictionWarning, RepeatedRowsWarning, WeakSignalWarning
from certgp.training import restraint

_WORST = 0.05  # nats per row behind a constant


def fit_and_listen(model, X, y):
    """The fitted model, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(issubclass(w.category, CertgpWarning) for w in caught)
    return model, {w.category: str(w.message) for w in caught}


def constant_nlpd(y, y_test):
    variance = y.var(ddof=1)
    return float(np.mean(0.5 * (np.log(2.0 * np.pi * variance) + (y_test - y.mean()) ** 2 / variance)))


def noise(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


@pytest.mark.parametrize(
    ("model", "n", "d"),
    [(FourierGP(30, max_iter=40, random_state=0), 45, 15), (MercerGP(20, max_iter=40, random_state=0), 40, 8)],
    ids=["fourier", "mercer"],
)
def test_columns_of_noise_end_in_a_constant_and_a_warning(model, n, d):
    """Without a look at rows left out these end 5 to 500 nats per row behind it."""
    (X, y), (X_test, y_test) = noise(n, d, 0), noise(300, d, 1)
    model, found = fit_and_listen(model, X, y)
    assert model.nlpd(X_test, y_test) <= constant_nlpd(y, y_test) + _WORST
    assert_mentions(found[WeakSignalWarning], "left out of the training", "mean and the scatter")


@pytest.mark.parametrize(
    "model",
    [
        FourierGP(30, max_iter=40, random_state=0),
        AutoGP(20, candidates=("fourier", "mercer-marginal"), max_iter=20, random_state=0),
    ],
    ids=["fourier", "auto"],
)
def test_without_confirmation_a_fit_stays_as_its_objective_has_it(model):
    (X, y), (X_test, y_test) = noise(60, 12, 2), noise(300, 12, 3)
    model, found = fit_and_listen(model.set_params(confirm=False), X, y)
    assert WeakSignalWarning not in found
    assert model.nlpd(X_test, y_test) > constant_nlpd(y, y_test) + 0.5  # which is what the confirmation is for


@pytest.mark.parametrize(("standard_errors", "factor"), [(1.5, restraint.CONSTANT), (2.5, 1.0)])
def test_rows_left_out_must_prefer_a_fit_clearly(monkeypatch, standard_errors, factor):
    """The best of seven factors gains more than one standard error by chance too often (docs/decisions/0058)."""
    gains = np.tile([1.0, -1.0], 50) + standard_errors * 0.1
    monkeypatch.setattr(restraint, "_constant_losses", lambda rows, out: gains)
    monkeypatch.setattr(restraint, "_losses", lambda process, out: np.zeros(100))
    monkeypatch.setattr(restraint, "restrain", lambda process, rows, factor: process)
    rows = ChunkSource(Chunk(torch.zeros(3, 1), torch.zeros(3)))
    assert restraint.choose_factor([(None, rows, rows.take(slice(None)))]) == factor


@every_estimator
@pytest.mark.parametrize("n", [2, 4])
def test_a_handful_of_rows_gives_their_mean_and_scatter(cls, n):
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 2)), rng.normal(5.0, 2.0, n)
    model, found = fit_and_listen(small(cls), X, y)
    assert_mentions(found[WeakSignalWarning], f"{n} rows are too few")
    mean, std = model.predict(np.zeros((1, 2)), return_std=True)
    np.testing.assert_allclose(mean, y.mean(), rtol=1e-2)
    np.testing.assert_allclose(std, y.std(ddof=1) * np.sqrt(1.0 + 1.0 / n), rtol=1e-2)


def test_a_race_among_methods_ends_no_worse_than_a_constant():
    (X, y), (X_test, y_test) = noise(60, 12, 2), noise(300, 12, 3)
    auto = AutoGP(20, candidates=("fourier", "mercer-marginal"), max_iter=20, random_state=0)
    model, found = fit_and_listen(auto, X, y)
    assert WeakSignalWarning in found
    assert model.nlpd(X_test, y_test) <= constant_nlpd(y, y_test) + _WORST


def test_few_rows_with_a_clear_signal_are_fitted_without_a_warning():
    X = np.linspace(0.0, 1.0, 15)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakSignalWarning)
        model = ExactGP(random_state=0).fit(X, np.sin(6.0 * X[:, 0]))
    assert model.score(X, np.sin(6.0 * X[:, 0])) > 0.99


def repeated():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (30, 2))
    y = np.sin(3.0 * X[:, 0]) + rng.normal(0.0, 0.3, 30)
    picked = np.r_[np.arange(30), rng.integers(30, size=120)]
    return X, y, X[picked], y[picked]


@pytest.mark.parametrize("cls", [ExactGP, FourierGP])
def test_copies_leave_a_fit_as_it_is_without_them(cls):
    X, y, copied_X, copied_y = repeated()
    plain, _ = fit_and_listen(small(cls), X, y)
    model, found = fit_and_listen(small(cls), copied_X, copied_y)
    assert_mentions(found[RepeatedRowsWarning], "120 of 150 rows are verbatim copies")
    np.testing.assert_array_equal(model.predict(X, return_std=True), plain.predict(X, return_std=True))
    assert model.n_rows_ == 30


def test_a_certificate_takes_the_rows_with_their_copies():
    _, _, X, y = repeated()
    model, _ = fit_and_listen(small(MercerGP, max_iter=20), X, y)
    assert model.certify(rows=(X, y)).kl.upper == model.certify().kl.upper


def test_predictions_far_from_all_targets_are_announced():
    X = np.linspace(0.0, 1.0, 40)[:, None]
    model = ExactGP(length_scale=3.0, signal_variance=1e3, noise_variance=1e-4, optimize=False).fit(X, 2.0 * X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FarPredictionWarning)
        model.predict(X)
    with (
        pytest.warns(ExtrapolationWarning),
        pytest.warns(FarPredictionWarning, match=r"1 of 2 prediction\(s\) are far outside the training targets"),
    ):
        model.predict(np.array([[0.5], [2.5]]))
