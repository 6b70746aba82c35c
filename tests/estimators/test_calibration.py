"""On data drawn from the model itself, 95 % intervals hold 95 % of new observations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from estimator_cases import every_estimator

from certgp import ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.kernels import kernel_from_name

SEEDS = range(20)
TRAIN, TEST = 120, 300
LENGTH_SCALE, SIGNAL, NOISE = 0.7, 1.6, 0.15
OPTIONS = {
    MercerGP: {"rank": 20},
    FourierGP: {"rank": 100, "sampling": "sobol"},
    SparseGP: {"rank": 25},
    ExactGP: {},
    LocalGP: {},
}


def draw(seed, kernel="gaussian"):
    """Rows in one dimension, f from the exact prior, y = f + noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (TRAIN + TEST, 1))
    K = kernel_from_name(kernel)(LENGTH_SCALE, SIGNAL)(torch.from_numpy(X), torch.from_numpy(X)).numpy()
    f = np.linalg.cholesky(K + 1e-9 * np.eye(len(X))) @ rng.standard_normal(len(X))
    return X, f + np.sqrt(NOISE) * rng.standard_normal(len(X))


def coverage(model, X, y, level=0.95):
    lower, upper = model.fit(X[:TRAIN], y[:TRAIN]).predict_interval(X[TRAIN:], level)
    return np.mean((lower <= y[TRAIN:]) & (y[TRAIN:] <= upper))


def known(cls, seed, kernel="gaussian"):
    """The model that the data were drawn from."""
    truth = {"length_scale": LENGTH_SCALE, "signal_variance": SIGNAL, "noise_variance": NOISE, "kernel": kernel}
    return cls(**truth, **OPTIONS[cls], optimize=False, standardize=False, random_state=seed)


@every_estimator
@pytest.mark.parametrize("kernel", ["gaussian", "matern32"])
def test_true_hyper_parameters_cover(cls, kernel):
    kernel = "gaussian" if cls is MercerGP else kernel
    covered = [coverage(known(cls, seed, kernel), *draw(seed, kernel)) for seed in SEEDS]
    assert 0.93 <= np.mean(covered) <= 0.97


@every_estimator
def test_half_of_the_observations_lie_in_the_50_percent_interval(cls):
    covered = [coverage(known(cls, seed), *draw(seed), level=0.5) for seed in SEEDS]
    assert 0.47 <= np.mean(covered) <= 0.53


@every_estimator
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_learned_hyper_parameters_cover_and_find_the_noise(cls):
    """Relative error of one noise estimate: about sqrt(2 / N) = 13 %; of the mean over 20 seeds: 3 %."""
    options = OPTIONS[cls] | ({"kernel": "gaussian"} if cls is LocalGP else {})
    models = [cls(**options, max_iter=20, random_state=seed) for seed in SEEDS]
    covered = [coverage(model, *draw(seed)) for seed, model in enumerate(models)]
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean([model.noise_variance_ for model in models]) == pytest.approx(NOISE, rel=0.12)
