"""Kernels beyond the plain ones in the estimators: fitted, certified, saved, and refused where they must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from wavelet_kernel import Wavelet

import certgp
from certgp import AutoGP, DeepFourierGP, ExactGP, FourierGP, MercerGP, SparseGP
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.kernels import Gaussian, Kernel, Linear, Matern32, Periodic, RationalQuadratic
from helpers import dense_kernel

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2)) * [0.5, 30.0] + [100.0, -7.0]  # far from zero, of different sizes
Y = 5.0 + 3.0 * np.sin(2.0 * (X[:, 0] - 100.0) / 0.5) + 0.2 * X[:, 1] + 0.1 * RNG.normal(size=120)
NEW = RNG.normal(size=(15, 2)) * [0.5, 30.0] + [100.0, -7.0]
TRUTH = 5.0 + 3.0 * np.sin(2.0 * (NEW[:, 0] - 100.0) / 0.5) + 0.2 * NEW[:, 1]

KERNELS: dict[str, str | Kernel] = {
    "by name": "rational_quadratic",
    "periodic by name": "periodic",
    "gaussian + linear": Gaussian() + Linear(),
    "columns": Gaussian(columns=[0]) + Linear(columns=[1]),
    "product": Matern32() * Periodic(period=[3.0, 400.0]) + Linear(),
    "rational quadratic": RationalQuadratic(alpha=0.5) + Gaussian(columns=[1]),
    "own": Wavelet(frequency=[0.2, 0.002]),
    "own and others": Wavelet(columns=[0]) * Matern32() + Linear(),
}
LEARNED_WELL = ("gaussian + linear", "columns", "rational quadratic")


def build(method: str, kernel: str | Kernel, **options) -> certgp.estimators.GPRegressor:
    if method == "exact":
        return ExactGP(kernel=kernel, max_iter=40, random_state=0, **options)
    return SparseGP(25, kernel=kernel, max_iter=60, random_state=0, **options)


@pytest.mark.parametrize("method", ["exact", "sparse"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_parameter_is_learned_and_predictions_are_those_of_the_kernel_in_user_units(name, method, tmp_path):
    model = build(method, KERNELS[name]).fit(X, Y)
    started = build(method, KERNELS[name], optimize=False).fit(X, Y)
    kernel = model.kernel_
    for each, value in kernel.learned_values().items():
        assert not torch.equal(value, started.kernel_.learned_values()[each]), each
    mean, std = model.predict(NEW, return_std=True)
    if name in LEARNED_WELL:
        assert np.sqrt(np.mean((mean - TRUTH) ** 2)) < 0.6
    if method == "exact" and not name.startswith("own"):
        K = dense_kernel(kernel, X, X) + model.noise_variance_ * np.eye(len(X))
        cross = dense_kernel(kernel, NEW, X)
        np.testing.assert_allclose(mean, Y.mean() + cross @ np.linalg.solve(K, Y - Y.mean()), rtol=1e-6)
        latent = np.diag(dense_kernel(kernel, NEW, NEW)) - np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)
        np.testing.assert_allclose(std**2, latent + model.noise_variance_, rtol=1e-5)
    path = tmp_path / "model"
    model.save(path, **({"include_training_data": True} if method == "exact" else {}))
    again = certgp.load(path)
    assert repr(again.kernel_) == repr(kernel)
    for found, expected in zip(again.predict(NEW, return_std=True), (mean, std), strict=True):
        np.testing.assert_array_equal(found, expected)
    more = again.partial_fit(NEW, TRUTH)
    assert np.isfinite(more.predict(NEW)).all()


def test_an_own_kernel_is_short_enough():
    assert len(Path(__file__).with_name("wavelet_kernel.py").read_text().splitlines()) <= 35


@pytest.mark.parametrize("name", ["by name", "periodic by name", "rational quadratic"])
def test_certificates_hold_against_the_dense_gp(name):
    model = build("sparse", KERNELS[name]).fit(X, Y)
    K = dense_kernel(model.kernel_, X, X)
    S = K + model.noise_variance_ * np.eye(len(X))
    process, standardiser = model._model.process, model._model.standardiser
    phi = standardiser.y_scale * process.features(torch.from_numpy(standardiser.inputs(X))).numpy()
    kl = certgp.guarantees.gaussian_kl(S, phi @ phi.T + model.noise_variance_ * np.eye(len(X)))
    cross = dense_kernel(model.kernel_, NEW, X)
    mean = Y.mean() + cross @ np.linalg.solve(S, Y - Y.mean())
    variance = np.diag(dense_kernel(model.kernel_, NEW, NEW)) - np.sum(cross * np.linalg.solve(S, cross.T).T, axis=1)
    for certificate in (model.certify(NEW), model.certify(NEW, reference_rank=60)):
        assert certificate.kl.lower <= kl * (1 + 1e-9) + 1e-9
        assert kl <= certificate.kl.upper * (1 + 1e-9) + 1e-9
        evidence = -0.5 * ((Y - Y.mean()) @ np.linalg.solve(S, Y - Y.mean()) + np.linalg.slogdet(2 * np.pi * S)[1])
        assert certificate.log_evidence.lower - 1e-6 <= evidence <= certificate.log_evidence.upper + 1e-6
        assert (np.abs(model.predict(NEW) - mean) <= certificate.mean_error + 1e-7).all()
        assert (certificate.variance_lower <= variance + 1e-7).all()
        assert (variance <= certificate.variance_upper + 1e-7).all()
    assert model.rank_curve().kl_bound is not None


@pytest.mark.parametrize("name", ["gaussian + linear", "own"])
def test_what_cannot_be_certified_says_why(name):
    model = build("sparse", KERNELS[name]).fit(X, Y)
    with pytest.raises(NotCertifiableError, match=r"varies from row to row|no bound on the rounding"):
        model.certify()
    curve = model.rank_curve(NEW, TRUTH)
    assert curve.kl_bound is None
    assert np.isfinite(curve.nlpd).all()


@pytest.mark.parametrize("kernel", [Gaussian() + Linear(), Gaussian(columns=[0]), Periodic()], ids=repr)
def test_models_that_need_more_than_values_of_the_kernel_refuse(kernel):
    for cls in (MercerGP, certgp.DeepMercerGP):
        with pytest.raises(InvalidInputError, match=r"no closed-form Mercer expansion.*SparseGP or ExactGP"):
            cls(kernel=kernel).fit(X, Y)
    for cls in (FourierGP, DeepFourierGP):
        with pytest.raises(InvalidInputError, match=r"no spectral law.*SparseGP or ExactGP"):
            cls(kernel=kernel).fit(X, Y)


def test_auto_takes_the_methods_that_can_use_the_kernel():
    gp = AutoGP(10, kernel="rational_quadratic", max_iter=10, random_state=0).fit(X, Y)
    assert {trial.name for trial in gp.trials_} == {"exact", "local"}
    named = AutoGP(10, kernel="rational_quadratic", candidates=("mercer", "sparse"), max_iter=10, random_state=0)
    assert named.fit(X, Y).method_ == "sparse"
    with pytest.raises(InvalidInputError, match="has no method for"):
        AutoGP(10, kernel=Gaussian() + Linear(), candidates=("mercer", "fourier")).fit(X, Y)


def test_parameters_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match=r"length_scale has 3 numbers but the kernel works in 2 dimension\(s\)"):
        SparseGP(5, kernel=Gaussian([1.0, 2.0, 3.0]) + Linear()).fit(X, Y)
    with pytest.raises(InvalidInputError, match="names column 7, but the inputs have 2"):
        ExactGP(kernel=Gaussian(columns=[7])).fit(X, Y)
    with pytest.raises(InvalidInputError, match="the sum kernel has no parameter length_scale; it has gaussian__"):
        ExactGP(kernel=Gaussian() + Linear(), length_scale=2.0).fit(X, Y)
