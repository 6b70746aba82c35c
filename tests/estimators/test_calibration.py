"""On data drawn from the model itself, 95 % intervals hold 95 % of new observations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from estimator_cases import every_estimator

from certgp import ExactGP, FourierGP, MercerGP, SparseGP
from certgp.kernels import kernel_from_name

SEEDS = range(20)
TRAIN, TEST = 120, 300
LENGTH_SCALE, SIGNAL, NOISE = 0.7, 1.6, 0.15
OPTIONS = {
    MercerGP: {"rank": 40},
    FourierGP: {"rank": 100, "sampling": "sobol"},
    SparseGP: {"rank": 30},
    ExactGP: {},
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


@every_estimator
@pytest.mark.parametrize("kernel", ["gaussian", "matern32"])
def test_true_hyper_parameters_cover(cls, kernel):
    kernel = "gaussian" if cls is MercerGP else kernel
    known = {"length_scale": LENGTH_SCALE, "signal_variance": SIGNAL, "noise_variance": NOISE, "kernel": kernel}
    covered = [
        coverage(
            cls(**known, **OPTIONS[cls], optimize=False, standardize=False, random_state=seed), *draw(seed, kernel)
        )
        for seed in SEEDS
    ]
    assert 0.93 <= np.mean(covered) <= 0.97


@every_estimator
def test_half_of_the_observations_lie_in_the_50_percent_interval(cls):
    known = {"length_scale": LENGTH_SCALE, "signal_variance": SIGNAL, "noise_variance": NOISE}
    covered = [
        coverage(cls(**known, **OPTIONS[cls], optimize=False, standardize=False, random_state=s), *draw(s), level=0.5)
        for s in SEEDS
    ]
    assert 0.47 <= np.mean(covered) <= 0.53


@every_estimator
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_learned_hyper_parameters_cover(cls):
    covered = [coverage(cls(**OPTIONS[cls], max_iter=40, random_state=seed), *draw(seed)) for seed in SEEDS]
    assert 0.93 <= np.mean(covered) <= 0.97


@every_estimator
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_noise_variance_is_recovered(cls):
    found = [cls(**OPTIONS[cls], max_iter=40, random_state=seed).fit(*draw(seed)).noise_variance_ for seed in range(5)]
    # N = 420 rows: the relative standard error of one estimate is about sqrt(2 / N) = 7 %, of the mean of five 3 %
    assert np.mean(found) == pytest.approx(NOISE, rel=0.12)
