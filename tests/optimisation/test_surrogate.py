"""The posterior is that of ``predict`` and ``sample_y``, its gradients are right, acquisition functions work on it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.optim import optimize_acqf

from certgp import DeepMercerGP, ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.errors import CertgpWarning, InvalidInputError
from certgp.optimisation import Surrogate

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(150, 2)) * [1.0, 10.0]
Y = 5.0 - X[:, 0] ** 2 - (0.1 * X[:, 1] - 0.5) ** 2 + 0.05 * RNG.standard_normal(150)
SHORT = {"random_state": 0, "max_iter": 5, "noise": "constant"}
MODELS = {
    "mercer": MercerGP(20, projection=None, **SHORT),
    "fourier": FourierGP(20, **SHORT),
    "sparse": SparseGP(15, kernel="matern52", **SHORT),
    "exact": ExactGP(**SHORT),
    "deep, two members": DeepMercerGP(6, hidden=(8,), members=2, noise="constant", random_state=0, max_iter=2),
}
POINTS = torch.tensor([[[0.1, 3.0], [1.0, -5.0], [0.2, 3.5]], [[-1.0, 1.0], [2.5, 30.0], [0.0, 0.0]]]).double()


def fit(model, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_the_posterior_is_that_of_predict_and_its_gradients_are_right(name):
    gp = fit(MODELS[name])
    model = Surrogate(gp)
    found, observed = model.posterior(POINTS), model.posterior(POINTS, observation_noise=True)
    for i in range(2):
        mean, covariance = gp.predict(POINTS[i].numpy(), return_cov=True, include_noise=False)
        np.testing.assert_allclose(found.mean[i, :, 0].detach(), mean, rtol=1e-10)
        size = float(np.abs(covariance).max())
        np.testing.assert_allclose(found.distribution.covariance_matrix[i].detach(), covariance, atol=1e-9 * size)
        _, noisy = gp.predict(POINTS[i].numpy(), return_cov=True)
        np.testing.assert_allclose(observed.distribution.covariance_matrix[i].detach(), noisy, rtol=1e-9)
    single = model.posterior(POINTS.reshape(-1, 1, 2))
    np.testing.assert_allclose(single.mean.reshape(2, 3).detach(), found.mean[..., 0].detach(), rtol=1e-10)
    np.testing.assert_allclose(
        single.variance.reshape(2, 3).detach(), found.variance[..., 0].detach(), rtol=1e-7, atol=1e-9 * size
    )
    inside = POINTS[:1].clone().requires_grad_()

    def summary(points):
        posterior = model.posterior(points)
        return posterior.mean.sum() + posterior.distribution.covariance_matrix.sum()

    (gradient,) = torch.autograd.grad(summary(inside), inside)
    step = 1e-5
    for k in range(2):
        moved = torch.zeros_like(POINTS[:1])
        moved[0, 0, k] = step
        with torch.no_grad():
            slope = (summary(POINTS[:1] + moved) - summary(POINTS[:1] - moved)) / (2 * step)
        assert float(gradient[0, 0, k]) == pytest.approx(float(slope), rel=1e-4, abs=1e-6)


def test_draws_have_the_law_of_sample_y():
    gp = fit(SparseGP(15, **SHORT))
    draws = Surrogate(gp).posterior(POINTS[0]).rsample(torch.Size([4_000]))[..., 0].detach().numpy()
    known = gp.sample_y(POINTS[0].numpy(), 4_000, include_noise=False).T
    assert np.abs(draws.mean(0) - known.mean(0)).max() < 0.1 * known.std(0).max()
    assert np.abs(np.cov(draws.T) - np.cov(known.T)).max() < 0.15 * np.cov(known.T).max()


def test_an_acquisition_function_finds_the_maximum_and_new_rows_are_learned():
    model = Surrogate(fit(SparseGP(25, random_state=0, max_iter=30, noise="constant")))
    bounds = torch.tensor([[-2.0, -20.0], [2.0, 20.0]]).double()
    torch.manual_seed(0)
    settings = {"num_restarts": 4, "raw_samples": 64}
    point, _ = optimize_acqf(LogExpectedImprovement(model, best_f=4.5), bounds, q=1, **settings)
    assert abs(float(point[0, 0])) < 0.4
    assert abs(float(point[0, 1]) - 5.0) < 4.0
    pair, _ = optimize_acqf(qLogExpectedImprovement(model, best_f=4.5), bounds, q=2, num_restarts=2, raw_samples=16)
    assert pair.shape == (2, 2)
    extended = model.condition_on_observations(point, torch.tensor([[7.0]]).double())
    assert extended.estimator.n_rows_ == 151
    assert model.estimator.n_rows_ == 150
    assert float(extended.posterior(point).mean) > float(model.posterior(point).mean)


def test_several_outputs_and_refusals():
    gp = fit(SparseGP(10, **SHORT), np.stack([Y, -Y], 1))
    model = Surrogate(gp)
    assert model.num_outputs == 2
    found = model.posterior(POINTS)
    np.testing.assert_allclose(found.mean[0].detach(), gp.predict(POINTS[0].numpy()), rtol=1e-9)
    assert model.posterior(POINTS, output_indices=[1]).mean.shape == (2, 3, 1)
    with pytest.raises(InvalidInputError, match="3 columns"):
        model.posterior(torch.zeros((1, 1, 3)))
    with pytest.raises(InvalidInputError, match="not fitted"):
        Surrogate(SparseGP())
    local = Surrogate(fit(LocalGP(neighbours=10, train_neighbours=5, metric="ard", **SHORT)))
    assert local.posterior(POINTS).mean.shape == (2, 3, 1)
    with pytest.raises(InvalidInputError, match="no gradients"):
        local.posterior(POINTS.clone().requires_grad_())
