"""noise="auto" | "constant" | "input" on every estimator: predictions, intervals, files, certificates."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from scipy.integrate import trapezoid

import certgp
from certgp.data import as_rows
from certgp.errors import InvalidInputError

QUICK = {"max_iter": 15, "random_state": 0}
DEEP = {"hidden": (16,), "max_iter": 6, "batch_size": 100, "learning_rate": 0.02, "validation_fraction": 0.4}
ESTIMATORS = {
    "mercer": lambda **options: certgp.MercerGP(20, **QUICK | options),
    "fourier": lambda **options: certgp.FourierGP(20, **QUICK | options),
    "sparse": lambda **options: certgp.SparseGP(20, **QUICK | options),
    "exact": lambda **options: certgp.ExactGP(**QUICK | options),
    "iterative": lambda **options: certgp.ExactGP(solver="iterative", **QUICK | options),
    "local": lambda **options: certgp.LocalGP(30, metric="ard", **QUICK | options),
    "deep": lambda **options: certgp.DeepFourierGP(10, **QUICK | DEEP | options),
    "members": lambda **options: certgp.DeepFourierGP(10, members=2, **QUICK | DEEP | options),
}
pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")


def problem(n: int, seed: int = 0):
    """Scatter that grows ten-fold from one side to the other."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, 5.0 + 3.0 * np.sin(2.0 * X[:, 0]) + np.exp(0.6 * X[:, 1]) * rng.standard_normal(n)


X, Y = problem(600)
NEW, SEEN = problem(400, seed=1)


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request):
    return request.param, ESTIMATORS[request.param]().fit(X, Y)


