"""noise(x) is found where it is, and constant noise stays constant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from certgp.errors import InvalidInputError
from certgp.gp import ExactProcess, Mixture, NoiseInputs
from certgp.gp.noise import nothing
from certgp.kernels import Gaussian
from certgp.training import noise as module
from certgp.training.noise import Unseen, constant_noise, learn_noise


def unseen(n: int, spread, seed: int = 0) -> Unseen:
    """Residuals of known spread (a function of x) around a mean of zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    variance = rng.uniform(0.01, 0.05, n)
    y = np.sqrt(variance + spread(X[:, 0]) ** 2) * rng.standard_normal(n)
    none = nothing(n)
    zero = torch.zeros(n).double()
    rows = NoiseInputs(torch.from_numpy(X), zero, torch.from_numpy(variance), none, none, none)
    return Unseen(rows, torch.from_numpy(y))


@pytest.fixture
def process():
    return ExactProcess(Gaussian(), torch.zeros((1, 2)).double(), torch.zeros(1).double(), 0.1)


def learn(process, rows: Unseen, always: bool = False):
    learn_noise(process, rows, np.random.default_rng(0), always)
    return process


def test_the_spread_is_recovered(process):
    rows = unseen(4_000, lambda x: np.exp(0.6 * x))
    learn(process, rows)
    assert process.noise_gain.accepted
    assert process.noise_gain.gain > 0.1
    new = unseen(2_000, lambda x: np.exp(0.6 * x), seed=1)
    found = process.noise_model.at(new.rows).variances[0].numpy()  # of the narrow component
    np.testing.assert_allclose(np.log(found), 1.2 * new.rows.X[:, 0].numpy(), atol=0.35)


def test_latent_variances_that_are_too_large_enter_in_part(process):
    """A process that is ten times less sure than it might be, where that is: noise(x) cannot take it off again."""
    rng = np.random.default_rng(0)
    honest = unseen(2_000, lambda x: 0.05 + 0.05 * (x > 0))
    rows = replace(honest.rows, variance=honest.rows.variance * torch.from_numpy(rng.choice([10.0, 12.0], 2_000)))
    learn(process, replace(honest, rows=rows))
    model = process.noise_model
    assert model.latent == 0.1
    scaled = model.scale(rows)
    noise = model.at(scaled)
    mixture = Mixture(np.zeros((2, 2_000)), (scaled.variance + noise.variances).numpy(), noise.shares.numpy())
    lower, upper = mixture.quantiles(np.array([0.025, 0.975])).T
    assert np.mean((lower < honest.y.numpy()) & (honest.y.numpy() < upper)) == pytest.approx(0.95, abs=0.015)
    learn(process, honest)
    assert process.noise_model is model or process.noise_model.latent == 1.0


def test_out_of_fold_gain_predicts_the_gain_on_new_rows(process):
    def spread(x):
        return np.exp(0.6 * x)

    learn(process, unseen(2_000, spread))
    new = unseen(20_000, spread, seed=1)
    noise, level = process.noise_model.at(new.rows), process.noise_model.basis.level
    variances = noise.variances + new.rows.variance
    densities = torch.exp(-0.5 * new.y**2 / variances) / torch.sqrt(2.0 * np.pi * variances)
    constant = new.rows.variance + level
    before = 0.5 * (torch.log(2.0 * np.pi * constant) + new.y**2 / constant)
    gain = float((torch.log(noise.shares @ densities) + before).mean())
    assert gain == pytest.approx(process.noise_gain.gain, abs=3.0 * process.noise_gain.standard_error)


def test_constant_noise_stays_constant(process):
    accepted = 0
    for seed in range(20):
        process.noise_model = None
        learn(process, unseen(300, lambda x: 0.0 * x + 0.5, seed))
        accepted += process.noise_model is not None
    assert accepted <= 1


def test_always_keeps_what_was_learned(process):
    learn(process, unseen(300, lambda x: 0.0 * x + 0.5), always=True)
    assert process.noise_model is not None
    assert process.noise_gain.accepted
    # a wide component costs little: it has a small share, and the narrow one is as wide as it should be
    new = unseen(500, lambda x: 0.0 * x + 0.5, seed=1)
    assert 0.1 < float(process.noise_model.at(new.rows).variance.median()) < 0.5


@pytest.mark.parametrize(("rows", "word"), [(unseen(150, np.exp), "fewer than 200"), (None, "do not vary")])
def test_what_cannot_tell_is_not_asked(process, rows, word):
    if rows is None:
        rows = unseen(250, np.exp)
        rows.rows.X[:] = 1.0
    learn(process, rows)
    assert process.noise_model is None
    assert process.noise_gain is None
    with pytest.raises(InvalidInputError, match=word):
        learn(process, rows, always=True)


def test_repeats_are_the_same_and_other_folds_differ(process):
    rows = unseen(500, np.exp)
    first = learn(process, rows).noise_model.weights
    assert torch.equal(first, learn(process, rows).noise_model.weights)
    learn_noise(process, rows, np.random.default_rng(1), always=False)
    assert not torch.equal(first, process.noise_model.weights)


def test_many_rows_are_sampled(process, monkeypatch):
    monkeypatch.setattr(module, "_MOST_NUMBERS", 1_200)
    learn(process, unseen(2_000, np.exp))
    assert process.noise_gain.n_rows == 1_200 // 4  # two inputs and their squares


def test_constant_noise_is_the_likeliest():
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.0, 0.2, 500)
    residuals = np.sqrt(variance + 0.3) * rng.standard_normal(500)

    def loss(log_noise):
        total = variance + np.exp(log_noise[0])
        return np.mean(np.log(total) + residuals**2 / total)

    best = np.exp(minimize(loss, [0.0]).x[0])
    assert constant_noise(residuals, variance) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("k", [0, 6, 19])
def test_the_weights_maximise_the_penalised_likelihood(k):
    """Of one penalty and the rows of three folds: no general optimiser finds better ones."""
    rows = unseen(400, lambda x: np.exp(0.6 * x))
    psi = torch.cat([rows.rows.X, rows.rows.X.square()], 1)
    folds = torch.arange(400) % 4
    fitted = module._Scoring(psi.clone(), rows.residuals, rows.rows.variance, 0.3, folds).run()
    penalty, seen = module._PENALTIES[k // 4], (folds != k % 4).numpy()
    P, r, u = psi.numpy()[seen], rows.residuals.numpy()[seen], rows.rows.variance.numpy()[seen]

    def loss(theta):
        total = u + np.exp(theta[0] + P @ theta[1:])
        return 0.5 * np.sum(np.log(total) + r**2 / total) + 0.5 * penalty * np.sum(theta[1:] ** 2)

    found = np.append(fitted.intercepts[k], fitted.weights[:, k])
    assert loss(found) - minimize(loss, found).fun < 0.01
    assert loss(found) < loss(np.append(np.log(0.3), np.zeros(4))) - 10.0