def test_scatter_that_depends_on_the_input_is_found(fitted):
    name, model = fitted
    constant = ESTIMATORS[name](noise="constant").fit(X, Y)
    assert model.noise_gain_.accepted
    assert constant.noise_gain_ is None
    np.testing.assert_allclose(model.predict(NEW), constant.predict(NEW), rtol=1e-9)
    for one, other in zip(
        *(m.predict(NEW, return_std=True, include_noise=False) for m in (model, constant)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert model.nlpd(NEW, SEEN) < constant.nlpd(NEW, SEEN) - 0.03
    lower, upper = model.predict_interval(NEW)
    assert 0.9 <= np.mean((lower <= SEEN) & (upper >= SEEN)) <= 0.99
    quiet, loud = NEW[:, 1] < -1.0, NEW[:, 1] > 1.0
    assert (upper - lower)[loud].mean() > 2.0 * (upper - lower)[quiet].mean()


def test_all_that_describes_observations_agrees(fitted):
    _, model = fitted
    few = NEW[:4]
    mean, std = model.predict(few, return_std=True)
    _, latent = model.predict(few, return_std=True, include_noise=False)
    assert (std > latent).all()
    np.testing.assert_allclose(np.sqrt(np.diag(model.predict(few, return_cov=True)[1])), std, rtol=1e-6)
    draws = model.sample_y(few, 40_000, random_state=0)
    np.testing.assert_allclose(draws.std(1), std, rtol=0.05)
    levels = [0.05, 0.5, 0.9]
    np.testing.assert_allclose(np.quantile(draws, levels, axis=1).T, model.predict_quantiles(few, levels), atol=0.15)
    at = np.linspace(mean[0] - 12.0 * std[0], mean[0] + 12.0 * std[0], 401)
    density = np.exp(model._model.observations(as_rows(np.repeat(few[:1], len(at), 0))).log_density(at))
    assert density[200] == pytest.approx(np.exp(-model.nlpd(few[:1], at[200:201])), rel=1e-9)
    assert trapezoid(density, at) == pytest.approx(1.0, abs=1e-3)
    assert trapezoid(density * (at - mean[0]) ** 2, at) == pytest.approx(std[0] ** 2, rel=1e-2)


def test_files_keep_the_noise(fitted, tmp_path):
    _, model = fitted
    model.save(tmp_path / "gp.model", include_training_data=True)
    again = certgp.load(tmp_path / "gp.model")
    np.testing.assert_array_equal(again.predict_quantiles(NEW, [0.1, 0.9]), model.predict_quantiles(NEW, [0.1, 0.9]))
    assert again.nlpd(NEW, SEEN) == model.nlpd(NEW, SEEN)
    assert again.noise_gain_ == model.noise_gain_
    assert again.get_params()["noise"] == "auto"


def test_further_rows_keep_the_noise_model(fitted):
    name, model = fitted
    again = deepcopy(model)
    before = again.noise_model_
    again.partial_fit(NEW[:50], SEEN[:50])
    assert again.noise_model_ is before if name != "members" else again.noise_model_ == before
    assert again.nlpd(NEW[50:], SEEN[50:]) < model.nlpd(NEW[50:], SEEN[50:]) + 0.05


@pytest.mark.parametrize("name", ["sparse", "exact"])
def test_certificates_say_that_they_speak_of_constant_noise(name):
    model = ESTIMATORS[name]().fit(X, Y)
    constant = ESTIMATORS[name](noise="constant").fit(X, Y)
    certificate, other = model.certify(), constant.certify()
    assert certificate.kl == other.kl
    assert any("constant noise" in text for text in certificate.assumptions)
    assert not any("constant noise" in text for text in other.assumptions)
    assert "constant noise" in str(certificate)


def test_a_rank_that_was_proven_says_so_too():
    model = certgp.SparseGP("auto", tolerance=0.1, max_rank=40, **QUICK).fit(X, Y)
    assert model.noise_gain_.accepted
    assert any("constant noise" in text for text in model.certify().assumptions)


@pytest.mark.parametrize("name", ["sparse", "deep"])
def test_few_rows_have_constant_noise(name):
    n = 150 if name != "deep" else 300
    model = ESTIMATORS[name]().fit(X[:n], Y[:n])
    assert model.noise_model_ is None
    assert model.noise_gain_ is None
    with pytest.raises(InvalidInputError, match="noise='input' needs rows"):
        ESTIMATORS[name](noise="input").fit(X[:n], Y[:n])


def test_input_noise_is_kept_without_a_gain_and_with_parameters_that_are_held():
    rng = np.random.default_rng(0)
    even = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))
    held = {"optimize": False, "length_scale": 1.0, "noise_variance": 0.1}
    assert certgp.SparseGP(20, **QUICK, **held).fit(X, Y).noise_gain_ is None
    assert certgp.SparseGP(20, **QUICK).fit(X, even).noise_model_ is None
    for options in ({}, held):
        model = certgp.SparseGP(20, noise="input", **QUICK, **options).fit(X, even)
        assert model.noise_model_ is not None
        assert model.noise_gain_.accepted


def test_the_same_seed_gives_the_same_noise():
    models = [certgp.SparseGP(20, **QUICK).fit(X, Y) for _ in range(2)]
    np.testing.assert_array_equal(*(model.predict_quantiles(NEW, [0.1]) for model in models))


def test_units_do_not_matter():
    model = certgp.SparseGP(20, **QUICK).fit(X, Y)
    scaled = certgp.SparseGP(20, **QUICK).fit(100.0 * X - 7.0, 1e-3 * Y + 2.0)
    lower, upper = scaled.predict_interval(100.0 * NEW - 7.0)
    own = model.predict_interval(NEW)
    np.testing.assert_allclose((lower - 2.0) * 1e3, own[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose((upper - 2.0) * 1e3, own[1], rtol=1e-3, atol=1e-3)


def test_a_target_that_does_not_vary_has_no_noise_to_learn():
    model = certgp.SparseGP(5, **QUICK).fit(X, np.ones(len(X)))
    assert model.noise_gain_ is None


@pytest.mark.parametrize("options", [{"training": "paper"}, {"validation_fraction": 0.0}])
def test_networks_without_held_out_rows_refuse_input_noise(options):
    with pytest.raises(InvalidInputError, match="hold none back"):
        ESTIMATORS["deep"](noise="input", **options).fit(X, Y)
    assert ESTIMATORS["deep"](**options).fit(X, Y).noise_model_ is None


def test_other_words_are_refused():
    with pytest.raises(InvalidInputError, match="noise"):
        certgp.SparseGP(5, noise="loud").fit(X, Y)
